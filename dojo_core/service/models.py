"""Models of one's own as pages show them: kept in a folder, measured kernel by kernel, played, taken along.

A kernel's program is the fastest verified one that this machine's records know for its start: so whatever a
game or an agent finds is in the model as soon as it was measured, in every model that has this kernel.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from dojo_core.bench import roofline
from dojo_core.bounded_json import NotJson, read_object
from dojo_core.codegen.code import NotGeneratable
from dojo_core.export import Choice, NotExported, zipped
from dojo_core.export.choice import of_heuristic
from dojo_core.export.library import model_library
from dojo_core.extras import NotInstalled
from dojo_core.files import naming, replace_text
from dojo_core.from_onnx.as_nodes import graph_of, nodes_of
from dojo_core.from_onnx.ports import Given, NotImported
from dojo_core.from_onnx.reader import read_model
from dojo_core.from_onnx.values import Refusal
from dojo_core.game import Game, GameFull
from dojo_core.graph.choices import choices, kernel_game
from dojo_core.graph.examples import EXAMPLES
from dojo_core.graph.graph import Graph
from dojo_core.graph.nodes import GraphError
from dojo_core.graph.store import load, save
from dojo_core.kernels.kernel import executed_flops
from dojo_core.measure.catalogue import Catalogue
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import Workload
from dojo_core.measure.records import Record
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.service.attention import SELF, START
from dojo_core.service.games import workload_key
from dojo_core.service.model_view import KernelView, ModelView
from dojo_core.service.queue import Task
from dojo_core.service.refused import Refused
from dojo_core.service.service import Service

log = logging.getLogger(__name__)

POLICY = "reassoc"
KEPT = 50  # models of an owner
IN_MEMORY = 4  # graphs with their constants, those looked at last
REASONS = 8  # why a file is not taken in, told at once
FILE, TEXT, ABOUT, DELETED = "model.onnx", "model.dojo", "about.json", ".deleted"
NONE = "There is no model with this id here: it was deleted, or the address is wrong."


@dataclass(frozen=True)
class About:
    """What is kept beside a model. ``games``: the owner's game on a kernel, by the kernel's name."""

    title: str
    owner: str
    created: float  # seconds since the epoch
    kernels: int
    calls: int
    games: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Card:
    """A model as a list shows it."""

    id: str
    about: About


@dataclass
class _Work:
    """What is being measured of a model.

    ``again``: all of it was, and what was taken on a busy machine is taken again. ``passed``: what the
    heuristic pass made of a kernel, None where it could not play. ``asked``: kernels whose limit was asked
    for. ``errand``: a pass or a limit is under way.
    """

    on: bool = False
    again: bool = False
    passed: dict[str, Choice | None] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    errand: bool = False


@dataclass
class _Opened:
    """A graph in memory, and a game at the start of each of its kernels."""

    graph: Graph
    starts: dict[str, Game]
    work: _Work = field(default_factory=_Work)


class Models:
    """The models of one process. Thread-safe."""

    def __init__(self, catalogue: Catalogue, service: Service, folder: Path) -> None:
        self._catalogue = catalogue
        self._service = service
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder.resolve()
        self._opened: OrderedDict[str, _Opened] = OrderedDict()
        self._lock = threading.RLock()
        self._importing = threading.Lock()  # one at a time: it takes seconds and memory

    # ------------------------------------------------------------------ what there is

    def cards(self, owner: str) -> list[Card]:
        """An owner's models, newest first."""
        found = []
        for path in self._folder.glob(f"*/{ABOUT}"):
            with suppress(Refused):
                about = self._about(path.parent.name)
                if about.owner == owner:
                    found.append(Card(path.parent.name, about))
        return sorted(found, key=lambda card: -card.about.created)

    def example(self, name: str, owner: str) -> str:
        """One of ``EXAMPLES`` as a model of the owner's; its id. Raises Refused."""
        example = next((each for each in EXAMPLES if each.name == name), None)
        if example is None:
            raise Refused("There is no such example.")
        return self._kept(example.title, f"example {name}".encode(), owner, lambda place: example.make())

    def take_in(self, name: str, content: bytes, owner: str, shapes: str = "") -> str:
        """An ONNX file as a model of the owner's, the same file once; its id. Raises Refused.

        ``shapes`` are those of inputs that have none of fixed sizes: ``x=1x3x224x224 mask=1x128``.
        """
        title = " ".join(name.removesuffix(".onnx").split())[:60] or "model"
        given = _given(shapes)
        said = f"{sorted(given.items())}\n".encode() if given else b""
        return self._kept(title, said + content, owner, lambda place: _imported(title, content, given, place))

    def delete(self, model: str, owner: str) -> None:
        """Forget a model, until the next one ``restore`` brings it back; games on its kernels stay.

        Raises Refused where it is somebody else's.
        """
        self._own(model, owner)
        self.stop(model)
        with self._lock:
            self._opened.pop(model, None)
            for before in self._folder.glob(f"*{DELETED}"):
                if self._read(before.name).owner == owner:
                    shutil.rmtree(before, ignore_errors=True)
            os.replace(self._folder / model, self._folder / f"{model}{DELETED}")

    def restore(self, model: str, owner: str) -> None:
        """Undo ``delete``. Raises Refused where that is too late."""
        with self._lock:
            if not _is_id(model) or self._read(f"{model}{DELETED}").owner != owner:
                raise Refused(NONE)
            if not (self._folder / model).exists():
                os.replace(self._folder / f"{model}{DELETED}", self._folder / model)

    def _kept(self, title: str, content: bytes, owner: str, make: Callable[[Path], Graph]) -> str:
        model = hashlib.sha256(owner.encode() + b"\n" + content).hexdigest()[:12]
        place = self._folder / model
        with self._importing:
            if (place / ABOUT).exists():
                return model
            if len(self.cards(owner)) >= KEPT:
                raise Refused(f"You have {KEPT} models, as many as are kept: delete one first.")
            place.mkdir(exist_ok=True)
            try:
                graph = make(place)
                save(graph, place / TEXT)
                called = {call.kernel for call in graph.calls}
                # Last: a folder without it is no model yet.
                self._note(model, About(title, owner, time.time(), len(called), len(graph.calls)))
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise
            (place / FILE).unlink(missing_ok=True)
        return model

    def _about(self, model: str) -> About:
        if not _is_id(model):
            raise Refused(NONE)
        return self._read(model)

    def _read(self, folder: str) -> About:
        try:
            return About(**read_object((self._folder / folder / ABOUT).read_bytes()))
        except (OSError, NotJson, TypeError):
            raise Refused(NONE) from None

    def _own(self, model: str, owner: str) -> About:
        about = self._about(model)
        if about.owner != owner:
            raise Refused("This model is somebody else's: drop its file to have one of your own.")
        return about

    def _note(self, model: str, about: About) -> None:
        replace_text(self._folder / model / ABOUT, json.dumps(asdict(about), indent=1) + "\n")

    def _open(self, model: str) -> _Opened:
        with self._lock:
            if model not in self._opened:
                try:
                    graph = load(self._folder / model / TEXT)
                except (GraphError, OSError) as fault:
                    raise Refused(f"This model cannot be read: {fault}") from None
                called = dict.fromkeys(call.kernel for call in graph.calls)
                starts = {name: kernel_game(graph.kernels[name], POLICY) for name in called}
                self._opened[model] = _Opened(graph, starts)
            self._opened.move_to_end(model)
            rest = [each for each, at in self._opened.items() if each != model and not at.work.on]
            for each in rest[: max(0, len(self._opened) - IN_MEMORY)]:
                del self._opened[each]
            return self._opened[model]

    # ------------------------------------------------------------------ what is known of one

    def view(self, model: str, owner: str) -> ModelView:
        """A model with what is known of its kernels now. Raises Refused."""
        about, opened = self._own(model, owner), self._open(model)
        queue = self._service.queue.of(_key(opened.starts))
        kernels = {name: self._kernel(opened, name) for name in opened.starts}
        return ModelView(model, about.title, opened.graph, kernels, opened.work.on, queue.down)

    def _kernel(self, opened: _Opened, name: str) -> KernelView:
        game = opened.starts[name]
        calls = [call for call in opened.graph.calls if call.kernel == name]
        output = game.start.buffer_of[game.start.outputs[0]]
        shape = "x".join(str(dim.size) for dim in output.dims) or "one number"
        view = KernelView(name, len(calls), calls[0].nodes, shape)
        best, start = self._best(game), self._known(game)
        if best is not None:
            moves = len(best.line.splitlines()) if best.line or best.program_hash == game.start.hash else None
            busy = best.conditions.busy
            view = replace(view, seconds=best.seconds, busy=busy, moves=moves, player=best.player)
            view = replace(view, limit=roofline.known(self._catalogue, _question(game)))
        if start is not None and start.status == "ok":
            view = replace(view, start=start.seconds)
        state, message = self._state(opened, name)
        return replace(view, state=state, message=message)

    def _best(self, game: Game) -> Record | None:
        here = this_machine().fingerprint
        return self._catalogue.best(game.start.hash, DEFAULT_TARGET, here, POLICY)

    def _known(self, game: Game) -> Record | None:
        here, start = this_machine().fingerprint, game.start.hash
        return self._catalogue.known(start, DEFAULT_TARGET, here, POLICY, start)

    def _state(self, opened: _Opened, name: str) -> tuple[str, str]:
        """What the queue does about a kernel, and why it failed."""
        tasks = _tasks(opened, name)
        queue, key = self._service.queue.of(_key(opened.starts)), workload_key(opened.starts[name])
        hashes = [task.hash for _, task in tasks]
        outcomes = queue.results(key, hashes)
        if queue.running(key) & set(hashes):
            return "measuring", ""
        if opened.work.on and (not tasks or None in outcomes):
            return "waiting", ""
        failed = next((o for o in outcomes if o is not None and not o.ok), None)
        return ("", "") if failed is None else ("failed", failed.message or failed.status)

    # ------------------------------------------------------------------ measuring

    def measure(self, model: str, owner: str) -> None:
        """Begin: the pass plays each kernel, its program and the start are verified and timed, then the
        machine's limits. Where all that is known, times of a busy machine are taken again.

        ``go_on`` must be asked now and then, or it pauses. Raises Refused.
        """
        self._own(model, owner)
        opened = self._open(model)
        work = opened.work
        work.on, work.again = True, work.asked == opened.starts.keys()
        work.asked.clear()
        self.go_on(model)

    def stop(self, model: str) -> None:
        """No more than what is under way; what is known stays."""
        with self._lock:
            if model in self._opened:
                self._opened[model].work.on = False
        self._service.queue.drop(_measured_for(model))

    def go_on(self, model: str) -> bool:
        """Is there more to measure? Somebody still looks, and the next thing is asked for.

        Kernels with most operations come first. The passes are played between measurements, one at a time,
        so that the first times are there soon.
        """
        opened, queue = self._open(model), self._service.queue
        work = opened.work
        if not work.on:
            return False
        with self._lock:
            tasks = [each for name in opened.starts for each in _tasks(opened, name)]
            queue.want(_measured_for(model), sorted(tasks, key=lambda each: each[0]))
            if work.errand:
                return True
            player = _measured_for(model)
            waits = bool(
                queue.open_tasks(player) if work.again else queue.of(_key(opened.starts)).wanted(player)
            )
            ahead = sorted(opened.starts, key=lambda name: -_work(opened, name))
            name = next((each for each in ahead if each not in work.passed), None)
            if name is not None:
                self._send(opened, f"pass/{model}/{name}", lambda: self._pass(opened, name))
                return True
            unlimited = [each for each in ahead if each not in work.asked and not waits]
            if unlimited:
                work.asked.add(unlimited[0])
                question = _question(opened.starts[unlimited[0]])
                unknown = roofline.known(self._catalogue, question) is None
                if unknown or (work.again and roofline.doubtful(self._catalogue, question)):
                    self._send(opened, f"roofline/{unlimited[0]}", lambda: self._limit(question))
                return True
            work.on = waits
            return waits

    def _send(self, opened: _Opened, name: str, does: Callable[[], None]) -> None:
        def errand() -> None:
            try:
                does()
            finally:
                opened.work.errand = False

        opened.work.errand = True
        if not self._service.queue.of(_key(opened.starts)).errand(name, errand):
            opened.work.errand = False  # the same is under way for somebody else

    def _pass(self, opened: _Opened, name: str) -> None:
        passed: Choice | None = None
        try:
            passed = of_heuristic(opened.starts[name])
        except NotExported as refusal:
            log.warning("%s", refusal)
        finally:  # whatever happened, it is not asked again
            opened.work.passed[name] = passed

    def _limit(self, question: roofline.Question) -> None:
        roofline.roofline(self._catalogue, question)

    # ------------------------------------------------------------------ to the board, and away

    def game(self, model: str, kernel: str, owner: str) -> str:
        """The owner's game on a kernel, at its fastest program whose moves are known; its id. Raises Refused.

        It is made at the first visit. What others found meanwhile is a variation of it.
        """
        about, opened = self._own(model, owner), self._open(model)
        if kernel not in opened.starts:
            raise Refused("This model has no such kernel.")
        best = self._best(opened.starts[kernel])
        moves = best.line.splitlines() if best is not None else []
        known = about.games.get(kernel)
        if known is not None:
            with suppress(Refused):  # deleted, or no longer theirs: then they get another one
                game = Game.from_text(self._service.game_text(known))
                hashes = {position.program.hash for position in game.positions.values()}
                if best is not None and best.program_hash not in hashes:
                    with suppress(IllegalMove, MoveSyntax, GameFull):
                        self._service.branch(known, 0, moves, owner, go=True)
                return known
        game = kernel_game(opened.graph.kernels[kernel], POLICY)
        game.title = f"{about.title}: {kernel}"[:80]
        try:
            for move in moves:
                game.play(move)
        except (IllegalMove, MoveSyntax, GameFull):  # recorded by another version
            game.goto(0)
        made = self._service.take_in(game, owner)
        with self._lock:
            about = self._own(model, owner)
            self._note(model, replace(about, games={**about.games, kernel: made}))
        return made

    def games(self, model: str, owner: str) -> dict[str, str]:
        """The kernels that the owner has games on, by the games' ids. Raises Refused."""
        return {game: kernel for kernel, game in self._own(model, owner).games.items()}

    def archive(self, model: str, owner: str) -> bytes:
        """The whole model as a C library, in a zip: each kernel's fastest verified program, else the pass's.

        Raises Refused.
        """
        self._own(model, owner)
        graph = self._open(model).graph
        try:
            return zipped(model_library(graph, choices(graph, "best", self._catalogue, POLICY), "dojo_model"))
        except (NotExported, NotGeneratable, ValueError) as fault:
            raise Refused(str(fault)) from None


def _is_id(model: str) -> bool:
    return model.isascii() and model.isalnum() and len(model) <= 32


def _given(shapes: str) -> dict[str, tuple[int, ...]]:
    """Shapes as a person writes them, by the input's name. Raises Refused."""
    given: dict[str, tuple[int, ...]] = {}
    for said in shapes.replace(",", " ").replace("--shape ", " ").split():  # as it is told, too
        name, _, sizes = said.rpartition("=")
        if not name or not re.fullmatch(r"\d{1,9}(x\d{1,9})*", sizes):
            raise Refused(f"{said[:80]}: write an input and its shape, such as x=1x3x224x224.")
        given[name] = tuple(map(int, sizes.split("x")))
    return given


def _imported(title: str, content: bytes, shapes: Mapping[str, tuple[int, ...]], place: Path) -> Graph:
    """The graph of a file, which stays in its place until the weights that are mapped from it are saved.

    Raises Refused with a sentence, or with one for each reason.
    """
    file = place / FILE
    try:
        with naming(file):
            file.write_bytes(content)
        model = read_model(file)
        inputs = [each.name for each in model.graph.input]
        unknown = [name for name in shapes if name not in inputs]
        if unknown:
            raise Refused(f"{title} has no input {unknown[0][:80]}: its inputs are {', '.join(inputs)}.")
        given = {name: Given(shape=sizes) for name, sizes in shapes.items()}
        return graph_of(nodes_of(model, given, title, place))
    except (Refused, OSError):  # a full disk among them
        raise
    except NotImported as refused:
        reasons = [str(reason) for reason in refused.reasons]
        more = f"\nand {len(reasons) - REASONS} more." if len(reasons) > REASONS else ""
        raise Refused("\n".join([f"{title} cannot be taken:", *reasons[:REASONS]]) + more) from None
    except (Refusal, NotInstalled) as refusal:
        raise Refused(str(refusal).replace(str(file), f"{title}.onnx")) from None
    except Exception:
        log.exception("%s could not be imported", title)
        raise Refused(
            f"{title} could not be taken: a fault of the importer, noted in the app's log."
        ) from None


def _measured_for(model: str) -> str:
    return f"{model}-model"


def _key(starts: dict[str, Game]) -> str:
    """A workload of any kernel: they are all measured in one queue."""
    return next((workload_key(game) for game in starts.values()), DEFAULT_TARGET)


def _question(game: Game) -> roofline.Question:
    return roofline.Question(game.start, None, "", executed_flops(game.start))


def _work(opened: _Opened, name: str) -> int:
    """Operations of all calls."""
    calls = sum(call.kernel == name for call in opened.graph.calls)
    return calls * executed_flops(opened.starts[name].start)


def _tasks(opened: _Opened, name: str) -> list[tuple[int, Task]]:
    """What is measured of a kernel once the pass has played, each with its rank."""
    if name not in opened.work.passed:
        return []
    game, passed = opened.starts[name], opened.work.passed[name]
    workload, key = Workload(game.start, None, POLICY, DEFAULT_TARGET), workload_key(game)
    tasks = [(START, Task(key, workload, game.start, game.start.hash))]
    if passed is not None:
        line = "\n".join(passed.moves or ())
        tasks.insert(0, (SELF, Task(key, workload, passed.program, passed.program.hash, line)))
    return tasks
