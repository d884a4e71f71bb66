"""Where a game begins: kernels, networks' layers, texts, recorded lines, games that are kept."""

from __future__ import annotations

from typing import Annotated, Literal

from dojo_core import described
from dojo_core import kernels as library
from dojo_core.calls import answers
from dojo_core.calls.call import Answer, CallFault
from dojo_core.calls.desk import Desk
from dojo_core.calls.looking import told
from dojo_core.calls.registry import call
from dojo_core.calls.words import Page, ended, paged, written
from dojo_core.from_code.recognise import OWN, kind_of
from dojo_core.from_code.translate import translate
from dojo_core.game import Game
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.service import saved_games
from dojo_core.service.games import targets
from dojo_core.service.view import Json
from dojo_core.targets.registry import UnknownTarget, backend
from dojo_core.wording import counted

LISTED = 40  # kernels, layers, games of a page
LONGEST_TEXT = 200_000  # characters


@call(answers.Kernels)
def kernels(
    desk: Desk,
    find: Annotated[str, "only those with this in their name, group or formula"] = "",
    page: Page = 1,
) -> Answer:
    """The kernels that a game can begin with, and the targets that it can be played for.

    Data: ``kernels`` of this ``page`` of ``pages``: of each its ``name``, ``group``, ``formula``,
    ``dims`` (what the numbers of a shape are), ``shape`` (its first) and ``lines`` (names of recorded
    lines of it); ``targets``: of each ``name``, ``words`` and a ``sentence``.
    """
    games = desk.service.games
    lines: dict[str, list[str]] = {}
    for file, line in games.recorded():
        lines.setdefault(line.kernel or "", []).append(file.removesuffix(".line"))
    wanted = find.lower()
    rows = [
        {
            "name": card.name, "group": card.group, "formula": card.formula, "dims": card.dims,
            "shape": card.shape, "lines": lines.get(card.name, []),
        }
        for card in games.cards()
        if wanted in f"{card.name} {card.group} {card.formula}".lower()
    ]  # fmt: skip
    shown, pages = paged(rows, page, LISTED)
    head = counted(len(rows), "kernel") + (f", page {page} of {pages}" if pages > 1 else "")
    text = [f"{head}:", *(f"{row['name']} ({row['dims']} {row['shape']}): {row['formula']}" for row in shown)]
    known = [{"name": name, "words": words, "sentence": about} for name, words, about in targets()]
    text.append(f"Targets: {', '.join(each['name'] for each in known)}.")
    following = [written("open", kernel=shown[0]["name"]) if shown else written("kernels")]
    if page < pages:
        following.insert(0, written("kernels", page=page + 1))
    data = {"kernels": list(shown), "page": page, "pages": pages, "targets": known}
    return Answer(ended(text, following), data, tuple(following))


@call(answers.Networks)
def networks(
    desk: Desk,
    name: Annotated[str, "a network or a kernel, to list layers as its shapes; without it the networks"] = "",
    page: Page = 1,
) -> Answer:
    """The networks whose layers are shapes of kernels, or the layers of one.

    Data: ``networks``: their names, or ``layers`` of this ``page`` of ``pages``: of each its ``name``,
    ``kernel`` and ``shape``.
    """
    if not name:
        names = list(library.networks())
        first = written("networks", name=names[0])
        return Answer(ended([f"Networks: {', '.join(names)}."], [first]), {"networks": names}, (first,))
    try:
        layers = described.layers_asked(name)
    except ValueError as fault:
        raise CallFault(str(fault), "not_found") from fault
    shown, pages = paged([described.layer(each) for each in layers], page, LISTED)
    text = [
        f"{counted(len(layers), 'layer')} of {name}" + (f", page {page} of {pages}:" if pages > 1 else ":")
    ]
    text += [f"{row['name']}: {row['kernel']} {row['shape']}" for row in shown]
    following = [written("open", kernel=shown[0]["name"])]
    if page < pages:
        following.insert(0, written("networks", name=name, page=page + 1))
    data = {"layers": list(shown), "page": page, "pages": pages}
    return Answer(ended(text, following), data, tuple(following))


@call(answers.Standing, changes=True)
def open_(
    desk: Desk,
    kernel: Annotated[str, "name of a kernel or of a network's layer, also softmax:1024x512"] = "",
    shape: Annotated[str, "its sizes, as 1024x512; without it the kernel's first"] = "",
    target: Annotated[str, "what it is played for; kernels tells which there are"] = DEFAULT_TARGET,
    policy: Annotated[
        Literal["reassoc", "algebraic", "tf32", "strict"],
        "what a move may change of results: regroup sums, rewrite formulas or round factors too, or nothing",
    ] = "reassoc",
    text: Annotated[
        str,
        "in place of a kernel: a program, a saved game, a line, NumPy, PyTorch, an einsum or loops in C",
        {"maxLength": LONGEST_TEXT},
    ] = "",
    sizes: Annotated[dict[str, int] | None, "of a text that is translated: its axes' sizes by name"] = None,
    game: Annotated[str, "in place of a kernel: id of a saved game; of another's, a copy is begun"] = "",
    line: Annotated[str, "in place of a kernel: name of a recorded line, which stands ahead then"] = "",
) -> Answer:
    """Begin a game: on a kernel, on a text of your own, on a recorded line; or go on with a saved one.

    Nothing of a text is executed: it is read as a program. Data: ``game`` (the id that all other calls take),
    ``title``, ``kernel``, ``shape``, ``target``, ``policy``, ``position``, ``ply``, ``seconds`` (if known),
    ``yours``, ``program``, and ``told``: sentences on what a text was read as, or a line came to.
    """
    if sum(map(bool, (kernel, text.strip(), game, line))) != 1:
        raise CallFault(
            'Name one thing to begin with, as open(kernel="softmax", shape="1024x512"): '
            "a kernel, a text, a game or a line."
        )
    if game:
        return _again(desk, game)
    try:
        on = backend(target).name
    except UnknownTarget as fault:
        raise CallFault(str(fault), "not_found") from fault
    games = desk.service.games
    if line:
        begun, stop = games.from_line(f"{line.removesuffix('.line')}.line")
        ahead = f"{counted(len(begun.positions) - 1, 'move')} of the line stand ahead: goto takes you there."
        return told(desk, desk.begin(begun), *filter(None, (stop, ahead)))
    if text.strip():
        return _on_text(desk, text, sizes or {}, on, policy)
    return told(desk, desk.begin(_on_kernel(desk, kernel, shape, on, policy)))


def _on_kernel(desk: Desk, wanted: str, shape: str, target: str, policy: str) -> Game:
    known = {card.name for card in desk.service.games.cards()}
    if wanted not in known:
        try:
            wanted, shape = library.kernel_and_shape(wanted, shape)
        except ValueError as fault:
            raise CallFault(str(fault)) from fault
    if wanted not in known:
        words = library.unknown(wanted).partition(" The kernels are: ")[0]
        raise CallFault(f"{words} {written('kernels')} lists them.", "not_found")
    return desk.service.games.from_kernel(wanted, shape, policy, target)


def _on_text(desk: Desk, text: str, sizes: dict[str, int], target: str, policy: str) -> Answer:
    """A text of the Dojo's own as it is, of another language translated; what it was read as is told."""
    read: list[str] = []
    if kind_of(text) not in OWN:
        made = translate(text, sizes, lenient=True)
        text, read = made.program.text, made.told
    return told(desk, desk.begin(desk.service.games.from_text(text, policy, target)), *read)


def _again(desk: Desk, game: str) -> Answer:
    """A saved game of the client's as it stands, of another's a copy."""
    table = desk.table(game)
    if table.owner == desk.owner:
        return told(desk, table)
    return told(desk, desk.copy(game), f"A copy of your own; the game {game} stays as it is.")


@call(answers.Games)
def games(desk: Desk, page: Page = 1) -> Answer:
    """Your saved games, the last played first. Every game is saved, after each move.

    Data: ``games`` of this ``page`` of ``pages``: of each its ``game`` (the id), ``title``, ``kernel``,
    ``shape``, ``target``, ``moves``, ``best`` (speed-up, if known) and ``when`` it was played last.
    """
    rows: list[Json] = []
    for saved in desk.saved():
        what = saved_games.outline(saved.text)
        rows.append(
            {
                "game": saved.id, "title": saved.title, "kernel": what.kernel, "shape": what.shape,
                "target": what.target, "moves": len(what.line), "best": what.best,
                "when": saved_games.when(saved.updated),
            }
        )  # fmt: skip
    shown, pages = paged(rows, page, LISTED)
    text = [
        f"{counted(len(rows), 'game')} of {desk.client}{f', page {page} of {pages}' if pages > 1 else ''}:"
    ]
    for row in shown:
        best = f", best {row['best']:.3g}×" if row["best"] else ""
        text.append(f"{row['game']}: {row['title']}, {counted(row['moves'], 'move')}{best}, {row['when']}")
    following = [written("open", game=shown[0]["game"])] if shown else [written("kernels")]
    if page < pages:
        following.insert(0, written("games", page=page + 1))
    data = {"games": list(shown), "page": page, "pages": pages}
    return Answer(ended(text, following), data, tuple(following))
