"""Counts of legal moves: a change of the move set is seen at once, and where it is."""

import json
import re
from collections import Counter

import pytest
from typer.testing import CliRunner

from dojo_core import apply, kernels, legal_moves, parse
from dojo_core.cli import app
from dojo_core.moves.examples import WIDE
from dojo_core.perft import by_family, perft
from dojo_core.program.dependence import POLICIES
from dojo_core.targets.registry import names as target_names
from tests.perft import DEFAULT, golden_file, row, rows
from tests.thorough import covering, group

ANEW = "make perft GOLDENS=--update-goldens"  # writes all anew
# The suite's share of the lines of two moves; make perft and make soak count more.
FEW = ("reducemean", "transpose", pytest.param("matmul", marks=pytest.mark.soak))
SMALL = """\
kernel small
in x
out y
x f32 [4] heap
y f32 [4] heap
4 y[{0}] = exp(x[{0}])
"""


def kept_rows(target: str, depth: int = 2) -> list[str]:
    """The golden's rows of lines of two moves, or of one; none where there is no file yet."""
    file = golden_file(target, depth)
    return file.read_text().splitlines() if file.exists() else []


# The conditions of the two GPUs are the same with other numbers, and so are those of processors: make soak
# and make perft count the others too.
OF_THEIR_KIND = ("hip", "arm", "riscv", "riscv256")
COUNTED = [pytest.param(t, marks=pytest.mark.soak if t in OF_THEIR_KIND else ()) for t in target_names()]


# What a policy allows is the same on all targets: the suite counts under each of them on the CPU alone.
@pytest.mark.thorough  # of each kind of kernel one: below
@pytest.mark.parametrize(
    "target", [pytest.param(t, marks=() if t == "cpu" else pytest.mark.soak) for t in target_names()]
)
def test_each_kernel_has_as_many_legal_moves_as_its_golden_says(golden, target):
    golden(golden_file(target, 1), rows(target, 1))


@pytest.mark.parametrize("kernel", covering(kernels.names(), group))
def test_a_kernel_of_each_kind_has_as_many_as_its_golden_says(kernel):
    counted = [row(kernel, "cpu", 1, policy) for policy in POLICIES if policy != "tf32"]
    assert set(counted) <= set(kept_rows("cpu", 1)), f"if that is meant: {ANEW}"


@pytest.mark.parametrize("kernel", covering(kernels.names(), group))
@pytest.mark.parametrize("target", [t for t in target_names() if t not in ("cpu", *OF_THEIR_KIND)])
def test_so_it_has_on_other_targets_under_the_default_policy(target, kernel):
    assert row(kernel, target, 1, *DEFAULT) in kept_rows(target, 1), f"if that is meant: {ANEW}"


@pytest.mark.parametrize("kernel", FEW)
@pytest.mark.parametrize("target", COUNTED)
def test_a_few_kernels_have_as_many_lines_of_two_moves_as_their_golden_says(target, kernel):
    assert row(kernel, target, 2, *DEFAULT) in kept_rows(target), f"if that is meant: {ANEW}"


@pytest.mark.parametrize("target", target_names())
def test_the_golden_of_two_moves_has_every_kernel(target):
    assert [line.partition(" ")[0] for line in kept_rows(target)] == list(kernels.names()), ANEW


def test_perft_is_the_count_of_lines_played_one_by_one():
    def ends(program, depth):
        """The last moves of all lines, one after the other, whether positions meet or not."""
        for move in legal_moves(program, WIDE):
            if depth == 1:
                yield move.name
            else:
                yield from ends(apply(program, move, WIDE), depth - 1)

    start = parse(SMALL)
    for depth in (1, 2, 3):
        lines = perft(start, depth, WIDE)
        assert lines == Counter(ends(start, depth))
        assert sum(by_family(lines).values()) == lines.total() > 10**depth
    assert set(by_family(lines)) >= {"scopes", "marks"}


def test_the_command_counts_as_the_moves_that_are_listed():
    def dojo(*words: str) -> str:
        result = CliRunner().invoke(app, list(words))
        assert result.exit_code == 0, result.output
        return result.stdout

    listed = json.loads(dojo("moves", "relu", "--json", "--target", "snitch"))
    counted = json.loads(dojo("perft", "relu", "--json", "--target", "snitch"))
    assert counted["lines"] == len(listed) == sum(counted["last"].values())
    assert re.search(r"split_scope +scopes +\d+", dojo("perft", "relu", "--shape", "8x8", "--depth", "2"))
    refused = CliRunner().invoke(app, ["perft", "relu", "--depth", "0"])
    assert refused.exit_code == 2 and "--depth" in refused.output
