"""Goldens of how many lines of legal moves each kernel has on each target: ``make perft``.

A row is a kernel's default shape under a policy: the lines of one move or of two (perft), and how many of
them end with a move of each family. So a change of the move set shows as the kernels, families and targets
that it touches.

The counts are those of targets that hang on no machine: of CPUs the one of the tests, whose vectors have 512
bits. Lines of one move are counted under each policy, by the suite too; lines of two, which take about twelve
minutes of one core, under the default policy, and of a few kernels by the suite too.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dojo_core import kernels
from dojo_core.moves.examples import WIDE
from dojo_core.perft import by_family, perft
from dojo_core.program.dependence import POLICIES
from dojo_core.program.target import Target
from dojo_core.targets.registry import UnknownTarget
from dojo_core.targets.registry import names as target_names
from dojo_core.targets.registry import target as target_named
from tests.goldens import FOLDER, Golden

DEFAULT = ("reassoc",)


def golden_file(target: str, depth: int) -> Path:
    return FOLDER / "perft" / f"{target}_{depth}.txt"


def row(kernel: str, target: str, depth: int, policy: str) -> str:
    """The counts of one kernel's start; where the target does not take it, the sentence that says so."""
    start = kernels.get(kernel)
    shape = start.shapes[0]
    machine = _of_no_machine(target)
    named = f"{kernel} {'x'.join(map(str, shape))} {policy}"
    try:
        lines = perft(machine.start(start.program(shape)), depth, machine, policy)
    except UnknownTarget as refused:
        return f"{named}: {refused}"
    families = ", ".join(f"{family} {count}" for family, count in by_family(lines).items())
    return f"{named}: {lines.total()} = {families}"


def _of_no_machine(target: str) -> Target:
    own = target_named(target)
    return replace(WIDE, without=own.without) if target == "cpu" else own


def rows(target: str, depth: int) -> str:
    """All kernels' rows, as a golden file has them."""
    tensor = target != "cpu" and "m" in target_named(target).marks  # else ``tf32`` is ``reassoc``
    policies = [p for p in POLICIES if p != "tf32" or tensor] if depth == 1 else DEFAULT
    return "".join(f"{row(k, target, depth, p)}\n" for k in kernels.names() for p in policies)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("depth", (2, 1))
@pytest.mark.parametrize("target", target_names())
def test_each_kernel_has_as_many_lines_as_its_golden_says(golden: Golden, target: str, depth: int) -> None:
    golden(golden_file(target, depth), rows(target, depth))
