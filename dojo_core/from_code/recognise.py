"""What kind of text this is: one of the Dojo's own, one that is translated, or one of another language."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from dojo_core.from_code.source import LONGEST
from dojo_core.package_data import document

OWN = ("program", "game", "line", "graph")  # what the Dojo writes itself


@dataclass(frozen=True)
class Foreign:
    """A language that is known and not translated: how it is told, and how such a kernel would be written."""

    pattern: str
    what: str
    remedy: str


_THREADS = "Write the loops that its threads go through as a C function over arrays, or a NumPy expression."
_LOOPS = "Write its loops as a C function over arrays, or as a NumPy expression."

FOREIGN = (
    Foreign(
        r"\bfrom\s+dojo_core\b|\bimport\s+dojo_core\b|^[ \t]*@kernel\b",
        "Python that describes a kernel with dojo_core",
        "Run it yourself and take the text that it saves, "
        f'softmax.save("softmax.dojo") ({document("own_kernel.md")}).',
    ),
    Foreign(
        r"^[ \t]*(?:@triton\.|import triton)|\btl\.(?:load|program_id|store)\b",
        "a Triton kernel",
        "Write what it computes as a NumPy or PyTorch function over whole arrays.",
    ),
    Foreign(
        r"\b(?:__global__|__shared__|threadIdx|blockIdx|get_global_id|__kernel|thread_position_in_grid)\b"
        r"|<<<[^<>\n]*>>>",
        "a GPU kernel",
        _THREADS,
    ),
    Foreign(
        r"\b_mm(?:256|512)?_\w+\s*\(|\b__m(?:128|256|512)[di]?\b|\bv(?:ld1|st1|fma|add|mul)q?_\w+\s*\(",
        "C with a processor's vector instructions",
        "Write the plain loop over elements: vectors are what moves make of it.",
    ),
    Foreign(
        r"\bte\.compute\s*\(|\bT\.(?:prim_func|grid|block)\b|\btvm\.",
        "TVM",
        "Write what it computes as a NumPy expression or an einsum.",
    ),
    Foreign(r"\bFunc\s+\w+\s*[;(,]|\bRDom\s+\w+", "Halide", _LOOPS),
    Foreign(
        r"%[xyz]mm\d|\b[xyz]mm\d+\s*,|^[ \t]*v?(?:mov|add|mul|fmadd)\w*\s+[%$\w]+\s*,",
        "assembly",
        "Write the loop that it goes through as a C function over arrays.",
    ),
    Foreign(r"^[ \t]*(?:cdef|cpdef|cimport)\b", "Cython", _LOOPS),
    Foreign(r"^[ \t]*(?:public|private|using)\s+\w+", "C# or Java", _LOOPS),
    Foreign(
        r"^[ \t]*function\s+\w+\s*\([^)]*\)\s*$|^[ \t]*end[ \t]*;?[ \t]*$|[ \t]\.[*/^][ \t]",
        "Julia or MATLAB",
        _LOOPS,
    ),
    Foreign(
        r"^[ \t]*class\s+\w+\s*\(.*Module\s*\)|\bnn\.[A-Z]\w*\s*\(",
        "a module of PyTorch, whose weights are not in its text",
        "Write its forward as a function over arrays, weights too, such as F.linear(x, w, b); a whole model "
        f"comes in by torch.export and dojo import ({document('pytorch.md')}).",
    ),
    Foreign(r"^[ \t]*(?:module\s*\{|func\.func\b|%\w+\s*=)", "MLIR or LLVM's text", _LOOPS),
    Foreign(r"^[ \t]*(?:subroutine|program)\s+\w+|^[ \t]*do\s+\w+\s*=\s*\w+\s*,", "Fortran", _LOOPS),
    Foreign(r"\bfn\s+\w+\s*[(<]|\blet\s+mut\b", "Rust", _LOOPS),
    Foreign(r"\b(?:function|const|let)\s+\w+\s*(?:\(|=).{0,200}[{;]|=>\s*\{", "JavaScript", _LOOPS),
    Foreign(r"\\(?:sum|frac|begin|mathbf|cdot)\b", "LaTeX", "Write it in NumPy, or as an einsum: ij,jk->ik."),
    Foreign(r"^[ \t]*(?:\{|\[)\s*[\"{\[]", "JSON", "Paste a program, a saved game, NumPy or C."),
    Foreign(
        r"\b(?:template\s*<|std::|public:|auto\s*&?\s*\w+\s*[=:])", "C++", "Write it as plain C over arrays."
    ),
)  # fmt: skip

_BUFFER = re.compile(
    r"^[ \t]*\w+\s+[a-z]+\d\w*\s*\[.*\]\s*(heap|stack|register|shared|local)\b", re.MULTILINE
)
_HEADER = re.compile(r"^[ \t]*kernel\s+\w+\s*$", re.MULTILINE | re.IGNORECASE)
_BEGINNING = re.compile(r"[ \t]*kernel\s+(?!void\b)\S", re.IGNORECASE)  # of OpenCL it is a function's
_C = re.compile(
    r"\bfor\s*\(|^[ \t]*#\s*(?:include|define|pragma)\b"
    r"|\b(?:void|float|double|int|long|size_t|unsigned|u?int\d+_t)\b[\w\s*]{0,80}?\b\w+\s*(?:\(|\[|=|;)",
    re.MULTILINE,
)
_EINSUM = re.compile(
    r"[\"']?[A-Za-z][A-Za-z ]*(?:,[A-Za-z ]+)*->[A-Za-z ]*[\"']?|[\"']?[a-z]{1,8}(?: ?, ?[a-z]{1,8})+[\"']?"
)
_PYTHON = re.compile(
    r"^[ \t]*(?:def|import|from|return|lambda)\b|\b(?:np|numpy|torch|jnp|F)\.\w"
    r"|^[ \t]*\w+\s*=[^=]|\b\w+\s*\(",
    re.MULTILINE,
)

# ONNX: said to be it, in one of its own formats, by onnx.helper or ONNX Script; or calls of operators alone.
ONNX_PREFIX = re.compile(r"[ \t]*onnx[ \t]*:[ \t]*", re.IGNORECASE)
ONNX_NODE = re.compile(r"^[\w, \t]+=[ \t]*[A-Z]\w*[ \t]*<[^<>]*>[ \t]*\(", re.MULTILINE)
_ONNX = re.compile(
    r"\bmake_node\s*\(|\bopset_import\s*:|\bop_type\s*:|=>\s*\([^()]*\)\s*[<{]|\bop\d*\.[A-Z]\w*\s*\("
)
_ONNX_CALL = re.compile(r"(?:[\w, \t]+=[ \t]*)?[A-Z]\w*[ \t]*\(")


def kind_of(text: str) -> str:
    """``program``, ``game``, ``line``, ``graph``; ``python``, ``einsum``, ``c``, ``onnx``; ``foreign`` where
    it is one of ``FOREIGN``; ``unknown``."""
    first = text.lstrip()
    if first.startswith("graph "):
        return "graph"
    if first.startswith("dojo game"):
        return "game"
    if any(row.startswith("shape ") for row in text.splitlines()):
        return "line"
    beginning = next((row for row in text.splitlines() if row.strip() and row.lstrip()[0] != "#"), "")
    if _BEGINNING.match(beginning):
        return "program"
    text = text[:LONGEST]  # patterns may take long on more, and what it is shows at the beginning
    if _HEADER.search(text) or _BUFFER.search(text) or re.search(r"\{\d+\}", text):
        return "program"
    if ONNX_PREFIX.match(text) or _ONNX.search(text) or ONNX_NODE.search(text):
        return "onnx"
    if foreign(text) is not None:
        return "foreign"
    if _EINSUM.fullmatch(text.strip()):
        return "einsum"
    if _C.search(text) and not _parses(text):
        return "c"
    if _ONNX_CALL.match(beginning.strip()) and _calls_alone(text):
        return "onnx"
    return "python" if _PYTHON.search(text) or _parses(text) else "unknown"


def foreign(text: str) -> Foreign | None:
    """Which of the languages that are not translated a text is in."""
    return next((each for each in FOREIGN if re.search(each.pattern, text[:LONGEST], re.MULTILINE)), None)


def _calls_alone(text: str) -> bool:
    """Is each line a call of something with a capital letter, or an assignment of one or of numbers? A text
    that is typed still may be."""
    tree = _tree(text)
    for node in tree.body if tree is not None else ():
        match node:
            case ast.Assign(value=ast.Call(func=ast.Name(name))) | ast.Expr(ast.Call(func=ast.Name(name))):
                if not name[0].isupper():
                    return False
            case ast.Assign(value=ast.Constant() | ast.List() | ast.Tuple()):
                pass
            case _:
                return False
    return True


def _parses(text: str) -> bool:
    tree = _tree(text)
    return tree is not None and bool(tree.body)


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
