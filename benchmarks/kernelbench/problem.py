"""One problem of KernelBench: a file that is read, made small enough for this machine, and set up.

A problem's file is a Python module: ``Model``, ``get_inputs()``, ``get_init_inputs()`` and constants that
name its sizes, for a large GPU. The rule that makes it small, the same for all: of the whole numbers that
the file gives a name, or writes into ``get_inputs``, the largest is halved (rounded up), again and again,
until one run takes at most ``FLOPS`` and ``BYTES``; one whose half the model does not run with, by its shapes
on the meta device, stays. The file is run, so the checkout is to be one that is trusted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

FLOPS = 1e9
BYTES = 48 << 20  # of inputs, weights and outputs
STEPS = 200
SMALLEST = 2  # a size of which half is of interest


class NotSmall(Exception):
    """A problem that the rule makes no small one of; ``str()`` is a sentence."""


@dataclass(frozen=True)
class Problem:
    """``sizes``: what was changed, from and to, by the number's place in the file. ``flops``: of matrix
    products and convolutions, as PyTorch counts them."""

    name: str
    level: int
    source: str
    sizes: Mapping[str, tuple[int, int]]
    flops: int
    size: int

    def set_up(self, seed: int) -> tuple[torch.nn.Module, list[Any]]:
        """The model and its inputs, drawn from a seed as KernelBench draws them."""
        names = _module(self.source)
        torch.manual_seed(seed)
        arguments = names["get_init_inputs"]()
        torch.manual_seed(seed)
        model = names["Model"](*arguments).eval()
        torch.manual_seed(seed)
        return model, names["get_inputs"]()


def problems(checkout: Path, levels: Sequence[int]) -> list[Path]:
    """The files of levels, by their numbers. Raises FileNotFoundError with what to do."""
    found: list[Path] = []
    for level in levels:
        folder = checkout / "KernelBench" / f"level{level}"
        if not folder.is_dir():
            raise FileNotFoundError(
                f"{folder} is not there: give the folder of a checkout of "
                "github.com/ScalingIntelligence/KernelBench."
            )
        found += sorted(folder.glob("*.py"), key=lambda path: int(re.match(r"\d+", path.name)[0]))  # type: ignore[index]
    return found


def read(path: Path) -> Problem:
    """A problem of this machine's size. Raises NotSmall."""
    tree = ast.parse(path.read_text())
    first = {name: _value(node) for name, node in _numbers(tree)}
    taken = _taken(ast.unparse(tree))
    if taken is None:
        raise NotSmall("Its own sizes do not run.")
    fixed: set[str] = set()
    for _ in range(STEPS):
        if taken[0] <= FLOPS and taken[1] <= BYTES:
            break
        movable = [(n, c) for n, c in _numbers(tree) if n not in fixed and _value(c) > SMALLEST]
        if not movable:
            raise NotSmall("No size of its can be made smaller.")
        largest = max(_value(c) for _, c in movable)
        name, node = next((n, c) for n, c in movable if c.value == largest)
        node.value = -(-largest // 2)
        after = _taken(ast.unparse(tree))
        if after is None or (after[0] >= taken[0] and after[1] >= taken[1]):
            node.value = largest
            fixed.add(name)
        else:
            taken = after
    else:
        raise NotSmall(f"It is not small after {STEPS} halvings.")
    sizes = {n: (first[n], _value(c)) for n, c in _numbers(tree) if c.value != first[n]}
    level = int(path.parent.name.removeprefix("level"))
    return Problem(path.stem, level, ast.unparse(tree), sizes, int(taken[0]), int(taken[1]))


def _numbers(tree: ast.Module) -> Iterator[tuple[str, ast.Constant]]:
    """The whole numbers that say a size, each with a name of its own: those that constants of the module are
    made of, and those in what makes the inputs."""
    for statement in tree.body:
        root: ast.AST
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            where, root = statement.targets[0].id, statement.value
        elif isinstance(statement, ast.FunctionDef) and statement.name.startswith("get_"):
            where, root = statement.name, statement
        else:
            continue
        number = 0
        for node in ast.walk(root):
            if isinstance(node, ast.Constant) and type(node.value) is int:
                yield f"{where}:{number}", node
                number += 1


def _value(number: ast.Constant) -> int:
    assert isinstance(number.value, int)
    return number.value


def _module(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "problem"}
    exec(compile(source, "problem", "exec"), names)  # the file of a checkout that is trusted
    return names


def _taken(source: str) -> tuple[float, float] | None:
    """Operations and bytes of one run; None where it does not run."""
    try:
        with torch.device("meta"), torch.no_grad():
            names = _module(source)
            model = names["Model"](*names["get_init_inputs"]()).eval()
            inputs = names["get_inputs"]()
            with FlopCounterMode(display=False) as counter:
                outputs = model(*inputs)
    except Exception:  # whatever a problem raises where its sizes do not meet
        return None
    held = [*_tensors(inputs), *_tensors(outputs), *model.parameters(), *model.buffers()]
    return counter.get_total_flops(), sum(t.numel() * t.element_size() for t in held)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)
