"""Broken texts for as long as asked: ``python -m tests.fuzz SECONDS [SEED]``, or ``make fuzz SECONDS=600``.

Texts of programs, moves, lines, recipes and games are damaged and read, and so are links, lessons, records
(as lines, packed, and as databases), journals, logs of runs, benches, comparisons, cost models, messages to
workers, evidence and the events of a page. Only the documented exceptions may come out, quickly; what is
read must print to a text that reads back as the same. Prints the seed, the texts tried, how many were read,
the slowest, and every finding; ends with 1 where there is one.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import logging
import random
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from agents import comparison, curves
from agents.jobs.journal import Journal
from agents.jobs.recording import RECORDINGS
from agents.run_log import RunKey, RunLog
from agents.scale.wire import Answer, OtherVersion, Request
from agents.search import cost_model
from dojo_core import IllegalMove, MoveSyntax, TextError, kernels, parse
from dojo_core.bounded_json import NotJson, read_json, read_object
from dojo_core.game import Game
from dojo_core.line import LINES_FOLDER, read_line, recorded_lines
from dojo_core.measure import evidence
from dojo_core.measure.exchange import NoRecord, file_lines, from_line, take_in, to_line
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.measure.records import Records, SavedGame
from dojo_core.moves import REGISTRY, parse_move
from dojo_core.program.text import with_provenance
from dojo_core.recipes import RECIPES, read_recipe
from dojo_core.school.lesson import read_lesson
from dojo_core.school.prose import Terms
from dojo_core.school.school import LESSONS_FOLDER
from dojo_core.service.events import sound
from dojo_core.sharing import _COMMON, MARK, BadLink, line_text, open_link, open_text
from dojo_core.study.times import Times, read_times, write_times
from tests.programs import random_program
from tests.test_exchange import measured

SLOW = 2.0  # seconds of processor time for one text
WORDS = [
    "kernel", "in", "out", "heap", "stack", "register", "f32", "i8", "bool", "bf16", "->", "if", "and",
    "!prefetch(", "!stream", "exp(", "max(", "fma(", "select(", "inf", "-inf", "nan", "1e308", "1e-400",
    "99999999999999999999", "0", "-1", "|", "| |", "{0}", "{1}", "{99}", "{-1}", "*", "+", "-", "/", "==",
    "<=", ",", "[", "]", "(", ")", ":N", ":p", ":v", ":u", ":q", "=", "+=", "max=", "-=", "#", ";", "\t",
    "\r", "\x00", "\x1b", "\u200b", "é", "𝟙", "١", "$x", "x", "y", "let", "moves:", "start:", "dojo game 1",
    "9" * 5000, "-" * 5000, "{0}+" * 2000, "recipe", "@", "table", "domain", "idx[", "u8", "#1@2", "\n",
    "\n\n", '"', "null", "true", "NaN", "1e999", "9" * 400, '"\\ud800"', "\ud800", "[" * 5000, '{"a":' * 5000,
    "]" * 100, "`", "**", "[a](", "```", "![", " " * 5000,
]  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """One of the doors: sound texts to begin with, how they are read, and what else may be raised."""

    name: str
    texts: list[str]
    read: Callable[[str], object]
    raises: tuple[type[Exception], ...] = (TextError,)


def _program(text: str) -> None:
    program = parse(text)
    again = parse(program.text)
    assert again == program and again.text == program.text, "the canonical text is another program"


def _game(text: str) -> None:
    game = Game.from_text(text)
    assert Game.from_text(game.to_text()).to_text() == game.to_text(), "the saved text is another game"


def _link(text: str) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=_COMMON)
    packed = packer.compress(text.encode(errors="replace")) + packer.flush()
    open_link(MARK + base64.urlsafe_b64encode(packed).decode().rstrip("="))


def _record(text: str) -> None:
    record = from_line(text)
    assert from_line(to_line(record)) == record, "the record's line is another record"


@contextmanager
def _file(text: str | bytes, name: str = "text.jsonl") -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode(errors="surrogatepass"))
        yield path


def _records_file(text: str) -> None:
    """Whole or not at all, packed or not."""
    data = text.encode(errors="surrogatepass")
    packed = gzip.compress(data, 1)
    with tempfile.TemporaryDirectory() as folder, Records(Path(folder) / "records.sqlite") as records:
        for file in (data, packed, packed[: len(packed) // 2]):
            before = len(records.measurements())
            try:
                taken = take_in(records, file_lines(io.BytesIO(file)))
            except NoRecord:
                assert len(records.measurements()) == before, "half of a file was taken in"
            else:
                assert len(records.measurements()) == before + taken.new


def _in_file(read: Callable[[Path], object]) -> Callable[[str], None]:
    def reader(text: str) -> None:
        with _file(text) as path:
            read(path)

    return reader


def _run_log(path: Path) -> None:
    with RunLog(path, RUN) as log:
        assert all(isinstance(m.status, str) for m in log.known.values())
    curves.logged(path.parent, "start", "machine")


def _events(text: str) -> None:
    for event in sound(json.loads(text)):
        json.dumps(event, ensure_ascii=False).encode()


def _database(text: str) -> None:
    """A sound database, of which ``text`` says what is overwritten: it opens, and works."""
    seed = random.Random(ascii(text))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.sqlite"
        shutil.copyfile(_sound_database(), path)
        data = bytearray(path.read_bytes())
        for _ in range(seed.choice((1, 1, 2, 5, 20))):
            at, size = seed.randrange(len(data)), seed.choice((1, 8, 100, 4096))
            data[at : at + size] = seed.randbytes(size) if seed.random() < 0.7 else bytes(size)
        path.write_bytes(data[: seed.randrange(len(data))] if seed.random() < 0.2 else data)
        with Records(path) as records:
            records.games(limit=1000)
            records.measurements()
            records.save_game(SavedGame("new", "me", "softmax", "t", "text"))
            records.add(measured(9))
            game = records.game("new")
            assert game is not None and game.text == "text", "a game is lost after the rescue"


_DATABASES: list[Path] = []


def _sound_database() -> Path:
    if not _DATABASES:
        path = Path(tempfile.mkdtemp(prefix="fuzz-")) / "records.sqlite"
        with Records(path) as records:
            for n in range(30):
                records.save_game(SavedGame(f"game-{n}", "me", "softmax", "t", f"text {n} " * 40 * n))
            records.add_all(measured(time=1.7e9 + n) for n in range(300))
        _DATABASES.append(path)
    return _DATABASES[0]


RUN = RunKey("softmax", "4x8", "reassoc", "cpu", "start", (), "annealing-lines", 0, 10, None, "machine")


def outside(games: list[str]) -> list[Reader]:
    """The doors of what other processes and other people write, each with sound texts."""
    start = kernels.get("softmax").program((4, 8))
    several = [to_line(replace(measured(rows), time=1.7e9 + rows)) for rows in range(4, 9)]
    timed = Measurement(start.hash, "c", "ok", "", (5e8,), 0.5, 0.5, True)
    with tempfile.TemporaryDirectory() as folder:
        with RunLog(Path(folder) / "log", RUN) as log:
            log.add(timed, Effort.NORMAL, 1.0, "join_scopes m@0")
            log.done(best=0.5)
        logged = (Path(folder) / "log").read_text()
    journal = "\n".join((RECORDINGS / "softmax-agent.jsonl").read_text().splitlines()[:6]) + "\n"
    wrong = evidence.Evidence(
        status="wrong_result", message="", kernel="softmax", policy="reassoc", target="cpu", start=start.text,
        program=start.text, line="", code="", seed=1, machine="{}", time=1.7e9,
    )  # fmt: skip
    request = Request(Workload(start, "softmax"), (start,), {start.hash: ""}, Effort.QUICK, "me", None).text()
    answer = Answer("machine", (timed,), several[:1]).text()
    curve = comparison.Curve(
        "softmax", "a", 1, 0.5, (comparison.Point(1, 0.1, 0.5),), 0.5, ("join_scopes m@0",)
    )
    events = [
        {"seq": 1, "kind": "apply", "move": "join_scopes m@0", "at": 0, "ids": [1, 2], "x": None, "y": 0.5}
    ]
    lessons = [file.read_text() for file in sorted(LESSONS_FOLDER.glob("*.md")) if file.stem != "glossary"]
    small = Game.from_text(games[0])
    times = Times(
        "k", "m", "2026-01-01", {"h": [0.5, 0.75]}, {"g": "crash"}, {"h": {"g": ["faster", 2.0, 1.9, 2.1, 7]}}
    )
    model = {"dojo cost model": cost_model.VERSION, "weights": dict.fromkeys(cost_model.FEATURES, 0.5)}
    terms = Terms({name: name for name in ("cache line", "vector", "loop")})
    text_errors = (TextError, BadLink, IllegalMove, MoveSyntax)
    return [
        Reader("link", [line_text(small)], _link, text_errors),
        Reader("file to open", games[:1], lambda text: open_text(text), text_errors),
        Reader("lesson", lessons[:4], lambda text: read_lesson(text, Path("x.md"), terms), (TextError,)),
        Reader("json", [*several, json.dumps(asdict(wrong))], read_json, (NotJson,)),
        Reader("record", several, _record, (NoRecord,)),
        Reader("file of records", ["\n".join(several) + "\n"], _records_file, ()),
        Reader("journal", [journal], _in_file(Journal), (ValueError,)),
        Reader("log of a run", [logged], _in_file(_run_log), ()),
        Reader("evidence", [json.dumps(asdict(wrong))], _in_file(evidence.load), (ValueError,)),
        Reader("cost model", [json.dumps(model)], _in_file(cost_model.load), (ValueError,)),
        Reader("request", [request], Request.read, (OtherVersion,)),
        Reader("answer", [answer], Answer.read, (OtherVersion,)),
        Reader("times", [write_times([times])], read_times, (TextError,)),
        Reader(
            "comparison",
            [json.dumps({"curves": [asdict(curve)]})],
            lambda text: comparison.from_json(read_object(text, nonfinite=True)),
            (ValueError, KeyError, TypeError, AttributeError, OverflowError),
        ),
        Reader("events", [json.dumps(events)], _events, (ValueError, RecursionError)),
        Reader("database", ["a", "b"], _database, ()),
    ]


def readers(rng: random.Random) -> list[Reader]:
    """The doors, each with sound texts."""
    starts = [kernels.get(name) for name in kernels.names()]
    programs = [k.program(k.shapes[0]).text for k in starts] + [random_program(rng).text for _ in range(20)]
    line = next(iter(recorded_lines().values()))
    kernel = kernels.get(line.kernel or "")
    game = Game.new(
        with_provenance(kernel.program(kernel.shape(line.shape))), kernel.name, policy=line.policy
    )
    line.play(game)
    small = Game.new(with_provenance(kernels.get("softmax").program((4, 8))), "softmax", "4x8")
    small.play("join_scopes m@0")
    moves = [str(p.move) for p in game.line()[1:]] + [f"{name} y@0 16" for name in (*REGISTRY, *RECIPES)]
    lines = [file.read_text() for file in sorted(LINES_FOLDER.glob("*.line"))]
    recipes = ["recipe rows A W\ntile $A@1 $W\nvectorize_all $A@1\n"]
    return [
        Reader("program", programs, _program),
        Reader("move", moves, lambda text: parse_move(text), (MoveSyntax,)),
        Reader("line", lines, lambda text: read_line(text).steps()),
        Reader("recipe", recipes, read_recipe),
        Reader("game", [small.to_text(), game.to_text()], _game, (TextError, IllegalMove, MoveSyntax)),
        *outside([small.to_text()]),
    ]


def damaged(text: str, other: str, rng: random.Random) -> str:
    """The text after a few random edits; ``other`` lends pieces."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at, to = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        to = min(to, at + rng.choice((0, 1, 2, 10, 200)))
        kind = rng.randrange(7)
        if kind == 0:
            text = text[:at] + text[to:]
        elif kind == 1:
            text = text[:at] + rng.choice(WORDS) + text[to:]
        elif kind == 2:
            text = text[:at] + chr(rng.choice((rng.randrange(128), rng.randrange(0x3000)))) + text[to:]
        elif kind == 3:
            text = text[:at] + text[at:to] * rng.choice((2, 3, 50)) + text[to:]
        elif kind == 4:
            begin = rng.randrange(len(other) + 1)
            text = text[:at] + other[begin : begin + rng.choice((5, 50, 500))] + text[to:]
        else:
            lines = text.split("\n")
            first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
            if kind == 5:
                lines[first], lines[second] = lines[second], lines[first]
            else:
                words = lines[first].split(" ")
                words[rng.randrange(len(words))] = rng.choice(WORDS)
                lines[first] = " ".join(words)
            text = "\n".join(lines)
    return text[:80_000]


def attempt(reader: Reader, text: str) -> tuple[bool, float, str]:
    """(was it read, seconds, what is wrong with that)"""
    began = time.process_time()
    try:
        reader.read(text)
        read, told = True, ""
    except reader.raises:
        read, told = False, ""
    except Exception as error:
        read, told = False, f"{type(error).__name__}: {error}"
    took = time.process_time() - began
    return read, took, told or (f"took {took:.1f} s" if took > SLOW else "")


def fuzz(seconds: float, seed: int, most: int | None = None) -> list[str]:
    """Findings, after printing what was done."""
    rng = random.Random(seed)
    doors = readers(rng)
    tried, accepted, slowest = 0, 0, 0.0
    findings: dict[str, str] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end and (most is None or tried < most):
        reader = rng.choices(doors, (6, 3, 2, 1, 1) + (1,) * (len(doors) - 5))[0]
        text = damaged(rng.choice(reader.texts), rng.choice(rng.choice(doors).texts), rng)
        logging.disable()  # of each damaged database a warning
        read, took, told = attempt(reader, text)
        logging.disable(logging.NOTSET)
        tried, accepted, slowest = tried + 1, accepted + read, max(slowest, took)
        if told:
            findings.setdefault(f"{reader.name}: {told[:60]}", f"{reader.name}: {told}\n{text!r}")
    print(
        f"seed {seed}: {tried} texts, {accepted} read, the slowest in {1e3 * slowest:.0f} ms, "
        f"{len(findings)} findings"
    )
    for finding in findings.values():
        print(f"\n{finding}")
    return list(findings.values())


if __name__ == "__main__":
    asked = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    raise SystemExit(bool(fuzz(asked, int(sys.argv[2]) if len(sys.argv) > 2 else 1)))
