"""A package from outside plays everywhere (tests/packages/abacus); one that is no good costs a sentence."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

from tests.distribution import Installed, done, made_once, said

ABACUS = Path(__file__).parent / "packages" / "abacus"
PAGE = Path(__file__).parent.parent / "docs" / "packages.md"


@pytest.fixture
def abacus(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """A fresh environment with the package installed, beside the one that has the Dojo's wheel."""

    def make(place: Path) -> None:
        build = f"from scikit_build_core.build import build_wheel; build_wheel({str(place)!r})"
        done(sys.executable, "-c", build, cwd=ABACUS)
        [wheel] = place.glob("abacus-*.whl")
        environment = place / "environment"
        done(sys.executable, "-m", "venv", "--without-pip", str(environment))
        [own] = environment.glob("lib/python3*/site-packages")
        [dojo] = installed.folder.glob("lib/python3*/site-packages")
        (own / "dojo.pth").write_text(f"{dojo}\n{(dojo / 'dependencies.pth').read_text()}")
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
        target = ("--python", str(environment / "bin" / "python"), "install")
        done(*pip, *target, "--no-index", "--no-deps", "--no-compile", str(wheel))

    return Installed(made_once(tmp_path_factory, "abacus", make) / "environment")


@pytest.mark.thorough  # test_plugins.py, in process; its page: below
def test_a_package_plays_on_the_command_line(abacus: Installed) -> None:
    reversed_ = abacus.place / "reversed.line"
    reversed_.write_text("kernel relu\nshape 16x64\nreverse_scope y@0\nreverse_scope y@1\n")
    on = "--target|abacus"
    (
        packages, page, kernels, moves, legal, illegal, theirs, passed, countdown, timed, tuned, best, line,
        on_the_cpu, exported,
    ) = said(
        abacus,
        "packages",
        "packages|abacus",
        "kernels|--json",
        f"moves|midpoint|reverse|{on}|--json",
        f"why|midpoint|reverse_scope t@1|{on}",
        "why|softmax|reverse_scope s#1@1|--policy|strict",
        f"why|midpoint|parallelize t@0|{on}",
        f"pass|midpoint|heuristic|{on}|--moves",
        "pass|midpoint|countdown|--text",
        f"time|midpoint|{on}|--json",
        f"tune|midpoint|{on}|--agent|steepest|--budget|60",
        f"best|midpoint|{on}|--line",
        f"play|midpoint|--line|midpoint|{on}|--code",
        f"time|relu|--shape|16x64|--line|{reversed_}|--json",
        "export|midpoint|--to|taken",
    )  # fmt: skip
    assert packages.out.splitlines()[-1].split() == [
        "abacus", "0.1", "abacus", "reverse_scope", "countdown,", "steepest", "midpoint",
    ]  # fmt: skip
    assert "## Counting\n" in page.out and "In the example `reverse_scope y@0` takes it back." in page.out
    assert "### abacus: an abacus" in page.out and "- `steepest`: the best of all moves" in page.out
    assert json.loads(kernels.out)[-1]["name"] == "midpoint"
    assert [(m["move"], m["family"]) for m in json.loads(moves.out)] == [
        (f"reverse_scope {place}", "counting") for place in ("t@0", "t@1", "z@0", "z@1")
    ]
    assert "is legal: t@1 is unmarked; no two of its iterations conflict." in legal.out
    assert illegal.out.startswith(
        "reverse_scope s#1@1 is not legal. Reversed, two iterations that conflict on s["
    )
    assert "The target abacus knows no parallel scopes." in theirs.out
    assert passed.out.splitlines()[-2:] == ["reverse_scope t@0", "reverse_scope t@1"]
    assert "16 64 z[-{0}+15,-{1}+63] = t[-{0}+15,-{1}+63]*0.5" in countdown.out
    # a sum takes three words, a product as many; three and two of them are far, and each iteration counts on
    steps = 16 * (2 + 64 * (2 + 3 + 3)) + 16 * (2 + 64 * (2 + 3 + 2))
    [entry] = json.loads(timed.out)
    assert (entry["status"], entry["verified"], entry["seconds"]) == ("ok", True, None)
    assert (round(entry["number"]), entry["unit"]) == (steps, "steps of an abacus")
    assert tuned.code == 0 and "faster" in tuned.out and "steps of an abacus" in tuned.err
    assert len(best.out.split()) > 1
    assert line.out.splitlines() == [
        "abacus midpoint",
        "down 16",
        "  down 64",
        *(f"    {words}" for words in ("take x[{0},{1}]", "add y[{0},{1}]", "put t[{0},{1}]")),
        *(f"    {words}" for words in ("take t[{0},{1}]", "times 0.5", "put z[{0},{1}]")),
        "",
    ]
    [entry] = json.loads(on_the_cpu.out)
    assert (entry["status"], entry["verified"]) == ("ok", True)  # compiled, and every element compared
    assert exported.code == 0 and (abacus.place / "taken" / "pyproject.toml").is_file()


def test_the_page_shows_what_the_package_has() -> None:
    files = [path.read_text() for path in ABACUS.rglob("*") if path.suffix in (".py", ".toml", ".line")]
    shown = [
        dedent(block)
        for block in re.findall(r"^ *```(?:python|toml)?\n(.*?)^ *```$", PAGE.read_text(), re.M | re.S)
    ]
    assert len(shown) > 8
    assert [
        block for block in shown if not any(block in file for file in files) and "dojo " not in block
    ] == []


IN_THE_APP = """
import json, sys, time
from agents.passes import play_heuristic
from dojo_core.line import LINES_FOLDER
from dojo_core.moves import apply
from dojo_core.moves.examples import example
from dojo_core.service.wiring import open_service
service = open_service(LINES_FOLDER, play_heuristic, local=True)
player = service.player("somebody")
start = service.board(player)["start"]
def send(**event):
    service.handle(player, "a", [{"seq": time.monotonic_ns(), **event}])
    return service.board(player)
board = send(kind="start", kernel="midpoint", shape="4x8", target=sys.argv[1])
seconds, end = None, time.monotonic() + 60
if board["view"] == "play":
    board = send(kind="play", game=board["game"]["id"], position=0, move="reverse_scope z@1")
    while seconds is None and time.monotonic() < end:
        seconds = service.feed(player)["now"].get("seconds")
        time.sleep(0.02)
service.close()
shown = example("reverse_scope")
print(json.dumps([start, board, seconds, apply(shown.program, shown.move).text]))
"""


@pytest.mark.thorough  # in a process with a package of its own: the command line, above
def test_a_package_plays_in_the_app(abacus: Installed) -> None:
    start, board, seconds, after = json.loads(abacus.run("python", "-c", IN_THE_APP, "abacus"))
    assert start["faults"] == []
    assert {t["name"]: t["words"] for t in start["targets"]}["abacus"] == "an abacus"
    assert "midpoint" in [k["name"] for group in start["groups"] for k in group["kernels"]]
    assert (board["game"]["code"], board["game"]["unit"]) == ("Steps", "cycles")
    assert [text for text, _ in board["code"]["lines"]][6:8] == ["up 4", "  down 8"]
    assert "reverse_scope z@0" in [m["text"] for m in board["moves"]]
    assert seconds == pytest.approx(1e-9 * (4 * (2 + 8 * (2 + 3 + 3)) + 4 * (2 + 8 * (1 + 3 + 2))))
    assert after.splitlines()[-1] == "8 y[-{0}+7] = x[-{0}+7]"  # the example of the docstring, played


BROKEN = {
    "twin": (
        "DOJO_API = 1",
        {"dojo.targets": "abacus = twin:x", "dojo.kernels": "midpoint = twin:x"},
    ),
    "raises": ("1/0", {"dojo.targets": "quipu = raises:x", "dojo.moves": "knot = raises:x"}),
    "older": ("DOJO_API = 0", {"dojo.agents": "grandmaster = older:x"}),
    "wrong": ("x = {}", {"dojo.targets": "sand = wrong:x", "dojo.moves": "Odd-Name = wrong:x"}),
}
FAILS = '''
from dojo_core.moves.scopes import SplitScope
from dojo_core.program.target import Target
from dojo_core.targets.backend import Backend, Words
from dojo_core.moves.examples import WIDE
from dataclasses import replace


class Fails(Backend):
    name = "fails"
    words = Words("a target that fails", "Nothing works there.")
    limits = replace(WIDE, name="fails")

    def generate(self, program, policy):
        raise KeyError("no code")

    def clock(self):
        raise ZeroDivisionError("no clock")


class Clash(SplitScope):
    """Another."""


class Stumble(SplitScope):
    """It stumbles."""

    name = "stumble"

    def candidates(self, context):
        raise RecursionError("candidates")
'''


def package(folder: Path, name: str, text: str, entries: dict[str, str]) -> None:
    """A module with metadata, as an installer leaves it."""
    (folder / f"{name}.py").write_text(text)
    described(folder, name, entries)


def laid_out(folder: Path) -> None:
    """The abacus, as an installer leaves it, without one."""
    (folder / "abacus").symlink_to(ABACUS / "abacus")
    project = tomllib.loads((ABACUS / "pyproject.toml").read_text())["project"]
    groups = project["entry-points"]
    lines = {group: "\n".join(f"{n} = {v}" for n, v in own.items()) for group, own in groups.items()}
    described(folder, "abacus", lines)


def described(folder: Path, name: str, entries: dict[str, str]) -> None:
    """A distribution's metadata."""
    metadata = folder / f"{name}-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("".join(f"[{g}]\n{e}\n" for g, e in entries.items()))


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder of packages that are no good."""
    for name, (text, entries) in BROKEN.items():
        package(tmp_path, name, text, entries)
    moves = "split_scope = fails:Clash\nstumble = fails:Stumble"
    package(tmp_path, "fails", FAILS, {"dojo.targets": "fails = fails:Fails", "dojo.moves": moves})
    return tmp_path


TWIN = "The packages abacus and twin both offer a target named abacus: that of abacus is used."
FAULTS = (
    "The move knot of the package raises cannot be loaded (ZeroDivisionError: division by zero): ",
    "The package wrong offers a move named 'Odd-Name': a name has small letters",
    "The move split_scope of the package fails has the name of one that there is: it has to be renamed.",
    "The move stumble of the package fails failed (RecursionError: candidates): tell its authors.",
)


@pytest.mark.thorough  # test_plugins.py has each fault
def test_packages_that_are_no_good_cost_a_sentence_each(abacus: Installed, beside: Path) -> None:
    listed, shown, moves, why, quipu, timed, tuned = told = said(
        abacus,
        "packages",
        "show|relu|--shape|4x4|--code",
        "moves|relu|--shape|4x4|--target|abacus",
        "why|relu|split_scope y@0 2|--shape|4x4",
        "show|relu|--target|quipu",
        "time|relu|--target|fails",
        "tune|relu|--agent|grandmaster",
        beside=beside,
    )
    assert [each.fault for each in told] == [""] * 7
    assert (listed.code, shown.code, moves.code, why.code) == (0, 0, 0, 0) and "is legal" in why.out
    assert TWIN in listed.err
    assert (
        "split_scope y@0 2" in moves.out and "reverse_scope y@1" in moves.out and "stumble" not in moves.out
    )
    assert [each for each in FAULTS if each not in moves.err] == []
    assert quipu.code == 1 and "The target quipu of the package raises cannot be loaded" in quipu.err
    assert timed.code == 1 and "(ZeroDivisionError: no clock)" in timed.err
    assert "(interface 0, here it is 1): update one of them." in tuned.err


@pytest.mark.thorough  # the command line tells the same, above
def test_the_start_screen_tells_of_packages_that_are_no_good(abacus: Installed, beside: Path) -> None:
    start, board, _, _ = json.loads(abacus.run("python", "-c", IN_THE_APP, "fails", PYTHONPATH=str(beside)))
    assert [
        each for each in (TWIN, FAULTS[0]) if not any(told.startswith(each) for told in start["faults"])
    ] == []
    assert "(KeyError: 'no code')" in board["start"]["errors"]["midpoint"]
    log = (abacus.folder / "home" / "dojo.log").read_text()
    assert "KeyError: 'no code'" in log and "Traceback" in log
