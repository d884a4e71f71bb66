"""The text of one Snitch kernel while it is made: its lines, the registers it has left, its constants."""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dojo_core.codegen.code import NotGeneratable, Parameter
from dojo_core.program.tree import DTYPE_BYTES, Path
from dojo_core.targets.snitch.assembly import F, Instruction, Label, X, encode, instruction

SUFFIX = {"f64": ".d", "f32": ".s"}
_FLOATS = {number: name for name, number in F.items()}
_SCRATCH = ("t0", "t1", "t2")  # addresses and configuration values of a moment
Line = Instruction | Label | str  # a text is a comment


@dataclass(frozen=True, slots=True)
class SnitchCode:
    """Generated assembler text. ``nodes`` gives for each line of ``text`` the path of the program node that
    it comes from, or None; ``words`` the text encoded, constants behind the instructions; ``parameters``
    what a0 to a7 point to, in order; ``workspace_bytes`` the size of what the register after them points
    to."""

    text: str
    symbol: str
    nodes: tuple[Path | None, ...]
    parameters: tuple[Parameter, ...]
    workspace_bytes: int
    words: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Of all its arrays."""
        return self.workspace_bytes + sum(DTYPE_BYTES[p.dtype] * math.prod(p.shape) for p in self.parameters)


class Listing:
    """Lines in order, each with the node that it comes from; registers are handed out while there are any."""

    def __init__(self) -> None:
        self.constants: list[tuple[Line, Path | None]] = []  # lines that stand before all others
        self.lines: list[tuple[Line, Path | None]] = []
        self.floats = deque(n for n, k in F.items() if k > 2)
        self.integers = deque(n for n in X if n[0] in "tsa" and n not in ("sp", "tp", *_SCRATCH))
        self.numbers: dict[tuple[str, str], str] = {}  # constants, by their text and dtype
        self.pool: list[int] = []  # those that lie behind the instructions
        self.offsets: dict[int, int] = {}  # of those that are loaded where they are used
        self.labels = 0

    # ------------------------------------------------------------------ lines

    def emit(self, name: str, *operands: str | int, path: Path | None = None) -> None:
        self.lines.append((instruction(name, *operands), path))

    def comment(self, text: str, path: Path | None) -> None:
        self.lines.append((text, path))

    def label(self) -> Label:
        self.labels += 1
        return Label(f".L{self.labels}")

    def add(self, line: Line, path: Path | None) -> None:
        self.lines.append((line, path))

    def cut(self, begun: int) -> list[tuple[Line, Path | None]]:
        """Takes back the lines from a number on."""
        lines = self.lines[begun:]
        del self.lines[begun:]
        return lines

    def finished(self, symbol: str, parameters: tuple[Parameter, ...], workspace_bytes: int) -> SnitchCode:
        lines = [*self.constants, *self.lines]
        made = [one for one, _ in lines if not isinstance(one, str)]
        words = encode(made, self.pool)
        head = [("    .text", None), (f"    .globl {symbol}", None), (f"{symbol}:", None)]
        shown = [(_shown(one), path) for one, path in lines]
        tail = []
        if self.pool:
            tail = ["    .balign 8", "constants:"]
            tail += [f"    .dword  0x{bits:016x}  # {_double(bits)!r}" for bits in self.pool]
        every = [*head, *shown, *((text, None) for text in tail)]
        return SnitchCode(
            text="\n".join(text for text, _ in every) + "\n",
            symbol=symbol,
            nodes=tuple(path for _, path in every),
            parameters=parameters,
            workspace_bytes=workspace_bytes,
            words=tuple(words),
        )

    # ------------------------------------------------------------------ registers

    def float_register(self, wanted: str) -> str:
        if not self.floats:
            raise NotGeneratable(
                f"There is no FPU register left for {wanted}: of 32, three are streams. "
                "Keep fewer cells in registers."
            )
        return self.floats.popleft()

    def float_registers(self, count: int, wanted: str) -> list[str]:
        """Several, in a row where there is one: only such can be staggered."""
        free = sorted(F[register] for register in self.floats)
        for first in free:
            if all(first + n in free for n in range(count)):
                taken = [_FLOATS[first + n] for n in range(count)]
                self.floats = deque(register for register in self.floats if register not in taken)
                return taken
        return [self.float_register(wanted) for _ in range(count)]

    def integer_register(self, wanted: str) -> str:
        if not self.integers:
            raise NotGeneratable(
                f"There is no register left for {wanted}: the nest needs more addresses and counters than "
                "the core has. Fission it, or stream its accesses."
            )
        return self.integers.popleft()

    @contextmanager
    def borrowed(self, wanted: str) -> Iterator[Callable[[], str]]:
        """Hands out FPU registers for a moment; first the one used longest ago."""
        taken: list[str] = []

        def take() -> str:
            taken.append(self.float_register(wanted))
            return taken[-1]

        yield take
        self.floats.extend(taken)

    def reserve(self, registers: Collection[str]) -> None:
        """Keep those that hold arguments."""
        self.integers = deque(r for r in self.integers if r not in registers)

    @contextmanager
    def nest(self) -> Iterator[None]:
        """Integer registers that are taken within are free again behind it."""
        integers = self.integers.copy()
        yield
        self.integers = integers

    # ------------------------------------------------------------------ constants

    def stored(self, value: float) -> int:
        """The offset of a number among those behind the instructions, at the label ``constants``."""
        bits = _bits(value)
        if bits not in self.offsets:
            self.offsets[bits] = 8 * len(self.pool)
            self.pool.append(bits)
        return self.offsets[bits]

    def constant(self, value: float, dtype: str) -> str:
        """The register that holds a number, from the kernel's first line on: what borrowed it before it was
        asked for would write over it, so all are to be asked for before the first line."""
        bits = float(value)
        key = (repr(bits), dtype)
        known = self.numbers.get(key)
        if known is not None:
            return known
        register = self.float_register(f"the number {value}")
        self.numbers[key] = register
        whole = bits.is_integer() and abs(bits) < 2**31 and not (bits == 0 and math.copysign(1, bits) < 0)
        suffix = SUFFIX[dtype]
        if whole and bits == 0:
            made = [instruction(f"fcvt{suffix}.w", register, "zero")]
        elif whole:
            made = [instruction("li", "t0", int(bits)), instruction(f"fcvt{suffix}.w", register, "t0")]
        else:
            made = [instruction("la", "t0", "constants")]
            made += [instruction("fld", register, 8 * len(self.pool), "t0")]
            self.pool.append(_bits(bits))
            if dtype == "f32":
                made += [instruction("fcvt.s.d", register, register)]
        self.constants += [(one, None) for one in made]
        return register


def _shown(one: Line) -> str:
    if isinstance(one, Label):
        return f"{one.name}:"
    if isinstance(one, str):
        return f"    # {one}"
    comment = ""
    if one.name == "scfgwi":
        at = int(one.operands[1])
        comment = (
            f"  # scfgwi: {_configuration(at >> 5)} of {'all streams' if at & 31 == 31 else f'ft{at & 31}'}"
        )
    elif one.name == "frep.o":
        comment = f"  # frep.o: the next {one.operands[1]}, {one.operands[0]}+1 times"
        if one.operands[3]:
            comment += f", registers staggered by {int(one.operands[2]) + 1}"
    elif one.name in ("csrrsi", "csrrci"):
        comment = f"  # streams {'on' if one.name == 'csrrsi' else 'off'}"
    elif one.name == "mv" and one.operands[0] == one.operands[1]:
        comment = "  # wait for the FPU"
    return f"    {one}{comment}"


def _configuration(register: int) -> str:
    if register == 1:
        return "repeat"
    if register < 6:
        return f"bound {register - 2}"
    if register < 10:
        return f"stride {register - 6}"
    return f"{'write' if register >= 28 else 'read'} from, {(register & 3) + 1} dims"


def _bits(value: float) -> int:
    bits: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return bits


def _double(bits: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return value
