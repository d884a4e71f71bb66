"""A target that raises what it never should, as everybody else sees it."""

from __future__ import annotations

import sys
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from dojo_core import plugins
from dojo_core.bench.contest import BenchFailed, Contest, contest
from dojo_core.cli import app
from dojo_core.codegen.code import NotGeneratable
from dojo_core.game import Game
from dojo_core.measure.clock import Clock
from dojo_core.measure.database import DatabaseFault
from dojo_core.measure.measurement import Measurement, Workload
from dojo_core.moves.examples import WIDE
from dojo_core.program.marks import mark_fault
from dojo_core.program.target import Target
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets import registry
from dojo_core.targets.backend import Backend, Words
from dojo_core.targets.guarded import Guarded, TargetFailed
from dojo_core.targets.registry import backend

PROGRAM = parse("kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = x[{0}]\n")
TOLD = "The target odd of the package dojo failed (KeyError: 'odd'): tell its authors."


class Odd(Backend):
    """``fault``: what everything raises but for the limits at first."""

    name = "odd"
    words = Words("an odd target", "It raises.")

    def __init__(self, fault: Exception) -> None:
        self.fault = fault
        self.asked = 0

    @property
    def limits(self):
        self.asked += 1
        if self.asked > 1:  # looked at as the target is taken
            raise self.fault
        return replace(WIDE, name="odd")

    def generate(self, program, policy):
        raise self.fault

    def clock(self):
        raise self.fault

    def measurer(self, records=None):
        raise self.fault

    def assembly(self, program, policy):
        raise self.fault

    @property
    def lines(self) -> Path:
        raise self.fault

    def report(self, game, all_moves):
        raise self.fault

    def machine(self, details):
        raise self.fault

    @property
    def told(self) -> str:
        raise self.fault

    def on(self, machine):
        raise self.fault

    def bring(self, machine, told):
        raise self.fault

    def machines(self):
        raise self.fault

    def learn(self, records):
        raise self.fault


class Measures(Odd):
    """It raises as it measures."""

    def measurer(self, records=None):
        return self

    def measure(self, *_, **__):
        raise self.fault

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_failures", {})


def test_whatever_it_raises_is_a_sentence() -> None:
    target = Guarded(Odd(KeyError("odd")))
    game = Game.new(PROGRAM)
    for ask in (
        lambda: target.limits,
        lambda: target.lines,
        lambda: target.passes,
        lambda: target.measurer(),
        lambda: target.assembly(PROGRAM, "reassoc"),
        lambda: target.report(game, False),
        lambda: target.told,
        lambda: target.on("there"),
        lambda: target.bring("there", "{}"),
    ):
        with pytest.raises(TargetFailed) as failed:
            ask()
        assert str(failed.value) == TOLD
    with pytest.raises(NotGeneratable) as refused:
        target.generate(PROGRAM, "reassoc")
    assert str(refused.value) == TOLD
    assert target.clock() == Clock("missing", missing=TOLD)
    assert target.machines() == () and target.learn(None) == {}  # what lists and the app's start ask
    with pytest.raises(ValueError, match="no details of odd"):
        target.machine("{}")
    assert plugins.faults()[-1:] == (TOLD,)


def test_a_measurer_is_guarded_as_well() -> None:
    with Guarded(Measures(KeyError("odd"))).measurer() as measurer, pytest.raises(TargetFailed) as failed:
        measurer.measure(Workload(PROGRAM), [PROGRAM])
    assert str(failed.value) == TOLD


def test_a_measurer_need_not_tell_of_each_as_it_comes() -> None:
    """One with a ``measure`` of its own, which derives from nothing of ours."""

    class Own(Measures):
        def measure(self, workload, programs, *_, **__):
            return [Measurement(program.hash, "", "verified", verified=True) for program in programs]

    heard: list[Measurement] = []
    with Guarded(Own(KeyError("odd"))).measurer() as measurer:
        measured = measurer.measure(Workload(PROGRAM), [PROGRAM], on_result=heard.append)
    assert heard == measured and measured[0].verified


@pytest.fixture
def rivals(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module that the odd target says to have its contest."""
    module = ModuleType("odd_rivals")
    monkeypatch.setitem(sys.modules, "odd_rivals", module)
    odd = Odd(KeyError("odd"))
    odd.rivals = "odd_rivals:CONTEST"
    monkeypatch.setitem(registry._usable, "odd", Guarded(odd))
    return module


def test_what_it_is_held_against_is_guarded_as_well(rivals: ModuleType) -> None:
    def raises(*_: object) -> Any:
        raise KeyError("odd")

    rivals.CONTEST = Contest({}, "Its limit.", "Its panels.", limits=raises, run=raises, fault=raises)
    held = contest("odd")
    assert held is not None and held.limit == "Its limit."
    assert held.fault() == held.limits({"limits": {}}) == TOLD
    with pytest.raises(TargetFailed) as failed:
        held.run()
    assert str(failed.value) == TOLD
    rivals.CONTEST = replace(rivals.CONTEST, run=lambda: None)
    with pytest.raises(TargetFailed, match="what its rivals came to is no report"):
        contest("odd").run()
    for fault in (BenchFailed("It is slow."), OSError("disk")):
        rivals.CONTEST = replace(rivals.CONTEST, run=partial(raising, fault))
        with pytest.raises(type(fault)) as raised:
            contest("odd").run()
        assert raised.value is fault


def raising(fault: Exception) -> None:
    raise fault


def test_dojo_bench_tells_in_a_sentence_what_rivals_raise(rivals: ModuleType) -> None:
    def benched() -> str:
        ran = CliRunner().invoke(app, ["bench", "softmax", "--target", "odd"])
        assert ran.exit_code == 1 and isinstance(ran.exception, SystemExit)
        return " ".join(ran.stderr.split())

    assert "The target odd of the package dojo failed (AttributeError: module 'odd_rivals'" in benched()
    rivals.CONTEST = "a contest"
    assert "its rivals are of the type str): tell its authors." in benched()


@pytest.mark.parametrize("fault", [ValueError("not here"), OSError("disk"), DatabaseFault("records")])
def test_what_its_interface_lets_it_raise_goes_through(fault: Exception) -> None:
    target = Guarded(Odd(fault))
    for ask in (target.measurer, lambda: target.assembly(PROGRAM, "strict")):
        with pytest.raises(type(fault)) as raised:
            ask()
        assert raised.value is fault
    assert plugins.faults() == ()


def test_code_whose_nodes_are_not_its_lines_is_refused() -> None:
    class Short(Odd):
        def generate(self, program, policy):
            generated = backend("cpu").generate(program, policy)
            return replace(generated, nodes=generated.nodes[:-1])

    with pytest.raises(NotGeneratable, match="not one node, or None, for each line"):
        Guarded(Short(KeyError("odd"))).generate(PROGRAM, "reassoc")


def test_a_clock_is_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Odd, "clock", lambda self: "noon")
    clock = Guarded(Odd(KeyError("odd"))).clock()
    assert clock.kind == "missing" and "its clock is of the type str" in clock.missing


def test_a_target_has_words_and_what_has_its_name() -> None:
    odd = Odd(KeyError("odd"))
    assert copy(Guarded(odd)).name == "odd"
    odd.words = "odd"
    with pytest.raises(TypeError, match="its words are no Words"):
        Guarded(odd)
    odd = Odd(KeyError("odd"))
    odd.exported = replace(backend("arm").exported, word="elsewhere")
    with pytest.raises(TypeError, match="for exports is no InstructionSet named odd"):
        Guarded(odd)
    odd = Odd(KeyError("odd"))
    odd.name = "other"
    with pytest.raises(TypeError, match="its limits are no Target named other"):
        Guarded(odd)


@dataclass(frozen=True)
class Unhashable(Target):
    """The dataclass takes the hash away that a Target has."""


class Faulty(Target):
    """Its own condition is no good. ``found``: what it gives, or raises."""

    def __init__(self, found: object) -> None:
        super().__init__(**vars(replace(WIDE, name="odd")))
        object.__setattr__(self, "found", found)

    def fault(self, program: Program, policy: str) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


class Limited(Odd):
    """A target of these limits."""

    def __init__(self, limits: Target) -> None:
        super().__init__(KeyError("odd"))
        self.given = limits

    @property
    def limits(self) -> Target:
        return self.given

    measurer = Backend.measurer

    def clock(self) -> Clock:
        return Clock("modelled")


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (Unhashable(**vars(replace(WIDE, name="odd"))), "its class needs a method __hash__"),
        (
            replace(WIDE, name="odd", locations=("heap", "scratch")),
            "the location 'scratch': there are heap, stack,",
        ),
        (replace(WIDE, name="odd", marks=frozenset("uz")), "the mark 'z': there are u, p, v,"),
    ],
)
def test_limits_that_would_fail_in_a_game_are_told_as_it_is_taken(limits: Target, told: str) -> None:
    with pytest.raises(TypeError) as failed:
        Guarded(Limited(limits))
    assert told in str(failed.value)


def test_a_clock_without_a_measurer_is_a_sentence() -> None:
    with pytest.raises(TargetFailed) as failed:
        Guarded(Limited(replace(WIDE, name="odd"))).measurer()
    assert "it has a clock, and no measurer" in str(failed.value)


@pytest.mark.parametrize(
    ("found", "told"), [(KeyError("odd"), "KeyError: 'odd'"), ("no good", "is of the type str, not Fault")]
)
def test_a_condition_of_its_own_that_is_no_good_is_a_fault(
    found: object, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises((KeyError, TypeError)):  # of the Dojo's own: to be mended
        mark_fault(PROGRAM, Faulty(found), "reassoc")
    monkeypatch.setattr(plugins, "package", lambda *_: "odd")
    fault = mark_fault(PROGRAM, Faulty(found), "reassoc")
    assert fault is not None and told in fault.sentence
