"""The kernels of table 3: texts, references, counts, and shapes that do not fit."""

import math

import numpy as np
import pytest

from dojo_core import kernels, parse
from dojo_core.kernels import Kernel
from dojo_core.measure.pool import EPSILON
from dojo_core.program.dtypes import INTEGERS
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import DTYPE_BYTES
from tests.compiled import random_inputs, run_program
from tests.tiny import TINY

KERNELS = [kernels.get(name) for name in kernels.names()]


@pytest.fixture(params=KERNELS, ids=kernels.names())
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return request.param


def tiny(kernel: Kernel):
    shape = TINY[kernel.name]
    return kernel.program(shape), shape


def test_the_text_is_canonical_but_for_the_order_of_its_buffers(kernel):
    program, shape = tiny(kernel)
    assert program.name == kernel.name
    assert parse(program.text) == program
    written = kernel.text(shape).replace(" * ", "*")
    assert sorted(written.splitlines()) == sorted(program.text.splitlines())


def test_the_start_is_naive(kernel):
    program, _ = tiny(kernel)
    assert {b.location for b in program.buffers} == {"heap"}
    assert all(not s.mark for leaf in program.leaves for s in leaf.scopes)


def test_every_kernel_has_a_tiny_shape():
    assert set(TINY) == set(kernels.names())


def test_every_paper_shape_gives_a_program_and_reads_back(kernel):
    for shape in kernel.shapes:
        assert kernel.shape("x".join(map(str, shape))) == shape
        assert kernel.program(shape).outputs


def test_the_c_and_the_meaning_agree_with_the_reference(kernel):
    program, shape = tiny(kernel)
    inputs = random_inputs(program, full=True)
    expected = kernel.reference(inputs, shape)
    assert set(expected) == set(program.outputs)
    meant, computed = interpret(program, inputs), run_program(program, inputs)
    for name, values in expected.items():
        assert values.dtype == np.float64
        dtype = program.buffer_of[name].dtype
        if dtype in INTEGERS:
            np.testing.assert_array_equal(meant[name], values)
            np.testing.assert_array_equal(computed[name], values)
            assert len(np.unique(values)) > values.size // 4  # neither all clamped nor all 0
            continue
        # Half precision: the result is rounded once.
        own = EPSILON[dtype] if dtype in ("f16", "bf16") else 0
        np.testing.assert_allclose(meant[name], values, rtol=max(1e-9, own / 2), atol=1e-12)
        np.testing.assert_allclose(computed[name], values, rtol=max(1e-4, own), atol=1e-5)


def plain(name: str, x: dict, shape) -> np.ndarray:
    """The kernel's formula once more, element by element where that is readable."""
    x = {n: a.astype(float) for n, a in x.items()}
    match name:
        case "softmax":
            return np.array([[math.exp(v) / sum(map(math.exp, row)) for v in row] for row in x["x"]])
        case "layernorm":
            return np.array([(r - r.mean()) / math.sqrt(r.var() + 1e-5) * x["g"] + x["h"] for r in x["x"]])
        case "rmsnorm":
            return np.array([r / math.sqrt((r @ r) / len(r) + 1e-6) * x["g"] for r in x["x"]])
        case "batchnorm":
            channels = [
                (c - c.mean()) / math.sqrt(c.var() + 1e-5) * g + b
                for c, g, b in zip(x["x"].swapaxes(0, 1), x["g"], x["b"], strict=True)
            ]
            return np.array(channels).swapaxes(0, 1)
        case "conv":
            n, out, _, h, w, k = shape
            return np.array(
                [
                    [
                        [
                            [(x["x"][i, :, r : r + k, c : c + k] * x["w"][o]).sum() for c in range(w - k + 1)]
                            for r in range(h - k + 1)
                        ]
                        for o in range(out)
                    ]
                    for i in range(n)
                ]
            )
        case "qmatmul":
            return np.array([[_quantised(row, k, x) for k in range(len(x["s"]))] for row in x["a"]])
        case "bmm":
            return np.array([a @ b for a, b in zip(x["a"], x["b"], strict=True)])
        case "swiglu":
            gate = x["x"] @ x["w"]
            return gate / (1 + np.exp(-gate)) * (x["x"] @ x["v"])
    raise LookupError(name)


def _quantised(row, k: int, x: dict) -> float:
    """One element of qmatmul: an integer dot product, its scale in f32, the zero points, the clamp."""
    total = sum((int(a) - int(x["z"])) * int(w) for a, w in zip(row, x["w"][:, k], strict=True))
    scaled = np.float32(np.float32(total) * np.float32(x["s"][k])) * np.float32(2.0**-10)  # K is 8
    return min(max(round(float(scaled)) + x["p"], -128), 127)


@pytest.mark.parametrize(
    "name", ["softmax", "layernorm", "rmsnorm", "batchnorm", "conv", "bmm", "swiglu", "qmatmul"]
)
def test_the_reference_is_the_formula(name):
    program, shape = tiny(kernels.get(name))
    inputs = random_inputs(program, full=True)
    (got,) = kernels.get(name).reference(inputs, shape).values()
    np.testing.assert_allclose(got, plain(name, inputs, shape), rtol=1e-9)


def test_flops_are_what_the_start_program_executes(kernel):
    program, shape = tiny(kernel)
    executed = sum(
        (bool(leaf.op.function) + bool(leaf.op.accumulate)) * math.prod(s.size for s in leaf.scopes)
        for leaf in program.leaves
    )
    assert kernel.flops(shape) == executed


def test_bytes_are_each_input_and_output_once(kernel):
    program, shape = tiny(kernel)
    arrays = random_inputs(program) | kernel.reference(random_inputs(program), shape)
    assert kernel.bytes(shape) == sum(
        DTYPE_BYTES[program.buffer_of[name].dtype] * array.size for name, array in arrays.items()
    )


@pytest.mark.parametrize(
    ("name", "shape", "sentence"),
    [
        ("softmax", "12", "softmax takes 2 sizes, MxN, for example 24576x512; 12 has 1."),
        ("softmax", "1x2x3", "1x2x3 has 3."),
        ("softmax", "wide", "'wide' is no shape: softmax takes MxN, for example 24576x512."),
        ("softmax", "", "'' is no shape"),
        ("softmax", "-1x4", "'-1x4' is no shape"),
        ("softmax", "4x", "'4x' is no shape"),
        ("softmax", "1.5x4", "'1.5x4' is no shape"),
        ("softmax", "9999999999999x4", "is no shape"),
        ("softmax", "0x4", "Every size of softmax is at least 1"),
        ("conv", "1x1x1x4x4x5", "The filter of conv, 5, is larger than the image, 4x4."),
        ("swiglu", "2x4x4x4", "The first size of swiglu, the batch, is 1."),
    ],
)
def test_a_shape_that_does_not_fit_is_a_sentence(name, shape, sentence):
    with pytest.raises(ValueError) as raised:
        kernels.get(name).shape(shape)
    assert sentence in str(raised.value)


def test_sizes_may_stand_apart_and_be_multiplied_by_hand():
    assert kernels.get("softmax").shape(" 24 x 512 ") == kernels.get("softmax").shape("24×512") == (24, 512)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("softmx", "Did you mean softmax?"), ("zzz", f"The kernels are: {', '.join(kernels.names())}.")],
)
def test_an_unknown_kernel_is_a_sentence_with_the_one_like_it_or_all(name, hint):
    with pytest.raises(ValueError) as raised:
        kernels.get(name)
    assert str(raised.value) == f"There is no kernel {name!r}. {hint}"


@pytest.mark.parametrize("name", ["relu", "softmax", "conv"])
def test_a_shape_for_little_memory_is_the_first_with_its_largest_sizes_halved(name):
    found = kernels.get(name)
    small = found.within(1 << 16)
    arrays = sum(buffer.bytes for buffer in found.program(small).buffers)
    assert (1 << 13) < arrays <= 1 << 16
    assert all(whole % part == 0 for whole, part in zip(found.shapes[0], small, strict=True))
