"""What the encoder learns from: programs on random legal walks over all kernels, in many shapes.

A walk knows no hardware and no expert: at each position a kind of move is drawn, then one legal move of it.
Labels are counted, not measured: the structure of each program and, of some, its legal moves.
"""

from __future__ import annotations

import gzip
import json
import logging
import math
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from agents.search.neighbours import step_of_any_kind
from agents.trail import Trail
from dojo_core import kernels
from dojo_core.bounded_json import read_object
from dojo_core.files import naming
from dojo_core.game import Game
from dojo_core.moves.api import legal_moves
from dojo_core.moves.core import REGISTRY
from dojo_core.program.dependence import POLICIES
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.tree import DTYPE_BYTES, Access, Program, Scope, walk

log = logging.getLogger(__name__)

# Never shown to the encoder: it is judged on these.
HELD_OUT = ("rmsnorm", "rmsnorm_f16", "bmm", "swiglu", "gelu", "maxpool", "gqa", "transpose")
KINDS = tuple(REGISTRY)  # of moves
COUNTED = 3  # positions of a walk, at most, whose legal moves are counted

STRUCTURE = (
    "lines", "scopes", "operations", "depth", "iterations", "accesses", "unrolled", "parallel", "vectors",
    "widest vector", "longest innermost", "innermost scopes", "accumulations", "guards", "prefetches",
    "streams", "heap buffers", "stack buffers", "register buffers", "heap bytes", "temporary bytes",
    "dims not kept",
)  # fmt: skip


def structure(program: Program) -> tuple[float, ...]:
    """The counts that ``STRUCTURE`` names, each as log2(1 + n)."""
    count: Counter[str] = Counter()
    widest = longest = deepest = 0
    iterations = accesses = 0.0
    for node, _, above in walk(program.body):
        if isinstance(node, Scope):
            count["scopes"] += 1
            count[{"u": "unrolled", "p": "parallel", "v": "vectors"}.get(node.mark, "plain")] += 1
            if node.mark == "v":
                widest = max(widest, node.size)
            if not any(isinstance(child, Scope) for child in node.body):
                count["innermost scopes"] += 1
                longest = max(longest, node.size)
            continue
        times = float(math.prod(scope.size for scope in above))
        count["operations"] += 1
        count["accumulations"] += bool(node.accumulate)
        count["guards"] += bool(node.guard)
        count["prefetches"] += len(node.prefetches)
        count["streams"] += node.stream
        deepest = max(deepest, len(above))
        iterations += times
        accesses += times * (1 + sum(isinstance(each, Access) for each in node.reads))
    outside = {*program.inputs, *program.outputs}
    heap = temporary = 0.0
    for buffer in program.buffers:
        count[f"{buffer.location} buffers"] += 1
        elements = math.prod(dim.size for dim in buffer.dims if dim.materialised)
        count["dims not kept"] += sum(not dim.materialised for dim in buffer.dims)
        bytes_ = float(elements * DTYPE_BYTES[buffer.dtype])
        if buffer.location == "heap":
            heap += bytes_
        if not outside.intersection(buffer.arrays):
            temporary += bytes_
    values = {
        **count, "lines": program.text.count("\n"), "depth": deepest, "iterations": iterations,
        "accesses": accesses, "widest vector": widest, "longest innermost": longest, "heap bytes": heap,
        "temporary bytes": temporary,
    }  # fmt: skip
    return tuple(round(math.log2(1.0 + values.get(name, 0)), 4) for name in STRUCTURE)


def legal_counts(program: Program, policy: str) -> tuple[int, ...]:
    """How many legal moves of each of ``KINDS`` there are."""
    count = Counter(move.name for move in legal_moves(program, DEFAULT_TARGET, policy))
    return tuple(count[kind] for kind in KINDS)


@dataclass(frozen=True)
class Walk:
    """Positions of one walk: texts, the kind of the move to each but the first, labels.

    ``legal`` has the counts of legal moves where they were counted, else None.
    """

    kernel: str
    shape: str
    policy: str
    texts: tuple[str, ...]
    moves: tuple[str, ...]
    structure: tuple[tuple[float, ...], ...]
    legal: tuple[tuple[int, ...] | None, ...]


def random_shape(kernel: str, rng: random.Random) -> tuple[int, ...]:
    """A shape of the kernel: one of its own, or one with sizes changed."""
    definition = kernels.get(kernel)
    shape = rng.choice(definition.shapes)
    for _ in range(8):
        if rng.random() < 0.3:
            break
        changed = tuple(_size(size, rng) for size in shape)
        try:
            definition.program(definition.shape("x".join(map(str, changed))))
        except ValueError:
            continue
        return changed
    return shape


def _size(size: int, rng: random.Random) -> int:
    if size <= 8 or rng.random() < 0.2:
        return size
    scaled = size * rng.choice((1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2))
    odd = rng.choice((0, 0, 0, 1, 4, 8))
    return max(2, round(scaled) + odd)


def walks(seed: int, count: int, length: int = 24, names: Sequence[str] | None = None) -> Iterator[Walk]:
    """So many walks of each kernel (default: all but the held-out ones), the same for the same seed."""
    for number in range(count):
        for kernel in names if names is not None else (k for k in kernels.names() if k not in HELD_OUT):
            yield _walk(kernel, random.Random(f"{seed} {number} {kernel}"), length)


def _walk(kernel: str, rng: random.Random, length: int) -> Walk:
    shape = random_shape(kernel, rng)
    policy = rng.choice(POLICIES)
    sizes = "x".join(map(str, shape))
    trail = Trail.at(Game.new(kernels.get(kernel).program(shape), kernel, sizes, DEFAULT_TARGET, policy))
    counted = set(rng.sample(range(length), min(COUNTED, length)))
    programs: list[Program] = [trail.program]
    moves: list[str] = []
    for _ in range(rng.randint(length // 3, length)):
        extended = step_of_any_kind(trail, trail.born, rng)
        if extended is None:
            break
        trail = extended
        programs.append(trail.program)
        moves.append(trail.moves[-1].name)
    legal = [legal_counts(p, policy) if n in counted else None for n, p in enumerate(programs)]
    return Walk(
        kernel, sizes, policy, tuple(p.text for p in programs), tuple(moves),
        tuple(structure(p) for p in programs), tuple(legal),
    )  # fmt: skip


def write(path: Path, walked: Iterator[Walk]) -> int:
    """Write walks as JSON lines, gzipped; how many there were."""
    part = path.with_suffix(".part")
    written = 0
    with naming(part), gzip.open(part, "wt", compresslevel=4) as file:
        for each in walked:
            file.write(json.dumps(asdict(each)) + "\n")
            written += 1
    part.replace(path)
    return written


def load_or_make(path: Path, made: Callable[[], Iterator[Walk]]) -> list[Walk]:
    """The walks of a file, which are made first where it is not there or, by gzip's checksum, damaged."""
    try:
        walked = read(path)
        if walked:  # gzip takes an empty file for one of no bytes
            return walked
        log.warning("%s is empty: it is made again", path)
    except FileNotFoundError:
        pass
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as fault:
        log.warning("%s is damaged (%s): it is made again", path, fault)
    write(path, made())
    return read(path)


def read(path: Path) -> list[Walk]:
    """The walks of a file. Raises what gzip and JSON do where it is damaged."""
    with gzip.open(path, "rt") as file:
        entries = [read_object(line) for line in file]
    return [
        Walk(
            each["kernel"], each["shape"], each["policy"], tuple(each["texts"]), tuple(each["moves"]),
            tuple(tuple(row) for row in each["structure"]),
            tuple(None if row is None else tuple(row) for row in each["legal"]),
        )
        for each in entries
    ]  # fmt: skip
