"""What no source of the product may do: unpickle, start a shell, run text as code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [
    ROOT / "app.py",
    *(f for part in ("dojo_core", "agents", "pages") for f in (ROOT / part).rglob("*.py")),
]
MODULES = {"pickle", "cPickle", "dill", "marshal", "shelve", "joblib"}
ARGUMENTS = {"shell", "allow_pickle", "weights_only"}
CALLS = {"eval", "exec", "os.system", "os.popen", "compile"}
LOADERS = {"np.load", "numpy.load", "torch.load"}
# A file without any of these words need not be parsed; ``re.compile`` is none. What stands before a word is
# looked at behind it, and each is searched for by itself: a search that begins with letters is a tenth of it.
WORDS = [rf"{word}\b(?<![\w.]{word})" for word in map(re.escape, (*MODULES, *CALLS, "shell"))]
SUSPICIOUS = [re.compile(word) for word in (*WORDS, *map(re.escape, LOADERS))]


def dotted(node: ast.expr) -> str:
    """``numpy.load``; what is no name is left out."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def faults(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = (
                [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            )
            yield from (f"imports {name}" for name in names if name.split(".")[0] in MODULES)
        if isinstance(node, ast.Call):
            called = dotted(node.func)
            given = {k.arg: ast.unparse(k.value) for k in node.keywords if k.arg in ARGUMENTS}
            if called in CALLS:
                yield f"line {node.lineno}: calls {called}"
            if given.get("shell", "False") != "False":
                yield f"line {node.lineno}: starts a shell"
            if called.endswith(("np.load", "numpy.load")) and given.get("allow_pickle") == "True":
                yield f"line {node.lineno}: unpickles arrays"
            if called.endswith("torch.load") and given.get("weights_only") != "True":
                yield f"line {node.lineno}: unpickles weights"


def suspicious(text: str) -> bool:
    return any(word.search(text) for word in SUSPICIOUS)


def test_no_source_unpickles_starts_a_shell_or_runs_text() -> None:
    read = {str(f.relative_to(ROOT)): f.read_text() for f in SOURCES}
    found = {name: list(faults(ast.parse(text))) for name, text in read.items() if suspicious(text)}
    assert {name: told for name, told in found.items() if told} == {}


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from dill import loads", "eval(x)", "os.system('ls')", "run(x, shell=True)",
     "torch.load(f)", "np.load(f, allow_pickle=True)"],
)  # fmt: skip
def test_each_of_these_would_be_seen(source: str) -> None:
    assert suspicious(source) and list(faults(ast.parse(source)))
