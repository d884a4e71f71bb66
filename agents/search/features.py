"""What a cost model sees of a program: counts that decide on time, by structure alone, no kernel's name.

Every feature is log2(1 + count), so that a factor counts the same at every size.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dojo_core.program.affine import Affine
from dojo_core.program.tree import DTYPE_BYTES, Access, Node, Op, Program, Scope

CACHES = {"first": 32 << 10, "second": 1 << 20, "third": 32 << 20}  # bytes: orders of size, no machine's own
THREADS = frozenset("pgbw")
NEAR = {"local": "register", "shared": "stack"}  # locations that are as near
CHEAP = frozenset(("", "+", "-", "*", "max", "min", "neg", *DTYPE_BYTES))

FEATURES = (
    "instructions",  # executed; a vector counts once
    "scalar instructions",
    "instructions outside of threads",
    "instructions in threads",
    "iterations",  # of scopes that stay loops
    "code",  # operations written out
    "heap, neighbours",  # accesses by the stride of the innermost scope
    "heap, the same cell",
    "heap, far apart",
    "stack",
    "register",
    "through tables",
    "costly vector functions",  # exp, division, …
    "costly scalar functions",
    "chained",  # accumulations into the cell of the iteration before
    "streaming stores",
    "prefetches",
    "starts of threads",
    "bytes to the first cache",
    "bytes to the second cache",
    "bytes to the third cache",
    "temporaries",  # bytes on the heap
)


def features(program: Program) -> NDArray[np.float64]:
    """One number for each of FEATURES."""
    count: defaultdict[str, float] = defaultdict(float)
    for node in program.body:
        _count(program, node, (), count)
    for cache, capacity in CACHES.items():
        count[f"bytes to the {cache} cache"] = sum(
            _traffic(program, node, (), capacity)[0] for node in program.body
        )
    temporary = [b for b in program.buffers if not set(b.arrays) & program.interface]
    count["temporaries"] = sum(b.bytes for b in temporary if b.location == "heap")
    return np.array([math.log2(1.0 + count[name]) for name in FEATURES])


def _count(program: Program, node: Node, scopes: tuple[Scope, ...], count: defaultdict[str, float]) -> None:
    times = math.prod(s.size for s in scopes)
    if isinstance(node, Scope):
        if node.mark in ("p", "g") and not (scopes and scopes[-1].mark == "g"):
            count["starts of threads"] += times
        elif not node.mark:
            count["iterations"] += times * node.size
        for child in node.body:
            _count(program, child, (*scopes, node), count)
        return
    vector = bool(scopes) and scopes[-1].mark == "v"
    executed = times / scopes[-1].size if vector else times
    count["instructions"] += executed
    count["scalar instructions"] += 0 if vector else executed
    threads = any(s.mark in THREADS for s in scopes)
    count["instructions in threads" if threads else "instructions outside of threads"] += executed
    count["code"] += math.prod(s.size for s in scopes if s.mark == "u")
    if node.function not in CHEAP:
        count["costly vector functions" if vector else "costly scalar functions"] += executed
    loop = next((d for d in reversed(range(len(scopes))) if scopes[d].mark not in ("v", "u")), None)
    if node.accumulate and loop is not None and not _moves(node.target, loop):
        count["chained"] += executed
    count["streaming stores"] += executed if node.stream else 0
    count["prefetches"] += executed * len(node.prefetches)
    for access in (node.target, *node.reads):
        buffer = program.buffer_of[access.array]
        if access.indirect:
            count["through tables"] += executed
        if buffer.location != "heap":
            count[NEAR.get(buffer.location, buffer.location)] += executed
            continue
        stride = abs(_stride(program, access, len(scopes) - 1))
        kind = "the same cell" if stride == 0 else "neighbours" if stride == 1 else "far apart"
        count[f"heap, {kind}"] += executed


def _forms(access: Access) -> Iterator[Affine]:
    for index in access.index:
        yield index if isinstance(index, Affine) else index.rest


def _moves(access: Access, depth: int) -> bool:
    return any(form.uses(depth) for form in _forms(access))


def _stride(program: Program, access: Access, depth: int) -> int:
    """Cells between one iteration of the scope at a depth and the next."""
    cells, total = 1, 0
    dims = program.buffer_of[access.array].dims
    for form, dim in zip(reversed(list(_forms(access))), reversed(dims), strict=True):
        if dim.materialised:
            total += cells * form.coefficient(depth)
            cells *= dim.size
    return total


_Cells = dict[str, float]  # bytes that a subtree touches, by buffer


def _traffic(program: Program, node: Node, scopes: tuple[Scope, ...], capacity: int) -> tuple[float, _Cells]:
    """Bytes that must come into a cache for one run of a node, and what the node touches.

    What fits comes once; what does not comes again with every iteration.
    """
    if isinstance(node, Op):
        touched: _Cells = {}
        for access in (node.target, *node.reads):
            buffer = program.buffer_of[access.array]
            if buffer.location == "heap":
                touched[buffer.name] = float(DTYPE_BYTES[buffer.dtype])
        return sum(touched.values()), touched
    inner = (*scopes, node)
    traffic, touched = 0.0, {}
    for child in node.body:
        moved, cells = _traffic(program, child, inner, capacity)
        traffic += moved
        for name, size in cells.items():
            touched[name] = max(size, touched.get(name, 0.0))
    moving = _moving(program, node, len(scopes))
    touched = {name: size * (node.size if name in moving else 1) for name, size in touched.items()}
    whole = sum(touched.values())
    return (whole if whole <= capacity else traffic * node.size), touched


def _moving(program: Program, node: Node, depth: int) -> set[str]:
    """Buffers of which each iteration of the scope at a depth touches other cells."""
    if isinstance(node, Scope):
        return {name for child in node.body for name in _moving(program, child, depth)}
    accesses = (node.target, *node.reads)
    return {program.buffer_of[a.array].name for a in accesses if _moves(a, depth)}
