"""A model's calls as rows from top to bottom, the tensors between them as lanes beside the rows.

So a history of versions is drawn: a tensor keeps its lane from the call that gives it to the last one that
reads it, and a residual connection is a long lane. A block of calls that is repeated is one block, told how
often, until somebody opens it. The rows can be read on a telephone, and hundreds of them too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from dojo_core.graph.graph import Call, Graph

LANES = 12  # beside each other; what is alive beyond them is not drawn
LONGEST = 64  # calls of a block that is looked for


@dataclass(frozen=True)
class Block:
    """``times`` repetitions of ``length`` calls with the same kernels, from the call ``first`` on."""

    first: int
    length: int
    times: int

    @property
    def calls(self) -> int:
        return self.length * self.times


@dataclass(frozen=True)
class Row:
    """A call, or several that stand together in a block that is closed: ``calls`` are their numbers. Without
    any it is an input or an output of the model, ``tensor``.

    ``block`` is the block that begins here; ``within`` that to which the row belongs, by its first call.
    ``lane`` is where the row's dot stands; ``past`` are lanes that go by, ``read`` those that lead to it from
    above and ``given`` those that leave it downwards. A lane that is read and goes on is in ``past`` as well.
    """

    calls: tuple[int, ...]
    tensor: str
    block: Block | None
    within: int | None
    lane: int
    past: tuple[int, ...]
    read: tuple[int, ...]
    given: tuple[int, ...]


@dataclass(frozen=True)
class _Unit:
    """A row before it has lanes: the names of the tensors that it reads and gives."""

    reads: Sequence[str]
    gives: Sequence[str]
    calls: tuple[int, ...] = ()
    tensor: str = ""
    block: Block | None = None
    within: int | None = None


def blocks(calls: Sequence[Call]) -> list[Block]:
    """Where calls repeat, at once from the first call on that begins the longest repetition.

    Of two lengths that cover as many calls the shorter one counts. A single call is a block only if it comes
    three times.
    """
    kernels = [call.kernel for call in calls]
    found: list[Block] = []
    at = 0
    while at < len(kernels):
        best: Block | None = None
        for length in range(1, min(LONGEST, (len(kernels) - at) // 2) + 1):
            unit = kernels[at : at + length]
            times = 1
            while kernels[at + times * length : at + (times + 1) * length] == unit:
                times += 1
            enough = times >= (3 if length == 1 else 2)
            if enough and (best is None or length * times > best.calls):
                best = Block(at, length, times)
        if best is not None and best.length == 1 and _comes_again(kernels, best):
            best = None
        if best is None:
            at += 1
        else:
            found.append(best)
            at += best.calls
    return found


def _comes_again(kernels: Sequence[str], run: Block) -> bool:
    """Are there as many calls of this kernel in a row elsewhere? Then the run is a part of what repeats."""
    unit = [kernels[run.first]] * run.times
    others = [*range(run.first - run.times + 1), *range(run.first + run.times, len(kernels))]
    return any(kernels[at : at + run.times] == unit for at in others)


def rows(graph: Graph, opened: Collection[int] = ()) -> list[Row]:
    """The picture from top to bottom; ``opened`` are blocks that show all calls, by the first one of each."""
    units = [_Unit([], [name], tensor=name) for name in graph.inputs]
    starts = {block.first: block for block in blocks(graph.calls)}
    # What a later repetition of a closed block gives is, for whoever reads it, what the first one gives.
    same: dict[str, str] = {}
    at = 0
    while at < len(graph.calls):
        block = starts.get(at) or Block(at, 1, 1)
        closed = at not in opened
        for number in range(block.length if closed else block.calls):
            first = at + number
            calls = tuple(range(first, at + block.calls, block.length)) if closed else (first,)
            call = graph.calls[first]
            for other in calls:
                same |= zip(graph.calls[other].outputs, call.outputs, strict=True)
            begins, within = (block if number == 0 else None, at) if block.times > 1 else (None, None)
            units.append(_Unit(call.inputs, call.outputs, calls, "", begins, within))
        at += block.calls
    units += [_Unit([name], [], tensor=name) for name in graph.outputs]
    named = [replace(unit, reads=[same.get(name, name) for name in unit.reads]) for unit in units]
    return _drawn(named)


def _drawn(units: Sequence[_Unit]) -> list[Row]:
    """Lanes for the tensors between rows."""
    reads: list[list[str]] = []
    known: set[str] = set()
    last: dict[str, int] = {}
    for number, unit in enumerate(units):
        reads.append([name for name in dict.fromkeys(unit.reads) if name in known])  # no constants
        last |= dict.fromkeys(reads[-1], number)
        known.update(unit.gives)
    lanes: list[str | None] = []
    drawn: list[Row] = []
    for number, unit in enumerate(units):
        read = sorted(lanes.index(name) for name in reads[number] if name in lanes)
        ends = [lane for lane in read if last[lanes[lane] or ""] == number]
        past = [lane for lane, name in enumerate(lanes) if name is not None and lane not in ends]
        for lane in ends:
            lanes[lane] = None
        here = ends[0] if ends else _free(lanes)
        given: list[int] = []
        for name in unit.gives:
            lane = here if not given else _free(lanes)
            if name not in last or lane >= LANES:
                continue  # nobody below reads it, or there is no place
            lanes.extend([None] * (lane + 1 - len(lanes)))
            lanes[lane] = name
            given.append(lane)
        place = min(here, LANES - 1), tuple(past), tuple(read), tuple(given)
        drawn.append(Row(unit.calls, unit.tensor, unit.block, unit.within, *place))
    return drawn


def _free(lanes: Sequence[str | None]) -> int:
    return next((lane for lane, name in enumerate(lanes) if name is None), len(lanes))


def width(drawn: Sequence[Row]) -> int:
    """How many lanes there are."""
    return 1 + max(
        (lane for row in drawn for lane in (row.lane, *row.past, *row.read, *row.given)), default=0
    )
