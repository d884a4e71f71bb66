"""What an abacus lets a program do."""

from __future__ import annotations

from dataclasses import dataclass

from dojo_core.program.target import Target
from dojo_core.program.tree import Program, Scope, walk
from dojo_core.program.validity import Fault


@dataclass(frozen=True)
class AbacusTarget(Target):
    """``rods``: how many loops inside each other can be counted."""

    rods: int = 4

    def __hash__(self) -> int:
        return hash(self.name)

    def fault(self, program: Program, policy: str) -> Fault | None:
        for node, path, above in walk(program.body):
            if isinstance(node, Scope) and sum(not s.mark for s in (*above, node)) > self.rods:
                told = f"An abacus has {self.rods} rods to count on: unroll a loop, or merge two."
                return Fault("rods", "", "", told, (path,))
        return None


LIMITS = AbacusTarget(
    name="abacus",
    title="An abacus",
    vector_widths={},
    marks=frozenset("u"),
    locations=("heap", "stack"),
    stack_bytes=512,
    register_cells=0,
    unrolled_ops=64,
    threads=1,
    tables=False,
    indirection=False,
    passes={"heuristic": "abacus.players:heuristic"},
)
