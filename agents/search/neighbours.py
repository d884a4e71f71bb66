"""What is next to a program: its position's legal moves (edges), or its line edited at any point (lines)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
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
    point; what stays legal of the rest is kept. A recipe may stand for a move where one is inserted."""
    return _edited(trail, rng, rng.choice((1, 1, 2)), recipes=True)


def edit_of_moves(trail: Trail, rng: random.Random) -> Trail | None:
    """The same without recipes, which people wrote who know what is fast; one edit to three."""
    return _edited(trail, rng, rng.choice((1, 1, 2, 3)), recipes=False)


def _edited(trail: Trail, rng: random.Random, edits: int, recipes: bool) -> Trail | None:
    changed = trail
    insert = partial(_insert, recipes=recipes)
    kinds = (_replace, insert, _drop, _renumber)
    for _ in range(edits):
        kind = rng.choices(kinds, (2, 3, 2, 3))[0] if changed.steps else insert
        changed = kind(changed, rng) or changed
    return changed if changed.program.hash != trail.program.hash else None


def _drop(trail: Trail, rng: random.Random) -> Trail | None:
    at = rng.randrange(len(trail.steps))
    return trail.upto(at).replayed(trail.steps[at + 1 :])


def _replace(trail: Trail, rng: random.Random) -> Trail | None:
    at = rng.randrange(len(trail.steps))
    before = trail.upto(at)
    extended = step_of_any_kind(before, trail.born, rng)
    return None if extended is None else extended.replayed(trail.steps[at + 1 :])


def _insert(trail: Trail, rng: random.Random, recipes: bool) -> Trail | None:
    at = rng.randint(0, len(trail.steps))
    before = trail.upto(at)
    add = _recipe if recipes and rng.random() < 0.3 else step_of_any_kind
    extended = add(before, trail.born, rng)
    return None if extended is None else extended.replayed(trail.steps[at:])


def _renumber(trail: Trail, rng: random.Random) -> Trail | None:
    """Give a move other numbers: another factor, another distance, another size."""
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
    for move in alike[:TRIES]:
        extended = before.extended(Step(move, step.origin))
        if extended is not None:
            return extended.replayed(trail.steps[at + 1 :])
    return None


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
