"""The operators of ATen as primitives: each node of small graphs against PyTorch's own result."""

import math
import operator
from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx

from dojo_core.primitives import Builder
from dojo_core.program.interpret import interpret
from tests.thorough import one_of

pytestmark = pytest.mark.xdist_group("dynamo")  # which one process imports
aten = torch.ops.aten


@pytest.fixture(scope="module", autouse=True)
def backend():
    """TorchDynamo comes with it, in seconds: only where these tests run, not wherever they are collected."""
    global OPERATORS, decompositions, word_of, translated, FUNCTIONS
    from agents.torch_backend.call import OPERATORS
    from agents.torch_backend.decompositions import decompositions
    from agents.torch_backend.dtypes import word_of
    from agents.torch_backend.nodes import translated
    from agents.torch_backend.recurrent import FUNCTIONS


def sampled(cases, *rare):
    """The names of cases; those that take longest are for make soak."""
    return [pytest.param(name, marks=pytest.mark.soak) if name in rare else name for name in cases]


def ours(node, given):
    """What the translation of a node makes of tensors: by the numbers of the results that are wanted."""
    made = translated(node, {}).node
    b = Builder("k")
    arrays = [b.input(f"x{k}", word_of(t.dtype), tuple(t.shape)) for k, t in enumerate(given)]
    for k, array in enumerate(made.emit(b, arrays)):
        b.output(f"y{k}", array)
    program = b.program()
    inputs = {
        f"x{k}": t.double().numpy() if t.dtype == torch.bfloat16 else t.numpy().copy()
        for k, t in enumerate(given)
    }
    inputs |= b.constants
    results = interpret(program, {name: inputs[name] for name in program.inputs})
    return {t.name: results[f"y{k}"] for k, t in enumerate(made.outputs)}


class Beside(torch.fx.Interpreter):
    """Runs a graph in PyTorch, and each node of it in the Dojo too."""

    compared = 0

    def run_node(self, node):
        result = super().run_node(node)
        if node.op == "call_function" and node.target is not operator.getitem and "empty" not in node.name:
            given = [self.env[each] for each in dict.fromkeys(node.all_input_nodes)]
            several = result if isinstance(result, (list, tuple)) else [result]
            for name, values in ours(node, given).items():
                _, _, number = name.partition(".")
                close(values, several[int(number or 0)], node)
                self.compared += 1
        return result


def close(values, expected, node):
    assert values.shape == tuple(expected.shape), node
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(expected.dtype, 1e-5)
    np.testing.assert_allclose(
        np.asarray(values, float), expected.to(torch.float64).numpy(), tolerance, tolerance, err_msg=str(node)
    )


def compare(function, *inputs):
    """A function's graph in the operators that the backend gets; gives how many results were compared."""

    def traced(function):
        return make_fx(function, decompositions(), "fake", _allow_non_fake_inputs=True)(*inputs)

    with torch.no_grad():
        function(*inputs)  # once, so that the numbers it asks for are there and no part of the graph
        graph = traced(functionalize(traced(lambda *given: function(*given))))
        graph.graph.eliminate_dead_code()
        beside = Beside(graph)
        beside.run(*inputs)
    return beside.compared


@cache
def numbers(*shape, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0 if dtype in (torch.bool, torch.uint8) else -5, 2 if dtype == torch.bool else 6,
                         shape, generator=generator).to(dtype)  # fmt: skip


def test_every_name_of_the_table_is_an_operators():
    for key in OPERATORS:
        namespace, name, overload = f"aten.{key}".split(".")[-3:]
        assert overload in getattr(getattr(torch.ops, namespace), name).overloads(), key


X, Y, ROW = numbers(3, 4), numbers(3, 4, seed=1), numbers(4, seed=2)
INT, TRUE = numbers(3, 4, dtype=torch.int64), numbers(3, 4, dtype=torch.bool)
POSITIVE, UNIT = X.abs() + 0.1, X.tanh() * 0.9
HALF, BRAIN = X.half(), Y.bfloat16()

UNARY = {
    "abs ceil cos cosh erf erfc exp exp2 expm1 floor neg reciprocal relu round sigmoid sign sin sinh square "
    "tan tanh trunc asinh isnan isinf atan": X,
    "log log10 log1p log2 rsqrt sqrt acosh": POSITIVE + 1,
    "acos asin atanh logit": UNIT * 0.4 + 0.5,
    "bitwise_not abs floor logical_not sigmoid sqrt": INT.abs() + 1,
}


@pytest.mark.parametrize(("names", "x"), UNARY.items(), ids=["reals", "positive", "unit", "whole"])
def test_functions_of_one_argument(names, x):
    assert compare(lambda x: [getattr(torch, name)(x) for name in names.split()], x)


ACTIVATIONS = [
    F.celu, F.elu, F.gelu, F.hardshrink, F.hardsigmoid, F.hardswish, F.hardtanh, F.leaky_relu, F.logsigmoid,
    F.mish, F.relu6, F.selu, F.silu, F.softplus, F.softsign, F.softshrink, F.tanhshrink,
    lambda x: F.gelu(x, approximate="tanh"), lambda x: F.elu(x, 0.5), lambda x: F.prelu(x, ROW[:1]),
    lambda x: F.threshold(x, 0.1, 20), lambda x: F.softplus(x, 2, 1), lambda x: F.glu(x, -1),
]  # fmt: skip


def test_activations():
    assert compare(lambda x: [function(x) for function in ACTIVATIONS], 3 * X)


def test_softplus_on_both_sides_of_its_threshold():
    """Which only some selections are made by: from 20 on, f32 knows no difference."""
    x = torch.tensor([-math.inf, -300, -20, 0, 19.9, 20.1, 25, 300, 3e38, math.inf, math.nan])
    assert compare(
        lambda x: [F.softplus(x, *given) for given in ((), (0.5,), (2,), (-1,), (1, 3), (1, 30))], x
    )
    assert compare(F.softplus, x.double()) and compare(F.softplus, x.bfloat16())


BINARY = {
    "alpha": lambda: torch.add(X, ROW, alpha=2) + torch.sub(X, Y, alpha=0.5) + (2 - X),
    "whole numbers beside reals": lambda: X + INT + INT * 2.5 + INT / 2 + (INT > X) + 1,
    "division": lambda: torch.div(X, Y, rounding_mode="floor") + torch.div(X, Y, rounding_mode="trunc"),
    "whole division": lambda: INT // 3 + torch.div(INT, -3, rounding_mode="trunc") + INT % 3 + INT % -3,
    "remainders": lambda: torch.remainder(X, 0.7) + torch.fmod(X, ROW) + torch.fmod(X, -0.7),
    "powers": lambda: X**2 + X**3 + POSITIVE**0.5 + POSITIVE**-0.5 + POSITIVE**Y + 2.0**X + INT**2,
    "numbers, not NaN": lambda: (
        torch.fmax(X.sqrt(), Y.sqrt()),
        torch.fmin(X.sqrt(), Y.sqrt()),
        torch.fmax(INT, INT.flip(0)),
    ),
    "bounds": lambda: torch.maximum(X, Y) + X.clamp(-0.5) + X.clamp(max=0.5) + X.clamp(Y - 1, Y + 1),
    "whole bounds": lambda: INT.clamp(-2, 2) + torch.minimum(INT, INT.flip(0)),
    "angles": lambda: torch.atan2(X, Y) + torch.atan2(X, torch.zeros(4)),
    "together": lambda: torch.addcmul(X, Y, ROW, value=2) + torch.addcdiv(X, Y, POSITIVE) + X.lerp(Y, 0.3),
    "comparisons": lambda: ((X > Y) & (X <= 1)) | (INT == 2) ^ (INT != X) | (X >= 0.5) | (INT < 1.5),
    "logic": lambda: torch.logical_and(X, INT) | torch.logical_xor(INT, TRUE) | torch.logical_or(TRUE, INT),
    "bits": lambda: (INT & 3) + (INT | 8) + (INT ^ 5) + (INT.to(torch.int32) & 6),
    "truth": lambda: (TRUE + TRUE.flip(1)).float() + (TRUE * TRUE.flip(0)).float() + TRUE.sum(),
    "choice": lambda: (
        torch.where(X > 0, X, Y) + torch.where(TRUE, 1.0, X) + X.masked_fill(TRUE, -1e30) * 1e-30
    ),
    "conversions": lambda: X.to(torch.int32).float() + X.bool().double() + INT.to(torch.uint8).to(X.dtype),
    "sixteen bits": lambda: (HALF * 2 + 1).float() + BRAIN.float() * (BRAIN + 1) + HALF.exp(),
    "half and brain": lambda: HALF + BRAIN,
}


@pytest.mark.parametrize("name", one_of(2, BINARY))
def test_functions_of_several_arguments(name):
    assert compare(BINARY[name])


CUBE = numbers(2, 3, 4, seed=3)
UNSORTED = torch.tensor(
    [[2.0, 1, 2, math.nan, -3], [1, math.inf, -math.inf, 1, 0], [math.nan, 2, 4, 4, math.nan]]
)
REDUCTIONS = {
    "sums": lambda x: (x.sum(), x.sum(1), x.sum((0, -1), keepdim=True), x.sum(1, dtype=torch.float64)),
    "sums of whole numbers": lambda x: (INT.sum(), INT.to(torch.int32).sum(0), TRUE.sum(0), INT.prod(1)),
    "means and products": lambda x: (x.mean(), x.mean((0, 2)), x.prod(), x.prod(1), x.half().mean(1)),
    "extremes": lambda x: (x.amax(), x.amin((0, 1)), x.max(), x.min(), INT.amax(0), x.max(1).values),
    "places": lambda x: (
        x.argmax(),
        x.argmin(1),
        x.argmax(-1, keepdim=True),
        *x.max(2),
        *x.min(0),
        *INT.max(1),
    ),
    "truth": lambda x: ((x > 2).any(), (x > 0).any(1), (x > -2).all(), (x > 0).all(0, keepdim=True)),
    "spread": lambda x: (x.var(), x.std(1), x.var(1, correction=0), *torch.var_mean(x, 2), x.std((0, 2))),
    "norms": lambda x: (
        x.norm(),
        x.norm(1, 1),
        x.norm(3, 2),
        x.norm(float("inf"), 0),
        F.normalize(x, dim=1),
        torch.cdist(x, x),
        torch.pdist(X),
    ),
    "softmax": lambda x: (
        x.softmax(1),
        x.log_softmax(-1),
        x.logsumexp(1),
        F.softmin(x, 0),
        x.half().softmax(2),
        aten._safe_softmax(x.masked_fill(x[..., :1] > 0, -torch.inf), -1),  # rows of -inf alone too
    ),
    "scans": lambda x: (
        x.cumsum(1),
        x.cumprod(2),
        INT.cumsum(0),
        x.flip(1).cumsum(1).flip(1),
        *UNSORTED.cummax(1),
        *UNSORTED.cummin(0),
    ),
    "numbers": lambda x: (x[0, 0, 0].softmax(0), x[0, 0, 0].sum(), x[0, 0, 0].cumsum(0), x[0, 0, 0].argmax()),
}


@pytest.mark.parametrize("name", one_of(2, REDUCTIONS))
def test_reductions(name):
    assert compare(REDUCTIONS[name], CUBE)


M, N, BIAS = numbers(3, 5), numbers(5, 4, seed=1), numbers(4, seed=2)
LEFT, RIGHT = numbers(2, 3, 5), numbers(2, 5, 4, seed=4)
HEADS = numbers(1, 2, 5, 4, seed=5)
PRODUCTS = {
    "matrices": lambda: (
        M @ N, M @ N[:, 0], N[:, 0].dot(N[:, 1]), M.half() @ N.half(), M.double() @ N.double(),
    ),
    "with a bias": lambda: (
        torch.addmm(BIAS, M, N), torch.addmm(BIAS, M, N, beta=0.5, alpha=2),
        torch.addmv(BIAS[:3], M, N[:, 0]),
    ),
    "nothing of a bias": lambda: torch.addmm(BIAS / 0 - BIAS / 0, M, N, beta=0, alpha=2),
    "batches": lambda: (
        LEFT @ RIGHT, torch.baddbmm(LEFT[..., :4], LEFT, RIGHT), LEFT @ N,
        torch.einsum("bij,bjk->bki", LEFT, RIGHT),
    ),
    "linear": lambda: (F.linear(M, N.T), F.linear(LEFT, N.T, BIAS), F.bilinear(M, M, numbers(2, 5, 5))),
    "attention": lambda: (
        F.scaled_dot_product_attention(HEADS, HEADS, HEADS),
        F.scaled_dot_product_attention(HEADS, HEADS, HEADS, is_causal=True),
    ),
    "whole numbers": lambda: INT @ INT.T,
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(PRODUCTS, "attention", "whole numbers"))
def test_products(name):
    assert compare(PRODUCTS[name])


IMAGE, LINE, BLOCK = numbers(2, 4, 6, 7), numbers(2, 4, 9), numbers(1, 2, 4, 5, 6)
CONVOLUTIONS = {
    "plain": lambda: F.conv2d(IMAGE, numbers(3, 4, 3, 2), BIAS[:3]),
    "strided, padded, dilated": lambda: F.conv2d(IMAGE, numbers(3, 4, 3, 2), None, (2, 1), (1, 2), (1, 2)),
    "same": lambda: F.conv2d(IMAGE, numbers(3, 4, 3, 3), padding="same"),
    "grouped and depthwise": lambda: (
        F.conv2d(IMAGE, numbers(6, 2, 3, 3), groups=2), F.conv2d(IMAGE, numbers(8, 1, 2, 2), groups=4),
    ),
    "lines and blocks": lambda: (
        F.conv1d(LINE, numbers(3, 4, 3), padding=1), F.conv3d(BLOCK, numbers(3, 2, 2, 2, 2), stride=2),
    ),
    "transposed": lambda: F.conv_transpose2d(IMAGE, numbers(4, 3, 3, 2), BIAS[:3], 2, 1, 1),
    "transposed, dilated, grouped": lambda: (
        F.conv_transpose1d(LINE, numbers(4, 2, 3), None, 3, 1, 0, 2, 2),
        F.conv_transpose3d(BLOCK, numbers(2, 2, 2, 2, 2)),
    ),
    "no batch": lambda: F.conv2d(IMAGE[0], numbers(3, 4, 3, 2)),
}  # fmt: skip
POOLINGS = {
    "largest": lambda: (
        F.max_pool2d(IMAGE, 2), F.max_pool2d(IMAGE, 3, 2, 1, 1, True), F.max_pool1d(LINE, 3, 2),
    ),
    "largest with places": lambda: (
        *F.max_pool2d(IMAGE, 3, 1, 1, return_indices=True), *F.max_pool3d(BLOCK, 2, return_indices=True),
    ),
    "average": lambda: (
        F.avg_pool2d(IMAGE, 2), F.avg_pool1d(LINE, 3, 2, 1, True, False), F.avg_pool3d(BLOCK, 2),
    ),
    "average of padded": lambda: (
        F.avg_pool2d(IMAGE, 3, 2, 1), F.avg_pool2d(IMAGE, 2, 1, 1, divisor_override=3),
    ),
    "adaptive": lambda: (
        F.adaptive_avg_pool2d(IMAGE, (3, 7)), F.adaptive_avg_pool2d(IMAGE, (4, 3)),
        F.adaptive_avg_pool1d(LINE, 4), F.adaptive_max_pool2d(IMAGE, (3, 1)),
    ),
    "no batch": lambda: (
        F.max_pool2d(IMAGE[0], 2), F.avg_pool2d(IMAGE[0], 2), F.adaptive_avg_pool2d(IMAGE[0], 1),
    ),
}  # fmt: skip
SCALE = numbers(4, seed=6).abs() + 0.5
NORMS = {
    "layers": lambda: (
        F.layer_norm(IMAGE, (6, 7)),
        F.layer_norm(X, (4,), SCALE, BIAS),
        F.layer_norm(X.half(), (4,)),
    ),
    "groups": lambda: F.group_norm(IMAGE, 2, SCALE, BIAS),
    "batches": lambda: aten._native_batch_norm_legit_no_training(IMAGE, BIAS, SCALE, BIAS, SCALE, 0.1, 1e-5)[
        0
    ],
    "statistics": lambda: aten._native_batch_norm_legit_functional(
        IMAGE, SCALE, BIAS, BIAS, SCALE, True, 0.1, 1e-5
    ),
    "instances": lambda: aten._native_batch_norm_legit.no_stats(LINE, SCALE, BIAS, True, 0.1, 1e-5),
    "responses": lambda: F.local_response_norm(IMAGE, 3),
}


@pytest.mark.parametrize("name", one_of(2, CONVOLUTIONS))
def test_convolutions(name):
    assert compare(CONVOLUTIONS[name])


@pytest.mark.parametrize("name", sampled(POOLINGS, "largest with places", "adaptive"))
def test_poolings(name):
    assert compare(POOLINGS[name])


@pytest.mark.parametrize("name", NORMS)
def test_normalisations(name):
    assert compare(NORMS[name])


VIEWS = {
    "shapes": lambda x: (
        x.view(6, 4), x.permute(2, 0, 1), x.mT, x.unsqueeze(1), x[:, :1].squeeze(1), x.expand(5, 2, 3, 4),
    ),
    "parts": lambda x: (
        x[:, 1:3], x[..., ::2], x[1], x.select(-1, -1), *x.split([1, 3], 2), *x.chunk(2, 2), *x.unbind(1),
    ),
    "repeated": lambda x: (
        x.repeat(2, 1, 1, 2), x.flip(0, 2), x.diagonal(1, 1, 2), x.unfold(2, 2, 1), x.tile(2),
    ),
    "joined": lambda x: (
        torch.cat([x, x[:, :1]], 1), torch.stack([x, x]), torch.cat([x.half(), x.half()]), x.roll(1, 2),
        x.roll(5),
    ),
    "many joined": lambda x: (torch.stack([x[0, 0]] * 150, 1), torch.cat([x[0]] * 70, -1)),
    "padded": lambda x: (
        F.pad(x, (1, 2, 0, 1), value=3), F.pad(x, (1, 2), mode="reflect"),
        F.pad(x, (2, 1), mode="replicate"), F.pad(x, (-1, 1)),
    ),
    "replaced": lambda x: (torch.slice_scatter(x, x[:, :1] * 2, 1, 2), torch.select_scatter(x, x[0], 0, -1)),
    "made": lambda x: (
        torch.full((2,), 3.5), torch.zeros_like(x) + torch.ones(4), torch.arange(1, 9, 3),
        torch.arange(0, 1, 0.25), torch.eye(3),
    ),
    "triangles": lambda x: (
        x.tril(), x.triu(1), x.tril(-1), torch.full((4, 4), float("-inf")).triu(1),
        torch.full((2,), float("nan")),
    ),
    "resized": lambda x: (
        F.interpolate(IMAGE, scale_factor=2), F.interpolate(IMAGE, (9, 4)),
        F.interpolate(LINE, scale_factor=1.5),
    ),
    "between": lambda x: (
        F.interpolate(IMAGE, scale_factor=2, mode="bilinear"),
        F.interpolate(IMAGE, (4, 9), mode="bilinear", align_corners=True),
    ),
    "memory": lambda x: (
        x.as_strided((3, 2, 3), (4, 1, 1)), x.as_strided((4, 3), (1, 4)), x.as_strided((2, 3), (0, 2), 5),
        x.as_strided((2, 6, 1), (6, 1, 9)),
    ),
    "by weighted neighbours": lambda x: (
        F.interpolate(IMAGE[:1, :1], (9, 4), mode="bicubic"),
        F.interpolate(IMAGE[:1, :1], (4, 9), mode="bicubic", align_corners=True),
        F.interpolate(IMAGE[:1, :1], scale_factor=0.4, mode="bicubic", antialias=True),
        F.interpolate(IMAGE[:1, :1], (3, 9), mode="bilinear", antialias=True),
    ),
    "shuffled": lambda x: (
        F.pixel_shuffle(IMAGE, 2), F.pixel_unshuffle(IMAGE[..., :6], 2), F.channel_shuffle(IMAGE, 2),
        F.unfold(IMAGE, 2),
    ),
}  # fmt: skip
GRID = numbers(2, 3, 2, 2, seed=8) * 0.9
LOOKED_UP = {
    "between four": ("bilinear", "zeros", False),
    "at the border": ("bilinear", "border", True),
    "the nearest": ("nearest", "zeros", False),
}
AT = torch.tensor([[1, 0, 2], [2, 2, 1]])
GATHERS = {
    "rows": lambda x: (F.embedding(AT, X), x.index_select(1, AT[0]), X[AT], x[:, AT], x[:, [0, 2]]),
    "along": lambda x: (x.gather(1, AT[:, :, None] % 2), torch.take_along_dim(x, x.argmax(1, True), 1)),
    "several": lambda x: (x[AT % 2, AT], x[:, AT, AT], x[AT % 2, :, AT], x[torch.tensor([-1, 0]), -1]),
    "losses": lambda x: (
        F.cross_entropy(X, AT[0]), F.nll_loss(X, AT[0], weight=ROW), F.mse_loss(X, Y),
        F.smooth_l1_loss(X, Y), F.huber_loss(X, Y), F.kl_div(X, Y.softmax(1)),
        F.triplet_margin_loss(X, Y, -X),
        F.binary_cross_entropy_with_logits(X, Y.sigmoid()),
    ),
}  # fmt: skip


ORDERS = {
    "sorted": lambda: (*UNSORTED.sort(1), *UNSORTED.sort(-1, descending=True), *INT.sort(0), *X[0, 0].sort()),
    "stable": lambda: (
        *torch.sort(INT, dim=1, stable=True), torch.argsort(TRUE, dim=1, stable=True), *HALF.sort(1),
    ),
    "the largest": lambda: (*X.topk(2), *X.topk(2, 0), *X.topk(3, largest=False), *X.kthvalue(2)),
    "places among them": lambda: (
        torch.bucketize(UNSORTED, ROW.sort().values), torch.bucketize(0.5, ROW),
        torch.bucketize(INT, torch.tensor([0, 2, 2]), right=True),
        torch.searchsorted(X.sort(1).values, UNSORTED[:, :2].contiguous(), out_int32=True),
    ),
}  # fmt: skip
WHERE = torch.tensor([[2, 0, 0], [1, 1, 3]])
WRITES = {
    "scattered": lambda: (
        X.scatter(1, WHERE, Y), X.scatter(1, WHERE, 5.0), X.scatter_add(1, WHERE, Y),
        X[0].scatter(0, WHERE[0], Y[0]), HALF.scatter_add(1, WHERE, HALF),
        X.scatter(1, WHERE, 2.0, reduce="add"),
    ),
    "reduced": lambda: [
        X.scatter_reduce(1, WHERE, Y, how, include_self=kept)
        for how in ("sum", "prod", "mean", "amax", "amin") for kept in (True, False)
    ],
    "by rows": lambda: (
        X.index_add(0, AT[0] % 2, X, alpha=2), X.index_copy(1, AT[0], Y[:, :3]), X.index_fill(1, AT[0], 3.0),
    ),
    "assigned": lambda: [
        aten.index_put(CUBE, at, values, add)
        for at, values, add in (
            ((AT % 2, AT), ROW, False), ((AT % 2, AT), ROW, True), ((AT[0] % 2,), CUBE[0], True),
            ((AT[0, :2] % 2, None, torch.tensor([-1, 2])), torch.tensor(2.0), False),
        )
    ],
    "bags": lambda: [
        F.embedding_bag(AT.view(-1), X, torch.tensor([0, 2, 2]), mode=mode, padding_idx=padding)
        for mode, padding in (("sum", None), ("mean", 1), ("max", None))
    ],
    "by masks": lambda: (
        torch.index_put(X, (X > 0,), torch.tensor(7.0)),
        torch.index_put(CUBE, (CUBE[..., 0] > 0,), ROW, True),
        X.masked_scatter(X > 0, Y), X.masked_scatter(TRUE[0], Y),
    ),
}  # fmt: skip


LAYERS = {
    "lstm": (torch.lstm, nn.LSTM(3, 4, 2, batch_first=True)),
    "gru": (torch.gru, nn.GRU(3, 4)),
    "gru without biases": (torch.gru, nn.GRU(3, 4, bias=False, bidirectional=True)),
    "rnn": (torch.rnn_relu, nn.RNN(3, 4, nonlinearity="relu")),
}


@pytest.mark.parametrize("name", sampled(LAYERS, "gru without biases"))
def test_recurrent_layers(name):
    function, layer = LAYERS[name]
    rows = layer.num_layers * (1 + layer.bidirectional)
    first = numbers(rows, 2, 4, seed=7)
    state = (first, -first) if function is torch.lstm else first
    options = layer.bias, layer.num_layers, 0.0, False, layer.bidirectional, layer.batch_first

    def run(function, x):
        return function(x, state, [weight.detach() for weight in layer._flat_weights], *options)

    x = numbers(2, 5, 3) if layer.batch_first else numbers(5, 2, 3)
    for ours, theirs in zip(run(FUNCTIONS[function], x), run(function, x), strict=True):
        torch.testing.assert_close(ours, theirs)  # as PyTorch runs what the Dojo does not take
    assert compare(lambda x: run(FUNCTIONS[function], x), x)


@pytest.mark.parametrize("name", ORDERS)
def test_orders(name):
    assert compare(ORDERS[name])


@pytest.mark.parametrize("name", sampled(WRITES, "reduced"))
def test_writes_at_places_that_are_data(name):
    assert compare(WRITES[name])


@pytest.mark.parametrize("name", one_of(2, sampled(VIEWS, "many joined", "resized", "between", "shuffled")))
def test_views_and_copies(name):
    assert compare(VIEWS[name], CUBE)


@pytest.mark.parametrize("name", one_of(2, sampled(LOOKED_UP, "at the border")))
def test_pixels_at_places_that_are_data(name):
    assert compare(lambda grid: F.grid_sample(IMAGE, grid, *LOOKED_UP[name]), GRID)


@pytest.mark.parametrize("name", sampled(GATHERS, "losses"))
def test_places_that_are_data(name):
    assert compare(GATHERS[name], CUBE)
