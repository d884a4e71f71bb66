"""CUDA and HIP from a program: reads the tree and its marks, and matches no kernels.

The text keeps the program's names: a scope at depth 2 has the iterator ``i2``; a buffer ``x`` is ``x_``, a
suffix that no name of ours has. Above the statements of an operation stands its line of program text.
Unrolled scopes are loops with ``#pragma unroll``, whose constant indices put ``local`` arrays into registers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from dojo_core.codegen.code import NotGeneratable, Parameter
from dojo_core.codegen.scalars import (
    WRAPPING,
    Scalars,
    c_type,
    guard_text,
    index_text,
    indirect_text,
    literal,
)
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import FLOATS, HALVES
from dojo_core.program.functions import IDENTITY, LARGEST
from dojo_core.program.gpu import (
    PRIVATE,
    Kernel,
    holds,
    is_warp_reduction,
    kernels,
    lanes,
    phase_threads,
    thread_dims,
)
from dojo_core.program.marks import gathers, lane_stride
from dojo_core.program.printing import op_text
from dojo_core.program.tables import Index, Lookup, affine, plus
from dojo_core.program.tree import DTYPE_BYTES, Access, Buffer, Leaf, Node, Op, Path, Program, Scope
from dojo_core.program.validity import owner_path
from dojo_core.targets.gpu.barriers import Barriers, barriers
from dojo_core.targets.gpu.code import GpuCode, HostLoop, Launch, Pointer, Step
from dojo_core.targets.gpu.conditions import direct, looked_up, without_thread_dims
from dojo_core.targets.gpu.prelude import ERROR_BOUNDS, F64_ERROR_BOUND, prelude
from dojo_core.targets.gpu.tensor_cores import Tile, tile

ALIGNMENT = 256  # bytes: what device allocations have
MAX_LINES = 8192
# Where the runtime's header is included, as nvcc and hipcc do by themselves; and its type of a stream.
HOST = {
    "cuda": ("#if !defined(__CUDACC_RTC__) && defined(__CUDACC__)", "cudaStream_t"),
    "hip": ("#ifdef HIP_INCLUDE_HIP_HIP_RUNTIME_H", "hipStream_t"),
}
_LANES = "xyzw"


def generate(program: Program, policy: str = "reassoc", dialect: str = "cuda", warp: int = 32) -> GpuCode:
    """The kernels of a program and what the host does; ``dialect`` is ``cuda`` or ``hip``.

    Raises NotGeneratable, with a sentence, for dtypes that the target has no arithmetic for, and where
    the text would be longer than the limit.
    """
    return _Generator(program, policy, dialect, warp).code()


class _Generator:
    """The state of one generation; ``lines`` are (text, node) in order."""

    def __init__(self, program: Program, policy: str, dialect: str, warp: int) -> None:
        self.program, self.dialect, self.warp = program, dialect, warp
        self.strict = policy == "strict"
        self.lines: list[tuple[str, Path | None]] = []
        self.barrier_lines: list[int] = []
        self.unsure: list[tuple[int, int]] = []  # lines that set an iterator, and its depth
        self.loaded: dict[Access, str] = {}  # cells that stand in a variable of the statement being written
        self.scalars = Scalars(program, self.strict, self._place)
        self.bounds: dict[Path, float] = {}
        self.names = _names(program)
        self.stored: dict[str, Buffer] = {}  # what a thread stores of its own buffers
        self.owned: dict[Path, list[Buffer]] = {}
        self.kernel: Kernel
        self.barriers: Barriers
        if program.tables:
            raise NotGeneratable("This target has no constant tables yet: use the CPU target.")
        for buffer in program.buffers:
            if buffer.dtype in HALVES:
                raise NotGeneratable(
                    f"{buffer.name} is {buffer.dtype}, for which this target has no arithmetic yet: use f32."
                )
            self._home(buffer)
        for leaf in program.leaves:
            if leaf.op.function in HALVES:
                raise NotGeneratable(f"This target has no arithmetic in {leaf.op.function} yet: use f32.")

    def _home(self, buffer: Buffer) -> None:
        if buffer.location not in PRIVATE:
            return
        fault = looked_up(self.program, buffer)
        if fault is not None:
            raise NotGeneratable(fault.sentence)
        leaf, access = next(
            (leaf, a)
            for leaf in self.program.leaves
            for a in (leaf.op.target, *leaf.op.reads)
            if a.array in buffer.arrays
        )
        self.stored[buffer.name] = without_thread_dims(buffer, thread_dims(buffer, leaf, direct(access)))
        owner = owner_path(self.program, buffer)
        if owner:
            scope = self.program.node(owner)
            if isinstance(scope, Scope) and scope.mark == "v":
                owner = owner[:-1]
        self.owned.setdefault(owner, []).append(buffer)

    # ------------------------------------------------------------------ frame

    def code(self) -> GpuCode:
        program = self.program
        symbol = f"kernel_{program.name}"
        parameters, pointers, size = self._memory()
        launches: list[Launch] = []
        for number, kernel in enumerate(kernels(program)):
            self.kernel, self.barriers = kernel, barriers(program, kernel)
            launches.append(self._kernel(kernel, f"{symbol}_{number}", pointers))
        self._drop_unused()
        head = prelude("\n".join(text for text, _ in self.lines), self.dialect).splitlines()
        self.lines[:0] = [(line, None) for line in (*head, "")]
        self.barrier_lines = [n + len(head) + 1 for n in self.barrier_lines]
        steps = _steps(launches, program)
        self._host(symbol, steps, pointers, parameters)
        return GpuCode(
            dialect=self.dialect,
            text="\n".join(text for text, _ in self.lines) + "\n",
            symbol=symbol,
            kernels=tuple(launch.symbol for launch in launches),
            nodes=tuple(path for _, path in self.lines),
            barriers=tuple(self.barrier_lines),
            steps=steps,
            parameters=parameters,
            workspace_bytes=size,
            error_bound=math.fsum(self.bounds.values()),
            strict=self.strict,
            warp=self.warp,
        )

    def _memory(self) -> tuple[tuple[Parameter, ...], dict[str, Pointer], int]:
        """The interface, where each heap buffer lies, and the bytes of the workspace."""
        program = self.program
        parameters: dict[str, Parameter] = {}
        for role, arrays in (("in", program.inputs), ("out", program.outputs)):
            for array in arrays:
                buffer = program.buffer_of[array]
                shape = tuple(d.size for d in buffer.dims if d.materialised)
                parameters.setdefault(buffer.name, Parameter(buffer.name, buffer.dtype, shape, role))
        pointers = {name: Pointer(number) for number, name in enumerate(parameters)}
        size = 0
        for buffer in program.buffers:
            if buffer.location == "heap" and buffer.name not in pointers:
                pointers[buffer.name] = Pointer(None, size)
                size += -(-buffer.bytes // ALIGNMENT) * ALIGNMENT
        return tuple(parameters.values()), pointers, size

    def _line(self, text: str, path: Path | None, indent: int) -> None:
        if len(self.lines) >= MAX_LINES:
            raise NotGeneratable(f"The code would be longer than {MAX_LINES} lines: use fewer operations.")
        self.lines.append(("    " * indent + text if text else "", path))

    def _kernel(self, kernel: Kernel, symbol: str, pointers: dict[str, Pointer]) -> Launch:
        program = self.program
        inside = [leaf for leaf in program.leaves if leaf.path[: len(kernel.path)] == kernel.path]
        touched = {a.array for leaf in inside for a in (leaf.op.target, *leaf.op.reads, *leaf.op.prefetches)}
        written = {program.buffer_of[leaf.op.target.array].name for leaf in inside}
        arguments = [b for b in program.buffers if b.name in pointers and touched & set(b.arrays)]
        # What is known to be read alone is loaded when the compiler likes, also behind a barrier that stands
        # behind it; what tensor cores need next is to be on its way while they have this.
        read_only = "" if holds(program.node(kernel.path), "m") else "__restrict__ "
        parameters = []
        for buffer in arguments:
            kind, name = c_type(buffer.dtype), self.names[buffer.name]
            parameters.append(
                f"{kind} *{name}" if buffer.name in written else f"const {kind} *{read_only}{name}"
            )
        parameters += [f"int i{depth}" for depth in range(len(kernel.host))]
        if kernel.mapped:
            about = f"// {' x '.join(map(str, kernel.grid))} blocks of {kernel.threads} threads"
        else:
            about = "// Not mapped: one thread does it all."
        self._line("", None, 0)
        self._line(about, kernel.path, 0)
        self._line(f'extern "C" __global__ void __launch_bounds__({kernel.threads})', kernel.path, 0)
        self._line(f"{symbol}({', '.join(parameters)}) {{", kernel.path, 0)
        first = len(kernel.host)
        if kernel.mapped:
            self._decode([first + n for n in range(len(kernel.grid))], kernel.grid, "block", kernel.path, 1)
            if kernel.threads > 1:
                self._line(f"const int thread = {self._word('threadIdx')};", kernel.path, 1)
            for buffer in program.buffers:
                if buffer.location == "shared" and touched & set(buffer.arrays):
                    kind, name = c_type(buffer.dtype), self.names[buffer.name]
                    self._line(f"__shared__ __align__(16) {kind} {name}[{buffer.cells}];", kernel.path, 1)
            body = program.node(kernel.body)
            assert isinstance(body, Scope)
            scopes = (*program.scopes_above(kernel.body), body)
            self._body(body.body, kernel.body, scopes, 1)
        else:
            above = program.scopes_above(kernel.path)
            self._node(program.node(kernel.path), kernel.path, above, 1)
        self._line("}", None, 0)
        return Launch(
            symbol,
            kernel.blocks,
            kernel.threads,
            tuple(pointers[b.name] for b in arguments),
            tuple(range(len(kernel.host))),
            kernel.mapped,
            kernel.path,
        )

    def _word(self, name: str) -> str:
        return f"{name}_x" if self.dialect == "hip" else f"(int){name}.x"

    def _decode(
        self, depths: Sequence[int], sizes: Sequence[int], what: str, path: Path, indent: int
    ) -> None:
        """Iterators from a linear number, the last the fastest."""
        number = what
        if what == "block":
            if len(sizes) == 1:
                number = self._word("blockIdx")
            elif math.prod(sizes) > 1:
                self._line(f"const int block = {self._word('blockIdx')};", path, indent)
        step = math.prod(sizes)
        for position, (depth, size) in enumerate(zip(depths, sizes, strict=True)):
            step //= size
            value = number if step == 1 else f"{number} / {step}"
            if position:
                value = f"{value} % {size}"
            self._iterator(depth, "0" if size == 1 else value, path, indent)

    def _iterator(self, depth: int, value: str, path: Path, indent: int) -> None:
        """An iterator that the threads' numbers give; where nothing uses it, it leaves the text again."""
        self.unsure.append((len(self.lines), depth))
        self._line(f"const int i{depth} = {value};", path, indent)

    def _drop_unused(self) -> None:
        """Iterators that no line after uses before the next of their name or the kernel's end."""
        dropped = set()
        for number, depth in self.unsure:
            indent = len(self.lines[number][0]) - len(self.lines[number][0].lstrip())
            used = False
            for text, _ in self.lines[number + 1 :]:
                if len(text) - len(text.lstrip()) < indent and text.strip():
                    break
                if re.search(rf"\bi{depth}\b", text.partition("//")[0]):
                    used = True
                    break
            if not used:
                dropped.add(number)
        remaining = [n for n in range(len(self.lines)) if n not in dropped]
        at = {old: new for new, old in enumerate(remaining)}
        self.lines = [self.lines[n] for n in remaining]
        self.barrier_lines = [at[n] for n in self.barrier_lines]

    # ------------------------------------------------------------------ scopes

    def _body(self, body: tuple[Node, ...], path: Path, scopes: tuple[Scope, ...], indent: int) -> None:
        self._declare(path, indent)
        for number, child in enumerate(body):
            self._node(child, (*path, number), scopes, indent)

    def _declare(self, path: Path, indent: int) -> None:
        for buffer in self.owned.get(path, ()):
            stored = self.stored[buffer.name]
            aligned = "__align__(16) " if buffer.location == "stack" else ""
            kind, name = c_type(buffer.dtype), self.names[buffer.name]
            self._line(f"{aligned}{kind} {name}[{stored.cells}];", path, indent)

    def _node(self, node: Node, path: Path, scopes: tuple[Scope, ...], indent: int) -> None:
        if path in self.barriers.block or path in self.barriers.warp:
            self.barrier_lines.append(len(self.lines))
            word = "__syncthreads" if path in self.barriers.block else "__syncwarp"
            self._line(f"{word}();", path, indent)
        if isinstance(node, Op):
            self._operation(node, path, scopes, indent)
            return
        depth, above = len(scopes), (*scopes, node)
        if node.mark == "v":
            only = node.body[0]
            assert isinstance(only, Op)
            self._operation(only, (*path, 0), above, indent)
        elif node.mark == "b":
            self._phase(node, path, scopes, indent)
        elif node.mark == "w":
            only = node.body[0]
            if isinstance(only, Op) and is_warp_reduction(Leaf(only, (*path, 0), above)):
                self._reduce(only, (*path, 0), above, indent)
                return
            self._line("{", path, indent)
            self._iterator(depth, "lane", path, indent + 1)
            self._body(node.body, path, above, indent + 1)
            self._line("}", path, indent)
        elif node.mark == "m":
            self._tile(node, path, scopes, indent)
        else:
            if node.mark == "u":
                self._line("#pragma unroll", path, indent)
            kind = "int" if node.size < 2**31 else "i64"
            self._line(f"for ({kind} i{depth} = 0; i{depth} < {node.size}; ++i{depth}) {{", path, indent)
            self._body(node.body, path, above, indent + 1)
            self._line("}", path, indent)

    def _phase(self, outer: Scope, path: Path, scopes: tuple[Scope, ...], indent: int) -> None:
        depths, nest, inner, inner_path = [len(scopes)], [outer], outer, path
        while isinstance(inner.body[0], Scope) and inner.body[0].mark == "b":
            inner, inner_path = inner.body[0], (*inner_path, 0)
            depths.append(len(scopes) + len(nest))
            nest.append(inner)
        threads, width = phase_threads(outer), lanes(outer)
        whole = threads == self.kernel.threads
        self._line("{" if whole else f"if (thread < {threads}) {{", path, indent)
        number = "thread" if self.kernel.threads > 1 else "0"
        if width > 1:
            self._line(f"const int lane = thread % {width};", path, indent + 1)
            if len(nest) > 1:
                self._line(f"const int group = thread / {width};", path, indent + 1)
                number = "group"
            else:
                number = f"thread / {width}"
        self._decode(depths, [s.size for s in nest], number, path, indent + 1)
        self._body(inner.body, inner_path, (*scopes, *nest), indent + 1)
        self._line("}", path, indent)

    # ------------------------------------------------------------------ cells

    def _flat(self, access: Access) -> Index:
        """The cell's number in what is stored of its buffer: row-major over the materialised dimensions."""
        buffer = self.program.buffer_of[access.array]
        stored = self.stored.get(buffer.name, buffer)
        flat: Index = Affine()
        step = 1
        for form, dim in zip(reversed(access.index), reversed(stored.dims), strict=True):
            if dim.materialised:
                flat = plus(flat, form * step)
                step *= dim.size
        return flat

    def _index(self, index: Index, scopes: Sequence[Scope]) -> str:
        if isinstance(index, Affine):
            return index_text(index, scopes)
        return indirect_text(index, scopes, self._looked_up)

    def _looked_up(self, lookup: Lookup, scopes: Sequence[Scope]) -> str:
        return self._place(Access(lookup.source.name, lookup.at), scopes)

    def _place(self, access: Access, scopes: Sequence[Scope]) -> str:
        if access in self.loaded:
            return self.loaded[access]
        name = self.names[self.program.buffer_of[access.array].name]
        return f"{name}[{self._index(self._flat(access), scopes)}]"

    # ------------------------------------------------------------------ operations

    def _operation(self, op: Op, path: Path, scopes: tuple[Scope, ...], indent: int) -> None:
        self._explain(op, path, indent)
        for access in op.prefetches:
            self._prefetch(op, access, scopes, path, indent)
        conditions = [*self._executes(op, scopes), *self._guarded(op, scopes)]
        vector = bool(scopes) and scopes[-1].mark == "v"
        statements = self._vector(op, scopes) if vector else [self._scalar(op, scopes)]
        self._guarded_lines(conditions, statements, path, indent)

    def _guarded_lines(self, conditions: list[str], statements: list[str], path: Path, indent: int) -> None:
        condition = f"if ({' && '.join(conditions)}) " if conditions else ""
        if len(statements) == 1:
            self._line(condition + statements[0], path, indent)
            return
        self._line(condition + "{", path, indent)
        for statement in statements:
            self._line(statement, path, indent + 1)
        self._line("}", path, indent)

    def _explain(self, op: Op, path: Path, indent: int) -> None:
        self._line(f"// {op_text(op)}", path, indent)
        bound = ERROR_BOUNDS.get(op.function)
        if bound is not None:
            f64 = self.program.buffer_of[op.target.array].dtype == "f64"
            self.bounds[path] = F64_ERROR_BOUND if f64 else bound

    def _executes(self, op: Op, scopes: tuple[Scope, ...]) -> list[str]:
        """The condition that leaves one thread of those that stand here, where it writes what they share."""
        if self.program.buffer_of[op.target.array].location in PRIVATE or self.kernel.threads == 1:
            return []
        marks = [s.mark for s in scopes]
        if "b" not in marks:
            return ["thread == 0"]
        if "w" not in marks and lanes(scopes[marks.index("b")]) > 1:
            return ["lane == 0"]
        return []

    def _guarded(self, op: Op, scopes: tuple[Scope, ...]) -> list[str]:
        if not op.guard:
            return []
        # A guard that never holds keeps its place in the text, as false.
        text = guard_text(op.guard, scopes)
        return ["false"] if text is None else [text] if text else []

    def _prefetch(self, op: Op, access: Access, scopes: tuple[Scope, ...], path: Path, indent: int) -> None:
        buffer = self.program.buffer_of.get(access.array)
        if buffer is None or buffer.location != "heap":
            return
        flat = affine(self._flat(access))
        if scopes and scopes[-1].mark == "v":  # one line holds all lanes
            flat = Affine(tuple(t for t in flat.terms if t[0] != len(scopes) - 1), flat.const)
        size = DTYPE_BYTES[buffer.dtype]
        if size * flat.reach([s.size for s in scopes]) >= LARGEST:
            return  # no address
        cell = index_text(flat, scopes, wide=True)
        call = f"prefetch({self.names[buffer.name]}, {size}*({cell}));"
        self._guarded_lines(self._executes(op, scopes), [call], path, indent)

    def _scalar(self, op: Op, scopes: tuple[Scope, ...]) -> str:
        self.loaded = self._streamed_cells(op, scopes)
        statement = self.scalars.statement(op, scopes)
        self.loaded = {}
        if not self._streams(op):
            return statement
        place, _, value = statement.partition(" = ")
        return f"STREAM_STORE(&{place}, ({c_type(self._dtype(op))})({value[:-1]}));"

    def _streams(self, op: Op) -> bool:
        """Stored past the caches? Such a store takes an address of global memory for granted, and there is
        none of 16 bytes that are no vector."""
        buffer = self.program.buffer_of[op.target.array]
        return op.stream and buffer.location == "heap" and buffer.dtype != "i128" and not op.accumulate

    def _streamed(self, op: Op) -> list[Access]:
        """What is loaded so that the cache gives it up first: of global memory only, as stores are."""
        if not op.stream_load:
            return []
        homes = [(access, self.program.buffer_of[access.array]) for access in op.sources]
        return [access for access, home in homes if home.location == "heap" and home.dtype != "i128"]

    def _streamed_cells(self, op: Op, scopes: tuple[Scope, ...]) -> dict[Access, str]:
        # One that is the target too would stand on the left.
        cells = [access for access in self._streamed(op) if access != op.target]
        return {access: f"STREAM_LOAD(&{self._place(access, scopes)})" for access in cells}

    def _dtype(self, op: Op) -> str:
        return self.program.buffer_of[op.target.array].dtype

    def _vector(self, op: Op, scopes: tuple[Scope, ...]) -> list[str]:
        """Wide loads and stores around one statement for each lane."""
        lane, width = len(scopes) - 1, scopes[-1].size
        statements: list[str] = []
        wide: dict[Access, str] = {}

        def is_wide(access: Access) -> bool:
            buffer = self.program.buffer_of[access.array]
            neighbours = lane_stride(access, buffer, lane) == 1 and not gathers(access, lane)
            return buffer.location not in PRIVATE and neighbours

        def memory(access: Access) -> str:
            buffer = self.program.buffer_of[access.array]
            flat = self._flat(access) - Affine.iterator(lane)
            name = self.names[buffer.name]
            return f"{name}[{self._index(flat, scopes)}]"

        def kind(access: Access) -> str:
            dtype = self.program.buffer_of[access.array].dtype
            return f"{c_type(dtype)}x{width}"

        streamed = self._streamed(op)
        for access in dict.fromkeys(op.sources):  # an index is a number of its own in each lane
            if is_wide(access):
                wide[access] = f"v{len(wide)}"
                place = f"(const {kind(access)} *)&{memory(access)}"
                value = f"STREAM_LOAD({place})" if access in streamed else f"*{place}"
                statements.append(f"const {kind(access)} {wide[access]} = {value};")
        target = op.target
        stores = is_wide(target)
        if stores:
            begin = f" = *({kind(target)} *)&{memory(target)}" if op.accumulate else ""
            statements.append(f"{kind(target)} r{begin};")
        for number in range(width):
            at = {lane: Affine((), number)}
            self.loaded = {a.substitute(at): f"{v}.{_LANES[number]}" for a, v in wide.items()}
            one = replace(op.substitute(at), stream=False)
            if stores:
                # The target's lane is its own variable even where an operand reads the same cells.
                statements.append(self._into(one, f"r.{_LANES[number]}", scopes))
            else:
                statements.append(self.scalars.statement(one, scopes))
        self.loaded = {}
        if stores:
            if self._streams(op):
                statements.append(f"STREAM_STORE(({kind(target)} *)&{memory(target)}, r);")
            else:
                statements.append(f"*({kind(target)} *)&{memory(target)} = r;")
        return statements

    def _into(self, op: Op, place: str, scopes: tuple[Scope, ...]) -> str:
        """The statement with its target's cell in a variable."""
        target = Access(op.target.array, (*op.target.index, Affine()))  # no operand is this one
        self.loaded[target] = place
        statement = self.scalars.statement(replace(op, target=target), scopes)
        del self.loaded[target]
        return statement

    def _reduce(self, op: Op, path: Path, scopes: tuple[Scope, ...], indent: int) -> None:
        """A reduction over the lanes: a butterfly of shuffles, outside every condition."""
        depth, width = len(scopes) - 1, scopes[-1].size
        buffer = self.program.buffer_of[op.target.array]
        kind = c_type(buffer.dtype)
        self._explain(op, path, indent)
        self._line("{", path, indent)
        self._iterator(depth, "lane", path, indent + 1)
        identity = literal(IDENTITY[op.accumulate], buffer.dtype)
        self._line(f"{kind} part = {identity};", path, indent + 1)
        self.loaded = self._streamed_cells(op, scopes)
        value = self._into(replace(op, accumulate=""), "part", scopes)
        self._guarded_lines(self._guarded(op, scopes), [value], path, indent + 1)
        step = width // 2
        while step:
            shuffle = "SHUFFLE_XOR_I128" if kind == "i128" else "SHUFFLE_XOR"  # which moves 8 bytes at most
            other = f"{shuffle}(part, {step})"
            self._line(self._combined(op.accumulate, buffer.dtype, "part", other), path, indent + 1)
            step //= 2
        self.loaded = {}
        place = self._place(op.target, scopes)
        done = self._combined(op.accumulate, buffer.dtype, place, "part")
        mine = [] if buffer.location in PRIVATE else ["lane == 0"]
        self._guarded_lines(mine, [done], path, indent + 1)
        self._line("}", path, indent)

    def _tile(self, scope: Scope, path: Path, scopes: tuple[Scope, ...], indent: int) -> None:
        """A warp's tile: what a thread holds of the results, and what it brings of the operands."""
        found = tile(self.program, scope, path, scopes, "reassoc")
        assert isinstance(found, Tile)  # V3
        self._explain(found.op, (*path, 0, 0, 0), indent)
        results = [self._place(found.result(row, column), scopes) for row in (0, 1) for column in (0, 1)]
        left = [self._place(found.left_term(row, term), scopes) for term in (0, 1) for row in (0, 1)]
        right = [self._place(found.right_term(term), scopes) for term in (0, 1)]
        self._line("{", path, indent)
        self._line(f"f32 tile[4] = {{{', '.join(results)}}};", path, indent + 1)
        self._line(f"mma_tf32(tile, {', '.join([*left, *right])});", path, indent + 1)
        for number, place in enumerate(results):
            self._line(f"{place} = tile[{number}];", path, indent + 1)
        self._line("}", path, indent)

    def _combined(self, accumulate: str, dtype: str, place: str, value: str) -> str:
        if accumulate not in "+*":
            return f"{place} = {c_type(dtype)}_{accumulate}({value}, {place});"
        if dtype == "bool":
            return f"{place} = ({place} {accumulate} {value}) != 0;"
        if dtype not in FLOATS:
            return f"{place} = {dtype}_{WRAPPING[accumulate]}({place}, {value});"
        return f"{place} {accumulate}= {value};"

    # ------------------------------------------------------------------ the host

    def _host(
        self,
        symbol: str,
        steps: tuple[Step, ...],
        pointers: dict[str, Pointer],
        parameters: tuple[Parameter, ...],
    ) -> None:
        """What the host does, for people and for ``nvcc`` and ``hipcc``; the Dojo launches by the driver."""
        self._line("", None, 0)
        condition, stream = HOST[self.dialect]
        self._line(condition, None, 0)
        self._line(
            f'extern "C" void {symbol}(void *const *arrays, void *workspace, {stream} stream) {{', None, 0
        )

        def pointer(p: Pointer) -> str:
            return f"arrays[{p.array}]" if p.array is not None else f"(char *)workspace + {p.offset}"

        kinds = {p: c_type(self.program.buffer_of[self._array(n)].dtype) for n, p in pointers.items()}

        def below(steps: tuple[Step, ...], depth: int) -> None:
            for step in steps:
                if isinstance(step, HostLoop):
                    self._line(
                        f"for (int i{depth} = 0; i{depth} < {step.size}; ++i{depth}) {{", None, 1 + depth
                    )
                    below(step.body, depth + 1)
                    self._line("}", None, 1 + depth)
                    continue
                arguments = [f"({kinds[p]} *)({pointer(p)})" for p in step.pointers]
                arguments += [f"i{n}" for n in step.loops]
                call = f"{step.symbol}<<<{step.blocks}, {step.threads}, 0, stream>>>({', '.join(arguments)});"
                self._line(call, step.path, 1 + depth)

        below(steps, 0)
        self._line("}", None, 0)
        self._line("#endif", None, 0)

    def _array(self, name: str) -> str:
        return next(b.arrays[0] for b in self.program.buffers if b.name == name)


def _names(program: Program) -> dict[str, str]:
    """An identifier for each buffer: its name and ``_``, which no name of ours ends with. What begins with
    ``_`` is the compiler's (``__LINE_`` would be its ``__LINE__``) and gets a ``v`` in front."""
    names: dict[str, str] = {}
    for given in (b.name for b in program.buffers):
        name = f"v{given}__" if given.startswith("_") else f"{given}_"
        while name in names.values():
            name += "_"
        names[given] = name
    return names


def _steps(launches: list[Launch], program: Program) -> tuple[Step, ...]:
    """The launches in the loops of the host that stand around them."""
    left = {launch.path: launch for launch in launches}

    def below(body: tuple[Node, ...], path: Path) -> tuple[Step, ...]:
        steps: list[Step] = []
        for number, node in enumerate(body):
            node_path = (*path, number)
            if node_path in left:
                steps.append(left[node_path])
            else:
                assert isinstance(node, Scope)
                steps.append(HostLoop(node.size, below(node.body, node_path)))
        return tuple(steps)

    return below(program.body, ())
