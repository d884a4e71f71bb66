"""Recorded lines: a text of moves with parameters, replayed on a kernel's start program.

A line file::

    # what it does, for people
    kernel softmax
    shape 24576x512
    policy reassoc
    target cpu
    vectors 32
    let block = 32
    let lanes = 16 | 8 | 4
    let part = 8 4 2 dividing block
    let whole = N - N % 48
    # One pass: what this and the next moves gain
    1: join_scopes m@0 ; 0.0 0.3
    2: split_scope m#1@1 $block
    unroll m#1@2
    tile d@1 64 16

The last one is a recipe: it is played as the moves that it makes. Number and provenances after ``;``
(what the move named when it was recorded) are optional; where they stand, replay compares them. ``$name``
stands for a parameter, which a caller may set (``parameters.py``). One may follow the kernel's sizes, by the
names that ``dojo kernels`` gives them, or earlier parameters: the first of some numbers that divides one, or
an expression. Where ``|`` stands, the first value is for vectors of 64 bytes, the next for 32, the last for
less. A line with ``vectors`` is for registers of so many bytes: there it goes before others of its kernel,
elsewhere behind them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from dojo_core import kernels
from dojo_core.drawn import Drawn
from dojo_core.game import Entry, Game, Replay, Step, read_provenance
from dojo_core.moves.core import IllegalMove
from dojo_core.moves.notation import MoveSyntax, parse_move
from dojo_core.package_data import data_path
from dojo_core.parameters import Let, Value, read_let
from dojo_core.program.dependence import POLICIES
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET, VECTOR_BYTES, Target
from dojo_core.program.tree import Program
from dojo_core.recipes import RECIPES, play
from dojo_core.targets.registry import backend
from dojo_core.targets.registry import names as target_names
from dojo_core.targets.registry import target as target_named

LINES_FOLDER = data_path("dojo_core", "lines")


# Possessive, so that a line of many spaces is looked at once.
_MOVE = re.compile(r"(?:(\d{1,6}):)?\s*+((?>[^\s;](?:[^;]*[^\s;])?))\s*+(?:;\s*+([\d. ]*+))?\Z", re.ASCII)
_FACTS = {
    "kernel": (r"\w+", "kernel softmax"),
    "shape": (r"\d{1,9}(x\d{1,9}){0,15}", "shape 24576x512"),
    "policy": ("|".join(POLICIES), f"policy {POLICIES[0]} (or {', '.join(POLICIES[1:])})"),
    "target": (
        rf"({'|'.join(target_names())})(@[\w.-]{{1,40}})?",
        f"target {DEFAULT_TARGET} (of {', '.join(target_names())})",
    ),
    "vectors": ("|".join(map(str, VECTOR_BYTES)), "vectors 32 (bytes of a register; or 16, 64)"),
}
_PARAMETER = re.compile(r"\$([a-z][a-z0-9_]*)")


@dataclass(frozen=True)
class RecordedLine(Drawn):
    """A line of moves with its facts. ``lets``: its parameters, in order. ``vectors``: the bytes of the
    registers that it is for; None where it follows the width that it finds."""

    title: str
    kernel: str | None
    shape: str
    policy: str
    target: str
    lets: tuple[Let, ...]
    moves: tuple[tuple[int, str, str], ...]  # (line in the file, move with $parameters, provenances)
    numbers: tuple[int, ...]
    about: str = ""  # the comment at its head
    notes: tuple[tuple[int, str], ...] = ()  # later comments, each with how many moves stand before it
    vectors: int | None = None

    @property
    def settings(self) -> Mapping[str, int]:
        """The parameters' values at the line's own shape."""
        return self.values(self.shape)

    def values(
        self, shape: str, settings: Mapping[str, int] | None = None, on: Target | None = None
    ) -> dict[str, int]:
        """The parameters' values at a shape (and on a target: default this machine), those that a caller sets
        before all. Raises TextError for an unknown one."""
        names = [each.name for each in self.lets]
        for name in settings or {}:
            if name not in names:
                raise TextError(
                    f"the line has no parameter {name}", f"Its parameters: {', '.join(names) or 'none'}."
                )
        vectors = _vector_bytes(on or target_named(self.target))
        known = self._sizes(shape)
        values: dict[str, int] = {}
        for each in self.lets:
            value, sizes = each.on(vectors), {**known, **values}
            if each.name in (settings or {}):
                values[each.name] = (settings or {})[each.name]
            else:
                values[each.name] = self._value(each.name, value, sizes, shape)
        return values

    def _value(self, name: str, value: Value, sizes: Mapping[str, int], shape: str) -> int:
        for size in value.names:
            if size not in sizes:
                raise TextError(
                    f"the shape {shape} has no size {size}, which {name} follows",
                    f"Write all sizes of {self.kernel}: {'x'.join(_sizes(self.kernel))}.",
                )
        try:
            return value.at(sizes)
        except ValueError as fault:
            message = f"the parameter {name} has no value for a move at the shape {shape}: {fault}"
            raise TextError(message, f"Set it: --set {name}=16.") from None

    def _sizes(self, shape: str) -> dict[str, int]:
        """The kernel's sizes by name at a shape; where none is told, at the kernel's first."""
        if not shape and self.kernel in kernels.names():
            shape = "x".join(map(str, kernels.get(self.kernel).shapes[0]))
        return dict(zip(_sizes(self.kernel), map(int, shape.split("x")), strict=False)) if shape else {}

    def lacks(self, on: Target | None = None) -> str:
        """What a target (default: this machine) lacks to play the line to its end: a sentence, or empty."""
        target = on or target_named(self.target)
        known = {name for name, _ in target.instructions}
        for _, words, _ in self.moves:
            name, _, arguments = words.partition(" ")
            if name == "use_instruction" and arguments.split()[-1] not in known:
                return f"This machine has no {arguments.split()[-1]}: the line is played up to there."
        if self.vectors is not None and self.vectors > _vector_bytes(target):
            return (
                f"Made for vectors of {self.vectors} bytes, wider than this machine's: the line is played as "
                "far as it goes."
            )
        return ""

    def steps(
        self, settings: Mapping[str, int] | None = None, shape: str = "", on: Target | None = None
    ) -> list[Step | str]:
        """The moves with parameters filled in, for a shape (default: the line's own) on a target, and recipes
        by their text.

        Raises TextError for a bad move or an unknown parameter.
        """
        values = self.values(shape or self.shape, settings, on)
        steps: list[Step | str] = []
        for origin, (number, words, provenances) in zip(self.numbers, self.moves, strict=True):

            def filled(match: re.Match[str], number: int = number, words: str = words) -> str:
                if match.group(1) not in values:
                    raise TextError(
                        f"no parameter {match.group(1)}",
                        f"Add a line: let {match.group(1)} = 16",
                        number,
                        1,
                        words,
                    )
                return str(values[match.group(1)])

            text = _PARAMETER.sub(filled, words)
            if text.partition(" ")[0] in RECIPES:
                if any(each for _, _, each in self.moves):
                    message = "a line with recipes has no provenances"
                    raise TextError(message, "Save the game of its moves instead.", number, 1, words)
                steps.append(text)
                continue
            try:
                move = parse_move(text, RECIPES)
            except MoveSyntax as error:
                raise TextError(str(error), "Correct the move.", number, 1, words) from error
            steps.append(Step(move, origin, read_provenance(provenances)))
        return steps

    def play(
        self, game: Game, settings: Mapping[str, int] | None = None, longest_way: int | None = None
    ) -> Replay:
        """Play the line from the game's cursor on; stops at the first move that does not apply.

        ``longest_way``: as of ``Game.replay``.
        """
        shape = game.shape if game.kernel == self.kernel else ""
        calls = self.steps(settings, shape, game.context(game.cursor, 0).target)
        atomic = [call for call in calls if isinstance(call, Step)]
        if len(atomic) == len(calls):
            report = game.replay(game.cursor, atomic, longest_way=longest_way)
            return replace(report, begins=tuple(range(len(atomic))))
        # A recipe comes to several moves, so the line's own numbers cannot name what its moves make.
        entries: list[Entry] = []
        begins: list[int] = []
        for call in calls:
            begins.append(len(entries))
            text = str(call.move) if isinstance(call, Step) else call
            try:
                entries += [Entry(str(move), "same", str(move)) for move in play(game, text)]
            except (IllegalMove, MoveSyntax) as refusal:
                entries.append(Entry(text, "refused", text, str(refusal)))
                break
        return Replay(tuple(entries), game.cursor, tuple(begins))


def read_line(text: str, title: str = "line") -> RecordedLine:
    """Read a line file. Raises TextError with the line and what to do."""
    if len(text) > 256 * 1024:
        raise TextError("the line is longer than 256 KiB", "Split it.")
    facts = {"kernel": "", "shape": "", "policy": "reassoc", "target": DEFAULT_TARGET, "vectors": ""}
    lets: list[Let] = []
    moves: list[tuple[int, str, str]] = []
    numbers: list[int] = []
    about: list[str] = []
    notes: dict[int, list[str]] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.startswith("#"):
            head = not (moves or lets or facts["kernel"] or facts["shape"])
            (about if head else notes.setdefault(len(moves), [])).append(line.lstrip("# "))
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word == "let":
            known = [*_sizes(facts["kernel"]), *(each.name for each in lets)]
            lets.append(read_let(line, known, number, raw))
        elif word in _FACTS:
            pattern, form = _FACTS[word]
            if not re.fullmatch(pattern, rest.strip()):
                named = "width of vectors" if word == "vectors" else word
                raise TextError(f"this is no {named}", f"The line reads: {form}", number, 1, raw)
            facts[word] = rest.strip()
        else:
            match = _MOVE.match(line)
            if match is None:
                raise TextError("this is no move", "A move reads: split_scope y@0 16", number, 1, raw)
            origin, words, provenances = match.groups()
            moves.append((number, words, provenances or ""))
            numbers.append(int(origin) if origin else len(numbers) + 1)
            if len(moves) > 500:
                raise TextError("more than 500 moves", "Split the line.", number)
    return RecordedLine(
        title,
        facts["kernel"] or None,
        facts["shape"],
        facts["policy"],
        facts["target"],
        tuple(lets),
        tuple(moves),
        tuple(numbers),
        " ".join(about),
        tuple((place, " ".join(words)) for place, words in notes.items()),
        int(facts["vectors"]) if facts["vectors"] else None,
    )


_read = lru_cache(maxsize=256)(read_line)  # those that come with the Dojo are asked for over and over


def _sizes(kernel: str | None) -> tuple[str, ...]:
    """The names of a kernel's sizes, none of an unknown one's."""
    return tuple(kernels.get(kernel).parameters) if kernel in kernels.names() else ()


def lines_folder(target: str = DEFAULT_TARGET) -> Path | None:
    """Where the recorded lines for a target lie, None where there are none."""
    return backend(target).lines


def recorded_lines(target: str = DEFAULT_TARGET) -> dict[str, RecordedLine]:
    """The lines for a target that come with the Dojo, by name."""
    folder = lines_folder(target)
    files = sorted(folder.glob("*.line")) if folder is not None else []
    return {p.stem: _read(p.read_text(encoding="utf-8"), p.stem) for p in files}


def lines_for(
    kernel: str, shape: str | None = None, target: str = DEFAULT_TARGET, on: Target | None = None
) -> dict[str, RecordedLine]:
    """The lines that come with the Dojo for a kernel, by name, in the order in which a shape tries them.

    Those for other vectors than the target's come last; else the nearer the size that a line was recorded
    at, the earlier, and of two at the same the one for the target's vectors. Without a shape it is that of
    the line named after the kernel. ``on``: the target, where it is not this machine's.
    """
    vectors = _vector_bytes(on or target_named(target))
    lines = {name: line for name, line in recorded_lines(target).items() if line.kernel == kernel}
    if shape is None and kernel in lines:
        shape = lines[kernel].shape or None
    sizes: tuple[int, ...] = ()
    if shape is not None and kernel in kernels.names():
        with suppress(ValueError):  # whoever plays the line says what is wrong with the shape
            sizes = kernels.get(kernel).shape(shape)

    def far(each: tuple[str, RecordedLine]) -> tuple[bool, float, bool, bool, bool]:
        name, line = each
        recorded = tuple(map(int, line.shape.split("x"))) if line.shape else ()
        apart = abs(math.log(_points(recorded) / _points(sizes))) if sizes and recorded else 0.0
        return (
            line.vectors not in (None, vectors),
            apart,
            line.vectors is None,
            recorded != sizes,
            name != kernel,
        )

    return dict(sorted(lines.items(), key=far))


def _vector_bytes(target: Target) -> int:
    return 4 * target.vector_widths.get("f32", (1,))[0]


def _points(sizes: Sequence[int]) -> int:
    return math.prod(max(1, size) for size in sizes)


def line_for(
    kernel: str, shape: str | None = None, target: str = DEFAULT_TARGET, on: Target | None = None
) -> RecordedLine | None:
    """The first line of a kernel that applies at a shape; where none does, or without a shape, the first."""
    on = on or target_named(target)
    lines = list(lines_for(kernel, shape, target, on).values())
    if shape is not None and len(lines) > 1:
        return next((line for line in lines if applies(line, shape, on)), lines[0])
    return next(iter(lines), None)


def applies(line: RecordedLine, shape: str, on: Target | None = None) -> bool:
    """Can all moves of a kernel's line be played at a shape of it?"""
    kernel = kernels.get(line.kernel or "")
    start = Game.new(kernel.program(kernel.shape(shape)), kernel.name, shape, line.target, line.policy)
    return end_of(line, start, on) is not None


def end_of(
    line: RecordedLine, start: Game, on: Target | None = None, settings: Mapping[str, int] | None = None
) -> Program | None:
    """Where a line leads from a game's start, there or with other limits; None where a move does not apply.
    Raises TextError where a parameter has no value.

    Remembered: an export asks several times which line comes first and then for its end, and a network has
    layers alike.
    """
    limits = on or start.limits or target_named(start.target)
    given = tuple(sorted((settings or {}).items()))
    return _end(line, given, start.start, start.kernel, start.shape, start.target, start.policy, limits)


@lru_cache(maxsize=256)
def _end(
    line: RecordedLine, settings: tuple[tuple[str, int], ...], start: Program, kernel: str, shape: str,
    target: str, policy: str, limits: Target,
) -> Program | None:  # fmt: skip
    game = Game.new(start, kernel, shape, target, policy, limits=limits)
    report = line.play(game, dict(settings), longest_way=0)
    return game.current.program if all(entry.applies for entry in report.entries) else None


def with_provenance(line_text: str, game: Game) -> str:
    """A line file with number and provenances beside each move, as played in ``game``'s main line.

    Raises TextError where a recipe stands in the line: a game's own text has that of what it came to.
    """
    played = iter(game.main_line(0)[1:])
    lines: list[str] = []
    for raw in line_text.splitlines():
        line = raw.strip()
        if not line or line.startswith("#") or line.split()[0] in ("let", *_FACTS):
            lines.append(raw)
            continue
        match = _MOVE.match(line)
        assert match is not None
        if match.group(2).split()[0] in RECIPES:
            raise TextError("a recipe has no provenances of its own", "Save the game instead.", source=line)
        position = next(played)
        lines.append(
            f"{position.origin}: {match.group(2)}  ; {' '.join(map(str, position.references))}".rstrip(" ;")
        )
    return "\n".join(lines) + "\n"
