"""V3 on a GPU: where grid, block and warp scopes may stand, and what shared and local buffers must meet.

The numbered conditions are those of moves.md ("Marks" and the thread rule); each has a code of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.dependence import MemoryAccess, accesses, may_regroup
from dojo_core.program.gpu import (
    Kernel,
    block_number,
    is_warp_reduction,
    kernels,
    lanes,
    phase_threads,
    standing,
    thread_dims,
    thread_number,
)
from dojo_core.program.marks import gathers, lane_stride, register_sentence
from dojo_core.program.reaching import accesses_of
from dojo_core.program.tables import Indirect, affine
from dojo_core.program.tree import DTYPE_BYTES, Access, Buffer, Leaf, Path, Program, Scope, walk
from dojo_core.program.validity import Fault, owner_path
from dojo_core.targets.gpu.tensor_cores import tile

if TYPE_CHECKING:
    from dojo_core.targets.gpu.limits import GpuTarget


def gpu_fault(program: Program, target: GpuTarget, policy: str) -> Fault | None:
    """The first violation, or None. Places come before sizes, sizes before buffers."""
    for node, path, above in walk(program.body):
        if isinstance(node, Scope) and node.mark in _PLACES:
            fault = _PLACES[node.mark](node, path, above, target)
            if fault is not None:
                return fault
        if isinstance(node, Scope) and node.mark == "m":
            found = tile(program, node, path, above, policy)
            if isinstance(found, Fault):
                return found
    return next(_faults(program, target, policy), None)


def _faults(program: Program, target: GpuTarget, policy: str) -> Iterator[Fault]:
    yield from _kernel_sizes(program, target)
    for leaf in program.leaves:
        yield from _warp_reduction(program, leaf, policy)
        yield from _alignment(program, leaf)
    for buffer in program.buffers:
        if buffer.location == "heap":
            continue
        yield from _one_kernel(program, buffer)
        if buffer.location == "shared":
            yield from _under_grid(program, buffer)
        else:
            fault = looked_up(program, buffer)
            if fault is not None:  # what follows takes its indices for affine
                yield fault
                return
            yield from _thread_rule(program, buffer)
            if buffer.location == "local":
                yield from _registers(program, buffer, target)
    yield from _sizes(program, "shared", lambda _, b: -(-b.bytes // 16) * 16, target.shared_bytes, "a block")
    yield from _sizes(program, "stack", lambda p, b: _stored(p, b).bytes, target.stack_bytes, "each thread")


def direct(access: Access) -> tuple[Affine, ...]:
    """The indices of an access to what a thread has of its own: none of these is indirect (``looked_up``)."""
    return tuple(map(affine, access.index))


def _fault(code: str, sentence: str, nodes: tuple[Path, ...] = (), buffer: str = "") -> Fault:
    return Fault(code, buffer, buffer, sentence, nodes)


# ---------------------------------------------------------------------------- places


def _grid(scope: Scope, path: Path, above: tuple[Scope, ...], target: GpuTarget) -> Fault | None:
    """map_grid: at root, under unmarked scopes only, or the only child of a ``:g`` scope."""
    outer = [s for s in above if s.mark != "g"]
    first = next((d for d, s in enumerate(above) if s.mark == "g"), len(above))
    if any(s.mark for s in outer) or any(s.mark != "g" for s in above[first:]):
        return _fault(
            Code.GRID_PLACE, "A grid scope stands under unmarked scopes, or in a grid scope.", (path,)
        )
    if above and above[-1].mark == "g" and len(above[-1].body) > 1:
        return _fault(
            Code.GRID_NEST, "A grid scope in a grid scope must be all that it holds.", (path, path[:-1])
        )
    return None


def _block(scope: Scope, path: Path, above: tuple[Scope, ...], target: GpuTarget) -> Fault | None:
    """map_block: under ``:g``; a phase's ``:b`` scopes are a perfect nest."""
    if not any(s.mark == "g" for s in above):
        return _fault(
            Code.BLOCK_PLACE, "A block scope stands in a grid scope: map a scope around it first.", (path,)
        )
    if any(s.mark == "w" for s in above):
        return _fault(
            Code.BLOCK_PLACE, "A block scope stands in a warp scope: warps are parts of a block.", (path,)
        )
    inside = next((d for d, s in enumerate(above) if s.mark == "b"), None)
    if inside is not None and any(s.mark != "b" or len(s.body) > 1 for s in above[inside:]):
        return _fault(
            Code.BLOCK_NEST, "Block scopes in one another must be a perfect nest.", (path, path[: inside + 1])
        )
    if inside is None:
        threads = phase_threads(scope)
        if threads > target.block_threads:
            return _fault(
                Code.BLOCK_THREADS,
                f"This phase has {threads} threads; a block has at most {target.block_threads}.",
                (path,),
            )
        width = lanes(scope)
        if width > 1 and threads % target.warp:
            return _fault(
                Code.WARP_WHOLE,
                f"This phase has {threads} threads: no whole number of warps of {target.warp}.",
                (path,),
            )
    return None


def _warp(scope: Scope, path: Path, above: tuple[Scope, ...], target: GpuTarget) -> Fault | None:
    """map_warp: in a phase, in no other ``:w``; a power of two that divides the warp, one a phase."""
    if not any(s.mark == "b" for s in above):
        return _fault(
            Code.WARP_PLACE, "A warp scope stands in a block scope: map a scope around it first.", (path,)
        )
    if any(s.mark == "w" for s in above):
        return _fault(Code.WARP_PLACE, "A warp scope stands in another.", (path,))
    if scope.size & (scope.size - 1) or scope.size > target.warp:
        return _fault(
            Code.WARP_SIZE,
            f"{scope.size} lanes do not divide a warp of {target.warp}: a power of two up to that does.",
            (path,),
        )
    phase = next(s for s in above if s.mark == "b")
    if scope.size != lanes(phase):
        return _fault(
            Code.WARP_SIZES,
            f"This phase has warp scopes of {scope.size} and of {lanes(phase)} lanes.",
            (path,),
        )
    return None


_PLACES = {"g": _grid, "b": _block, "w": _warp}


def _kernel_sizes(program: Program, target: GpuTarget) -> Iterator[Fault]:
    launches = 0
    for kernel in kernels(program):
        launches += math.prod(kernel.host) if kernel.host else 0
        if kernel.blocks > target.grid_blocks:
            yield _fault(
                Code.GRID_SIZE,
                f"{kernel.blocks} blocks are more than a launch can have ({target.grid_blocks}).",
                (kernel.path,),
            )
    if launches > target.launches:
        yield _fault(
            Code.LAUNCHES,
            f"The host's loops would make {launches} launches; the limit is {target.launches}. "
            "Put the loops around the grid inside it, or map them.",
        )


# ---------------------------------------------------------------------------- operations


def _warp_reduction(program: Program, leaf: Leaf, policy: str) -> Iterator[Fault]:
    if is_warp_reduction(leaf) and not may_regroup(program, leaf, policy):
        yield _fault(
            Code.WARP_REGROUP,
            "The policy strict keeps the order of this sum: its lanes may not be regrouped.",
            (leaf.path[:-1],),
        )


def _alignment(program: Program, leaf: Leaf) -> Iterator[Fault]:
    """vectorize: a wide access lies at a multiple of its width, whatever the iterators."""
    if not leaf.scopes or leaf.scopes[-1].mark != "v":
        return
    lane, width = len(leaf.scopes) - 1, leaf.scopes[-1].size
    for access in (leaf.op.target, *leaf.op.sources):
        buffer = program.buffer_of[access.array]
        neighbours = lane_stride(access, buffer, lane) == 1 and not gathers(access, lane)
        if buffer.location == "local" or not neighbours:
            continue
        strides = [lane_stride(access, buffer, d) for d in range(lane)]
        step, start = 1, 0
        for form, dim in zip(reversed(access.index), reversed(buffer.dims), strict=True):
            if dim.materialised:
                rest = form.rest if isinstance(form, Indirect) else form
                strides += [c * step for _, c in form.lookups] if isinstance(form, Indirect) else []
                start += rest.const * step
                step *= dim.size
        odd = next((n for n in (*strides, start) if n % width), None)
        if odd is not None:
            yield _fault(
                Code.VECTOR_ALIGNMENT,
                f"{access} starts {width} lanes at a cell that need not be a multiple of {width} "
                f"(it moves by {odd}): pad or split a dimension.",
                (leaf.path[:-1],),
                buffer.name,
            )


# ---------------------------------------------------------------------------- buffers


def _mine(program: Program, buffer: Buffer) -> list[MemoryAccess]:
    return [t for array in buffer.arrays for t in accesses_of(program, array)]


def _kernel_of(program: Program, path: Path) -> Kernel:
    return next(k for k in kernels(program) if path[: len(k.path)] == k.path)


def _one_kernel(program: Program, buffer: Buffer) -> Iterator[Fault]:
    paths = [t.leaf.path for t in _mine(program, buffer)]
    if len({_kernel_of(program, p) for p in paths}) > 1:
        yield _fault(
            Code.KERNEL_BUFFER,
            f"{buffer.name} is used by several launches: only the heap lasts from one to the next.",
            tuple(dict.fromkeys(paths)),
            buffer.name,
        )


def _under_grid(program: Program, buffer: Buffer) -> Iterator[Fault]:
    for access in _mine(program, buffer):
        if not _kernel_of(program, access.leaf.path).mapped:
            yield _fault(
                Code.SHARED_PLACE,
                f"{buffer.name} is used outside grid scopes: only blocks have shared memory.",
                (access.leaf.path,),
                buffer.name,
            )


def without_thread_dims(buffer: Buffer, dims: tuple[int, ...]) -> Buffer:
    """What one thread stores of a private buffer: the thread dimensions take no storage."""
    dims_left = (replace(d, materialised=d.materialised and k not in dims) for k, d in enumerate(buffer.dims))
    return replace(buffer, dims=tuple(dims_left))


def looked_up(program: Program, buffer: Buffer) -> Fault | None:
    """No index of what a thread has of its own comes from an array."""
    for access in _mine(program, buffer):
        if access.element.indirect:
            return _fault(
                Code.LOCAL_INDEX,
                f"{access.element} goes through an array, which may name what another thread has: put "
                f"{buffer.name} into shared memory or on the heap.",
                (access.leaf.path,),
                buffer.name,
            )
    return None


def _thread_rule(program: Program, buffer: Buffer) -> Iterator[Fault]:
    """A thread finds in its own copy what the program says is there."""
    owner = len(owner_path(program, buffer))
    accessed = _mine(program, buffer)
    dims = [thread_dims(buffer, t.leaf, direct(t.element)) for t in accessed]
    chosen = dims[0]
    odd = next((t for t, its_dims in zip(accessed, dims, strict=True) if its_dims != chosen), None)
    if odd is not None:  # 1
        yield _fault(
            Code.THREAD_DIMS,
            f"{odd.element} and {accessed[0].element} choose the thread by different dimensions: "
            f"{buffer.name} lies in registers of one thread each.",
            (odd.leaf.path, accessed[0].leaf.path),
            buffer.name,
        )
        return
    if chosen:  # 2
        whole = all(_is_whole(buffer, t, chosen, owner) for t in accessed)
        widths = {standing(t.leaf).lanes for t in accessed}
        by_warp = len(widths) == 1 and all(
            _number(buffer, t, chosen, owner) == _inner(block_number(t.leaf), owner) for t in accessed
        )
        if not whole and not by_warp:
            bad = next((t for t in accessed if not _is_whole(buffer, t, chosen, owner)), accessed[0])
            yield _fault(
                Code.THREAD_NUMBER,
                f"{bad.element} would be another thread's: its thread dimensions are not numbered as the "
                "threads of its phase are.",
                (bad.leaf.path,),
                buffer.name,
            )
    for access in accessed:  # 3
        if access.kind == "r":
            continue
        place = standing(access.leaf)
        named = {d for k in chosen for d in access.element.index[k].depths}
        for depth in place.thread_depths:
            if depth < owner or depth in named:
                continue
            if depth == place.warp and is_warp_reduction(access.leaf):
                continue
            yield _fault(
                Code.THREAD_WRITE,
                f"{access.element} would be set in some threads only: no dimension of {buffer.name} is "
                f"chosen by the {'warp' if depth == place.warp else 'block'} scope at depth {depth}.",
                (access.leaf.path,),
                buffer.name,
            )


def _inner(form: Affine, owner: int) -> Affine:
    """Apart from iterators of the owner and its ancestors."""
    return Affine(tuple((d, c) for d, c in form.terms if d >= owner), form.const)


def _number(buffer: Buffer, access: MemoryAccess, dims: tuple[int, ...], owner: int) -> Affine:
    number = Affine()
    for k in dims:
        number = number * buffer.dims[k].size + direct(access.element)[k]
    return _inner(number, owner)


def _is_whole(buffer: Buffer, access: MemoryAccess, dims: tuple[int, ...], owner: int) -> bool:
    """Do the thread dimensions give T*W plus the lane?"""
    place = standing(access.leaf)
    if place.lanes > 1 and place.warp is None:
        return False
    return _number(buffer, access, dims, owner) == _inner(thread_number(access.leaf), owner)


def _stored(program: Program, buffer: Buffer) -> Buffer:
    """What one thread stores of its own buffer."""
    first = _mine(program, buffer)[0]
    return without_thread_dims(buffer, thread_dims(buffer, first.leaf, direct(first.element)))


def _sizes(
    program: Program, location: str, taken: Callable[[Program, Buffer], int], limit: int, whose: str
) -> Iterator[Fault]:
    """What all buffers of a launch in one location take of a block or a thread."""
    sums: dict[Kernel, int] = {}
    for buffer in program.buffers:
        if buffer.location == location:
            kernel = _kernel_of(program, _mine(program, buffer)[0].leaf.path)
            sums[kernel] = sums.get(kernel, 0) + taken(program, buffer)
            if sums[kernel] > limit:
                yield _fault(
                    f"{location}-size",
                    f"The {location} buffers of this launch would take {sums[kernel]:,} bytes of {whose}; "
                    f"the limit is {limit:,}.",
                    (),
                    buffer.name,
                )


def _registers(program: Program, buffer: Buffer, target: GpuTarget) -> Iterator[Fault]:
    mine = _stored(program, buffer)
    if mine.cells * DTYPE_BYTES[buffer.dtype] > 4 * target.register_cells:
        yield _fault(
            Code.LOCAL_SIZE,
            f"{buffer.name} has {mine.cells} cells of each thread, more than its registers hold "
            f"({target.register_cells} of 32 bits).",
            (),
            buffer.name,
        )
    last = max((k for k, d in enumerate(mine.dims) if d.materialised), default=-1)
    for leaf in program.leaves:
        for access in accesses(leaf):
            if access.element.array not in buffer.arrays:
                continue
            sentence = register_sentence(access.element, leaf.scopes, mine, last, set())
            if sentence is not None:
                yield _fault(Code.LOCAL_INDEX, sentence, (leaf.path,), buffer.name)
