"""All cases in turn: first the heuristic pass on each, then search and comparison, as far as the time goes.

What is known stands in a document beside the library (``operators.json``), written after each step;
measurements lie in the records and searches in their logs. So a call that was killed is gone on with by the
same call. Whatever fails is the row's sentence, and the others go on.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from agents.agent import Agent, Event
from agents.operators.compared import RIVALS, Judgement, Others, absent
from agents.operators.listed import Case, Operator
from agents.operators.node import Made, NotImported, Refusal, made
from agents.operators.page import page
from agents.operators.tuned import NotTuned, best_choice, first, search
from agents.run_log import RunBusy
from dojo_core.bounded_json import NotJson, read_object
from dojo_core.codegen.code import NotGeneratable
from dojo_core.export import Choice, Library, NotExported, library, write
from dojo_core.files import replace_text
from dojo_core.from_onnx.operators.beyond import BEYOND
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import seconds_text
from dojo_core.measure.records import Records
from dojo_core.targets.cpu.measurer import Measurer

log = logging.getLogger(__name__)

FORMAT = 1  # of the document
TOLD = 0.98  # of the time told last: a search tells what is faster than that
LARGEST = 64 << 20  # characters of it
DOCUMENT, PAGE, FOLDER = "operators.json", "operators.html", "library"
OURS = "It could not be made: a fault of ours, noted in the log."


class NotResumable(ValueError):
    """A document that cannot be gone on with; ``str()`` is a sentence that says what to do."""


@dataclass
class Row:
    """What is known of a case. ``status``: waiting, ok, refused (no program), failed (none that may be
    exported).

    ``start``, ``heuristic``, ``best``: seconds of verified programs. ``best_program``: the hash of what is
    exported, ``source`` where it comes from. ``programs``: measured by the search, ``whole``: its budget is
    spent. ``took``: seconds by step, of all calls together. ``report``: the last comparison, of the program
    ``compared``.
    """

    operator: str
    shape: str
    about: str
    status: str = "waiting"
    reason: str = ""
    begun: str = ""  # hash of the start program
    costly: list[str] = field(default_factory=list)
    judgement: dict[str, str] | None = None
    start: float | None = None
    heuristic: float | None = None
    best: float | None = None
    best_program: str = ""
    moves: int | None = None
    source: str = ""
    searched: str = ""  # agent, budget and policy of the search
    programs: int = 0
    whole: bool = False
    exported: str = ""  # why it is not in the library, where it is not
    compared: str = ""
    report: dict[str, Any] | None = None
    took: dict[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.operator} {self.shape}"

    @property
    def judged(self) -> str:
        return str(Judgement(**self.judgement)) if self.judgement else ""

    def refuse(self, status: str, reason: str) -> None:
        self.status, self.reason = status, " ".join(reason.split())

    def gain(self) -> str:
        """What was gained so far, in a line."""
        steps = [
            ("start", self.start), ("pass", self.heuristic),
            (f"search ({self.programs})", self.best if self.programs else None),
        ]  # fmt: skip
        told = " → ".join(f"{name} {seconds_text(s)}" for name, s in steps if s is not None)
        gained = f", {self.start / self.best:.1f}×" if self.start and self.best else ""
        return told + gained

    def entry(self, name: str) -> dict[str, Any]:
        """An entry of the comparison, empty where it has none."""
        entries = (self.report or {}).get("entries", ())
        return next((dict(each) for each in entries if each["entry"] == name), {})


@dataclass(frozen=True)
class Plan:
    """What a call does. ``budget``: programs that a search measures for each case (0: none); ``seconds``: in
    all, shared evenly among the cases that are left; ``rounds`` of a comparison (0: none)."""

    folder: Path
    agent: Agent
    policy: str = "reassoc"
    budget: int = 200
    seconds: float | None = None
    rounds: int = 3
    name: str = "onnx_operators"

    @property
    def search(self) -> str:
        return f"{self.agent.name}, {self.budget} programs, {self.policy}"


class TunedLibrary:
    """The library in the making. ``say`` hears a line at each step."""

    def __init__(
        self,
        known: Mapping[str, Operator],
        wanted: Sequence[Operator],
        plan: Plan,
        records: Records,
        measurer: Measurer,
        others: Others,
        say: Callable[[str], None],
    ) -> None:
        self.known, self.wanted, self.plan = known, wanted, plan
        self.records, self.measurer, self.others, self.say = records, measurer, others, say
        self.cases = {case.title: case for operator in known.values() for case in operator.cases}
        self.rows = {row.title: row for row in _read(plan.folder / DOCUMENT)}
        self.made: dict[str, Made] = {}
        self.began = time.monotonic()

    def run(self) -> None:
        """All of it. What was finished is written, also where it is interrupted."""
        try:
            rows = [self._row(case) for operator in self.wanted for case in operator.cases]
            self.write()
            for number, row in enumerate(rows, 1):
                if self._left() == 0.0:
                    break
                if self._begin(row):
                    told = row.gain() if row.status == "ok" else row.reason
                    self.say(f"[{number}/{len(rows)}] {row.title}: {told}")
                    self.write()
            alive = [row for row in rows if row.status == "ok" and not self._done(row)]
            for number, row in enumerate(alive):
                left = self._left()
                if left == 0.0:
                    break
                until = None if left is None else time.monotonic() + left / (len(alive) - number)
                self._improve(row, until, f"{number + 1}/{len(alive)}")
            waiting = [
                row for row in rows if row.status == "waiting" or (row.status == "ok" and not self._done(row))
            ]
            if waiting:
                self.say(f"{len(waiting)} of {len(rows)} are not done: the same command goes on with them.")
        finally:
            self.write()
            self.say("Writing the library …")
            self.export()
            self.write()

    # ------------------------------------------------------------------ one case

    def _row(self, case: Case) -> Row:
        row = self.rows.get(case.title)
        if row is None or row.about != case.about:
            row = self.rows[case.title] = Row(case.operator, case.shape, case.about)
        return row

    def _begin(self, row: Row) -> bool:
        """Import it, have it judged, verify and time its start and what the pass plays; False where all of
        that is known."""
        policy = self.plan.policy
        with self._guarded(row, "pass"):
            case = self.made[row.title] = made(self.cases[row.title])
            begun = f"{case.program.hash} {policy}"
            if row.begun == begun and row.status == "ok":
                return False
            row.__dict__.update(Row(row.operator, row.shape, row.about, begun=begun, took=row.took).__dict__)
            row.costly = list(case.costly)
            judgement = self.others.judged(case)
            row.judgement = asdict(judgement)
            if judgement.status == "wrong_result":
                raise NotTuned(
                    f"It {judgement} What it computes is not what the standard says: please report it."
                )
            came = first(case, policy, self.measurer)
            row.start, row.heuristic = came.start, came.heuristic
            row.reason = came.why
            _note(row, best_choice(case, policy, self.records))
            row.status = "ok"
        return True

    def _improve(self, row: Row, until: float | None, place: str) -> None:
        case = self.made[row.title]
        if self.plan.budget and not self._is_searched(row) and row.heuristic is not None:
            with self._guarded(row, "search", fatal=False):
                told = row.best

                def on_event(event: Event) -> None:
                    nonlocal told
                    row.programs = max(row.programs, event.evaluation)
                    best = event.best.seconds if event.best is not None else None
                    if best is not None and (told is None or best < TOLD * told):
                        told = best
                        after = f"{event.evaluation} of {self.plan.budget} programs"
                        self.say(f"  {row.title}: {seconds_text(best)} after {after}")

                came = search(
                    case, self.plan.policy, self.plan.agent, self.plan.budget, self.measurer, until, on_event
                )
                row.programs, row.whole, row.searched = came.programs, came.whole, self.plan.search
            with self._guarded(row, "export", fatal=False):
                _note(row, best_choice(case, self.plan.policy, self.records))
        if self.plan.rounds and self._is_to_be_compared(row):
            with self._guarded(row, "compare", fatal=False):
                choice = best_choice(case, self.plan.policy, self.records)
                row.report = self.others.compared(
                    case, choice.program, self.plan.policy, self._rivals(), self.plan.rounds, self.records,
                    self.measurer,
                )  # fmt: skip
                row.compared = row.best_program
        self.say(f"[{place}] {row.title}: {row.gain()}{self._beside(row)}")
        self.write()

    def _is_searched(self, row: Row) -> bool:
        return row.whole and row.searched == self.plan.search

    def _is_to_be_compared(self, row: Row) -> bool:
        rivals = self._rivals()
        known = {each["entry"] for each in (row.report or {}).get("entries", ())}
        return bool(rivals) and (row.compared != row.best_program or not known.issuperset(rivals))

    def _done(self, row: Row) -> bool:
        searched = not self.plan.budget or row.heuristic is None or self._is_searched(row)
        return searched and not (self.plan.rounds and self._is_to_be_compared(row))

    def _rivals(self) -> list[str]:
        return [name for name in RIVALS if name not in absent()]

    def _beside(self, row: Row) -> str:
        told = [
            f"{RIVALS[name].name} {seconds_text(entry['min'])}"
            for name in RIVALS
            if (entry := row.entry(name)).get("min") is not None
        ]
        return f" · {', '.join(told)}" if told else ""

    def _left(self) -> float | None:
        """Seconds until the call's end; None where it has none."""
        if self.plan.seconds is None:
            return None
        return max(0.0, self.began + self.plan.seconds - time.monotonic())

    @contextmanager
    def _guarded(self, row: Row, step: str, fatal: bool = True) -> Iterator[None]:
        """A step of a row: what goes wrong is its sentence, how long it took is noted. ``fatal``: without
        this step the row has nothing."""
        began = time.monotonic()
        status = "failed" if fatal else row.status
        try:
            yield
        except (Refusal, NotImported) as refusal:
            row.refuse("refused", str(refusal))
        except (NotTuned, NotExported, NotGeneratable, RunBusy) as fault:
            row.refuse(status, str(fault))
        except MemoryError:
            row.refuse(status, "It needs more memory than there is.")
        except Exception:
            log.exception("%s of %s", step, row.title)
            row.refuse(status, OURS)
        finally:
            row.took[step] = round(row.took.get(step, 0.0) + time.monotonic() - began, 2)

    # ------------------------------------------------------------------ what is written

    def export(self) -> Library | None:
        """The library of all rows that are right, in the folder; None where there is none yet."""
        choices: list[Choice] = []
        for operator in self.known.values():
            choices += self._choices([self.rows[c.title] for c in operator.cases if c.title in self.rows])
        if not choices:
            return None
        whole = library(choices, self.plan.name)
        write(whole, self.plan.folder / FOLDER)
        return whole

    def _choices(self, rows: Sequence[Row]) -> list[Choice]:
        """What of an operator a library can hold; a row's sentence where it cannot."""
        fit: list[Choice] = []
        for row in rows:
            if row.status != "ok" or not row.best_program:
                continue
            with self._guarded(row, "export", fatal=False):
                case = self.made.get(row.title) or made(self.cases[row.title])
                choice = replace(best_choice(case, self.plan.policy, self.records), shape=row.shape)
                row.exported = ""
                _note(row, choice)  # a search may have been stopped in the middle
                try:
                    library([*fit, choice], self.plan.name)
                except (NotExported, NotGeneratable, ValueError) as refusal:
                    row.exported = str(refusal)
                    continue
                fit.append(choice)
        return fit

    def document(self) -> dict[str, Any]:
        machine = this_machine()
        rows = sorted(self.rows.values(), key=lambda row: row.operator.lower())
        left_out = {o.name: o.reason for o in self.known.values() if o.reason}
        left_out |= {name: " ".join(reason) for name, reason in BEYOND.items()}
        return {
            "format": FORMAT,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": machine.summary,
            "fingerprint": machine.fingerprint,
            "plan": {
                "search": self.plan.search if self.plan.budget else "none",
                "minutes": None if self.plan.seconds is None else self.plan.seconds / 60,
                "rounds": self.plan.rounds,
            },
            "absent": dict(absent()) if self.plan.rounds else {},
            "left_out": dict(sorted(left_out.items(), key=lambda item: item[0].lower())),
            "rows": [asdict(row) for row in rows],
        }

    def write(self) -> None:
        """The document and the page."""
        document = self.document()
        self.plan.folder.mkdir(parents=True, exist_ok=True)
        replace_text(self.plan.folder / DOCUMENT, json.dumps(document, indent=1) + "\n")
        replace_text(self.plan.folder / PAGE, page(document))


def _note(row: Row, choice: Choice) -> None:
    """What of a case is exported."""
    row.best = choice.record.seconds if choice.record is not None else None
    row.best_program, row.source = choice.program.hash, choice.source
    row.moves = None if choice.moves is None else len(choice.moves)


def _read(file: Path) -> list[Row]:
    """The rows of an earlier call. Raises NotResumable."""
    try:
        with file.open(encoding="utf-8") as opened:
            document = read_object(opened.read(LARGEST), LARGEST)
        rows = [Row(**row) for row in document["rows"]]
        form, fingerprint, machine = document["format"], document["fingerprint"], document["machine"]
    except FileNotFoundError:
        return []
    except (NotJson, KeyError, TypeError, UnicodeDecodeError):
        raise NotResumable(f"{file} is damaged: move it away, or name another folder with --to.") from None
    if form != FORMAT:
        raise NotResumable(f"{file} is of another version: move it away, or name another folder with --to.")
    if fingerprint != this_machine().fingerprint:
        raise NotResumable(f"{file} is of another machine ({machine}): name another folder with --to.")
    return rows
