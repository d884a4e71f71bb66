"""Any size: start programs against references where no vector width divides, 1 and primes among them."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dojo_core import kernels, parse
from dojo_core.faults import program_fault
from dojo_core.kernels import Kernel
from dojo_core.program.interpret import interpret
from dojo_core.targets.cpu.codegen import generate
from tests.compiled import load, random_inputs, run
from tests.thorough import covering, group

SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17)
ODD = {"sparse24": (13, 20, 33, 11), "blocksparse": (13, 15, 35, 5, 2)}
QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much], derandomize=True)


def shapes(kernel: Kernel) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes that fit a kernel; the fixed 1 of swiglu stays 1."""
    match kernel.name:  # what must divide what
        case "sparse24":
            return st.tuples(*[st.integers(1, 5)] * 4).map(lambda s: (s[0], s[1] * 4, s[2] * s[3], s[3]))
        case "blocksparse":
            sizes = st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.integers(1, 5))
            return sizes.map(lambda s: (s[0], s[1] * s[3], s[2] * s[3], s[3], (s[1] + 1) // 2))
    parts = [
        st.just(1) if name == "1" else st.sampled_from((0, *SIZES[:4]) if name in kernel.zero else SIZES)
        for name in kernel.parameters
    ]
    if len(parts) > 4:  # keep the product small
        parts = [st.sampled_from((1, 2, 3)) if n < 2 else part for n, part in enumerate(parts)]
    return st.tuples(*parts).filter(lambda shape: not kernel.fits(shape))


NARROW = (2e-2, 1e-2)  # of programs that round to 8 or 11 bits on the way, which the reference does not


def narrow(program):
    return any(b.dtype in ("f16", "bf16", "i8", "u8") for b in program.buffers)


def agree(found, expected, rtol, atol):
    for name, values in expected.items():
        scale = max(1.0, float(np.abs(values).max()))
        np.testing.assert_allclose(found[name], values, rtol=rtol, atol=atol * scale)


@pytest.mark.parametrize("examples", [6, pytest.param(40, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", covering(kernels.names(), group))
def test_the_start_program_means_the_reference_at_any_size(name, examples):
    kernel = kernels.get(name)

    @settings(QUIET, max_examples=examples)
    @given(shapes(kernel), st.integers(0, 99))
    def check(shape, seed):
        program = kernel.program(shape)
        assert parse(program.text) == program
        assert program_fault(program) is None
        inputs = random_inputs(program, seed)
        rtol, atol = NARROW if narrow(program) else (1e-8, 1e-9)
        agree(interpret(program, inputs), kernel.reference(inputs, shape), rtol, atol)

    check()


def test_the_compiled_start_is_the_reference_at_odd_sizes():
    """One shape of every kernel, all in one C file."""
    odd = {"P": 1, "S": 2, "K": 3, "1": 1}
    chosen = {}
    for name in kernels.names():
        kernel = kernels.get(name)
        shape = tuple(odd.get(p, (13, 7, 5, 11, 7)[k % 5]) for k, p in enumerate(kernel.parameters))
        if kernel.fits(shape):
            shape = ODD.get(name) or tuple(n + 1 if n > 3 else n for n in shape)
        chosen[name] = kernel, shape, generate(kernel.program(shape))
    library = load("\n".join(code.text for _, _, code in chosen.values()))
    for kernel, shape, code in chosen.values():
        inputs = random_inputs(kernel.program(shape))
        rtol, atol = NARROW if narrow(kernel.program(shape)) else (2e-4, 1e-5)
        agree(run(code, inputs, library), kernel.reference(inputs, shape), rtol, atol)


@pytest.mark.parametrize("name", kernels.names())
def test_a_size_of_0_is_refused_with_a_sentence(name):
    kernel = kernels.get(name)
    for k, parameter in enumerate(kernel.parameters):
        shape = tuple(0 if k == n else size for n, size in enumerate(kernel.shapes[0]))
        if parameter not in kernel.zero:
            with pytest.raises(ValueError, match=f"Every size of {name} is at least 1"):
                kernel.shape("x".join(map(str, shape)))


def test_an_empty_scope_or_dimension_is_refused_with_a_sentence():
    arrays = "x f32 [4, 3] heap\ny f32 [4] heap\n"
    text = f"kernel none\nin x\nout y\n{arrays}4 y[{{0}}] = 0\n| 3 y[{{0}}] += x[{{0}},{{1}}]\n"
    for old, new, told in [
        ("| 3 y", "| 0 y", "line 7, column 3: a scope of 0 iterations"),
        ("[4, 3]", "[4, 0]", "line 4, column 11: 0 is no size of a dimension"),
    ]:
        with pytest.raises(ValueError, match=re.escape(told)) as raised:
            parse(text.replace(old, new))
        assert "A size is a whole number from 1 to" in str(raised.value)
