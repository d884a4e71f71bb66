"""The machine instructions that a scope may be marked with: each described by its own program text.

Adding one touches this table alone. The mark changes no meaning: a target that lacks the instruction runs the
scopes under it as they stand. What the mark asks of them is ``program/unification.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Instruction:
    """One instruction in some numbers of lanes.

    ``text`` is what it computes, with ``LANES`` for their number: a nest of scopes, the outermost one over
    the lanes, around one operation. ``needs`` has, per number of lanes, the processor's features as Linux
    names them, widest first. ``builtin`` is gcc's name of it, ``clang`` the other compiler's; its arguments
    are the operation's target and its operands in the order of ``text``, each a vector of ``word``: what one
    lane takes. ``assembly`` stands where builtins' names differ between versions: target %0, operands %1, %2.
    ``rows``: the text moves rows of memory as a whole, which may lie any distance apart; then ``word`` is
    what they consist of, and the target writes the C (few instructions of the processor, not one).
    """

    name: str
    about: str
    text: str
    needs: Mapping[int, frozenset[str]]
    word: str
    source: str
    builtin: Mapping[int, str] = field(default_factory=dict)
    clang: Mapping[int, str] = field(default_factory=dict)
    assembly: str = ""
    rows: bool = False

    def program_text(self, lanes: int) -> str:
        """The whole program of one width."""
        return self.text.replace("LANES", str(lanes))


_TABLE = (
    Instruction(
        name="vpdpbusd",
        about="four products of an unsigned and a signed byte a lane, added to 32 bits",
        text="""\
kernel vpdpbusd
in a, b
out c
a u8 [LANES, 4] heap
b i8 [LANES, 4] heap
c i32 [LANES] heap
LANES 4 c[{0}] += a[{0},{1}]*b[{0},{1}]
""",
        needs={
            16: frozenset({"avx512f", "avx512_vnni"}),
            8: frozenset({"avx512vl", "avx512_vnni"}),
            4: frozenset({"avx512vl", "avx512_vnni"}),
        },
        word="i32",
        source="Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VPDPBUSD",
        builtin={n: f"__builtin_ia32_vpdpbusd_v{n}si" for n in (16, 8, 4)},
        clang={n: f"__builtin_ia32_vpdpbusd{32 * n}" for n in (16, 8, 4)},
    ),
    Instruction(
        name="sdot",
        about="four products of two signed bytes a lane, added to 32 bits",
        text="""\
kernel sdot
in a, b
out c
a i8 [LANES, 4] heap
b i8 [LANES, 4] heap
c i32 [LANES] heap
LANES 4 c[{0}] += a[{0},{1}]*b[{0},{1}]
""",
        needs={4: frozenset({"asimddp"})},
        word="i32",
        source="Arm Architecture Reference Manual for A-profile, SDOT (vector)",
        assembly="sdot %0.4s, %1.16b, %2.16b",
    ),
    Instruction(
        name="usdot",
        about="four products of an unsigned and a signed byte a lane, added to 32 bits",
        text="""\
kernel usdot
in a, b
out c
a u8 [LANES, 4] heap
b i8 [LANES, 4] heap
c i32 [LANES] heap
LANES 4 c[{0}] += a[{0},{1}]*b[{0},{1}]
""",
        needs={4: frozenset({"i8mm"})},
        word="i32",
        source="Arm Architecture Reference Manual for A-profile, USDOT (vector)",
        assembly="usdot %0.4s, %1.16b, %2.16b",
    ),
    Instruction(
        name="transpose",
        about="a square of rows turned in registers: what stood in columns stands in rows",
        text="""\
kernel transpose
in a
out b
a f32 [LANES, LANES] heap
b f32 [LANES, LANES] heap
LANES LANES b[{1},{0}] = a[{0},{1}]
""",
        needs={16: frozenset({"avx512f"}), 8: frozenset({"avx2"})},
        word="f32",
        source="Eklundh, A fast computer method for matrix transposing, IEEE Transactions on Computers, 1972",
        rows=True,
    ),
)

INSTRUCTIONS: dict[str, Instruction] = {i.name: i for i in _TABLE}


def available(features: frozenset[str]) -> frozenset[tuple[str, int]]:
    """Name and lanes of the instructions that a processor with these features has."""
    return frozenset(
        (i.name, lanes) for i in _TABLE for lanes, needed in i.needs.items() if needed <= features
    )
