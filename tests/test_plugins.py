"""Entry points as plugins.py finds them: which are used, and the sentence for each that is not."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import typer

from agents import passes, players
from agents.agent import Agent
from agents.passes import Pass
from dojo_core import checkout, kernels, plugins
from dojo_core.cli.terminal import plain_errors
from dojo_core.game import GameFull
from dojo_core.kernels import packages as kernel_packages
from dojo_core.moves import packages
from dojo_core.moves.core import Parameter, Transformation
from dojo_core.moves.examples import WIDE
from dojo_core.moves.packages import Guarded
from dojo_core.moves.places import NoSuchPlace
from dojo_core.moves.scopes import SplitScope
from dojo_core.plugins import Extended, Unusable
from dojo_core.targets.guarded import TargetFailed

GROUP = "dojo.moves"


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process that has asked for nothing yet; afterwards as before."""
    monkeypatch.setattr(plugins, "_loaded", {})
    monkeypatch.setattr(plugins, "_failures", {})
    monkeypatch.setattr(plugins, "_tables", [])
    yield
    monkeypatch.undo()
    forget()


def forget() -> None:
    plugins._installed.cache_clear()
    plugins.group.cache_clear()


def installed(monkeypatch: pytest.MonkeyPatch, *entries: tuple[str, str, str], group: str = GROUP) -> None:
    """``entries``: a package, a name, and what it names."""
    found = []
    for package, name, value in entries:
        entry = EntryPoint(name, value, group)
        vars(entry)["dist"] = SimpleNamespace(name=package)
        found.append(entry)
    monkeypatch.setattr(checkout, "entry_points", lambda: EntryPoints(found))
    forget()


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package's module."""
    module = ModuleType("brought")
    monkeypatch.setitem(sys.modules, "brought", module)
    return module


class Turn(SplitScope):
    """A move by another name."""

    name = "turn"


def test_ours_stand_first_then_others_by_package(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(
        monkeypatch, ("b", "one", "b:x"), ("a", "two", "a:x"), ("dojo", "zero", "z:x"), ("dojo", "y", "y:x")
    )
    assert plugins.names(GROUP) == ("zero", "y", "two", "one")
    assert plugins.faults() == ()
    assert (plugins.package(GROUP, "two"), plugins.package(GROUP, "not there")) == ("a", "dojo")
    assert plugins.brought() == {"dojo": {GROUP: ["zero", "y"]}, "a": {GROUP: ["two"]}, "b": {GROUP: ["one"]}}


def test_of_two_with_one_name_the_first_is_used(monkeypatch: pytest.MonkeyPatch, brought: ModuleType) -> None:
    vars(brought).update(first=1, other=2)
    installed(monkeypatch, ("b", "turn", "brought:other"), ("a", "turn", "brought:first"))
    assert plugins.load(GROUP, "turn") == 1
    assert plugins.faults() == (
        "The packages a and b both offer a move named turn: that of a is used. Uninstall one of them.",
    )
    installed(monkeypatch, ("a", "turn", "brought:other"), ("dojo", "turn", "brought:first"))
    assert plugins.group(GROUP).entries["turn"].value == "brought:first"


def test_one_that_is_found_on_two_paths_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ("a", "turn", "brought:x"), ("a", "turn", "brought:x"))
    assert plugins.names(GROUP) == ("turn",) and plugins.faults() == ()


@pytest.mark.parametrize("name", ["Turn", "turn-round", "", "2nd", "x" * 32, "a b", "é"])
def test_a_name_is_an_identifier_of_small_letters(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    installed(monkeypatch, ("a", name, "brought:x"))
    assert plugins.names(GROUP) == ()
    assert plugins.faults()[0].startswith(f"The package a offers a move named {name!r:.40}: a name has small")


def test_a_class_is_made_an_object_once(monkeypatch: pytest.MonkeyPatch, brought: ModuleType) -> None:
    vars(brought).update(Turn=Turn)
    installed(monkeypatch, ("a", "turn", "brought:Turn"))
    made = plugins.load(GROUP, "turn", Transformation)
    assert isinstance(made, Turn) and plugins.load(GROUP, "turn") is made
    with pytest.raises(KeyError):
        plugins.load(GROUP, "no such move")


def refusal() -> str:
    """Why the move turn is not used."""
    with pytest.raises(Unusable) as refused:
        plugins.load(GROUP, "turn", Transformation)
    assert plugins.faults() == (str(refused.value),)
    assert plugins.usable(GROUP, Transformation) == {}
    return str(refused.value)


def test_a_package_that_raises_as_it_loads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    installed(monkeypatch, ("a", "turn", "raising:Turn"))
    (tmp_path / "raising.py").write_text("raise SystemExit('good bye')")
    with caplog.at_level(logging.ERROR, "dojo_core.plugins"):
        assert refusal() == (
            "The move turn of the package a cannot be loaded (SystemExit: good bye): "
            "tell its authors, or uninstall it."
        )
    assert "Traceback" in caplog.text


def test_a_package_for_another_version_is_not_even_loaded(
    monkeypatch: pytest.MonkeyPatch, brought: ModuleType
) -> None:
    brought.DOJO_API = plugins.API + 1
    installed(monkeypatch, ("a", "turn", "brought:NotThere"))
    assert refusal() == (
        "The move turn of the package a was made for another version of the Dojo "
        f"(interface {plugins.API + 1}, here it is {plugins.API}): update one of them."
    )


def test_an_object_of_another_kind_or_name(monkeypatch: pytest.MonkeyPatch, brought: ModuleType) -> None:
    vars(brought).update(x={}, Split=SplitScope)
    installed(monkeypatch, ("a", "turn", "brought:x"))
    assert refusal() == (
        "The move turn of the package a is of the type dict, not Transformation: tell its authors."
    )
    monkeypatch.setattr(plugins, "_loaded", {})
    monkeypatch.setattr(plugins, "_failures", {})
    installed(monkeypatch, ("a", "turn", "brought:Split"))
    assert refusal() == "The move turn of the package a calls itself 'split_scope': tell its authors."


def test_nothing_replaces_what_there_is(monkeypatch: pytest.MonkeyPatch, brought: ModuleType) -> None:
    vars(brought).update(Turn=Turn, Split=SplitScope)
    installed(monkeypatch, ("a", "turn", "brought:Turn"), ("a", "split_scope", "brought:Split"))
    found = plugins.added(GROUP, Transformation, {"split_scope": None})
    assert list(found) == ["turn"]
    assert plugins.faults() == (
        "The move split_scope of the package a has the name of one that there is: it has to be renamed.",
    )


def test_a_table_asks_packages_when_it_is_looked_into() -> None:
    asked: list[int] = []

    def more(own: object) -> dict[str, int]:
        asked.append(len(table))  # as a package may as it is loaded
        return {"theirs": 2}

    table = Extended({"ours": 1}, more)
    table["later"] = 3
    assert asked == []
    assert (list(table), table["theirs"], "theirs" in table, len(table)) == (
        ["ours", "later", "theirs"],
        2,
        True,
        3,
    )
    assert asked == [2]
    table["new"] = 4
    assert dict(table) == {"ours": 1, "later": 3, "theirs": 2, "new": 4}


class Raises(Turn):
    """A move all of whose methods raise."""

    def candidates(self, context):
        yield from super().candidates(context)
        raise KeyError("candidates")

    def plan(self, context, arguments):
        raise KeyError("plan")

    def inverse(self, context, arguments, result):
        raise KeyError("inverse")

    def enablers(self, context, arguments, refusal):
        raise KeyError("enablers")


def test_a_move_that_raises_is_refused_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from dojo_core.moves.legality import context
    from dojo_core.moves.notation import read_arguments
    from dojo_core.program.text import parse

    installed(monkeypatch, ("a", "turn", "brought:Raises"))
    here = context(parse("kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = x[{0}]\n"), WIDE)
    move = Guarded(Raises())
    assert list(move.candidates(here)) == list(SplitScope().candidates(here))
    arguments = read_arguments(move, ["y@0", "2"])
    refused = move.plan(here, arguments)
    told = "The move turn of the package a failed (KeyError: 'plan'): tell its authors."
    assert (refused.code, refused.sentence) == ("move-failed", told)
    assert move.inverse(here, arguments, here.program) is None
    assert list(move.enablers(here, arguments, refused)) == []
    # one sentence is enough of one move
    assert len(plugins.faults()) == 1
    monkeypatch.setattr(Raises, "plan", lambda *_: None)
    assert "(TypeError: its plan is of the type NoneType)" in move.plan(here, arguments).sentence
    with pytest.raises(NoSuchPlace):  # which is no fault of a move
        Guarded(Turn()).plan(here, read_arguments(move, ["z@0", "2"]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"__doc__": None},
        {"family": "of my own"},
        {"worst_inputs": ("no such pattern",)},
        {"parameters": (Parameter("scope", "no such kind"),)},
        {"parameters": None},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_move_that_is_none_is_left_out(
    monkeypatch: pytest.MonkeyPatch, brought: ModuleType, wrong: dict[str, object]
) -> None:
    """Lists and pages ask for all of this of every move."""
    vars(brought).update(Turn=type("Turn", (Turn,), {"__doc__": Turn.__doc__, **wrong}))
    installed(monkeypatch, ("a", "turn", "brought:Turn"))
    assert packages.brought({}) == {}
    assert plugins.faults()[0].startswith("The move turn of the package a failed (")


def test_what_a_move_of_a_package_makes_is_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """No edit, which V2 and V3 may believe unseen."""
    from dojo_core.moves.legality import context
    from dojo_core.moves.notation import read_arguments
    from dojo_core.program.text import parse

    installed(monkeypatch, ("a", "turn", "brought:Turn"))
    here = context(parse("kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = x[{0}]\n"), WIDE)
    move = Guarded(Turn())
    made = move.plan(here, read_arguments(move, ["y@0", "2"]))
    assert made.text.splitlines()[-1] == "4 2 y[{0}*2+{1}] = x[{0}*2+{1}]"


def test_a_kernel_is_tried_and_what_it_raises_later_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, brought: ModuleType
) -> None:
    relu = kernels.get("relu")

    def text(shape: tuple[int, ...]) -> str:
        return (
            relu.text(shape).replace("kernel relu", "kernel ramp") if shape == relu.shapes[0] else text[shape]
        )

    vars(brought).update(
        ramp=replace(relu, name="ramp", text=text),
        other=replace(relu, name="other"),
        empty=replace(relu, name="empty", shapes=()),
    )
    entries = [("a", name, f"brought:{name}") for name in ("ramp", "other", "empty")]
    installed(monkeypatch, *entries, group="dojo.kernels")
    found = kernel_packages.brought({})
    assert list(found) == ["ramp"]
    assert [told.partition("(")[2] for told in plugins.faults()] == [
        "ValueError: its text is of a kernel relu): tell its authors.",
        "IndexError: tuple index out of range): tell its authors.",
    ]
    assert found["ramp"].program(relu.shapes[0]).name == "ramp"
    with pytest.raises(ValueError, match=r"The kernel ramp of the package a failed \(TypeError: "):
        found["ramp"].program((4, 4))


def test_what_a_pass_or_an_agent_raises_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, brought: ModuleType
) -> None:
    def falls(sketch: object) -> None:
        raise KeyError("a pass")

    def full(sketch: object) -> None:
        raise GameFull("A game is full.")

    def gives_up(task: object, budget: object, rng: object) -> Iterator[list[object]]:
        yield []
        raise KeyError("an agent")

    vars(brought).update(
        falls=Pass("falls", "it falls", falls),
        full=Pass("full", "it plays for ever", full),
        gives_up=Agent("gives_up", "it gives up", gives_up),
        naive=Pass("naive", "another", falls),
    )
    entries = [("a", name, f"brought:{name}") for name in ("falls", "full", "gives_up", "naive")]
    installed(monkeypatch, *entries, group="dojo.agents")
    found = passes._brought(passes.PASSES.own)
    assert list(found) == ["falls", "full"]
    with pytest.raises(Unusable, match=r"The agent falls of the package a failed \(KeyError: 'a pass'\)"):
        found["falls"].run(None)
    with pytest.raises(GameFull):
        found["full"].run(None)
    monkeypatch.setattr(players, "PASSES", found)
    agents = players._brought(players.AGENTS.own)
    assert list(agents) == ["falls", "full", "gives_up"]
    proposals = agents["gives_up"].strategy(None, None, None)
    next(proposals)
    with pytest.raises(
        Unusable, match=r"The agent gives_up of the package a failed \(KeyError: 'an agent'\)"
    ):
        proposals.send([])


def test_the_log_has_what_the_terminal_has_not(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Python prints what no handler takes; the command line has none."""
    monkeypatch.setattr(logging.getLogger("dojo_core"), "propagate", False)
    monkeypatch.setattr(logging.getLogger("dojo_core"), "handlers", [])
    installed(monkeypatch, ("a", "turn", "not_there:Turn"))
    assert "cannot be loaded (ModuleNotFoundError" in refusal()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("fault", [Unusable("Told."), TargetFailed("Told.")])
def test_a_command_tells_a_sentence(fault: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        raise fault

    with pytest.raises(typer.Exit):
        plain_errors(command)()
    assert capsys.readouterr().err == "Told.\n"


def test_a_checkout_that_is_not_installed_has_its_own_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "entry_points", lambda: EntryPoints([]))
    forget()
    assert {"cpu", "cuda", "snitch"} <= set(plugins.names("dojo.targets"))
    assert plugins.package("dojo.targets", "cuda") == "dojo"
    assert plugins.load("dojo.targets", "cpu").name == "cpu"
