"""Which functions the doors share: for each, the calls, commands, functions for notebooks and parts of the
app that come to it. Read off the sources, so that the table of docs/interface.md says what is so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from dojo_core import notebook
from dojo_core.calls.registry import CALLS
from dojo_core.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
SHARED = (
    "dojo_core.opening", "dojo_core.actions.looking", "dojo_core.actions.playing", "dojo_core.actions.timing",
    "dojo_core.actions.comparing", "dojo_core.sharing", "dojo_core.described", "dojo_core.service.takeaway",
    "dojo_core.study.writing",
)  # fmt: skip

References = dict[str, set[str]]  # of each name of a module, by both: those that stand in it


def table() -> str:
    """Markdown: a row for each function that two doors share at least."""
    doors = {"calls": _calls(), "commands": _commands(), "notebooks": _notebooks(), "app": _app()}
    doors["learners"] = _reached("agents/environment.py", {"make": ["agents.environment.make"]})
    lines = [f"| function | {' | '.join(doors)} |", "|---" * (1 + len(doors)) + "|"]
    for function in _shared():
        cells = [", ".join(f"`{name}`" for name in door.get(function, ())) for door in doors.values()]
        if sum(map(bool, cells)) > 1:
            lines.append(f"| `{function.removeprefix('dojo_core.')}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _shared() -> list[str]:
    return [
        f"{module}.{node.name}"
        for module in SHARED
        for node in _parsed(ROOT / f"{module.replace('.', '/')}.py").body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]


def _calls() -> dict[str, list[str]]:
    begins = {name: [f"{call.run.__module__}.{call.run.__name__}"] for name, call in CALLS.items()}
    return _reached("dojo_core/calls", begins)


def _commands() -> dict[str, list[str]]:
    begins = {}
    for name, command in COMMANDS.items():
        module, _, function = command.place.partition(":")
        if module.startswith("dojo_core."):
            names = _references(ROOT / f"{module.replace('.', '/')}.py")
            own = f"{module}.{function}"
            several = own not in names  # a Typer: its commands stand in that module
            begins[f"dojo {name}"] = [each for each in names if each.startswith(module)] if several else [own]
    return _reached("dojo_core/cli", begins)


def _notebooks() -> dict[str, list[str]]:
    begins = {name: [f"{getattr(notebook, name).__module__}.{name}"] for name in notebook.__all__}
    return _reached("dojo_core/notebook", begins)


def _app() -> dict[str, list[str]]:
    """By the files that name it."""
    found: dict[str, list[str]] = {}
    for folder in ("dojo_core/service", "pages"):
        for file in _files(folder):
            for function in sorted(set().union(*_references(file).values())):
                found.setdefault(function, []).append(str(file.relative_to(ROOT)).removeprefix("dojo_core/"))
    return found


def _reached(place: str, begins: dict[str, list[str]]) -> dict[str, list[str]]:
    """By function: from which beginnings (names as they are told, and where each is) it is reached through
    the sources at a place."""
    graph: References = {}
    for file in _files(place):
        graph |= _references(file)
    found: dict[str, list[str]] = {}
    for name, where in begins.items():
        seen, open_ = set(where), [*where]
        while open_:
            for reference in sorted(graph.get(open_.pop(), ())):
                if reference not in seen:
                    seen.add(reference)
                    open_.append(reference)
        for function in seen:
            found.setdefault(function, []).append(name)
    return found


def _files(place: str) -> list[Path]:
    path = ROOT / place
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


@cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _references(file: Path) -> References:
    """What stands in each function and class of a module, by the modules that it comes from."""
    module = str(file.relative_to(ROOT).with_suffix("")).replace("/", ".").removesuffix(".__init__")
    tree = _parsed(file)
    known = {name: f"{module}.{name}" for name in _defined(tree)} | dict(_imported(ast.walk(tree)))
    return {
        f"{module}.{node.name}": set(_named(node, known))
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name


def _imported(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                yield each.asname or each.name, f"{node.module}.{each.name}"


def _named(node: ast.AST, known: dict[str, str]) -> Iterator[str]:
    """What a function or class refers to; a name that it gives to something of its own is none of these."""
    own = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    own |= {
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    for each in ast.walk(node):
        name = each.value if isinstance(each, ast.Attribute) else each
        if isinstance(name, ast.Name) and name.id in known and name.id not in own:
            yield f"{known[name.id]}.{each.attr}" if isinstance(each, ast.Attribute) else known[name.id]
