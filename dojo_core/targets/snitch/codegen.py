"""RISC-V assembler text from a program, for one Snitch core: reads the tree and its marks, and matches no
kernels.

The code does what the text says, in its order. A loop counts down in a register of its own and moves the
addresses that its accesses use by constants; register buffers are FPU registers; a ``:s`` scope is the
configuration of its streams, then its loops; a ``:f`` scope is one ``frep.o``. Registers are handed out as
they are needed, and what is needed longest keeps them: where there are too few, the program is refused.

The kernel is called with its arrays in a0 to a7, inputs first, then the workspace, and keeps sp, gp, tp and
ra alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from dojo_core.codegen.code import NotGeneratable, Parameter
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import dtypes_of
from dojo_core.program.printing import op_text
from dojo_core.program.tree import (
    Access,
    Buffer,
    Leaf,
    Node,
    Number,
    Op,
    Operand,
    Path,
    Program,
    Scope,
    leaves,
)
from dojo_core.targets.snitch.assembly import F, Instruction, frep, scfgwi
from dojo_core.targets.snitch.elementary import (
    LOWER_HALVES,
    REGISTERS,
    SCRATCH_BYTES,
    SOFTWARE,
    Elementary,
)
from dojo_core.targets.snitch.limits import MODEL_BYTES, SnitchTarget, target
from dojo_core.targets.snitch.listing import SUFFIX, Listing, SnitchCode
from dojo_core.targets.snitch.streams import (
    OLD,
    TARGET,
    Stream,
    cell,
    memory_slots,
    region_depth,
    regions,
    streams_of,
)

BYTES = {"f64": 8, "f32": 4}
_EXPONENTS = {"f64": 1023, "f32": 127}
_WORD = range(-(2**31), 2**31)
_BINARY = {"+": "fadd", "-": "fsub", "*": "fmul", "max": "fmax", "min": "fmin"}
_FUNCTIONS = (*_BINARY, "neg", "abs", "fma")
_ALIGNMENT = 64


@dataclass
class _Pointer:
    """An address register of a buffer. ``moves``: the bytes by which it moves at the end of each iteration
    of the loop at a depth, ``rewinds``: behind the loop, where an unrolled scope has copies of it;
    ``scopes``: the path of the innermost of these loops."""

    register: str
    buffer: Buffer
    moves: dict[int, int]
    rewinds: dict[int, int]
    scopes: Path


def generate(program: Program) -> SnitchCode:
    """The assembler text of a program, and its words. A product and the sum that it goes to are always one
    instruction, which each policy allows.

    Raises NotGeneratable, with a sentence, for dtypes, functions and marks that Snitch has no code for, and
    where there are too few registers or the model cannot hold the arrays.
    """
    first = _Generator(program, target(), ())
    code = first.code()
    if not first.out.numbers:
        return code
    # Which numbers it needs is known once it is written: again, with these in registers from the start.
    return _Generator(program, target(), tuple(first.out.numbers)).code()


class _Generator:
    """``numbers``: constants, by their text and dtype, that go into registers before all else."""

    def __init__(self, program: Program, limits: SnitchTarget, numbers: tuple[tuple[str, str], ...]) -> None:
        self.program, self.limits, self.numbers = program, limits, numbers
        self.dtypes = dtypes_of(program)
        self.out = Listing()
        self.images: dict[
            int, Affine
        ] = {}  # unrolled iterators, and those of one iteration: their value here
        self.explained: set[Path] = set()
        self.bases: dict[str, tuple[str, int]] = {}  # buffers in memory: register and bytes from it
        self.cells: dict[str, list[str]] = {}  # register buffers: an FPU register for each cell
        self.pointers: list[_Pointer] = []
        self.iterators: dict[int, str] = {}
        self.streamed: dict[tuple[Path, int], str] = {}  # in a region: stream register by operation and slot
        self.workspace_bytes = 0
        self.scratch = ""  # the address of what functions in software have in memory, where there are any
        self._check()

    # ------------------------------------------------------------------ frame

    def _check(self) -> None:
        program = self.program
        if program.tables:
            raise NotGeneratable("The Snitch target has no constant tables: play this program on the CPU.")
        if program.index_arrays:
            raise NotGeneratable(
                "The Snitch target reads no indices from arrays yet: play this program on the CPU."
            )
        for buffer in program.buffers:
            if buffer.dtype not in BYTES:
                message = f"{buffer.name} is {buffer.dtype}: the Snitch generator has f64 and f32."
                raise NotGeneratable(message)
            if buffer.location not in self.limits.locations:
                known = ", ".join(self.limits.locations)
                raise NotGeneratable(f"{buffer.name} lies in {buffer.location}: Snitch has {known}.")
        for leaf in program.leaves:
            function = _multiplied(leaf.op, self._dtype(leaf.op)).function
            if function and function not in (*_FUNCTIONS, *SOFTWARE, *BYTES):
                raise NotGeneratable(
                    f"The FPU of Snitch has no {function}, and there is none in software here: "
                    "this program cannot run on it."
                )
            for scope in leaf.scopes:
                if scope.mark and scope.mark not in self.limits.marks:
                    raise NotGeneratable(
                        f"The Snitch target knows no :{scope.mark} scopes; it knows :u, :s and :f."
                    )

    def code(self) -> SnitchCode:
        program = self.program
        symbol = f"kernel_{program.name}"
        parameters = self._interface()
        held = _nests_of_registers(program)
        if not self.scratch and sum(buffer.cells for buffer in held) <= self.limits.register_cells:
            # All fit: each has its own from start to end, as in the programs whose cycles are on record.
            held = dict.fromkeys(held, (0, len(program.body) - 1))
        self._hold(b for b, (first, _) in held.items() if first == 0)
        for value, dtype in self.numbers:
            self.out.constant(float(value), dtype)
        for at in LOWER_HALVES if self.scratch else ():
            self.out.emit("sw", "zero", at, self.scratch)
        for number, node in enumerate(program.body):
            self._hold(b for b, (first, _) in held.items() if first == number > 0)
            self._nest(node, (number,))
            for buffer in (b for b, (_, last) in held.items() if last == number):
                self.out.floats.extend(self.cells.pop(buffer.name))
        self.out.emit("ret")
        return self.out.finished(symbol, parameters, self.workspace_bytes)

    def _hold(self, buffers: Iterable[Buffer]) -> None:
        """Give register buffers their registers."""
        for buffer in buffers:
            self.cells[buffer.name] = self.out.float_registers(buffer.cells, buffer.name)

    def _interface(self) -> tuple[Parameter, ...]:
        program = self.program
        parameters: dict[str, Parameter] = {}
        for role, arrays in (("in", program.inputs), ("out", program.outputs)):
            for array in arrays:
                buffer = program.buffer_of[array]
                if buffer.location != "heap":
                    raise NotGeneratable(f"{array} is an input or output, which must lie on the heap.")
                shape = tuple(d.size for d in buffer.dims if d.materialised)
                parameters.setdefault(buffer.name, Parameter(buffer.name, buffer.dtype, shape, role))
        if len(parameters) > 7:
            raise NotGeneratable(f"{len(parameters)} arrays are more than the argument registers hold, 7.")
        for number, name in enumerate(parameters):
            self.bases[name] = (f"a{number}", 0)
        workspace = f"a{len(parameters)}"
        if any(_multiplied(leaf.op, self._dtype(leaf.op)).function in SOFTWARE for leaf in program.leaves):
            self.scratch = workspace
            self.workspace_bytes = _aligned(SCRATCH_BYTES)
            self.out.reserve((workspace, *REGISTERS))
        for buffer in program.buffers:
            if buffer.location != "register" and buffer.name not in self.bases:
                self.bases[buffer.name] = (workspace, self.workspace_bytes)
                self.workspace_bytes += _aligned(buffer.bytes)
        total = self.workspace_bytes + sum(b.bytes for b in program.buffers if b.name in parameters)
        if total > MODEL_BYTES:
            raise NotGeneratable(
                f"Its arrays take {total:,} bytes; the model of a Snitch core holds {MODEL_BYTES:,}: "
                "choose a smaller shape."
            )
        self.out.reserve({register for register, _ in self.bases.values()})
        return tuple(parameters.values())

    # ------------------------------------------------------------------ nests and loops

    def _nest(self, node: Node, path: Path) -> None:
        """One child of the root, with registers of its own for addresses and counters."""
        before = self.bases
        self.pointers, self.iterators = [], {}
        with self.out.nest():
            for leaf in leaves((node,), path[:-1]):
                item = Leaf(leaf.op, (path[-1], *leaf.path[1:]), leaf.scopes)
                self._addresses(item)
            self._body((node,), path[:-1], (), path[-1])
        self.bases = before

    def _addresses(self, leaf: Leaf) -> None:
        """Address registers for what an operation loads and stores, and for where its streams begin."""
        region = region_depth(leaf)
        for _, access in memory_slots(self.program, leaf.op):
            self._pointer(access, leaf.path, _loops(leaf.scopes[:region]))

    def _pointer(self, access: Access, path: Path, chain: tuple[int, ...]) -> _Pointer:
        buffer = self.program.buffer_of[access.array]
        form, size = cell(self.program, access), BYTES[buffer.dtype]
        moves: dict[int, int] = {}
        rewinds: dict[int, int] = {}
        inner = 0  # how far the loops inside have moved it
        for outer, depth in reversed(list(zip((-1, *chain), chain, strict=False))):
            stride = form.coefficient(depth) * size
            if stride != inner:
                moves[depth] = stride - inner
            inner = stride * self._scope_at(path, depth).size
            between = (self._scope_at(path, d) for d in range(outer + 1, depth))
            if inner and any(s.mark == "u" and s.size > 1 for s in between):
                rewinds[depth], inner = -inner, 0
        scopes = path[: max(moves) + 1] if moves else ()
        for known in self.pointers:
            if known.buffer is buffer and known.moves == moves and known.scopes == scopes:
                return known
        register, offset = self.bases[buffer.name]
        if moves or offset:
            base, register = register, self.out.integer_register(f"the address of {access}")
            if offset:
                self._offset(register, base, offset, path)
            else:
                self.out.emit("mv", register, base, path=path)
        made = _Pointer(register, buffer, moves, rewinds, scopes)
        self.pointers.append(made)
        return made

    def _scope_at(self, path: Path, depth: int) -> Scope:
        scope = self.program.node(path[: depth + 1])
        assert isinstance(scope, Scope)
        return scope

    def _body(self, nodes: Sequence[Node], path: Path, above: tuple[Scope, ...], first: int = 0) -> None:
        for number, node in enumerate(nodes, first):
            node_path = (*path, number)
            if isinstance(node, Op):
                self._operation(node, node_path, above)
            elif node.mark == "s":
                self._region(node, node_path, above)
            else:
                self._scope(node, node_path, above)

    def _scope(self, scope: Scope, path: Path, above: tuple[Scope, ...]) -> None:
        depth = len(above)
        if scope.mark == "f" and scope.size > 1:
            self._hardware_loop(scope, path, above)
            return
        if scope.mark == "u" or scope.size == 1:
            for value in range(scope.size):
                self.images[depth] = Affine(const=value)
                self._body(scope.body, path, (*above, scope))
            del self.images[depth]
            return
        counter = self.out.integer_register("a loop's counter")
        used = _uses_value(scope, depth)
        if used:
            self.iterators[depth] = self.out.integer_register("an iterator")
            self.out.emit("li", self.iterators[depth], 0, path=path)
        self.out.emit("li", counter, scope.size, path=path)
        label = self.out.label()
        self.out.add(label, path)
        self._body(scope.body, path, (*above, scope))
        mine = [p for p in self.pointers if p.scopes[: depth + 1] == path]
        for pointer in mine:
            if depth in pointer.moves:
                self._offset(pointer.register, pointer.register, pointer.moves[depth], path)
        if used:
            self.out.emit("addi", self.iterators[depth], self.iterators[depth], 1, path=path)
            self.out.integers.append(self.iterators.pop(depth))
        self.out.emit("addi", counter, counter, -1, path=path)
        self.out.emit("bnez", counter, label.name, path=path)
        self.out.integers.append(counter)
        for pointer in mine:
            if depth in pointer.rewinds:
                self._offset(pointer.register, pointer.register, pointer.rewinds[depth], path)

    # ------------------------------------------------------------------ streams

    def _region(self, scope: Scope, path: Path, above: tuple[Scope, ...]) -> None:
        """Configure the streams, switch them on, do the loops, wait for the FPU, switch them off."""
        streams = streams_of(self.program, path, self.limits.repeat)
        self.out.comment(f"{len(streams)} stream{'s' * (len(streams) > 1)}", path)
        if self._may_be_stored(streams):
            self._fence(path)
        self._configure(streams, path)
        for number, one in enumerate(streams):
            self.streamed[one.leaf.path, one.slot] = f"ft{number}"
            pointer = self._pointer(one.access, one.leaf.path, _loops(above))
            distance = self._constant(one.start) * BYTES[pointer.buffer.dtype]
            register = pointer.register
            if distance:
                register = "t0"
                self._offset("t0", pointer.register, distance, path)
            write = 28 if one.write else 24
            self.out.add(scfgwi(register, write + len(one.dims) - 1, number), path)
        self.out.emit("csrrsi", "zero", 0x7C0, 1, path=path)
        self._scope(_without_mark(scope), path, above)
        self._fence(path)
        self.out.emit("csrrci", "zero", 0x7C0, 1, path=path)
        for one in streams:
            del self.streamed[one.leaf.path, one.slot]

    def _may_be_stored(self, streams: Sequence[Stream]) -> bool:
        """Does the core itself store to what a stream reads? The store must have happened then."""
        read = {self.program.buffer_of[one.access.array].name for one in streams}
        return any(
            self.program.buffer_of[leaf.op.target.array].name in read and region_depth(leaf) is None
            for leaf in self.program.leaves
        )

    def _configure(self, streams: Sequence[Stream], path: Path) -> None:
        """Bounds, strides and repeats: a value that all streams share is written to all at once."""
        repeats = any(
            s.repeat > 1
            for p, _ in regions(self.program)
            for s in streams_of(self.program, p, self.limits.repeat)
        )
        wanted: dict[tuple[int, int], int] = {}
        for number, one in enumerate(streams):
            size, travelled = BYTES[self.dtypes[one.access.array]], 0
            if repeats:
                wanted[1, number] = one.repeat - 1
            for dim, (count, stride) in enumerate(one.dims):
                # The hardware's stride is the jump from the last element of the loops inside.
                wanted[2 + dim, number] = count - 1
                wanted[6 + dim, number] = stride * size - travelled
                travelled += stride * size * (count - 1)
        by_value: dict[int, list[tuple[int, int]]] = {}
        for register in sorted({r for r, _ in wanted}):
            values = {wanted[r, n] for r, n in wanted if r == register}
            if len(values) == 1 and len(streams) > 1:
                by_value.setdefault(values.pop(), []).append((register, 31))
            else:
                for number in range(len(streams)):
                    if (register, number) in wanted:
                        by_value.setdefault(wanted[register, number], []).append((register, number))
        for value, registers in by_value.items():
            source = "zero"
            if value:
                source = "t0"
                self.out.emit("li", "t0", value, path=path)
            for register, number in registers:
                self.out.add(scfgwi(source, register, number), path)

    def _fence(self, path: Path) -> None:
        """The integer core waits until the FPU has done all that came before."""
        self.out.emit("fmv.x.w", "t0", "ft3", path=path)
        self.out.emit("mv", "t0", "t0", path=path)

    # ------------------------------------------------------------------ hardware loops

    def _hardware_loop(self, scope: Scope, path: Path, above: tuple[Scope, ...]) -> None:
        begun = len(self.out.lines)
        self._body(scope.body, path, (*above, scope))
        lines = self.out.cut(begun)
        made = [(one, where) for one, where in lines if isinstance(one, Instruction)]
        notes = [line for line in lines if isinstance(line[0], str)]
        count = scope.size
        stagger = _staggered([one for one, _ in made])
        mask = 0
        if stagger and count * len(made) <= self.limits.repeats and len(made) <= 8:
            mask, count = stagger, count * len(made)
            staggered, made = len(made) - 1, made[:1]
        else:
            staggered = 0
        self.out.emit("li", "t0", count - 1, path=path)
        self.out.add(frep("t0", len(made), staggered, mask), path)
        self.out.lines += [*notes, *made]

    # ------------------------------------------------------------------ operations

    def _dtype(self, op: Op) -> str:
        return self.dtypes[op.target.array]

    def _operation(self, written: Op, path: Path, above: tuple[Scope, ...]) -> None:
        op = _multiplied(written.substitute(self.images) if self.images else written, self._dtype(written))
        first = path not in self.explained
        if first:
            self.explained.add(path)
            self.out.comment(op_text(written), path)
        held = [c for c in op.guard if not c.form.is_constant]
        if not all(c.holds(()) for c in op.guard if c.form.is_constant):
            return
        skip = self.out.label() if held else None
        for comparison in held:
            assert skip is not None
            self._value(comparison.form, "t1", path, above)
            if comparison.bound not in _WORD:
                raise NotGeneratable(f"{comparison} asks beyond 32 bits: the integers of Snitch have 32.")
            self.out.emit("li", "t2", comparison.bound, path=path)
            unless = {"<": "bge", ">=": "blt", "==": "bne"}[comparison.relation]
            self.out.emit(unless, "t1", "t2", skip.name, path=path)
        self._compute(op, path, above, first)
        if skip is not None:
            self.out.add(skip, path)

    def _compute(self, op: Op, path: Path, above: tuple[Scope, ...], first: bool) -> None:
        dtype = self._dtype(op)
        from_dtype = {self.dtypes[a.array] for a in op.reads} - {dtype}
        if op.function in BYTES and op.function != dtype:
            raise NotGeneratable(f"'{op_text(op)}' rounds and widens again: make it two operations.")
        converts = bool(from_dtype) and op.function in ("", *BYTES)
        if from_dtype and not converts:
            raise NotGeneratable(f"'{op_text(op)}' mixes f32 and f64: convert one operand first.")
        function = "" if op.function in BYTES else op.function
        stored = self.program.buffer_of[op.target.array].location != "register"
        if not op.accumulate and not function and not converts and self._moved(op, dtype, path, above):
            return
        with self.out.borrowed(op_text(op)) as free:
            sources = [
                self._operand(o, slot, dtype, free, op, path, above) for slot, o in enumerate(op.operands)
            ]
            old = ""
            if op.accumulate:
                old = self._loaded(op.target, OLD, free, path, above)
            register = self.streamed.get((path, TARGET))
            result = register or (free() if stored else self._register(op.target))
            suffix = SUFFIX[dtype]
            if op.accumulate == "+" and function == "*":
                self.out.emit(f"fmadd{suffix}", result, *sources, old, path=path)
            elif op.accumulate == "+" and function == "neg":
                self.out.emit(f"fsub{suffix}", result, old, *sources, path=path)
            else:
                value = sources[0]
                if function or not op.accumulate:
                    value = free() if op.accumulate else result
                    if function in SOFTWARE:
                        self._software(function, value, sources, dtype, free, path, first)
                    else:
                        self._function(function, value, sources, converts, dtype, free, path)
                if op.accumulate:
                    self.out.emit(f"{_BINARY[op.accumulate]}{suffix}", result, old, value, path=path)
            if stored and not register:
                self._access("fsd" if dtype == "f64" else "fsw", result, op.target, path, above)

    def _moved(self, op: Op, dtype: str, path: Path, above: tuple[Scope, ...]) -> bool:
        """A copy that is one load, one store or one move; False where it is computed."""
        (source,) = op.operands
        target_stream = self.streamed.get((path, TARGET))
        stored = self.program.buffer_of[op.target.array].location != "register"
        if isinstance(source, Affine) or (path, 0) in self.streamed:
            return False
        loaded = isinstance(source, Access) and self.program.buffer_of[source.array].location != "register"
        letter = "d" if dtype == "f64" else "w"
        if loaded:
            assert isinstance(source, Access)
            if stored:
                with self.out.borrowed(op_text(op)) as free:
                    held = free()
                    self._access(f"fl{letter}", held, source, path, above)
                    self._access(f"fs{letter}", held, op.target, path, above)
            else:
                self._access(f"fl{letter}", self._register(op.target), source, path, above)
            return True
        held = (
            self._register(source) if isinstance(source, Access) else self.out.constant(source.value, dtype)
        )
        if target_stream or not stored:
            self.out.emit(f"fmv{SUFFIX[dtype]}", target_stream or self._register(op.target), held, path=path)
        else:
            self._access(f"fs{letter}", held, op.target, path, above)
        return True

    def _function(
        self,
        function: str,
        result: str,
        sources: list[str],
        converts: bool,
        dtype: str,
        free: Callable[[], str],
        path: Path,
    ) -> None:
        suffix = SUFFIX[dtype]
        streams = ("ft0", "ft1", "ft2")
        if converts:
            self.out.emit("fcvt.d.s" if dtype == "f64" else "fcvt.s.d", result, *sources, path=path)
        elif function in _BINARY:
            self.out.emit(f"{_BINARY[function]}{suffix}", result, *sources, path=path)
        elif function == "fma":
            self.out.emit(f"fmadd{suffix}", result, *sources, path=path)
        elif function == "neg":
            if sources[0] in streams:
                self.out.emit(f"fmul{suffix}", result, sources[0], self.out.constant(-1, dtype), path=path)
            else:
                self.out.emit(f"fsgnjn{suffix}", result, sources[0], sources[0], path=path)
        elif function == "abs":
            if sources[0] in streams:
                held = free()
                self.out.emit(f"fadd{suffix}", held, sources[0], self.out.constant(-0.0, dtype), path=path)
                sources = [held]
            self.out.emit(f"fsgnjx{suffix}", result, sources[0], sources[0], path=path)
        elif sources[0] in streams:
            self.out.emit(f"fadd{suffix}", result, sources[0], self.out.constant(-0.0, dtype), path=path)
        else:
            self.out.emit(f"fmv{suffix}", result, sources[0], path=path)

    def _software(
        self,
        function: str,
        result: str,
        sources: list[str],
        dtype: str,
        free: Callable[[], str],
        path: Path,
        first: bool,
    ) -> None:
        """A function that is computed in f64; ``first``: with a comment at each step, not so in copies."""
        sequence = Elementary(self.out, self.scratch, free, path, explained=first)
        if dtype == "f64":
            sequence.write(function, result, sources)
            return
        wide = [free() for _ in sources]
        for register, source in zip(wide, sources, strict=True):
            self.out.emit("fcvt.d.s", register, source, path=path)
        sequence.write(function, wide[0], wide)
        self.out.emit("fcvt.s.d", result, wide[0], path=path)

    def _operand(
        self,
        operand: Operand,
        slot: int,
        dtype: str,
        free: Callable[[], str],
        op: Op,
        path: Path,
        above: tuple[Scope, ...],
    ) -> str:
        if isinstance(operand, Number):
            return self.out.constant(operand.value, dtype)
        if isinstance(operand, Affine):
            register = free()
            self._value(operand, "t1", path, above)
            self.out.emit(f"fcvt{SUFFIX[dtype]}.w", register, "t1", path=path)
            return register
        return self._loaded(operand, slot, free, path, above)

    def _loaded(
        self, access: Access, slot: int, free: Callable[[], str], path: Path, above: tuple[Scope, ...]
    ) -> str:
        """The register that holds a cell's value: its own, a stream's, or one that it is loaded to."""
        known = self.streamed.get((path, slot))
        if known is not None:
            return known
        buffer = self.program.buffer_of[access.array]
        if buffer.location == "register":
            return self._register(access)
        register = free()
        self._access("fld" if buffer.dtype == "f64" else "flw", register, access, path, above)
        return register

    def _register(self, access: Access) -> str:
        place = cell(self.program, access)
        if not place.is_constant:
            raise NotGeneratable(
                f"{access} moves with a scope that is not unrolled, but lies in registers: unroll the scope."
            )
        return self.cells[self.program.buffer_of[access.array].name][place.const]

    # ------------------------------------------------------------------ addresses and integers

    def _access(self, name: str, register: str, access: Access, path: Path, above: tuple[Scope, ...]) -> None:
        """A load or store of a cell at its address."""
        pointer = self._pointer(access, path, _loops(above))
        distance = self._constant(cell(self.program, access)) * BYTES[pointer.buffer.dtype]
        at = pointer.register
        if not -2048 <= distance < 2048:
            self._offset("t0", at, distance, path)
            at, distance = "t0", 0
        self.out.emit(name, register, distance, at, path=path)

    def _constant(self, form: Affine) -> int:
        """The part of a form that no loop moves: its constant, unrolled iterators filled in."""
        return form.substitute(self.images).const

    def _offset(self, into: str, base: str, distance: int, path: Path) -> None:
        if -2048 <= distance < 2048:
            self.out.emit("addi", into, base, distance, path=path)
        else:
            self.out.emit("li", "t0", distance, path=path)
            self.out.emit("add", into, base, "t0", path=path)

    def _value(self, form: Affine, into: str, path: Path, above: Sequence[Scope]) -> None:
        """The value of an affine form in an integer register."""
        if form.reach([s.size for s in above]) not in _WORD:
            raise NotGeneratable(f"{form} goes beyond 32 bits: the integers of Snitch have 32.")
        self.out.emit("li", into, form.const, path=path)
        for depth, coefficient in form.terms:
            source = self.iterators[depth]
            if coefficient not in (1, -1):
                self.out.emit("li", "t2", coefficient, path=path)
                self.out.emit("mul", "t2", source, "t2", path=path)
                source = "t2"
            self.out.emit("sub" if coefficient == -1 else "add", into, into, source, path=path)


def _multiplied(op: Op, dtype: str) -> Op:
    """A division by a number as the product with its reciprocal, where that is a normal number of the dtype:
    of a power of two the same, of others within a unit."""
    divisor = op.operands[-1]
    if op.function != "/" or not isinstance(divisor, Number) or not math.isfinite(divisor.value):
        return op
    _, exponent = math.frexp(divisor.value)
    if not divisor.value or abs(exponent - 1) >= _EXPONENTS[dtype]:
        return op
    return replace(op, function="*", operands=(op.operands[0], Number(1 / divisor.value)))


def _nests_of_registers(program: Program) -> dict[Buffer, tuple[int, int]]:
    """The register buffers in order, each with the first and the last child of the root that uses it."""
    held: dict[Buffer, tuple[int, int]] = {}
    for buffer in program.buffers:
        used = [
            leaf.path[0]
            for leaf in program.leaves
            if any(program.buffer_of[a.array] is buffer for a in (leaf.op.target, *leaf.op.reads))
        ]
        if buffer.location == "register" and used:
            held[buffer] = min(used), max(used)
    return held


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _loops(scopes: Sequence[Scope]) -> tuple[int, ...]:
    """The depths of those that are loops of the core."""
    return tuple(d for d, s in enumerate(scopes) if s.mark != "u" and s.size > 1)


def _uses_value(scope: Scope, depth: int) -> bool:
    """Does an operation below compute with the scope's iterator, or ask for it in a guard?"""
    return any(
        any(c.form.uses(depth) for c in leaf.op.guard)
        or any(isinstance(o, Affine) and o.uses(depth) for o in leaf.op.operands)
        for leaf in leaves((scope,))
    )


def _without_mark(scope: Scope) -> Scope:
    return Scope(scope.size, scope.body, "", scope.provenance)


def _staggered(made: Sequence[Instruction]) -> int:
    """The operands, as a mask, whose registers go up by one from copy to copy of one instruction; 0: none."""
    if len(made) < 2 or len({(one.name, len(one.operands)) for one in made}) > 1:
        return 0
    mask = 0
    for bit, operands in enumerate(zip(*(one.operands for one in made), strict=True)):
        numbers = [F[str(o)] for o in operands]
        if numbers == list(range(numbers[0], numbers[0] + len(made))):
            mask |= 1 << bit
        elif len(set(numbers)) > 1:
            return 0
    # fmv rd, rs is fsgnj rd, rs, rs: it takes the sign from an operand that is not written.
    return mask | mask << 1 & 4 if made[0].name.startswith("fmv.") else mask
