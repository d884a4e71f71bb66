"""Models of one's own as pages show them: kept, measured kernel by kernel, played, taken along.

A kernel's program is the fastest verified one that this machine's records know for its start: so whatever a
game or an agent finds is in the model as soon as it was measured, in every model that has this kernel.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dojo_core.bench import eager, roofline
from dojo_core.codegen.code import NotGeneratable
from dojo_core.export import NotExported, zipped
from dojo_core.export.library import model_library
from dojo_core.game import Game, GameFull
from dojo_core.graph.choices import choices, kernel_game
from dojo_core.graph.examples import EXAMPLES
from dojo_core.measure.catalogue import Catalogue
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Record
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.service.model_files import Card, ModelFiles
from dojo_core.service.model_view import UNDER_WAY, KernelView, ModelView
from dojo_core.service.model_work import POLICY, OpenModel
from dojo_core.service.refused import Refused
from dojo_core.service.service import Service

IN_MEMORY = 4  # models with their constants, those looked at last


class Models:
    """The models of one process. Thread-safe. All methods raise Refused, where a model is not there or is not
    the owner's."""

    def __init__(self, catalogue: Catalogue, service: Service, folder: Path) -> None:
        self._catalogue = catalogue
        self._service = service
        self._files = ModelFiles(folder)
        self._opened: OrderedDict[str, OpenModel] = OrderedDict()
        self._lock = threading.RLock()

    # ------------------------------------------------------------------ what there is

    def cards(self, owner: str) -> list[Card]:
        """An owner's models, newest first."""
        return self._files.cards(owner)

    def example(self, name: str, owner: str) -> str:
        """One of ``EXAMPLES`` as a model of the owner's; its id."""
        example = next((each for each in EXAMPLES if each.name == name), None)
        if example is None:
            raise Refused("There is no such example.")
        return self._files.drawn(name, example.title, owner, example.make)

    def take_in(self, name: str, content: bytes, owner: str, shapes: str = "") -> str:
        """An ONNX file as a model of the owner's (``ModelFiles.take_in``); its id."""
        return self._files.take_in(name, content, owner, shapes)

    def delete(self, model: str, owner: str) -> None:
        """Forget a model, until another one is deleted; games on its kernels stay."""
        with self._lock:
            self._files.delete(model, owner)
            opened = self._opened.pop(model, None)
        if opened is not None:
            opened.stop()

    def restore(self, model: str, owner: str) -> None:
        """Undo ``delete``."""
        self._files.restore(model, owner)

    def _open(self, model: str) -> OpenModel:
        with self._lock:
            if model not in self._opened:
                graph = self._files.graph(model)
                self._opened[model] = OpenModel(graph, f"{model}-model", self._catalogue, self._service.queue)
            self._opened.move_to_end(model)
            rest = [each for each, at in self._opened.items() if each != model and not at.measuring]
            for each in rest[: max(0, len(self._opened) - IN_MEMORY)]:
                del self._opened[each]
            return self._opened[model]

    # ------------------------------------------------------------------ what is known of one

    def view(self, model: str, owner: str) -> ModelView:
        """A model with what is known of its kernels now."""
        about, opened = self._files.own(model, owner), self._open(model)
        kernels = {name: self._kernel(opened, name) for name in opened.starts}
        return ModelView(model, about.title, opened.graph, kernels, opened.measuring, opened.down)

    def _kernel(self, opened: OpenModel, name: str) -> KernelView:
        start = opened.starts[name].start
        calls = [call for call in opened.graph.calls if call.kernel == name]
        shape = "x".join(str(dim.size) for dim in start.buffer_of[start.outputs[0]].dims) or "one number"
        state, message = opened.state(name)
        view = KernelView(name, len(calls), calls[0].nodes, shape, state=state, message=message)
        best = self._best(start.hash)
        # A start's time alone, while the pass's program is still to be timed, is not the kernel's.
        if best is not None and not (state in UNDER_WAY and best.program_hash == start.hash):
            moves = len(best.line.splitlines()) if best.line or best.program_hash == start.hash else None
            view = replace(
                view, seconds=best.seconds, busy=best.conditions.busy, moves=moves, player=best.player,
                limit=roofline.known(self._catalogue, opened.question(name)),
            )  # fmt: skip
        here = this_machine().fingerprint
        first = self._catalogue.known(start.hash, DEFAULT_TARGET, here, POLICY, start.hash)
        if first is not None and first.status == "ok":
            view = replace(view, start=first.seconds)
        rival = eager.known(self._catalogue, start)
        return view if rival is None else replace(view, rival=rival.seconds, rival_by=rival.source)

    def _best(self, start_hash: str) -> Record | None:
        return self._catalogue.best(start_hash, DEFAULT_TARGET, this_machine().fingerprint, POLICY)

    # ------------------------------------------------------------------ measuring

    def measure(self, model: str, owner: str) -> None:
        """Begin to measure it (``OpenModel.measure``)."""
        self._files.own(model, owner)
        self._open(model).measure()

    def stop(self, model: str, owner: str) -> None:
        """No more than what is under way; what is known stays."""
        self._files.own(model, owner)
        self._open(model).stop()

    def go_on(self, model: str, owner: str) -> bool:
        """Is there more to measure? To be asked about once a second while somebody looks."""
        self._files.own(model, owner)
        return self._open(model).go_on()

    # ------------------------------------------------------------------ to the board, and away

    def game(self, model: str, kernel: str, owner: str) -> str:
        """The owner's game on a kernel, at its fastest program whose moves are known; its id.

        It is made at the first visit. What others found meanwhile is a variation of it.
        """
        about, opened = self._files.own(model, owner), self._open(model)
        if kernel not in opened.starts:
            raise Refused("This model has no such kernel.")
        best = self._best(opened.starts[kernel].start.hash)
        if kernel in about.games:
            with suppress(Refused):  # deleted, or no longer theirs: then they get another one
                return self._gone_on_with(about.games[kernel], best, owner)
        game = kernel_game(opened.graph.kernels[kernel], POLICY)
        game.title = f"{about.title}: {kernel}"[:80]
        try:
            for move in best.line.splitlines() if best is not None else ():
                game.play(move)
        except (IllegalMove, MoveSyntax, GameFull):  # recorded by another version
            game.goto(0)
        made = self._service.take_in(game, owner)
        with self._lock:
            about = self._files.own(model, owner)
            self._files.note(model, replace(about, games={**about.games, kernel: made}))
        return made

    def _gone_on_with(self, saved: str, best: Record | None, owner: str) -> str:
        """A game that there is, at what was found meanwhile, if anything was. Raises Refused."""
        game = Game.from_text(self._service.game_text(saved))
        known = {position.program.hash for position in game.positions.values()}
        if best is not None and best.program_hash not in known:
            with suppress(IllegalMove, MoveSyntax, GameFull):
                self._service.branch(saved, 0, best.line.splitlines(), owner, go=True)
        return saved

    def games(self, model: str, owner: str) -> dict[str, str]:
        """The kernels that the owner has games on, by the games' ids."""
        return {game: kernel for kernel, game in self._files.own(model, owner).games.items()}

    def archive(self, model: str, owner: str) -> bytes:
        """The whole model as a C library, in a zip: of each kernel the fastest program, else the pass's."""
        self._files.own(model, owner)
        graph = self._open(model).graph
        try:
            return zipped(model_library(graph, choices(graph, "best", self._catalogue, POLICY), "dojo_model"))
        except (NotExported, NotGeneratable, ValueError) as fault:
            raise Refused(str(fault)) from None
