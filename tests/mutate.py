"""Is each legality condition watched? ``python -m tests.mutate``, or ``make mutate``.

Switches the conditions off one by one: in ``dojo_core/moves`` every guard that refuses, in the judges of
``dojo_core/program`` every fault, and of conditions made of several terms each term. Each such mutant runs
in a child process, on modules compiled from the changed syntax tree (no file is touched): first the tests of
moves and refusals, with the one first that noticed this condition when docs/mutation.md was written, then
seeded random walks under the oracle. Prints what notices each: a test, or a walk and the kind of its finding.
``SURVIVED`` means that nothing does; the command ends with 1 then.

A condition that others imply keeps its comment ``# implied: why`` in the code, which is printed in its place.

    python -m tests.mutate                       all conditions
    python -m tests.mutate --sample 8 --seed 3   some of them
    python -m tests.mutate --only values.py      those of the files, or of file:line
    python -m tests.mutate --jobs 2 --write docs/mutation.md
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import itertools
import json
import os
import random
import re
import select
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from dojo_core.program.codes import Code

ROOT = Path(__file__).resolve().parent.parent
# These write and remember moves, and decide nothing.
NO_JUDGES = {
    "__init__", "api", "examples", "nodes", "notation", "packages", "reasons", "reference", "references",
    "ways",
}  # fmt: skip
FAMILIES = [p for p in sorted((ROOT / "dojo_core/moves").glob("*.py")) if p.stem not in NO_JUDGES]
FILES = [
    *(f"dojo_core/moves/{p.name}" for p in FAMILIES),
    *(
        f"dojo_core/program/{name}.py"
        for name in ("validity", "marks", "dependence", "indices", "must_writes", "reaching", "unification")
    ),
    "dojo_core/program/gpu.py",
    "dojo_core/targets/gpu/conditions.py",
    "dojo_core/targets/gpu/tensor_cores.py",
    "dojo_core/targets/snitch/conditions.py",
]
TESTS = (
    "test_refusals",
    "test_gpu_refusals",
    "test_snitch_refusals",
    "test_moves",
    "test_docs_of_moves",
    "test_validity",
    "test_walks",
    "test_text",
    "test_indices",
    "test_unset",
    "test_scatter",
    "test_tensor_cores",
    "test_instructions",
)
# Each costs about half a second, for conditions that no test watches.
WALKS, LENGTH, OTHERS = 20, 12, 4
SECONDS = 240  # at least, for one mutant
TIMES = 4  # as often as long as the program as it is, which takes all tests and walks as implied ones do
FORKING = threading.Lock()
# Loaded anew beside a changed module: what kept the one before would meet objects of its classes' namesakes.
OURS = ("dojo_core", "agents", "pages", "tests")

# What lists, names or describes moves decides nothing about legality.
ASIDE = {
    "candidates", "all_candidates", "offered", "concerns", "places", "inverse", "enablers", "context",
    "fresh_name", "owner_path", "definition_fault", "__str__",
    "_indexed", "_reused", "_end", "_joins", "_kept", "_project", "_exit_read", "_exit", "_located",
    "_copy_buffer", "_computed_before_use", "holds", "mapped",
    "_after", "layouts", "promised", "needs", "suits", "_better_there", "has_vector_form",
}  # fmt: skip
# Functions whose answer, other than None or False, is the objection itself.
OBJECTIONS = ("Refusal", "Fault", "IndexFault", "Witness", "Mismatch")
OBJECTING = {"_vector_sentence", "_register_sentence", "_uses", "_beyond", "seen_by"}
TRUE_OBJECTS = {
    "_out_of_bounds", "_too_large", "_ever_written", "_needs_load", "_runs", "_holds_parallel",
    "_marked", "_long", "_counts", "_counts_far", "may_leave", "precedes",
}  # fmt: skip
FILTERS = {"coverage", "_clobber"}  # whose comprehensions choose what is looked at
SELECTS = {"_copies"}  # whose loops pass over what is not meant
TOLD_AS = {  # their callers give the code
    "_nest": "instruction-shape", "_beyond": "too-large", "_sizes": "shared-size, stack-size",
}  # fmt: skip
NO_CONDITIONS = {"transformation.hint"}
CHECKED_NAMES = {"fits", "right", "one"}  # a pattern's conditions, in one expression


# ---------------------------------------------------------------------------- the conditions


@dataclass(frozen=True)
class Site:
    """One condition: where it stands, its text, the code of its refusal, and which edit switches it off."""

    file: str
    line: int
    function: str
    text: str
    code: str
    number: int  # of the edit within the file
    implied: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


Edit = Callable[[], None]


class _Finder(ast.NodeVisitor):
    """All edits of one syntax tree, each of which switches one condition off; in a fixed order."""

    def __init__(self, file: str, source: str) -> None:
        self.file, self.lines = file, source.splitlines()
        self.tree = ast.parse(source)
        self.sites: list[Site] = []
        self.edits: list[Edit] = []
        self.path: list[str] = []
        self.returns = ""
        self.gives = False  # does the function end with an objection?
        self.visit(self.tree)

    # -- where we are

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.path.append(node.name)
        self.generic_visit(node)
        self.path.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in ASIDE:
            return
        outer, self.returns = self.returns, ast.unparse(node.returns) if node.returns else ""
        last = node.body[-1]
        gave, self.gives = self.gives, (isinstance(last, ast.Return) and self.objects(last.value)) or False
        self.path.append(node.name)
        self.generic_visit(node)
        self.path.pop()
        self.returns, self.gives = outer, gave

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        raise NotImplementedError

    @property
    def function(self) -> str:
        return self.path[-1] if self.path else ""

    @property
    def objecting(self) -> bool:
        return any(word in self.returns for word in OBJECTIONS) or self.function in OBJECTING

    def objects(self, value: ast.expr | None, test: ast.expr | None = None) -> bool:
        """Is this returned value an objection?"""
        if value is None:
            return False
        nothing = isinstance(value, ast.Constant) and value.value is None
        if self.returns.endswith("| str"):  # the objection is the sentence
            return isinstance(value, ast.JoinedStr) or _is_text(value)
        if self.returns == "bool":
            return isinstance(value, ast.Constant) and value.value is (self.function in TRUE_OBJECTS)
        if self.objecting:
            if nothing or (isinstance(value, ast.Tuple) and self.function not in OBJECTING):
                return False
            if "Program" in self.returns or self.function == "_defined":
                if isinstance(value, ast.Call):
                    return ast.unparse(value.func) in (
                        "structural",
                        "Refusal",
                        "_changed",
                        "_refused",
                        "_unsettled",
                    )
                asked = (
                    {n.id for n in ast.walk(test) if isinstance(n, ast.Name)} if test is not None else set()
                )
                return (
                    isinstance(value, ast.Name) and value.id in asked and value.id not in ("result", "padded")
                )
            return True
        return nothing and "None" in self.returns

    # -- conditions

    def visit_If(self, node: ast.If) -> None:
        last = node.body[-1]
        yields = [s for s in node.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Yield)]
        if yields and self.objecting:
            self.off(node, "test", False, TOLD_AS.get(self.function) or _code(yields[0]))
        elif isinstance(last, ast.Raise) and "NoSuchPlace" in ast.unparse(last):
            self.off(node, "test", False, _code(last))
        elif isinstance(last, ast.Return):
            if self.objects(last.value, node.test):
                self.off(node, "test", False, TOLD_AS.get(self.function) or _code(last))
            elif self.returns and self.function != "outcome":
                self.permit(node, self.gives and not self.objects(last.value))
        elif isinstance(last, ast.Continue) and self.function in SELECTS:
            self.off(node, "test", False, "passed over")
        elif isinstance(last, ast.Continue):
            self.permit(node, self.objecting)
        elif isinstance(last, ast.Expr) and ast.unparse(last) == "sides.append(side)":
            self.off(node, "test", False, "uncovered")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        if isinstance(value, ast.IfExp):
            if self.objects(value.body, value.test):
                self.off(value, "test", False, _code(value.body))
            elif self.objects(value.orelse, value.test):
                self.off(value, "test", True, _code(value.orelse))
        elif self.returns == "bool" and not isinstance(value, ast.Constant) and value is not None:
            self.off(node, "value", self.function not in TRUE_OBJECTS, "False")
        elif isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or) and "Refusal" in self.returns:
            for n, term in enumerate(value.values[:-1]):
                self.add(
                    term,
                    "passed on",
                    lambda n=n, value=value: value.values.__setitem__(n, ast.Constant(None)),
                )
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        if isinstance(node.value, ast.ListComp | ast.GeneratorExp) and self.function in FILTERS:
            for generator in node.value.generators:
                for n, test in enumerate(generator.ifs):
                    left_out = isinstance(test, ast.UnaryOp)  # if not (...): what makes no difference
                    self.terms(generator.ifs, n, not left_out, self.function.strip("_"))
        if isinstance(node.value, ast.BoolOp) and names:
            values = node.value.values
            if names[0] in CHECKED_NAMES and isinstance(node.value.op, ast.And):
                self.off(node, "value", True, "False")
            elif names[0] in ("refusal", "fault") and isinstance(node.value.op, ast.Or):
                for n, term in enumerate(values):
                    self.add(
                        term,
                        "passed on",
                        lambda n=n, values=values: values.__setitem__(n, ast.Constant(None)),
                    )
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "uncovered":
            self.add(node.value, "uncovered", lambda: setattr(node, "value", ast.Constant(None)))
        self.generic_visit(node)

    def permit(self, node: ast.If, whole: bool) -> None:
        """``if a and b: continue``: without a, more is let through; all, where nothing else objects."""
        test = node.test
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            for n, term in enumerate(test.values):
                if isinstance(term, ast.BoolOp):
                    self.terms(test.values, n, True, "let through")
        if whole or (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)):
            self.off(node, "test", True, "let through")

    # -- edits

    def off(self, holder: ast.AST, field: str, to: bool, code: str) -> None:
        box = [getattr(holder, field)]

        def put() -> None:
            setattr(holder, field, box[0])

        self.terms(box, 0, to, code, put)

    def terms(self, box: list[ast.expr], n: int, to: bool, code: str, then: Edit = lambda: None) -> None:
        """An edit for each term of a disjunction to be false, or of a conjunction to be true."""
        test = box[n]

        def set_whole() -> None:
            box[n] = ast.copy_location(ast.Constant(to), test)
            then()

        joined = ast.And if to else ast.Or
        if isinstance(test, ast.BoolOp) and isinstance(test.op, joined):
            for k in range(len(test.values)):
                self.terms(test.values, k, to, code)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and not to:
            chain = test.operand
            if isinstance(chain, ast.Compare) and len(chain.ops) > 1:  # not 0 < n < size
                for k in range(len(chain.ops)):
                    left = chain.left if k == 0 else chain.comparators[k - 1]
                    one = ast.Compare(left, [chain.ops[k]], [chain.comparators[k]])

                    def drop(k: int = k, chain: ast.Compare = chain) -> None:
                        _drop_link(chain, k)

                    self.add(ast.copy_location(one, chain), code, drop, "not ")
            elif isinstance(chain, ast.BoolOp) and isinstance(chain.op, ast.And):
                for k in range(len(chain.values)):
                    self.terms(chain.values, k, True, code)
            else:
                self.add(test, code, set_whole)
        else:
            self.add(test, code, set_whole)

    def add(self, term: ast.expr, code: str, edit: Edit, before: str = "") -> None:
        line = term.lineno
        if ast.unparse(term) in NO_CONDITIONS:
            return
        text = before + re.sub(r"\s+", " ", ast.unparse(term))
        implied = ""
        for near in (line, line - 1, line - 2):
            found = (
                re.search(r"# implied: (.*)", self.lines[near - 1]) if 0 < near <= len(self.lines) else None
            )
            if found and (near == line or self.lines[near - 1].lstrip().startswith("#")):
                implied = found[1]
                if near == line - 2:
                    implied += " " + self.lines[line - 2].strip().removeprefix("# ")
                break
            if near < line and not self.lines[near - 1].lstrip().startswith("#"):
                break
        function = ".".join(self.path)
        self.sites.append(Site(self.file, line, function, text, code, len(self.sites), implied))
        self.edits.append(edit)


def _is_text(value: ast.expr) -> bool:
    return _named_code(value) != "" or (isinstance(value, ast.Constant) and isinstance(value.value, str))


def _named_code(value: ast.AST) -> str:
    """The code that ``Code.NAME`` is; empty for anything else."""
    if isinstance(value, ast.Attribute) and ast.unparse(value.value) == "Code":
        return Code[value.attr]
    return ""


def _drop_link(chain: ast.Compare, k: int) -> None:
    """``a < b < c`` without its k-th comparison, of two."""
    assert len(chain.ops) == 2
    if k == 0:
        chain.left = chain.comparators[0]
    del chain.ops[k], chain.comparators[k]


def _code(statement: ast.AST) -> str:
    """The code of the refusal that a statement makes, or what it answers."""
    if isinstance(statement, ast.Raise):
        return "no-such-place"
    for node in ast.walk(statement):
        if _named_code(node):
            return _named_code(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value if re.fullmatch(r"[a-z-]+", node.value) else "register-index"
    told = ast.unparse(statement).removeprefix("return ").split("(")[0]
    return told if told in ("None", "False", "True") else "passed on"


@functools.cache
def sites() -> list[Site]:
    """Every condition, file by file."""
    found: list[Site] = []
    for file in FILES:
        found += _Finder(file, (ROOT / file).read_text()).sites
    return found


def mutated(site: Site) -> ast.Module:
    """The syntax tree of the site's file with its condition switched off."""
    finder = _Finder(site.file, (ROOT / site.file).read_text())
    before = ast.dump(finder.tree)
    finder.edits[site.number]()
    assert before != ast.dump(finder.tree), site
    return ast.fix_missing_locations(finder.tree)


class _Mutator(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Imports one module from a changed syntax tree."""

    def __init__(self, site: Site) -> None:
        self.module = site.file.removesuffix(".py").replace("/", ".")
        importlib.machinery.SourceFileLoader.__init__(self, self.module, str(ROOT / site.file))
        self.tree = mutated(site)

    def find_spec(self, fullname, path=None, target=None):
        return importlib.util.spec_from_loader(fullname, self) if fullname == self.module else None

    def get_code(self, fullname):
        return compile(self.tree, self.path, "exec", dont_inherit=True)


# ---------------------------------------------------------------------------- the judges


def checks(module: ModuleType) -> Iterator[tuple[str, Callable[[], object]]]:
    """The tests of a module that need no fixture, one for each row of their parameters."""
    for name, function in vars(module).items():
        if not name.startswith("test_") or not inspect.isfunction(function):
            continue
        marks = [m for m in getattr(function, "pytestmark", ()) if m.name == "parametrize"]
        names: list[str] = []
        rows: list[list[tuple]] = []
        for mark in marks:
            argument = mark.args[0]
            words = argument.replace(" ", "").split(",") if isinstance(argument, str) else list(argument)
            names += words
            rows.append([_values(row, len(words)) for row in mark.args[1] if not _left_out(row)])
        slow = hasattr(function, "hypothesis") or "walk" in name or "damaged" in name
        if slow or set(inspect.signature(function).parameters) - set(names):
            continue
        for choice in itertools.product(*rows):
            values = dict(zip(names, itertools.chain(*choice), strict=True))
            shown = next((v for v in values.values()), "")
            shown = f"{shown.move}: {shown.code}" if hasattr(shown, "move") else shown
            label = f"{name}[{shown}]" if shown else name
            yield label, lambda function=function, values=values: function(**values)


def _values(row: Any, count: int) -> tuple:
    """Of one row of parameters, bare or in ``pytest.param``."""
    if isinstance(row, ParameterSet):
        return tuple(row.values)
    return tuple(row) if count > 1 else (row,)


def _left_out(row: Any) -> bool:
    """Of make test, which is to notice what is switched off."""
    return isinstance(row, ParameterSet) and any(mark.name in ("soak", "thorough") for mark in row.marks)


def verdict(walks: int, witnesses: Collection[str] = ()) -> dict[str, str]:
    """Run in the child: who notices. ``by`` is test, walk or import; empty: nobody. Tests of the names
    ``witnesses``, as the table has them, are asked first."""
    try:
        modules = [importlib.import_module(f"tests.{name}") for name in TESTS]
    except Exception as error:
        return {"by": "import", "what": repr(error)}
    asked = [row for module in modules for row in checks(module)]
    for label, check in sorted(asked, key=lambda row: _cell(row[0]) not in witnesses):
        try:
            check()
        except pytest.skip.Exception:  # it needs what this machine has not
            continue
        except (Exception, pytest.fail.Exception) as error:  # what did not raise fails by the latter
            return {"by": "test", "what": label, "how": type(error).__name__}
    from tests.programs import random_program
    from tests.walks import Tally, start, walk_from

    for number in range(walks):
        rng = random.Random(f"mutant {number}")
        wrong: list[str] = []

        def judged(program, allowed, seen, wrong=wrong) -> None:
            if allowed and seen.fault is not None:
                wrong.append(seen.fault.split()[0])

        try:
            random_program(rng, judged)
            program, rules = start(rng)
            _, finding = walk_from(program, rules, rng, Tally(), LENGTH, OTHERS)
        except Exception as error:
            return {"by": "walk", "what": f"walk {number}: {type(error).__name__}"}
        if wrong:
            return {"by": "walk", "what": f"walk {number}: storage allowed, {wrong[0]}"}
        if finding is not None:
            return {"by": "walk", "what": f"walk {number}: {finding.kind} by {finding.move.split(' ')[0]}"}
    return {"by": ""}


def run(site: Site | None, walks: int, seconds: float, witnesses: Collection[str] = ()) -> dict[str, str]:
    """The verdict on one mutant, from a child process; None is the program as it is."""
    with FORKING:  # a child that held another's pipe would keep it from ending
        reader, writer = os.pipe()
        child = os.fork()
        if child:
            os.close(writer)
    if child == 0:
        try:
            os.close(reader)
            for name in [n for n in sys.modules if n.split(".")[0] in OURS]:
                del sys.modules[name]
            if site is not None:
                sys.meta_path.insert(0, _Mutator(site))
            with os.fdopen(writer, "w") as out:
                try:
                    told = verdict(walks, witnesses)
                except Exception as error:  # of what calls the tests: that notices nothing
                    told = {"by": "fault", "what": repr(error)}
                json.dump(told, out)
        finally:
            os._exit(0)
    with os.fdopen(reader) as answers:
        ready, _, _ = select.select([answers], [], [], seconds)
        if not ready:
            os.kill(child, signal.SIGKILL)
        told = answers.read()
    os.waitpid(child, 0)
    if not ready:
        return {"by": "time", "what": f"not done after {seconds:g} s"}
    return json.loads(told) if told else {"by": "crash", "what": "the process died"}


# ---------------------------------------------------------------------------- the table


def row(site: Site, found: dict[str, str]) -> str:
    by = found["by"]
    if by:
        told = found["what"]
    else:
        told = f"implied: {site.implied}" if site.implied else "**SURVIVED**"
    file, *others = condition(site)
    return "| " + " | ".join((file, str(site.line), *others, _cell(told))) + " |"


def condition(site: Site) -> tuple[str, ...]:
    """Its cells in the table, but for the line, which moves with what is written above it."""
    cells = (site.file.removeprefix("dojo_core/"), site.function, site.code, site.text)
    return tuple(_cell(c, k == 3) for k, c in enumerate(cells))


def witnesses(page: Path) -> dict[tuple[str, ...], set[str]]:
    """By condition, what noticed it when the page was written; those alike are one."""
    found: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for line in page.read_text().splitlines() if page.exists() else ():
        cells = line.removeprefix("| ").removesuffix(" |").split(" | ")
        if len(cells) == 6:
            file, _, *others, told = cells
            found[file, *others].add(told)
    return found


def _cell(text: str, quoted: bool = False) -> str:
    text = " ".join(text.split())  # a row is a line, whatever a test is called
    short = text if len(text) <= 90 else text[:87] + "..."
    return f"`{short.replace('|', chr(92) + '|')}`" if quoted else short.replace("|", "\\|")


HEAD = (
    "| file | line | function | refusal | condition switched off | noticed by |\n|---|---:|---|---|---|---|"
)


def chosen(arguments: argparse.Namespace) -> list[Site]:
    every = sites()
    if arguments.only:
        every = [
            s
            for s in every
            if any(w in (str(s), s.file) or str(s).endswith(w) or s.file.endswith(w) for w in arguments.only)
        ]
    if arguments.sample and arguments.sample < len(every):
        watched = [s for s in every if not s.implied]  # the others take all walks, and are not noticed
        kept = random.Random(arguments.seed).sample(watched, arguments.sample)
        every = [s for s in watched if s in kept]
    return every


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate")
    parser.add_argument("--sample", type=int, default=0, help="as many conditions, chosen by the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="names of files, or file:line")
    parser.add_argument("--walks", type=int, default=WALKS)
    parser.add_argument("--write", type=Path, help="the table as a page")
    parser.add_argument("--jobs", type=int, default=1, help="so many conditions at once")
    arguments = parser.parse_args(words)
    for name in TESTS:  # what they import from elsewhere need not be loaded again by each child
        importlib.import_module(f"tests.{name}")
    begun = time.monotonic()
    seconds = float(SECONDS)
    if not arguments.sample:
        sound = run(None, arguments.walks, 1800)
        if sound["by"]:
            print(f"The program as it is does not pass: {sound}")
            return 2
        seconds = max(seconds, TIMES * (time.monotonic() - begun))
    known = witnesses(ROOT / "docs/mutation.md")
    counts: Counter[str] = Counter()
    lines = [HEAD]
    print(HEAD, flush=True)
    wanted = chosen(arguments)
    with ThreadPool(arguments.jobs) as pool:  # of children, each in a process of its own
        verdicts = pool.imap(
            lambda site: run(site, arguments.walks, seconds, known.get(condition(site), ())), wanted
        )
        for site, found in zip(wanted, verdicts, strict=True):
            if found["by"] == "fault":
                print(f"The tests could not be called: {found['what']}")
                return 2
            counts[found["by"] or ("implied" if site.implied else "survived")] += 1
            lines.append(row(site, found))
            print(lines[-1], flush=True)
    total = sum(counts.values())
    by = ", ".join(f"{counts[k]} {told}" for k, told in TOLD.items() if counts[k])
    summary = f"{total} conditions switched off one by one: {by}."
    print(f"\n{summary} {time.monotonic() - begun:.0f} s")
    if arguments.write:
        arguments.write.write_text(PAGE.format(summary=summary, table="\n".join(lines)))
    return 1 if counts["survived"] else 0


TOLD = {
    "test": "noticed by a test", "walk": "noticed by a random walk", "import": "noticed at import",
    "time": "noticed because it runs on", "crash": "noticed because it dies",
    "implied": "implied by others", "survived": "survived",
}  # fmt: skip
PAGE = """# What watches each legality condition

Made by `python -m tests.mutate --write docs/mutation.md`, which switches off every condition of the
moves and of the judges behind them (storage, marks, dependence, must-writes, reaching definitions,
instructions, GPU, Snitch), one at a time, and each term of those made of several; then the tests of
moves and refusals run, what noticed the condition the last time first, and seeded random walks under the
exact oracle. A row shows the first that notices. *implied* conditions cannot be seen from outside: the
reason stands beside them in the code.

{summary}

{table}
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
