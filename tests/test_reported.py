"""What users of other compilers reported as wrong, as programs and moves: ``reported/*.txt``.

Above each program stands what is at stake and the policy, below it the moves; one behind ``!`` must be
refused. The last program's C gives what the first one's gives, bit by bit under ``strict`` and within a
rounding's reach otherwise, on inputs chosen for what was reported and on those of ``tests/ends.py``.
"""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path

import numpy as np
import pytest

from dojo_core import apply, parse, why
from dojo_core.moves.core import IllegalMove
from dojo_core.program.codes import Code
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.codegen import generate
from tests import compiled
from tests.ends import End, differences

REPORTED = Path(__file__).with_name("reported")
TOO_LARGE = {"index_beyond_32_bits"}  # 2.6 GB that are never touched


def played(name: str) -> End:
    """The first program, the policy, and the last program; asserts that what must be refused is."""
    head, _, rest = (REPORTED / f"{name}.txt").read_text().partition("\n# policy: ")
    assert head.startswith("# ")
    policy, _, rest = rest.partition("\n")
    text, _, moves = rest.partition("\nmoves:")
    first = program = parse(text + "\n")
    for move in filter(None, map(str.strip, moves.splitlines())):
        if move.startswith("!"):
            assert not why(program, move[1:].strip(), policy=policy).legal, move
        else:
            try:
                program = apply(program, move, policy=policy)
            except IllegalMove as refused:
                if refused.refusal.code != Code.VECTOR_WIDTH:
                    raise
                pytest.skip(f"no such vectors here: {move}")
    return End(first, policy, program)


@pytest.mark.parametrize("name", sorted(path.stem for path in REPORTED.glob("*.txt")))
def test_moves_keep_the_meaning_where_others_lost_it(name):
    end = played(name)
    if name not in TOO_LARGE:
        assert differences([end], seed=7) == []


def results(program: Program, policy: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    return compiled.run_program(program, inputs, policy)


def test_a_number_beyond_an_integers_range_becomes_the_nearest_one_there_is():
    numbers = np.array(
        [
            np.nan, np.inf, -np.inf, -0.5, -0.0, 0.99999994, 1.5, 2.5, -1.5, -1, 1e-45, 3e38, -3e38, 1e9,
            127.9, 128, -128.9, -129, 255.5, 256, 32767.9, 32768, -32769, 65536,
            2147483520, 2147483648, -2147483648, -2147483904, 9.2233715e18, 9.223372e18, -9.223372e18,
            -9.3e18,
        ],
        np.float32,
    ).reshape(4, 8)  # fmt: skip
    end = played("float_to_integer_beyond_range")
    for program in (end.first, end.last):
        converted = results(program, end.policy, x=numbers)
        for array, bits in (("a", 8), ("c", 16), ("d", 32), ("e", 64)):
            least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
            assert converted[array].ravel().tolist() == [saturated(v, least, most) for v in numbers.ravel()]
        assert converted["b"].ravel().tolist() == [saturated(v, 0, 255) for v in numbers.ravel()]


def saturated(number: np.float32, least: int, most: int) -> int:
    if np.isnan(number):
        return 0
    return most if float(number) >= most else least if float(number) <= least else int(number)


def test_an_address_beyond_32_bits_is_computed_in_64():
    code = generate(played("index_beyond_32_bits").last, "reassoc")
    rows = np.array([0, 1, 53686, 53687, 53688, 65535])
    with mmap.mmap(-1, 65536 * 40000) as memory:  # zeros that take no memory
        x, y = np.frombuffer(memory, np.uint8), np.zeros(65536, np.uint8)
        x[rows * 40000 + 39999] = rows % 251 + 1
        arrays = (ctypes.c_void_p * 2)(x.ctypes.data, y.ctypes.data)
        compiled.load(code.text)[code.symbol](arrays, None)
        del x
    assert (y[rows] == rows % 251 + 1).all()


def test_a_sum_in_bf16_stops_where_one_more_is_less_than_half_a_step():
    end = played("bf16_sum_stalls_at_256")
    ones = np.ones(4096)
    assert float(results(end.first, end.policy, x=ones)["y"]) == 256
    assert float(interpret(end.first, {"x": ones})["y"]) == 256


def test_the_greatest_of_both_zeros_is_the_positive_one_in_any_order():
    end = played("signed_zero_of_a_maximum")
    x = np.full((2, 16), -0.0, np.float32)
    x[1, 0] = 0.0
    for program in (end.first, end.last):
        assert results(program, end.policy, x=x)["y"].tolist() == [-np.inf, np.inf]


def test_a_variance_in_one_pass_hangs_on_no_single_element():
    x = np.random.default_rng(0).standard_normal((4, 65536)).astype(np.float32)
    x[:, 0] = 1e2, 1e4, 1e5, 1e18
    end = played("one_pass_variance_outlier_first")
    reference = 1 / np.sqrt(x.astype(float).var(1) + 1e-5)
    np.testing.assert_allclose(results(end.last, end.policy, x=x)["y"], reference, rtol=2e-3)


def test_a_variance_in_one_pass_stands_a_large_mean_as_well_as_two_passes():
    x = np.random.default_rng(0).standard_normal((4, 65536)).astype(np.float32)
    x[0] += 1000
    x[1] += 80000  # the mean, one sum in f32, is off by 23 here, in one pass and in two
    x[2] = 1234
    x[3] *= 1e-3
    end = played("one_pass_variance_large_mean")
    first, last = (results(program, end.policy, x=x)["y"] for program in (end.first, end.last))
    np.testing.assert_allclose(last, first, rtol=5e-3)


def test_an_update_under_its_own_condition_stops_when_it_no_longer_holds():
    end = played("unrolled_self_update")
    assert int(results(end.last, end.policy, x=np.int32(0))["a"]) == 7
