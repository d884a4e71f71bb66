"""The moves with their own conditions of meaning left out: what a refused move would have made.

A second copy of the modules of ``dojo_core/moves``, in which each ``if`` that ends in a refusal for reasons
of meaning is switched off. A refusal for the sake of the policy stays: that is a permission, not caution. So
stays one that has nothing to go on with, such as a value that no single write defines.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from dojo_core import moves
from dojo_core.moves.core import REGISTRY, Context, Edit, Move, Transformation
from dojo_core.program.codes import Code
from dojo_core.program.tree import Program

# What makes the refusals, or asks the moves; the rest of the modules are families of moves.
SHARED = {
    "__init__",
    "core",
    "examples",
    "legality",
    "nodes",
    "notation",
    "packages",
    "places",
    "reasons",
    "reference",
    "references",
}
MAKERS = {"Refusal", "_changed"}  # and `structural`, whose refusals stay
STAYS = {Code.POLICY}


class _Leave(ast.NodeTransformer):
    """``if condition: return Refusal(...)`` becomes ``if False: ...``."""

    def __init__(self) -> None:
        self.codes: list[str] = []

    def visit_If(self, node: ast.If) -> ast.If:
        self.generic_visit(node)
        code = _refuses(node.body[-1])
        if code is not None and code not in STAYS:
            self.codes.append(code)
            node.test = ast.copy_location(ast.Constant(False), node.test)
        return node


def _refuses(last: ast.stmt) -> str | None:
    """The code of the refusal that a statement returns."""
    call = last.value if isinstance(last, ast.Return) else None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) not in MAKERS:
        return None
    first = call.args[0]
    return Code[first.attr] if isinstance(first, ast.Attribute) else Code.CHANGED_BETWEEN


@cache
def lenient_moves() -> tuple[dict[str, Transformation], frozenset[str]]:
    """The transformations of the second copy by name, and the codes of the conditions that it leaves out."""
    folder = Path(moves.__file__).parent
    made: dict[str, ModuleType] = {}
    codes: set[str] = set()
    kept = dict(REGISTRY)

    def load(name: str) -> None:
        """A module after those that it takes from."""
        full = f"dojo_core.moves.{name}"
        if full in made:
            return
        path = folder / f"{name}.py"
        tree = ast.parse(path.read_text())
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dojo_core.moves."):
                needed = str(node.module).rsplit(".", 1)[1]
                if needed not in SHARED:
                    load(needed)
        leave = _Leave()
        tree = ast.fix_missing_locations(leave.visit(tree))
        codes.update(leave.codes)
        spec = spec_from_loader(full, loader=None)
        assert spec is not None
        module = made[full] = module_from_spec(spec)
        with patch.dict(sys.modules, made):
            exec(compile(tree, str(path), "exec", dont_inherit=True), vars(module))

    try:
        for path in sorted(folder.glob("*.py")):
            if path.stem not in SHARED:
                load(path.stem)
        return dict(REGISTRY), frozenset(codes)
    finally:
        REGISTRY.clear()
        REGISTRY.update(kept)


def forced(here: Context, move: Move) -> Program | None:
    """What a move makes where no question of meaning is asked; none where the refusal is one of form, or
    where there is nothing to go on with. The result may be no valid program."""
    try:
        planned = lenient_moves()[0][move.name].plan(here, move.arguments)
        if isinstance(planned, Edit):
            planned = planned.make()
    except Exception:  # it goes on from what the condition would have kept out
        return None
    return planned if isinstance(planned, Program) else None
