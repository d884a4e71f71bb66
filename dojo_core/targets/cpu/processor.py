"""A processor as a value: what it has, and what compiles for it. The machine at hand is one (``host``).

Legality, the code generator and what stands before its C are functions of this value alone, so that a program
is judged and generated for any processor on any machine.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from dojo_core import system

X86, ARM, RISCV = "x86-64", "aarch64", "riscv64"
NAMES = {"x86_64": X86, "AMD64": X86, "aarch64": ARM, "arm64": ARM, "riscv64": RISCV}

# A virtual machine of few cores is told the last-level cache of a whole socket, which others share: no more
# of it counts as one's own than a core has that shares its cache with few.
SHARED_BYTES_OF_A_CORE = 16 << 20
# Of a vector: AVX-512; AVX2; SSE2, a part of x86-64, and Advanced SIMD, one of AArch64.
VECTOR_BYTES = (64, 32, 16)
REGISTERS = 32  # of NEON, AVX-512 and RISC-V's V; SSE2 and AVX have 16

# What comes over a wire: nothing that a real processor has is as large.
_JSON_CHARACTERS = 1 << 16
_NAME_CHARACTERS = 200
_FEATURES = 1024
_CACHE_BYTES = 1 << 40
_THREADS = 1 << 16
_WORD = re.compile(r"[A-Za-z0-9_.+-]{1,64}")


class NotAProcessor(ValueError):
    """Raised with a sentence for JSON that describes none."""


class NotRun(RuntimeError):
    """A program for another processor came to no result. A sentence: what is missing, what the compiler said,
    or how the program ended."""


@dataclass(frozen=True)
class Toolchain:
    """What compiles for a processor that this machine need not be, and runs the result.

    ``compiler`` is found on the PATH, ``emulator`` likewise: the words before a program's path. ``install``
    is Debian's line that brings both.
    """

    compiler: str
    clang: bool
    flags: tuple[str, ...]
    triple: str
    sysroot: str = ""
    emulator: tuple[str, ...] = ()
    install: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """The compiler with what it is told of every file."""
        target = (f"--target={self.triple}",) if self.clang else ()
        return (self.compiler, *target, *self.flags)

    @property
    def missing(self) -> str:
        """What is not there, and what brings it, as a sentence; empty where all is."""
        absent = [p for p in (self.compiler, *self.emulator[:1]) if shutil.which(p) is None]
        if not absent:
            return ""
        are = "is" if len(absent) == 1 else "are"
        return f"{' and '.join(absent)} {are} not here. This brings it: {self.install}"


@dataclass(frozen=True)
class Processor:
    """One kind of processor, or one machine's.

    ``features``: by Linux' names. ``vectors``: bytes of a vector and how many of them the registers hold,
    widest first (RISC-V's V has 32 registers, and groups of them). ``register_bytes``: of one register.
    ``caches``: data bytes of the first, second and last level, 0 where there is none or none is told: the
    first two of one core, the last of all together. ``toolchain``: None is the compiler of the machine at
    hand (``measure/compiler.py``). ``model``: llvm-mca's name of a model of its pipeline.
    """

    name: str
    instruction_set: str
    features: frozenset[str]
    vectors: tuple[tuple[int, int], ...]
    register_bytes: int
    caches: tuple[int, int, int] = (32 << 10, 1 << 20, 8 << 20)
    threads: int = 1
    toolchain: Toolchain | None = None
    model: str | None = None

    def __hash__(self) -> int:
        return hash((self.name, self.vectors))

    @property
    def vector_bytes(self) -> tuple[int, ...]:
        """Sizes of vectors in bytes, widest first."""
        return tuple(size for size, _ in self.vectors)

    @property
    def is_x86(self) -> bool:
        return self.instruction_set == X86

    @property
    def portable(self) -> Processor:
        """It with C that compilers for any processor take: x86's, whose builtins stand behind macros, and no
        instructions of its own."""
        return self if self.is_x86 else replace(self, instruction_set=X86, features=frozenset())

    def narrower(self, vector_bytes: int) -> Processor:
        """It with vectors of at most so many bytes."""
        return replace(self, vectors=tuple(v for v in self.vectors if v[0] <= vector_bytes))

    @property
    def json(self) -> str:
        """All but the toolchain: what commands run is nothing that one machine tells another."""
        return json.dumps({
            "name": self.name,
            "instruction_set": self.instruction_set,
            "features": sorted(self.features),
            "vectors": self.vectors,
            "register_bytes": self.register_bytes,
            "caches": self.caches,
            "threads": self.threads,
            "model": self.model,
        })  # fmt: skip


def from_json(text: str) -> Processor:
    """A processor as another machine tells it, with the toolchain that there is here for its like.

    Raises NotAProcessor.
    """
    if len(text) > _JSON_CHARACTERS:
        raise NotAProcessor(f"A processor is told in at most {_JSON_CHARACTERS} characters.")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise NotAProcessor("A processor is told as JSON; this is none.") from None
    if not isinstance(content, dict):
        raise NotAProcessor("A processor is a JSON object.")
    name = content.get("name")
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _NAME_CHARACTERS:
        raise NotAProcessor(f"A processor has a name of at most {_NAME_CHARACTERS} characters.")
    words = content.get("features")
    if not isinstance(words, list) or len(words) > _FEATURES or not all(map(_is_word, words)):
        raise NotAProcessor(f"The features are a list of at most {_FEATURES} words.")
    instruction_set, model = content.get("instruction_set"), content.get("model")
    if not _is_word(instruction_set) or not (model is None or _is_word(model)):
        raise NotAProcessor("The instruction set is one word, the model too, or null.")
    caches = content.get("caches")
    if not isinstance(caches, list) or len(caches) != 3:
        raise NotAProcessor("There are three caches, of 0 bytes where a level is missing.")
    processor = Processor(
        name,
        str(instruction_set),
        frozenset(words),
        _vectors(content.get("vectors")),
        _whole(content.get("register_bytes"), "A vector register's bytes", 1, 1 << 13),
        tuple(_whole(size, "A cache's bytes", 0, _CACHE_BYTES) for size in caches),  # type: ignore[arg-type]
        _whole(content.get("threads"), "The threads", 1, _THREADS),
        model=model,
    )
    return replace(processor, toolchain=toolchain_for(processor))


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and _WORD.fullmatch(value) is not None


def _whole(value: Any, what: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise NotAProcessor(f"{what} are a whole number from {least} to {most}.")
    return value


def _vectors(content: Any) -> tuple[tuple[int, int], ...]:
    if not isinstance(content, list) or not all(
        isinstance(each, list) and len(each) == 2 for each in content
    ):
        raise NotAProcessor("Vectors are a list of pairs: bytes, registers.")
    sizes = [each[0] for each in content]
    if not sizes or sizes != [size for size in VECTOR_BYTES if size in sizes]:
        raise NotAProcessor(f"Vectors have {', '.join(map(str, VECTOR_BYTES))} bytes, widest first.")
    return tuple((size, _whole(held, "The registers", 1, 1 << 10)) for size, held in content)


# ---------------------------------------------------------------------------- the machine at hand


@cache
def host() -> Processor:
    """The processor of this machine, of which this process may use so many cores."""
    named = NAMES.get(platform.machine(), platform.machine())
    features = system.features() | (system.apple_features() if named == ARM else frozenset())
    register_bytes, vectors = vectors_of(named, features)
    return Processor(
        name=system.processor(),
        instruction_set=named,
        features=features,
        vectors=vectors,
        register_bytes=register_bytes,
        caches=(system.cache_bytes(1), system.cache_bytes(2), system.cache_bytes(3)),
        threads=len(system.cores()),
    )


def vectors_of(
    instruction_set: str, features: frozenset[str], group: int | None = None
) -> tuple[int, tuple[tuple[int, int], ...]]:
    """The bytes of a vector register, and vectors with how many of them the registers hold, widest first.

    ``group``: how many of RISC-V's registers one vector may fill. By default two, where those that then are
    there are as many as an x86 has whose vectors are as wide: the tiles of lines are made for these. (By the
    model of a SiFive P670 that takes 1 to 20 per cent fewer cycles than one register a vector, and no tile is
    spilled: docs/processors.md.)
    """
    if instruction_set == X86:
        if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= features:
            return 64, tuple((size, REGISTERS) for size in VECTOR_BYTES)
        # AVX-512 without these three has the registers, and no instructions for shorter vectors in them.
        held = REGISTERS if "avx512f" in features else 16
        sizes = VECTOR_BYTES[1:] if "avx2" in features else VECTOR_BYTES[2:]
        return sizes[0], tuple((size, held) for size in sizes)
    if instruction_set == RISCV:
        register_bytes = riscv_register_bytes(features)
        if not register_bytes:  # vectors are scalars in the 32 registers of floating point
            return 8, ((16, 8),)
        groups = {size: max(1, size // register_bytes) for size in VECTOR_BYTES}
        most = {size: group or (1 if size == VECTOR_BYTES[0] else 2) for size in VECTOR_BYTES}
        return register_bytes, tuple((s, REGISTERS // g) for s, g in groups.items() if g <= most[s])
    return 16, ((16, REGISTERS),)


def riscv_register_bytes(features: frozenset[str]) -> int:
    """Of a vector register, as far as it is told: V has 16 or more. 0 without V."""
    if "v" not in features:
        return 0
    bits = [int(f[3:-1]) for f in features if re.fullmatch(r"zvl\d{2,5}b", f)]
    return max([128, *bits]) // 8


# ---------------------------------------------------------------------------- those known by name

_ARM_ROOT, _RISCV_ROOT = "/usr/aarch64-linux-gnu", "/usr/riscv64-linux-gnu"
LLVM_VERSIONS = (19, 20, 21, 22)  # the first was tried; what a system calls clang may be too old
_OPTIMIZED = ("-O2", "-fno-math-errno", "-fopenmp")
_ARM_TOOLS = "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
_RISCV_TOOLS = "apt-get install clang-19 gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user"


@cache
def llvm(tool: str) -> str:
    """The name under which one of LLVM's programs is here; where none is, that of the version tried."""
    names = [f"{tool}-{version}" for version in LLVM_VERSIONS]
    return next(filter(shutil.which, names), names[0])


def toolchain_for(processor: Processor) -> Toolchain | None:
    """What compiles here for a processor that this machine is not; None for other instruction sets."""
    features = processor.features
    if processor.instruction_set == X86:
        level = 4 if processor.vectors[0][0] == 64 else 3 if processor.vectors[0][0] == 32 else 2
        chosen = [f"-march=x86-64-v{level}", "-mprefer-vector-width=512"]
        if "avx512_vnni" in features:
            chosen.append("-mavx512vnni")
        flags = (*_OPTIMIZED, *chosen)
        here, triple = system.is_x86(), "x86_64-linux-gnu"
        compiler, package = ("gcc", "gcc") if here else (f"{triple}-gcc", "gcc-x86-64-linux-gnu")
        return Toolchain(compiler, False, flags, triple, install=f"apt-get install {package}")
    if processor.instruction_set == ARM:
        march = "armv8-a"
        for feature, word in (("asimddp", "dotprod"), ("i8mm", "i8mm")):
            if feature in features:
                march = f"{march.replace('armv8-a', 'armv8.2-a')}+{word}"
        return Toolchain(
            "aarch64-linux-gnu-gcc", False, (*_OPTIMIZED, f"-march={march}"), "aarch64-linux-gnu", _ARM_ROOT,
            ("qemu-aarch64", "-L", _ARM_ROOT), _ARM_TOOLS,
        )  # fmt: skip
    if processor.instruction_set == RISCV:
        bits = 8 * processor.register_bytes
        march = f"rv64gcv_zvl{bits}b" if "v" in features else "rv64gc"
        core = f"rv64,v=true,vlen={bits}" if "v" in features else "rv64"
        return Toolchain(
            llvm("clang"), True, ("-O2", f"-march={march}", "-fno-math-errno"), "riscv64-linux-gnu",
            _RISCV_ROOT, ("qemu-riscv64", "-cpu", core, "-L", _RISCV_ROOT), _RISCV_TOOLS,
        )  # fmt: skip
    return None


_X86_64_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "pni", "ssse3", "sse4_1", "sse4_2"})
_X86_64_V3 = _X86_64_V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
_X86_64_V4 = _X86_64_V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_ARM_V8 = frozenset({"fp", "asimd"})
_ARM_V84 = _ARM_V8 | {"asimdhp", "asimddp", "fphp"}
_RV64GC = frozenset({"i", "m", "a", "f", "d", "c"})


def _known(
    name: str,
    instruction_set: str,
    features: frozenset[str],
    model: str,
    caches: tuple[int, int, int],
    group: int | None = None,
) -> Processor:
    register_bytes, vectors = vectors_of(instruction_set, features, group)
    one = Processor(name, instruction_set, features, vectors, register_bytes, caches, threads=4, model=model)
    return replace(one, toolchain=toolchain_for(one))


_DESKTOP, _BOARD = (32 << 10, 1 << 20, 8 << 20), (32 << 10, 512 << 10, 0)
KNOWN: Mapping[str, Processor] = {
    each.name: each
    for each in (
        _known("x86-64-v2", X86, _X86_64_V2, "nehalem", _DESKTOP),
        _known("x86-64-v3", X86, _X86_64_V3, "haswell", _DESKTOP),
        _known("x86-64-v4", X86, _X86_64_V4, "skylake-avx512", _DESKTOP),
        _known("armv8-a", ARM, _ARM_V8, "cortex-a57", _BOARD),
        _known("armv8.4-a", ARM, _ARM_V84, "neoverse-n1", _DESKTOP),
        _known("armv8.6-a", ARM, _ARM_V84 | {"i8mm", "bf16"}, "neoverse-v1", _DESKTOP),
        _known("rv64gc", RISCV, _RV64GC, "sifive-u74", _BOARD),
        _known("rv64gcv-128", RISCV, _RV64GC | {"v"}, "sifive-p670", _BOARD),
        _known("rv64gcv-256", RISCV, _RV64GC | {"v", "zvl256b"}, "sifive-p670", _BOARD),
        # The same with vectors in groups of four and two registers.
        _known("rv64gcv-128-m4", RISCV, _RV64GC | {"v"}, "sifive-p670", _BOARD, group=4),
        _known("rv64gcv-256-m2", RISCV, _RV64GC | {"v", "zvl256b"}, "sifive-p670", _BOARD, group=2),
    )
}


class UnknownProcessor(ValueError):
    """Raised with a sentence that lists the known ones."""


def known(name: str) -> Processor:
    """A processor by name. Raises UnknownProcessor."""
    if name not in KNOWN:
        raise UnknownProcessor(f"There is no processor {name!r}. Those known are: {', '.join(KNOWN)}.")
    return KNOWN[name]
