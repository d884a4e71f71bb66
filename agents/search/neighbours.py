"""What is next to a program: its position's legal moves (edges), or its line edited at any point (lines)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from agents.trail import Trail
from dojo_core.game import Step
from dojo_core.moves.core import REGISTRY, Argument, Context, IllegalMove, Move, Refusal
from dojo_core.moves.legality import all_candidates, outcome
from dojo_core.moves.notation import MoveSyntax
from dojo_core.moves.places import NoSuchPlace, Place
from dojo_core.moves.storage import temporaries
from dojo_core.program.tree import Scope, walk
from dojo_core.recipes import RECIPES, Sketch

Neighbour = Callable[[Trail, random.Random], Trail | None]
TRIES = 40  # candidates looked at before a position counts as having no legal move of the wanted kind
# Moves that an edit may make illegal. Of 17,000 programs that searches measured (docs/search), a quarter had
# lost five moves or more of every fast line before them; they took 59% of the timed seconds, and 1 in 100 was
# within 5% of the first line or faster, of those that had lost none 3 in 10.
LOST = 4
ANYHOW = 0.1  # of the edits, those that may lose any number: no line is out of reach


def edge(trail: Trail, rng: random.Random) -> Trail | None:
    """The line with one more legal move, all of them equally likely."""
    context = trail.context()
    candidates = list(all_candidates(context))
    rng.shuffle(candidates)
    for move in candidates:
        result = outcome(context, move)
        if not isinstance(result, Refusal):
            return trail.extended(Step(move, context.born))
    return None


def edit(trail: Trail, rng: random.Random) -> Trail | None:
    """The line with one or two edits: a move replaced, inserted, dropped or given other numbers, at any
    point; what stays legal of the rest is kept, and where that is too little, it is none. A recipe may stand
    for a move where one is inserted."""
    lost = None if rng.random() < ANYHOW else LOST
    return _edited(trail, rng, rng.choice((1, 1, 2)), recipes=True, lost=lost)


def edit_of_moves(trail: Trail, rng: random.Random) -> Trail | None:
    """The same without recipes, which people wrote who know what is fast; one edit to three."""
    return _edited(trail, rng, rng.choice((1, 1, 2, 3)), recipes=False)


def _edited(
    trail: Trail, rng: random.Random, edits: int, recipes: bool, lost: int | None = None
) -> Trail | None:
    """``lost``: moves that an edit may make illegal, if not any number."""
    changed = trail
    insert = partial(_insert, recipes=recipes)
    kinds = (_replace, insert, _drop, _renumber)
    for _ in range(edits):
        kind = rng.choices(kinds, (2, 3, 2, 3))[0] if changed.steps else insert
        changed = kind(changed, rng, lost) or changed
    return changed if changed.program.hash != trail.program.hash else None


def _replayed(
    trail: Trail, steps: Sequence[Step], lost: int | None, change: Callable[[Step], Step | None] | None = None
) -> Trail | None:
    """The line with what stays legal of the steps behind it, each changed where that is legal; None where
    more than ``lost`` are not."""
    missing = 0
    for step in steps:
        changed = change(step) if change is not None else None
        extended = trail.extended(changed) if changed is not None else None
        extended = extended or trail.extended(step)
        missing += extended is None
        if lost is not None and missing > lost:
            return None
        trail = extended or trail
    return trail


def _drop(trail: Trail, rng: random.Random, lost: int | None) -> Trail | None:
    at = rng.randrange(len(trail.steps))
    return _replayed(trail.upto(at), trail.steps[at + 1 :], lost)


def _replace(trail: Trail, rng: random.Random, lost: int | None) -> Trail | None:
    at = rng.randrange(len(trail.steps))
    before = trail.upto(at)
    extended = step_of_any_kind(before, trail.born, rng)
    return None if extended is None else _replayed(extended, trail.steps[at + 1 :], lost)


def _insert(trail: Trail, rng: random.Random, lost: int | None, recipes: bool) -> Trail | None:
    at = rng.randint(0, len(trail.steps))
    before = trail.upto(at)
    add = _recipe if recipes and rng.random() < 0.3 else step_of_any_kind
    extended = add(before, trail.born, rng)
    return None if extended is None else _replayed(extended, trail.steps[at:], lost)


def _renumber(trail: Trail, rng: random.Random, lost: int | None) -> Trail | None:
    """Give a move other numbers: another factor, another distance, another size. Half the time later moves of
    the same kind with the same numbers get them too, as those do that cut a tile, its operands and its
    results."""
    numbered = [
        n for n, step in enumerate(trail.steps) if any(isinstance(a, int) for a in step.move.arguments)
    ]
    if not numbered:
        return None
    at = rng.choice(numbered)
    step, before = trail.steps[at], trail.upto(at)
    context = before.context(born=step.origin)
    alike = [m for m in all_candidates(context, (step.move.name,)) if _same_places(m, step.move)]
    rng.shuffle(alike)
    together = rng.random() < 0.5
    for move in alike[:TRIES]:
        extended = before.extended(Step(move, step.origin))
        if extended is not None:
            alike_too = partial(_renumbered, old=step.move, new=move) if together else None
            return _replayed(extended, trail.steps[at + 1 :], lost, alike_too)
    return None


def _renumbered(step: Step, old: Move, new: Move) -> Step | None:
    """A step with the numbers of a new move, if it is of the kind of an old one and has its numbers."""
    move = step.move
    if move.name != old.name or len(move.arguments) != len(new.arguments) or _numbers(move) != _numbers(old):
        return None
    arguments = tuple(
        b if isinstance(a, int) else a for a, b in zip(move.arguments, new.arguments, strict=True)
    )
    return replace(step, move=replace(move, arguments=arguments))


def _numbers(move: Move) -> list[Argument]:
    """The numbers of a move by place, empty for what is none."""
    return [a if isinstance(a, int) else "" for a in move.arguments]


def _same_places(one: Move, other: Move) -> bool:
    def named(move: Move) -> list[Argument]:
        return [a for a in move.arguments if not isinstance(a, int)]

    return one != other and named(one) == named(other)


def step_of_any_kind(trail: Trail, born: int, rng: random.Random) -> Trail | None:
    """One legal move more, each kind of move equally likely."""
    context = trail.context(born=born)
    names = sorted(REGISTRY)
    rng.shuffle(names)
    for name in names:
        alike = list(all_candidates(context, (name,)))
        rng.shuffle(alike)
        for move in alike[: TRIES // 4]:
            extended = trail.extended(Step(move, born))
            if extended is not None:
                return extended
    return None


def _recipe(trail: Trail, born: int, rng: random.Random) -> Trail | None:
    """The moves of a recipe somewhere."""
    context = trail.context(born=born)
    calls = list(recipe_calls(context, rng))
    rng.shuffle(calls)
    for name, arguments in calls[: TRIES // 4]:
        sketch = Sketch(context)
        try:
            RECIPES[name].run(sketch, *arguments)
        except (IllegalMove, MoveSyntax, NoSuchPlace):
            continue
        for number, move in enumerate(sketch.moves):
            trail = trail.extended(Step(move, born + number)) or trail
        return trail
    return None


def recipe_calls(context: Context, rng: random.Random) -> Iterator[tuple[str, tuple[Argument, ...]]]:
    """Recipes at the places of a program, with random numbers that may fit."""
    sketch = Sketch(context)
    widths = sorted({w for each in context.target.vector_widths.values() for w in each}, reverse=True)
    for node, path, _ in walk(context.program.body):
        if isinstance(node, Scope) and not node.mark:
            place: Place = sketch.place(path)
            yield "fuse", (place,)
            yield "vectorize_all", (place, rng.choice((1, 2, 4, 8, 16, 24)))
            width = rng.choice(widths) if widths else node.size  # without vectors no tiles for them
            if node.size % width == 0 and node.size > width:
                times = rng.choice((2, 3, 4, 6, 8))
                yield "tile", (place, times * width, width)
    for buffer in temporaries(context.program):
        dims = tuple(k for k, dim in enumerate(buffer.dims) if dim.materialised)
        if dims:
            yield (
                "private",
                (buffer.name, *dims[: rng.randint(1, len(dims))], rng.choice(("register", "stack"))),
            )
