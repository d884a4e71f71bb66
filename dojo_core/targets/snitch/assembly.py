"""RISC-V instructions as text and as words: the subset that the generator writes, in the order of the
manuals.

The text is what GNU as takes; the extensions stand as ``.insn``, since no assembler knows them, with their
names in a comment. The words are our own encoding, so that nothing need be installed; a test compares them
with GNU as' where that is.

Sources: RISC-V Instruction Set Manual, volume I (20191213), chapter 24; the Snitch cluster's documentation
for ``scfgwi`` and ``frep.o``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dojo_core.codegen.code import NotGeneratable

_X = ("zero", "ra", "sp", "gp", "tp", *(f"t{n}" for n in range(3)), "s0", "s1", *(f"a{n}" for n in range(8)),
      *(f"s{n}" for n in range(2, 12)), *(f"t{n}" for n in range(3, 7)))  # fmt: skip
_F = (*(f"ft{n}" for n in range(8)), "fs0", "fs1", *(f"fa{n}" for n in range(8)),
      *(f"fs{n}" for n in range(2, 12)), *(f"ft{n}" for n in range(8, 12)))  # fmt: skip
X = {name: number for number, name in enumerate(_X)}
F = {name: number for number, name in enumerate(_F)}

_NEAREST, _DYNAMIC = 0, 7  # rounding modes; what assemblers write where none is named

# Mnemonic: opcode, funct3, funct7.
_REGISTERS = {"add": (0x33, 0, 0), "sub": (0x33, 0, 32), "mul": (0x33, 0, 1), "or": (0x33, 6, 0)}
_IMMEDIATES = {"addi": (0x13, 0), "andi": (0x13, 7), "lw": (0x03, 2), "fld": (0x07, 3), "flw": (0x07, 2)}
_SHIFTS = {"slli": (1, 0), "srli": (5, 0), "srai": (5, 32)}  # funct3, funct7
_STORES = {"sw": (0x23, 2), "fsd": (0x27, 3), "fsw": (0x27, 2)}
_BRANCHES = {"beq": 0, "bne": 1, "blt": 4, "bge": 5}
_FLOAT = {  # funct5, funct3
    "fadd": (0, _DYNAMIC), "fsub": (1, _DYNAMIC), "fmul": (2, _DYNAMIC), "fmin": (5, 0), "fmax": (5, 1),
    "fsgnj": (4, 0), "fsgnjn": (4, 1), "fsgnjx": (4, 2),
}  # fmt: skip
_FUSED = {"fmadd": 0x43, "fmsub": 0x47, "fnmsub": 0x4B, "fnmadd": 0x4F}
_CONVERSIONS = {  # funct7, rs2, funct3
    "fcvt.d.w": (0x69, 0, _NEAREST), "fcvt.s.w": (0x68, 0, _DYNAMIC), "fcvt.d.s": (0x21, 0, _NEAREST),
    "fcvt.s.d": (0x20, 1, _DYNAMIC), "fmv.x.w": (0x70, 0, 0),
}  # fmt: skip
_FORMAT = {".s": 0, ".d": 1}


@dataclass(frozen=True)
class Instruction:
    """``name`` with its operands: registers by name, whole numbers, a label."""

    name: str
    operands: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        return _text(self.name, self.operands)


@dataclass(frozen=True)
class Label:
    """A place in the code."""

    name: str


def instruction(name: str, *operands: str | int) -> Instruction:
    return Instruction(name, operands)


def _text(name: str, o: Sequence[str | int]) -> str:
    if name in _STORES or (name in _IMMEDIATES and name not in ("addi", "andi")):
        return f"{name:<8}{o[0]}, {o[1]}({o[2]})"
    if name == "scfgwi":
        return f".insn   i 0x2b, 2, x0, {o[0]}, {o[1]}"
    if name == "frep.o":
        return f".insn   i 0x0b, {o[2]}, x{int(o[3]) << 1 | 1}, {o[0]}, {int(o[1]) - 1}"
    return f"{name:<7} {', '.join(map(str, o))}".rstrip()


def scfgwi(value: str, register: int, stream: int) -> Instruction:
    """Writes ``value`` to a stream's configuration register; stream 31 is all of them."""
    return instruction("scfgwi", value, register << 5 | stream)


def frep(last: str, count: int, stagger: int = 0, mask: int = 0) -> Instruction:
    """Repeats the next ``count`` FPU instructions; ``last`` holds the iterations less one. Registers in
    ``mask`` (1 rd, 2 rs1, 4 rs2, 8 rs3) move up by one each iteration, ``stagger`` times, then begin anew."""
    return instruction("frep.o", last, count, stagger, mask)


def size(one: Instruction | Label) -> int:
    """Bytes."""
    if isinstance(one, Label):
        return 0
    if one.name == "la":
        return 8
    if one.name == "li":
        value = int(one.operands[1])
        return 4 if -2048 <= value < 2048 or not value & 0xFFF else 8
    return 4


def encode(lines: Sequence[Instruction | Label], constants: Sequence[int] = ()) -> list[int]:
    """The words, with 64-bit ``constants`` behind them at the label ``constants``, aligned to 8 bytes.

    Raises NotGeneratable where a jump or an immediate does not fit.
    """
    labels: dict[str, int] = {}
    at = 0
    for one in lines:
        if isinstance(one, Label):
            labels[one.name] = at
        at += size(one)
    labels["constants"] = -(-at // 8) * 8
    words: list[int] = []
    for one in lines:
        if isinstance(one, Instruction):
            words += _words(one, 4 * len(words), labels)
    if constants and len(words) % 2:
        words.append(0)
    for value in constants:
        words += struct.unpack("<II", struct.pack("<Q", value))
    return words


def _words(one: Instruction, at: int, labels: Mapping[str, int]) -> list[int]:
    name, o = one.name, one.operands

    def x(k: int) -> int:
        return X[str(o[k])]

    def f(k: int) -> int:
        return F[str(o[k])]

    def away(k: int, bits: int) -> int:
        return _fitting(labels[str(o[k])] - at, bits, "A loop is too long for its branch: unroll less.")

    if name == "li":
        value = int(o[1])
        low = (value + 2048) % 4096 - 2048
        high = value - low
        loaded = [_upper(0x37, x(0), high)] if high else []
        return [*loaded, _immediate(0x13, 0, x(0), x(0) if high else 0, low)] if low or not high else loaded
    if name == "la":
        offset = labels[str(o[1])] - at
        low = (offset + 2048) % 4096 - 2048
        return [_upper(0x17, x(0), offset - low), _immediate(0x13, 0, x(0), x(0), low)]
    if name == "mv":
        return [_immediate(0x13, 0, x(0), x(1), 0)]
    if name == "ret":
        return [_immediate(0x67, 0, 0, X["ra"], 0)]
    if name == "bnez":
        return [_branch(1, x(0), 0, away(1, 13))]
    if name in _BRANCHES:
        return [_branch(_BRANCHES[name], x(0), x(1), away(2, 13))]
    if name in _REGISTERS:
        opcode, f3, f7 = _REGISTERS[name]
        return [_register(opcode, f3, f7, x(0), x(1), x(2))]
    if name in _SHIFTS:
        f3, f7 = _SHIFTS[name]
        return [_immediate(0x13, f3, x(0), x(1), f7 << 5 | int(o[2]))]
    if name in _IMMEDIATES:
        opcode, f3 = _IMMEDIATES[name]
        memory = name not in ("addi", "andi")
        rd = f(0) if name in ("fld", "flw") else x(0)
        return [_immediate(opcode, f3, rd, x(2) if memory else x(1), int(o[1] if memory else o[2]))]
    if name in _STORES:
        opcode, f3 = _STORES[name]
        imm = _fitting(int(o[1]), 12, "An offset does not fit.") & 0xFFF
        value = f(0) if name != "sw" else x(0)
        return [_register(opcode, f3, imm >> 5, imm & 31, x(2), value)]
    if name == "scfgwi":
        return [_immediate(0x2B, 2, 0, x(0), int(o[1]))]
    if name == "frep.o":
        return [_immediate(0x0B, int(o[2]), int(o[3]) << 1 | 1, x(0), int(o[1]) - 1)]
    if name in ("csrrsi", "csrrci"):
        return [int(o[1]) << 20 | int(o[2]) << 15 | (6 if name == "csrrsi" else 7) << 12 | x(0) << 7 | 0x73]
    if name in _CONVERSIONS:
        f7, rs2, f3 = _CONVERSIONS[name]
        if name == "fmv.x.w":
            return [_register(0x53, f3, f7, x(0), f(1), rs2)]
        return [_register(0x53, f3, f7, f(0), x(1) if name.endswith(".w") else f(1), rs2)]
    base, kind = name[:-2], _FORMAT[name[-2:]]
    if base == "feq":
        return [_register(0x53, 2, 20 << 2 | kind, x(0), f(1), f(2))]
    if base == "fmv":
        return [_register(0x53, 0, 4 << 2 | kind, f(0), f(1), f(1))]
    if base in _FUSED:
        return [f(3) << 27 | _register(_FUSED[base], _DYNAMIC, kind, f(0), f(1), f(2))]
    f5, f3 = _FLOAT[base]
    return [_register(0x53, f3, f5 << 2 | kind, f(0), f(1), f(2))]


def _fitting(value: int, bits: int, message: str) -> int:
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise NotGeneratable(message)
    return value


def _register(opcode: int, f3: int, f7: int, rd: int, rs1: int, rs2: int) -> int:
    return f7 << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | rd << 7 | opcode


def _immediate(opcode: int, f3: int, rd: int, rs1: int, imm: int) -> int:
    imm = _fitting(imm, 12, "An immediate does not fit.")
    return (imm & 0xFFF) << 20 | rs1 << 15 | f3 << 12 | rd << 7 | opcode


def _upper(opcode: int, rd: int, value: int) -> int:
    return (value & 0xFFFFF000) | rd << 7 | opcode


def _branch(f3: int, rs1: int, rs2: int, away: int) -> int:
    imm = away & 0x1FFF
    f7 = (imm >> 12) << 6 | imm >> 5 & 63
    return _register(0x63, f3, f7, (imm >> 1 & 15) << 1 | imm >> 11 & 1, rs1, rs2)
