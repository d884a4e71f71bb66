"""What a target is to legality: its limits, and the marks and locations it knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dojo_core.program.dependence import POLICIES
from dojo_core.program.dtypes import FLOATS, INTEGERS, STORAGE, STORAGE_FLOATS, arithmetic
from dojo_core.program.tree import DTYPE_BYTES

if TYPE_CHECKING:
    from dojo_core.program.tree import Program, Scope
    from dojo_core.program.validity import Fault


@dataclass(frozen=True)
class Target:
    """Limits of one kind of machine. Legality reads these and knows no target by name."""

    name: str
    title: str
    vector_widths: Mapping[str, tuple[int, ...]]  # lanes per dtype, widest first
    marks: frozenset[str]  # scope marks that the code generator knows
    locations: tuple[str, ...]
    stack_bytes: int  # of all stack buffers that live at once, per thread
    register_cells: int  # scalars or vectors of one register buffer
    unrolled_ops: int  # operations after unrolling, in the whole kernel
    threads: int
    vector_registers: int = 16
    first_cache_bytes: int = 32 << 10  # the fastest cache of one core
    cache_bytes: int = 1 << 20  # the cache of one core that a block of data should fit (the second level)
    shared_cache_bytes: int = 8 << 20  # the last level, which all cores share
    instructions: frozenset[tuple[str, int]] = frozenset()  # names and lanes of those it has
    without: frozenset[str] = (
        frozenset()
    )  # moves that mean nothing on it, beside those of marks that it lacks
    memory_bytes: int | None = None  # what all arrays of a program may take, where that is little
    kernel_float: str = "f32"  # what the library's f32 arrays are on it
    tables: bool = True  # does it have constant tables?
    indirection: bool = True  # does it read indices from arrays?
    passes: Mapping[str, str] = field(default_factory=dict)  # "module:function" of its own, by a pass's name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def own_threads(self) -> bool:
        """Does the stack of each thread hold only its share of a buffer? Then ``fault`` limits it."""
        return False

    @property
    def judges_plain(self) -> bool:
        """May ``fault`` find one in scopes without marks whose buffers lie plain on the heap? Then no program
        is spared it."""
        return type(self).fault is not Target.fault

    @property
    def policies(self) -> tuple[str, ...]:
        """The floating-point policies that a game on it gains by: factors in TF32 are for tensor cores."""
        return tuple(policy for policy in POLICIES if policy != "tf32" or TENSOR_CORE in self.marks)

    def lacks(self, program: Program) -> str | None:
        """What a program has that the target has not, as a sentence; None: nothing."""
        if program.tables and not self.tables:
            return NO_TABLES.format(self.title)
        if program.index_arrays and not self.indirection:
            return NO_INDIRECTION.format(self.title)
        return None

    def start(self, program: Program) -> Program:
        """A kernel's start program as this target has it: f32 arrays become ``kernel_float``."""
        if self.kernel_float == "f32":
            return program
        wider = (replace(b, dtype=self.kernel_float) if b.dtype == "f32" else b for b in program.buffers)
        return program.edit(buffers=tuple(wider))

    def fault(self, program: Program, policy: str) -> Fault | None:
        """The first violation of a condition of the target's own (a part of V3), or None."""
        return None

    def temporary(self, above: tuple[Scope, ...]) -> str:
        """Where a buffer that a move makes for one iteration of the scopes ``above`` best lives."""
        return "stack" if "stack" in self.locations else "heap"


NO_TABLES = "There are no constant tables on the target {} yet: play this program on the CPU."
NO_INDIRECTION = "The target {} reads no indices from arrays yet: play this program on the CPU."
TENSOR_CORE = "m"  # the mark of scopes that a warp multiplies at once (moves/tensor_cores.py)
DEFAULT_TARGET = "cpu"  # what a program is for where nothing else is said


VECTOR_BYTES = (64, 32, 16)  # what registers of vectors hold, widest first
# The dtypes that vectors of C hold: those of bool are of u8, each a byte of 0 or 1.
VECTOR_DTYPES = ("f64", "f32", *INTEGERS, "f16", "bf16", *STORAGE)


def lane_bytes(dtype: str) -> int:
    """Bytes that a lane takes of a register, in the dtype that it is computed in; i128 are two registers."""
    return DTYPE_BYTES[arithmetic(dtype)] if dtype != "i128" else 8


def vector_widths(sizes: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Legal lane counts per dtype for vectors of these bytes, widest first: of a dtype that is computed in
    another (f16 in f32) those of that."""
    return {d: tuple(size // lane_bytes(d) for size in sizes) for d in (*VECTOR_DTYPES, "i128", "bool")}


def lanes_of(dtypes: Iterable[str], target: Target) -> tuple[int, ...]:
    """How many lanes a vector operation on these dtypes may have, widest first.

    Those of its widest dtype, and of every floating-point one: integers may fill less than a register.
    """
    named = set(dtypes)
    if any(d not in target.vector_widths for d in named):
        return ()
    bytes_ = {d: lane_bytes(d) for d in named}
    widest = max(bytes_.values())
    asked = [d for d in named if bytes_[d] == widest or d in (*FLOATS, *STORAGE_FLOATS)]
    common = set.intersection(*(set(target.vector_widths[d]) for d in asked))
    return tuple(sorted(common, reverse=True))
