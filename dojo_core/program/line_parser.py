"""The parser of lines, by ``grammar.lark``.

Its table lies beside the grammar, in ``grammar.json``: to make it of the grammar takes eight times as long as
to read it, in each process. ``python -m dojo_core.program.line_parser`` writes it anew.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, __version__
from lark.grammar import Rule
from lark.lexer import TerminalDef

GRAMMAR = Path(__file__).with_name("grammar.lark")
TABLE = GRAMMAR.with_suffix(".json")
STARTS = ("names", "buffer", "operation", "access")


@cache
def line_parser() -> Lark:
    """From the table, or where that is another grammar's or another Lark's, from the grammar."""
    kept = json.loads(TABLE.read_text(encoding="ascii"), object_hook=_numbered)
    if kept.pop("of") != described():
        return built()
    return Lark.load(kept)


def built() -> Lark:
    """From the grammar."""
    grammar = GRAMMAR.read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", start=list(STARTS), propagate_positions=True)


def described() -> list[str]:
    """Of which grammar, and of which Lark, a table is."""
    return [__version__, hashlib.sha256(GRAMMAR.read_bytes()).hexdigest()]


def table(parser: Lark) -> dict[str, Any]:
    """What ``line_parser`` reads: as ``Lark.save`` writes it, but for the format."""
    data, memo = parser.memo_serialize([Rule, TerminalDef])
    return {"of": described(), "data": data, "memo": memo}


def _numbered(read: dict[str, Any]) -> dict[str | int, Any]:
    """JSON has strings for the numbers of states and tokens."""
    return {int(name) if name.isdecimal() else name: value for name, value in read.items()}


if __name__ == "__main__":
    TABLE.write_text(json.dumps(table(built()), separators=(",", ":")) + "\n", encoding="ascii")
