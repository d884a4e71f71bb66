"""Operators of ONNX that are written as text: what each is read as, and how mistakes are told."""

import numpy as np
import pytest

from dojo_core import extras
from dojo_core.faults import text_fault
from dojo_core.from_code.recognise import kind_of
from dojo_core.from_code.source import sizes_of
from dojo_core.from_code.translate import translate
from dojo_core.program.expressions import TextError
from dojo_core.program.interpret import interpret
from dojo_core.service.drafts import draft

pytest.importorskip("onnx")

MODEL = """
<ir_version: 8, opset_import: ["": 18]>
head (float[N, 128] x, float[128, 10] w, float[10] b) => (float[N, 10] y) {
    t = MatMul(x, w)
    s = Add(t, b)
    y = Softmax <axis = -1> (s)
}
"""
SCRIPT = """
node = onnx.helper.make_node("Softmax", inputs=["x"], outputs=["y"], axis=1)
x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", 64])
"""
ONNX_SCRIPT = """
@script()
def softmax(x: FLOAT["m", 64]):
    e = op.Exp(x)
    return op.Div(e, op.ReduceSum(e, [-1]))
"""
PRINTED = """
node {
  input: "x"
  output: "y"
  op_type: "Relu"
}
"""


def softmax(x):
    e = np.exp(x)
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, scale, bias):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale + bias


# A text, what it is read as, sizes, and what it computes of the program's inputs in their order.
TEXTS = {
    "attributes alone": ("Softmax(axis=-1)", "softmax of input[m, n]", "m=3 n=5", softmax),
    "said to be it": (
        "onnx: LayerNormalization(x, scale, bias, axis=-1)",
        "layer_normalization of x[m, n], scale[n], bias[n]",
        "m=3 n=5",
        layer_norm,
    ),
    "transposed": (
        "y = Gemm(a, b, c, alpha=2.0, transB=1)",
        "gemm of a[m, k], b[n, k], c[n]",
        "m=3 k=4 n=5",
        lambda a, b, c: 2 * a @ b.T + c,
    ),
    "the standard's format": (
        "agraph (float[N] x) => (float[N] y) { y = Relu(x) }",
        "agraph of x[N]",
        "N=5",
        lambda x: np.maximum(x, 0),
    ),
    "a node of it": ("y = Softmax <axis = 0> (x)", "softmax of x[m, n]", "m=3 n=5", lambda x: softmax(x.T).T),
    "a model of it": (
        MODEL,
        "head of x[N, 128], w[128, 10], b[10]",
        "N=3",
        lambda x, w, b: softmax(x @ w + b),
    ),
    "make_node": (SCRIPT, "softmax of x[rows, 64]", "rows=3", softmax),
    "ONNX Script": (ONNX_SCRIPT, "softmax of x[m, 64]", "m=3", softmax),
    "print(node)": (PRINTED, "relu of x[m, n]", "m=3 n=5", lambda x: np.maximum(x, 0)),
    "lines": (
        "h = Gemm(x, w1, b1)\nh = Relu(h)\ny = MatMul(h, w2)",
        "gemm_relu_mat_mul of x[m, n], w1[n, k], b1[k], w2[k, h]",
        "m=3 n=4 k=5 h=2",
        lambda x, v, b, w: np.maximum(x @ v + b, 0) @ w,
    ),
    "calls within calls, constants": (
        "Clip(Mul(x, Sigmoid(x)), 0, max=6)",
        "sigmoid_mul_clip of x[m, n]",
        "m=3 n=5",
        lambda x: np.clip(x / (1 + np.exp(-x)), 0, 6),
    ),
    "an input by its name": (
        "ReduceSum(x, axes=[1], keepdims=0)",
        "reduce_sum of x[m, n]",
        "m=3 n=5",
        lambda x: x.sum(1),
    ),
    "usual axes": (
        "Conv(x, w, group=8, kernel_shape=[1, 1])",
        "conv of x[n, 8, h, w], w[8, 1, 1, 1]",
        "n=2 h=3 w=4",
        lambda x, w: x * w[:, 0],
    ),
    "integers": ("# w[v, d]\nGather(w, i)", "gather of w[v, d], i[m]", "", None),
}


@pytest.mark.parametrize("text, read_as, sizes, meaning", TEXTS.values(), ids=TEXTS)
def test_operators_become_programs(text, read_as, sizes, meaning):
    assert kind_of(text) == "onnx"
    made = translate(text, sizes_of(sizes.split()))
    assert made.sentence == f"Read as ONNX: {read_as}."
    assert made.checked.startswith("Checked against the text on random inputs")
    if meaning is None:
        return
    rng = np.random.default_rng(1)
    shapes = {name: [d.size for d in made.program.buffer_of[name].dims] for name in made.program.inputs}
    inputs = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    (computed,) = interpret(made.program, inputs).values()
    assert np.allclose(computed, meaning(*(each.astype(float) for each in inputs.values())), atol=1e-6)


REFUSED = [
    ("y = Sofmax(x)", "line 1, column 5: there is no operator Sofmax in ONNX", "Did you mean Softmax?"),
    ("y = Linear(x, w)", "there is no operator Linear in ONNX", "In ONNX it is Gemm(x, w, b, transB=1)."),
    ("Softmax(x, axs=1)", "line 1, column 12: Softmax has no attribute axs", "Did you mean axis?"),
    ("onnx: y = Gemm(a, b", "line 1, column 15: '(' was never closed", "mend this place"),
    ("Gemm(a, b, transB='x')", "Gemm's transB is not 'x'", "It is of the type int."),
    ("Softmax(x, axis=[1])", "Softmax's axis is not [1]", "It is of the type int."),
    ("MatMul(a)", "MatMul of 1 inputs, and it takes 2", "It reads MatMul(A, B)."),
    ("NonZero(x)", "The shape of its result hangs on data", "Compute it outside"),
    ("# a[3, 4], b[5, 4]\nMatMul(a, b)", "line 2, column 1: MatMul:", "shapes"),
    (
        "g (float[N] x) => (float[N] y) { y = Relu(x }",
        "line 1, column 45: expected character )",
        "parser stops",
    ),
    (
        "g (float[N] x) => (float[N] y) {\n  y = Rel(x) }",
        "line 2, column 3: there is no operator Rel",
        "Relu?",
    ),
    ('op_type: "Relu"\ninput "x"', "line 2, column 7:", "protobuf's parser of texts stops here."),
    (
        'g (float[N] x) => (float[N] y) <float[2] w = ["location": "/etc/passwd"]> { y = Add(x, w) }',
        "weights that lie in another file",
        "Make them inputs",
    ),
]


@pytest.mark.parametrize("text, message, remedy", REFUSED, ids=[text[:30] for text, *_ in REFUSED])
def test_a_mistake_is_told_where_it_is(text, message, remedy):
    with pytest.raises(TextError) as refused:
        translate(text)
    told = text_fault(refused.value)
    assert message in told and remedy in told.splitlines()[-1], told


def test_while_it_is_typed_a_mistake_has_its_place():
    told = draft("y = Gemm(a, b, transX=1)", [], "reassoc", "cpu")
    assert (told["line"], told["column"]) == (1, 16) and "Did you mean trans" in told["error"]


def test_without_the_package_the_line_that_installs_it_is_told(monkeypatch):
    monkeypatch.setattr(extras, "absent", lambda extra: ["onnx"])
    with pytest.raises(TextError, match="this is ONNX") as refused:
        translate("Softmax(axis=-1)")
    assert "ONNX as text needs onnx, which is not installed here: " in text_fault(refused.value)


HOSTILE = {
    "calls in calls": "Relu(" * 3000,
    "nodes": "g (float[N] x) => (float[N] y) { " + "y = Relu(x) " * 500 + "}",
    "a large constant": "ConstantOfShape([100000, 100000])",
    "messages in messages": 'op_type: "Relu" ' + "attribute { g < node < " * 600,
    "stars": "Softmax(*x, **y)",
    "a null": "Softmax(x, \0)",
    "a loop of unknown length": "g (int64 n, bool c, float[M] x) => (float[M] z) { "
    "a, z = Loop (n, c, x) <body = "
    "b (int64 i, bool d, float[M] y) => (bool e, float[M] w) { e = Identity(d) w = Add(y, y) }> }",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_refused_with_a_sentence(text):
    with pytest.raises(TextError) as refused:
        translate(text)
    assert text_fault(refused.value)[-1] in ".?"
