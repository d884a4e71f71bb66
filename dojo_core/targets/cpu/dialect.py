"""How each instruction set says in C what portable C cannot: builtins, a line of assembly, or macros."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dojo_core.program.dtypes import INTEGERS, holds
from dojo_core.targets.cpu.processor import ARM, RISCV, X86


@dataclass(frozen=True)
class Dialect:
    """The C of one instruction set."""

    instruction_set: str

    def body(
        self,
        plain: str,
        x86: tuple[str, str] | None = None,
        arm: str = "",
        riscv: tuple[str, str] | None = None,
    ) -> str:
        """A function's body: ``plain`` C, or what says it in fewer instructions.

        ``x86``: the macro that a processor with the instruction defines, and gcc's builtin. ``riscv``: a
        builtin that a compiler must know, and what it is used in.
        """
        if self.instruction_set == X86 and x86 is not None:
            return f"#if defined {x86[0]} && !defined __clang__\n    {x86[1]}\n#else\n    {plain}\n#endif\n"
        if self.instruction_set == RISCV and riscv is not None:
            return f"#if __has_builtin({riscv[0]})\n    {riscv[1]}\n#else\n    {plain}\n#endif\n"
        return f"    {arm if self.instruction_set == ARM and arm else plain}\n"

    def fused(self, element: str, fused: str, plain: str) -> str:
        """A multiply-add: rounded once where that is one instruction."""
        if self.instruction_set in (ARM, RISCV):
            return f"    {fused}\n"
        test = "__FMA__" if self.instruction_set == X86 else f"__FP_FAST_FMA{'F' * (element == 'f32')}"
        return f"#ifdef {test}\n    {fused}\n#else\n    {plain}\n#endif\n"

    @property
    def is_x86(self) -> bool:
        return self.instruction_set == X86

    @property
    def resizes(self) -> bool:
        """Have conversions between sizes of integers functions of their own? gcc 12 on Arm goes by lanes."""
        return self.instruction_set == ARM

    @property
    def truncates(self) -> bool:
        """Do floats become integers by functions of their own? RISC-V's vectors have an instruction for it,
        which ends qemu 7.2 (an assertion in it, decode_save_opc), and clang makes it of loops too."""
        return self.instruction_set == RISCV

    def half_size(self, function: str, reads: Sequence[str], compute: str) -> str:
        """The dtype of half the size in which a number is best spread over the lanes of a product of narrower
        integers, empty where it is ``compute`` itself.

        clang makes one instruction (vwmacc and its kin) of a sum with the product of two vectors of half the
        size; of a vector and a number that was wide before, it mostly makes two.
        """
        half = {"i32": "i16", "i64": "i32", "u32": "u16", "u64": "u32"}.get(compute, "")
        if self.instruction_set != RISCV or function != "*" or not half:
            return ""
        return half if all(d in INTEGERS and holds(half, d) for d in reads) else ""

    @property
    def soft_halves(self) -> bool:
        """Is f16 converted by integers? gcc 12 has no such type for RISC-V, and no library converts it."""
        return self.instruction_set == RISCV

    @property
    def finish(self) -> Callable[[str], str]:
        """What is done to all functions at the end."""
        return as_macros if self.instruction_set == RISCV else lambda text: text


_FUNCTION = re.compile(r"^INLINE (?P<result>[^(\n]*?)(?P<name>\w+)\((?P<parameters>[^)]*)\) \{", re.MULTILINE)
_VECTOR = re.compile(r"\b(?:[a-z]+\d+)+[a-z]*x\d+\b")
_CONDITIONAL = re.compile(r"#if(?P<test>[^\n]*)\n(?P<then>.*)#else\n(?P<other>.*)#endif\n?", re.DOTALL)


def as_macros(text: str) -> str:
    """Functions that take or give vectors as macros of the same names.

    clang for RISC-V hands vectors to functions as integers or through memory, and keeps both where it inlines
    them: a loop of 20 instructions had 51.
    """
    out, place = "", 0
    for function in _FUNCTION.finditer(text):
        if function.start() < place or not _VECTOR.search(function["result"] + function["parameters"]):
            continue
        end = _end(text, function.end())
        out += text[place : function.start()]
        out += _macro(function["name"], function["parameters"], text[function.end() : end - 1])
        place = end + (text[end : end + 1] == "\n")
    return out + text[place:]


def _end(text: str, begin: int) -> int:
    """Behind the bracket that closes the one before ``begin``."""
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[begin], 0)
        begin += 1
    return begin


def _macro(name: str, parameters: str, body: str) -> str:
    choice = _CONDITIONAL.fullmatch(body.lstrip("\n"))
    if choice is not None:  # no directive may stand within a macro
        then, other = (_macro(name, parameters, choice[part]) for part in ("then", "other"))
        return f"#if{choice['test']}\n{then}#else\n{other}#endif\n"
    # A name of its own for each parameter: what is handed in may have the name that it has here.
    declared = re.findall(r"\s*([^,]*?)(\w+)(?:,|$)", parameters)
    renamed = {parameter: f"{name}_{parameter}" for _, parameter in declared}
    lines = [f"{kind}{renamed[p]} = (arg{k});" for k, (kind, p) in enumerate(declared)]
    for line in body.strip("\n").splitlines():
        line = re.sub(r"/\*.*?\*/", "", line).strip()
        for parameter, instead in renamed.items():
            line = re.sub(rf"\b{parameter}\b", instead, line)
        lines.append(re.sub(r"^return\b", "", line).strip())
    arguments = ", ".join(f"arg{k}" for k in range(len(declared)))
    inside = " \\\n".join(f"    {line}" for line in lines if line)
    return f"#define {name}({arguments}) __extension__({{ \\\n{inside} \\\n}})\n"
