"""Nobody outside a target's folder asks which target it is; parts import each other in no circle."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.targets.registry import backend, backends, names

ROOT = Path(__file__).parent.parent
SOURCES = sorted(p for top in ("dojo_core", "agents", "pages") for p in (ROOT / top).rglob("*.py"))
# What may name a target: its own folder, and the passes that play for it.
OF_A_TARGET = ("dojo_core/targets/", "agents/passes/gpu/", "agents/passes/snitch.py")
SCRIPTS = "dojo_core/bench/others/"  # of other implementations, for Pythons of theirs
# The name of a lock, which is a processor's; the name of the default.
OTHER_MEANINGS = ("dojo_core/measure/exclusive.py", "dojo_core/program/target.py")
REPRESENTATION = "dojo_core.program.gpu"  # what a program with blocks and threads is
FAMILIES = {"cuda", "hip", "snitch", "gpu"}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def named_targets(tree: ast.AST) -> Iterator[str]:
    """Names of targets as strings, and what is imported from the folder of one but the processor's."""
    others = {name for name in names() if name != DEFAULT_TARGET}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and node.value in others:
                yield node.value
        elif isinstance(node, ast.ImportFrom):
            if node.module and node.module != REPRESENTATION:
                yield from FAMILIES & set(node.module.split("."))
        elif isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            yield from FAMILIES & set(name.lower().split("_"))
        elif isinstance(node, ast.Compare | ast.arguments | ast.keyword | ast.Dict):
            inside = (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.Constant))
            yield from (DEFAULT_TARGET for n in inside if n.value == DEFAULT_TARGET)


def test_no_part_asks_which_target_it_is():
    # In the tree of a file nothing is named that is not a word of its text, if only a part of a longer name.
    any_of = "|".join({*names(), *FAMILIES})
    words = re.compile(rf"(?<![A-Za-z0-9])(?:{any_of})(?![A-Za-z0-9])", re.IGNORECASE)
    named = {
        place(path): sorted(set(named_targets(parsed(path))))
        for path in SOURCES
        if not place(path).startswith((*OF_A_TARGET, SCRIPTS))
        and place(path) not in OTHER_MEANINGS
        and words.search(path.read_text())
    }
    assert {p: n for p, n in named.items() if n} == {}


@pytest.mark.parametrize("path", sorted((ROOT / "pages").rglob("*.js")), ids=lambda p: p.name)
def test_no_page_s_script_asks_which_target_it_is(path: Path):
    text = path.read_text()
    assert [name for name in names() if f'"{name}"' in text or f"{name}:" in text] == []


# Trees of all files would take a second, and this a tenth. In texts of several lines stand examples.
TEXTS = re.compile(r'"""(?:.|\n)*?"""')
FOR_TYPES = re.compile(r"^([ \t]*)if (?:typing\.)?TYPE_CHECKING:\n(?:(?:\1[ \t]+.*)?\n)+", re.M)
IMPORTED = re.compile(r"^[ \t]*from ((?:dojo_core|agents|pages)\b[\w.]*) import (\([^)]*\)|.+)$", re.M)


def imports(text: str) -> Iterator[str]:
    """The modules of ours that a file imports, at whatever moment; not those for types alone."""
    for source, listed in IMPORTED.findall(FOR_TYPES.sub("", TEXTS.sub("", text))):
        for name in re.sub("#.*", "", listed).strip("()").split(","):
            yield from (f"{source}.{word}" for word in name.split()[:1])


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected parts of more than one (Tarjan, SIAM Journal on Computing 1(2), 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    components: list[list[str]] = []

    def visit(one: str) -> None:
        index[one] = low[one] = len(index)
        path.append(one)
        for other in arrows.get(one, ()):
            if other not in index:
                visit(other)
                low[one] = min(low[one], low[other])
            elif other in path:
                low[one] = min(low[one], index[other])
        if low[one] == index[one]:
            part = path[path.index(one) :]
            del path[path.index(one) :]
            if len(part) > 1:
                components.append(sorted(part))

    for one in list(arrows):
        if one not in index:
            visit(one)
    return components


@cache
def arrows_between_modules() -> dict[str, set[str]]:
    modules = {module(path): path for path in SOURCES}
    arrows: dict[str, set[str]] = defaultdict(set)
    for name, path in modules.items():
        for imported in imports(path.read_text()):
            while imported and imported not in modules:
                imported = imported.rpartition(".")[0]
            if imported and imported != name:
                arrows[name].add(imported)
    return arrows


def test_what_a_file_imports():
    text = """
from typing import TYPE_CHECKING
from dojo_core import parse, game as played  # two
if TYPE_CHECKING:
    from pages.watch import live

    from pages.play import board
def later():
    from agents.passes import (
        heuristic,  # one of them
        naive as simple,
    )
"""
    assert list(imports(text + '"""As in\nfrom pages.learn import shown\n"""\n')) == [
        "dojo_core.parse", "dojo_core.game", "agents.passes.heuristic", "agents.passes.naive",
    ]  # fmt: skip


def test_no_files_import_each_other_in_a_circle():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles(arrows_between_modules()) == []


# Through what those that know no target ask for one by its name.
INTERFACE = {"dojo_core.targets.registry", "dojo_core.targets.guarded"}


def test_measuring_knows_no_target_but_by_name():
    arrows = arrows_between_modules()
    lower = ("program", "codegen", "moves", "measure", "bench")
    assert {
        (one, other)
        for one, others in arrows.items()
        for other in others
        if one.startswith(tuple(f"dojo_core.{part}." for part in lower))
        and other.startswith("dojo_core.targets.")
        and other not in INTERFACE
    } == set()


@pytest.mark.parametrize("name", names())
def test_each_target_says_what_it_is(name: str):
    target = backend(name)
    assert target.name == target.limits.name == name and target in backends()
    assert target.words.title and target.words.about.endswith(".") and target.words.code
    clock = target.clock()
    assert set(target.limits.policies) - {"tf32"} == {"strict", "reassoc", "algebraic"}
    assert clock.timed == (clock.missing == "") and (clock.origin is None or clock.origin.target == name)
