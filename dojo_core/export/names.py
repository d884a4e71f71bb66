"""Names that C, C++ and Python all accept, from the names of programs, which follow none of their rules."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection

_C = frozenset(
    """alignas alignof and and_eq asm atomic auto bitand bitor bool break case catch char class compl concept
    const constexpr continue decltype default delete do double else enum explicit export extern false float
    for friend goto if inline int linux long mutable namespace new noexcept not not_eq nullptr operator or
    or_eq private protected public register requires restrict return short signed sizeof static static_assert
    struct switch template this thread_local throw true try typedef typeid typename typeof union unix unsigned
    using virtual void volatile wchar_t while xor xor_eq""".split()  # noqa: SIM905
)
# Parameters of our own functions, and macros that a build defines.
_OURS = frozenset({"workspace", "out", "self", "NULL", "NDEBUG", "i386"})


def argument(name: str, taken: Collection[str] = ()) -> str:
    """A name for an array as an argument in C, C++ and Python; ``_`` is added where it means something."""
    while name in taken or name in _C or name in _OURS or keyword.iskeyword(name) or name.startswith("_"):
        name = f"v{name}" if name.startswith("_") else f"{name}_"
    return name


def library_name(text: str) -> str:
    """A name for a library: of files, of a Python package, and before its C functions.

    Raises ValueError with a sentence where it cannot be all of these.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", text, re.ASCII) or argument(text) != text:
        raise ValueError(
            f"{text!r} cannot name a library: use a lower-case letter, then letters, digits and _, "
            "at most 40, and no word of C or Python. For example my_kernels."
        )
    if text in ("torch", "numpy", "test", "tests"):
        raise ValueError(f"A library called {text} would hide another one: call it my_{text}, for example.")
    return text
