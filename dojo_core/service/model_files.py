"""Models that are kept, each in a folder: its graph, its constants' values, and whose it is."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dojo_core.bounded_json import NotJson, read_object
from dojo_core.extras import NotInstalled
from dojo_core.files import naming, replace_text
from dojo_core.from_onnx.as_nodes import graph_of, nodes_of
from dojo_core.from_onnx.ports import Given, NotImported
from dojo_core.from_onnx.reader import read_model
from dojo_core.from_onnx.values import Refusal
from dojo_core.graph.graph import Graph
from dojo_core.graph.nodes import GraphError
from dojo_core.graph.store import load, save
from dojo_core.service.refused import Refused, Unsized

log = logging.getLogger(__name__)

KEPT = 50  # models of an owner
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


class ModelFiles:
    """The models in a folder. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder.resolve()
        self._lock = threading.Lock()
        self._importing = threading.Lock()  # one at a time: it takes seconds and memory

    def cards(self, owner: str) -> list[Card]:
        """An owner's models, newest first."""
        found: list[Card] = []
        for path in self._folder.glob(f"*/{ABOUT}"):
            with suppress(Refused):
                about = self.about(path.parent.name)
                if about.owner == owner:
                    found.append(Card(path.parent.name, about))
        return sorted(found, key=lambda card: -card.about.created)

    def about(self, model: str) -> About:
        """Raises Refused where there is no such model."""
        if not _is_id(model):
            raise Refused(NONE)
        return self._read(model)

    def own(self, model: str, owner: str) -> About:
        """The same; raises Refused where it is somebody else's, too."""
        about = self.about(model)
        if about.owner != owner:
            raise Refused("This model is somebody else's: drop its file to have one of your own.")
        return about

    def note(self, model: str, about: About) -> None:
        """Keep what is beside a model."""
        replace_text(self._folder / model / ABOUT, json.dumps(asdict(about), indent=1) + "\n")

    def graph(self, model: str) -> Graph:
        """Raises Refused where it cannot be read."""
        try:
            return load(self._folder / model / TEXT)
        except (GraphError, OSError) as fault:
            raise Refused(f"This model cannot be read: {fault}") from None

    # ------------------------------------------------------------------ coming and going

    def drawn(self, name: str, title: str, owner: str, make: Callable[[], Graph]) -> str:
        """A model that is drawn in code, kept under its name once; its id. Raises Refused."""
        return self._kept(title, f"example {name}".encode(), owner, lambda place: make())

    def take_in(self, name: str, content: bytes, owner: str, shapes: str = "") -> str:
        """An ONNX file as a model of the owner's, the same file once; its id. Raises Refused.

        ``shapes`` are those of inputs that have none of fixed sizes: ``x=1x3x224x224 mask=1x128``.
        """
        title = " ".join(name.removesuffix(".onnx").split())[:60] or "model"
        given = _given(shapes)
        said = f"{sorted(given.items())}\n".encode() if given else b""
        return self._kept(title, said + content, owner, lambda place: _imported(title, content, given, place))

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
                self.note(model, About(title, owner, time.time(), len(called), len(graph.calls)))
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise
            (place / FILE).unlink(missing_ok=True)
        return model

    def delete(self, model: str, owner: str) -> None:
        """Forget a model; until the owner deletes another one, ``restore`` brings it back.

        Raises Refused where it is somebody else's.
        """
        self.own(model, owner)
        with self._lock:
            for before in self._folder.glob(f"*{DELETED}"):
                with suppress(Refused):
                    if self._read(before.name).owner == owner:
                        shutil.rmtree(before, ignore_errors=True)
            os.replace(self._folder / model, self._folder / f"{model}{DELETED}")

    def restore(self, model: str, owner: str) -> None:
        """Undo ``delete``. Raises Refused where that is too late."""
        with self._lock:
            if not _is_id(model) or self._read(f"{model}{DELETED}").owner != owner:
                raise Refused(NONE)
            if not (self._folder / model).exists():  # taken in again meanwhile
                os.replace(self._folder / f"{model}{DELETED}", self._folder / model)

    def _read(self, folder: str) -> About:
        try:
            return About(**read_object((self._folder / folder / ABOUT).read_bytes()))
        except (OSError, NotJson, TypeError):
            raise Refused(NONE) from None


def _is_id(model: str) -> bool:
    return model.isascii() and model.isalnum() and len(model) <= 32


def _given(shapes: str) -> dict[str, tuple[int, ...]]:
    """Shapes as a person writes them, by the input's name. Raises Refused."""
    given: dict[str, tuple[int, ...]] = {}
    for said in shapes.replace(",", " ").replace("--shape ", " ").split():  # as refusals tell them, too
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
        offered = " ".join(re.findall(r"--shape (\S+=[\dx]+)", "\n".join(reasons)))
        if offered:  # a command's words for it are none of a page's
            reasons = [re.sub(r" Give (it|them): --shape \S+=[\dx]+", "", reason) for reason in reasons]
        more = f"\nand {len(reasons) - REASONS} more." if len(reasons) > REASONS else ""
        sentence = "\n".join([f"{title} cannot be taken:", *reasons[:REASONS]]) + more
        raise (Unsized(sentence, offered) if offered else Refused(sentence)) from None
    except (Refusal, NotInstalled) as refusal:
        raise Refused(str(refusal).replace(str(file), f"{title}.onnx")) from None
    except Exception:
        log.exception("%s could not be imported", title)
        raise Refused(
            f"{title} could not be taken: a fault of the importer, noted in the app's log."
        ) from None
