"""What a kernel's machine code asks of a core: its pieces with how often they run, the cycles that a model of
the pipeline gives them, and what both come to for each node of the program."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path as File

from dojo_core.measure.places import cache_directory
from dojo_core.measure.profile import Hot
from dojo_core.program.tree import Path, Program, Scope
from dojo_core.targets.cpu import model
from dojo_core.targets.cpu.processor import Processor, toolchain_for
from dojo_core.targets.cpu.profile.blocks import Counting, Piece, counted, node_shares
from dojo_core.targets.cpu.profile.bounds import Work, accesses
from dojo_core.targets.cpu.profile.rates import capacities
from dojo_core.targets.cpu.profile.timers import parallel_above
from dojo_core.targets.cpu.traffic import streamed_by, traffic_by_operation

ISSUED = 4.0  # instructions a cycle, where no model says how many
ITERATIONS = 512  # of a block in the model: some go round in one cycle, and start in twenty
MOST_HOT = 40
_NO_MODEL = (
    "llvm-mca is not here, or knows no such core: instructions are counted, and nothing is known of ports "
    "and chains. This brings it: apt-get install llvm-19"
)


@dataclass(frozen=True)
class Pipeline:
    """Pieces of the code, each with the block that the model was asked about. ``model``: what says so;
    ``missing``: a sentence where that is no model of the pipeline."""

    counting: Counting
    pieces: tuple[Piece, ...]
    blocks: tuple[model.Block, ...]
    model: str
    missing: str

    def flips(self, number: int) -> int:
        """How often the branch at the end of a piece went the rarer way. A loop's is foretold, and one
        without a condition has none."""
        piece = self.pieces[number]
        if piece.aim is None or number in self._loops or self._always(number):
            return 0
        passed = min(self.pieces[number + 1].runs, piece.runs) if number + 1 < len(self.pieces) else 0
        return min(passed, piece.runs - passed)

    @cached_property
    def _loops(self) -> frozenset[int]:
        """The pieces behind which a loop begins anew: those that lead back to one on the way to them."""
        number_of = {piece.first: number for number, piece in enumerate(self.pieces)}
        after = []
        for number, piece in enumerate(self.pieces):
            aims = [number_of[piece.aim]] if piece.aim in number_of else []
            passed = number + 1 < len(self.pieces) and not self._always(number)
            after.append([*([number + 1] if passed else []), *aims])
        found, done = set(), set()
        for entry in range(len(self.pieces)):
            way = {entry: iter(after[entry])} if entry not in done else {}
            while way:
                here = next(reversed(way))
                step = next(way[here], None)
                if step is None:
                    done.add(here)
                    del way[here]
                elif step in way:
                    found.add(here)
                elif step not in done:
                    way[step] = iter(after[step])
        return frozenset(found)

    def _always(self, number: int) -> bool:
        """Does a piece end in what leads elsewhere without a condition?"""
        last = self.counting.assembly.lines[self.pieces[number].last]
        return last.split()[0].startswith(("jmp", "ret"))

    def nodes(self, number: int, program: Program) -> dict[Path, float]:
        """Of which nodes a piece is, in what parts; an operation alone in its scopes stands for these."""
        told: dict[Path, float] = {}
        for node, share in node_shares(self.counting.assembly, self.pieces[number]).items():
            path = _only(program, node)
            told[path] = told.get(path, 0.0) + share
        return told

    def hot(self, program: Program, seconds: Mapping[Path, float]) -> tuple[Hot, ...]:
        """The pieces that take most of the time, by their share. The ``seconds`` of each node (``()``: of the
        whole), without those of what it holds, are parted by the model's cycles of the pieces that are told
        to be its own."""
        alone = dict(seconds)
        for path, taken in seconds.items():
            if path:
                alone[path[:-1]] -= taken
        own = [
            {path: share * block.cycles * block.executions for path, share in self.nodes(k, program).items()}
            for k, block in enumerate(self.blocks)
        ]
        cycles: dict[Path, float] = {}
        for each in own:
            for path, count in each.items():
                cycles[path] = cycles.get(path, 0.0) + count
        found = []
        for piece, each in zip(self.pieces, own, strict=True):
            shared = sum(
                max(alone[path], 0.0) * count / cycles[path] for path, count in each.items() if count
            )
            if shared > 0.0:
                found.append(Hot(piece.first, piece.last, shared / seconds[()], piece.runs, piece.loop))
        return tuple(sorted(found, key=lambda each: -each.share)[:MOST_HOT])


def modelled(made: Counting, numbers: Sequence[int], processor: Processor) -> Pipeline:
    """What was counted, with the cycles of llvm-mca's model of this core; where there is none, of so many
    instructions a cycle."""
    pieces = counted(made, numbers)
    blocks = []
    for piece in pieces:
        rows = made.assembly.lines[piece.first : piece.last + 1]
        texts = [" ".join(row.split()) for row in rows if not row.endswith(":")]
        if piece.aim is not None:
            texts[-1] = f"{texts[-1].split()[0]} 0x{piece.aim:x} <kernel>"
        blocks.append(model.Block(piece.first, tuple(texts), piece.runs, piece.loop))
    core = model.host_model()
    if core:
        chosen = replace(processor, model=core, toolchain=toolchain_for(processor))
        with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="model-") as folder:
            executed = [block for block in blocks if block.executions]
            run = model.timed(executed, chosen, File(folder), ITERATIONS)
        timed = {block.address: block for block in run}
        blocks = [timed.get(block.address, block) for block in blocks]
        return Pipeline(made, tuple(pieces), tuple(blocks), f"llvm-mca, {core}", "")
    cycles = {block.address: len(block.instructions) / ISSUED for block in blocks}
    blocks = [replace(b, cycles=cycles[b.address], issue=cycles[b.address]) for b in blocks]
    return Pipeline(made, tuple(pieces), tuple(blocks), f"{ISSUED:.0f} instructions a cycle", _NO_MODEL)


def work_of(program: Program, processor: Processor, pipeline: Pipeline | None, sets: int) -> dict[Path, Work]:
    """Of every node of a program whose runs rotate among so many sets of arrays."""
    paths = {leaf.path[:depth] for leaf in program.leaves for depth in range(1, len(leaf.path) + 1)}
    work = {path: Work() for path in paths}
    for path, own in work.items():
        inside = program.node(path)
        if parallel_above(program, path) or getattr(inside, "mark", "") == "p":
            own.threads = processor.threads
    if pipeline is not None:
        for number, block in enumerate(pipeline.blocks):
            if not block.executions:
                continue
            each = accesses(block.instructions)
            each.cycles, each.chain = block.cycles, block.chain
            each.issue, each.ports = block.issue, block.ports
            each.flips = pipeline.flips(number) / block.executions
            for node, share in pipeline.nodes(number, program).items():
                for depth in range(1, len(node) + 1):
                    work[node[:depth]].add(each, share * block.executions)
    for level, capacity in enumerate(capacities(processor)):
        if capacity:
            _move(work, level, traffic_by_operation(program, capacity, sets))
    past = {leaf.path: (0, streamed_by(program, leaf)) for leaf in program.leaves if leaf.op.stream}
    _move(work, 2, past)
    return work


def _only(program: Program, path: Path) -> Path:
    """The operation below a node that holds no other, else the node: what an inline function makes of an
    operation is told as the scope's."""
    while isinstance(program.node(path), Scope) and len(program.children(path)) == 1:
        path = (*path, 0)
    return path


def _move(work: dict[Path, Work], level: int, moved: Mapping[Path, tuple[int, int]]) -> None:
    """Add bytes in and out to the operations that move them, and to what these lie in."""
    for leaf, (into, out) in moved.items():
        for depth in range(1, len(leaf) + 1):
            own = work[leaf[:depth]].traffic[level]
            own[0], own[1] = own[0] + into, own[1] + out
