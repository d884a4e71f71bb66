"""Recipes: named ways from a place to a line of atomic moves.

``tile y@1 32 16`` is two splits, ``lanes m#1@3 qm pm`` two split reductions. A recipe has no power of its
own: it is expanded to moves, each checked like any other, and only those are recorded. A user writes one as
a text of moves with parameters (``read_recipe``).
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain

from dojo_core.game import MAX_MOVES, Game, GameFull
from dojo_core.measure.places import data_home
from dojo_core.moves.core import (
    REGISTRY,
    Argument,
    Context,
    IllegalMove,
    Move,
    Parameter,
    Refusal,
    structural,
)
from dojo_core.moves.legality import context, outcome
from dojo_core.moves.notation import MoveSyntax, parse_move, read_arguments
from dojo_core.moves.places import (
    NoSuchPlace,
    Place,
    fresh_name,
    leaf_at,
    place_of,
    reduction_at,
    resolve,
    scope_at,
    scopes,
)
from dojo_core.moves.storage import buffer_named
from dojo_core.moves.ways import with_enablers
from dojo_core.program.dependence import is_reduction
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET, Target
from dojo_core.program.tree import Op, Path, Program, Provenance, Scope, walk

MOST_MOVES = 200  # that one recipe may make
DEEPEST = 8
UNROLLED = 24  # copies of a vector operation that vectorize_all makes at most


class Sketch:
    """A line in the making: a position, and the moves that led there from where it began."""

    def __init__(
        self, begin: Context, recipes: Mapping[str, Recipe] | None = None, most: int = MOST_MOVES
    ) -> None:
        self.context = begin
        self.recipes = RECIPES if recipes is None else recipes
        self.moves: list[Move] = []
        self._outcomes: list[tuple[Context, Program]] = []  # of each move: where it was asked, what it makes
        self.most = most
        self._within = 0  # how deep recipes use recipes
        self._attempts = 0  # how many stand around what is played

    @property
    def program(self) -> Program:
        return self.context.program

    def play(self, name: str, *arguments: Argument) -> None:
        """One move. Raises IllegalMove with the refusal, and ways around it where somebody hears of them: not
        within an attempt."""
        move = Move(name, arguments)
        refusal = self._played(move)
        if refusal is not None:
            heard = not self._attempts and not self.full
            raise IllegalMove(str(move), with_enablers(self.context, move, refusal) if heard else refusal)

    @property
    def full(self) -> bool:
        """Has it as many moves as it may have?"""
        return len(self.moves) >= self.most

    def may(self, name: str, *arguments: Argument) -> bool:
        """Play a move if it is legal."""
        return self._played(Move(name, arguments)) is None

    def _played(self, move: Move) -> Refusal | None:
        if self.full:
            return structural("too-many", f"A recipe makes at most {self.most} moves: let it do less.")
        result = outcome(self.context, move)
        if isinstance(result, Refusal):
            return result
        self.moves.append(move)
        self._outcomes.append((self.context, result))
        self.context = replace(self.context, program=result, born=self.context.born + 1)
        return None

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """All that is played in the block, or, where a move of it is refused, nothing of it."""
        context, count = self.context, len(self.moves)
        self._attempts += 1
        try:
            yield
        except (IllegalMove, NoSuchPlace):
            self.context = context
            del self.moves[count:], self._outcomes[count:]
        finally:
            self._attempts -= 1

    def do(self, text: str) -> None:
        """A move or a recipe by its text."""
        words = text.split()
        recipe = called(words[0], self.recipes) if words else None
        if recipe is None:
            move = parse_move(text, self.recipes)
            self.play(move.name, *move.arguments)
            return
        if self._within == DEEPEST:
            raise MoveSyntax(f"Recipes use each other more than {DEEPEST} deep.")
        self._within += 1
        recipe.run(self, *read_arguments(recipe, words[1:]))
        self._within -= 1

    def play_on(self, game: Game) -> tuple[Move, ...]:
        """Play its moves at the game's cursor. What is known of them here is not found out again where the
        game stands at the same programs and numbers its moves alike."""
        for move, known in zip(self.moves, self._outcomes, strict=True):
            game.play(move, known=known)
        return tuple(self.moves)

    def provenance(self, path: Path) -> Provenance:
        return self.program.node(path).provenance

    def path(self, provenance: Provenance) -> Path:
        """Where a node stands now. Raises NoSuchPlace where it is gone."""
        path = self.program.paths.get(provenance)
        if path is None:
            raise NoSuchPlace("A node that the recipe works on is gone.")
        return path

    def place(self, path: Path) -> Place:
        return place_of(self.program, path)


@dataclass(frozen=True)
class Recipe:
    """A named way of making moves: ``run`` takes a sketch, on which it plays them, and an argument for each
    of the parameters (``moves.core.KINDS``)."""

    name: str
    parameters: tuple[Parameter, ...]
    about: str
    run: Callable[..., None]
    also: tuple[str, ...] = ()  # what others call it: read in its place


RECIPES: dict[str, Recipe] = {}


def recipe(
    *parameters: Parameter, also: tuple[str, ...] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers a function as a recipe of its name; its docstring's first line tells people."""

    def registered(run: Callable[..., None]) -> Callable[..., None]:
        about = (run.__doc__ or "").strip().split("\n")[0]
        RECIPES[run.__name__] = Recipe(run.__name__, parameters, about, run, also)
        return run

    return registered


def called(name: str, recipes: Mapping[str, Recipe]) -> Recipe | None:
    """The recipe of a name, or the one that others call so where no move has the name."""
    if name in recipes or name in REGISTRY:
        return recipes.get(name)
    return next((each for each in recipes.values() if name in each.also), None)


def expand(
    program: Program,
    text: str,
    target: str | Target = DEFAULT_TARGET,
    policy: str = "reassoc",
    recipes: Mapping[str, Recipe] | None = None,
) -> tuple[Move, ...]:
    """The moves that recipes and moves by their text, separated by ``;``, come to at a position.

    Raises MoveSyntax for a bad text, IllegalMove where a move is refused or a name means nothing; nothing
    has been played then.
    """
    return tuple(_expanded(context(program, target, policy, _unused(program)), text, recipes).moves)


def result(
    program: Program, text: str, target: str | Target = DEFAULT_TARGET, policy: str = "reassoc"
) -> Program:
    """The program after them; raises as ``expand`` does."""
    return _expanded(context(program, target, policy, _unused(program)), text, None).program


def play(game: Game, text: str, recipes: Mapping[str, Recipe] | None = None) -> tuple[Move, ...]:
    """Play moves and recipes, separated by ``;``, at the game's cursor, all or nothing; raises as ``expand``
    does."""
    number = max(max(game.positions) + 1, _unused(game.current.program))
    sketch = _expanded(game.context(game.cursor, number), text, recipes)
    if len(game.positions) + len(sketch.moves) > MAX_MOVES:
        raise GameFull
    return sketch.play_on(game)


def _unused(program: Program) -> int:
    """A number for a move: what it and those after it make differs by provenance from all that is there."""
    last = max((node.provenance.move for node, _, _ in walk(program.body)), default=0)
    return max(last, program.age) + 1


def _expanded(begin: Context, text: str, recipes: Mapping[str, Recipe] | None) -> Sketch:
    sketch = Sketch(begin, recipes)
    for part in filter(None, map(str.strip, text.split(";"))) if ";" in text else [text]:
        played = len(sketch.moves)
        try:
            sketch.do(part)
        except NoSuchPlace as missing:
            raise IllegalMove(part, structural("no-such-place", str(missing))) from missing
        if len(sketch.moves) == played:
            nothing = "There is nothing to do: it would make no move here."
            raise IllegalMove(part, structural("no-moves", nothing))
    if not sketch.moves:
        raise MoveSyntax("An empty line is no move.")
    return sketch


# ---------------------------------------------------------------------------- scopes


@recipe(Parameter("scope", "scope"), Parameter("times", "number", optional=True))
def fuse(sketch: Sketch, scope: Place, times: int | None = None) -> None:
    """Join a scope with its next siblings, so many times (default: while it is legal)."""
    if times is not None:
        for _ in range(times):
            sketch.play("join_scopes", scope)
    else:
        sketch.play("join_scopes", scope)
        while sketch.may("join_scopes", scope):
            pass


@recipe(Parameter("scope", "scope"), Parameter("sizes", "numbers"), also=("blocking", "loop_tiling"))
def tile(sketch: Sketch, scope: Place, *sizes: int) -> None:
    """Split a scope, and what is left inside again: ``tile y@1 32 16`` makes N/32, 2, 16."""
    path, _, _ = scope_at(sketch.program, scope)
    for factor in sizes:
        sketch.play("split_scope", sketch.place(path), factor)
        path = (*path, 0)


@recipe(Parameter("operation", "op"), Parameter("depths", "numbers"))
def permute(sketch: Sketch, operation: Place, *depths: int) -> None:
    """Bring the scopes around an operation into an order, given by their depths, by interchanges."""
    leaf = leaf_at(sketch.program, operation)
    if len(set(depths)) < len(depths) or max(depths, default=-1) >= len(leaf.scopes):
        raise NoSuchPlace(f"{operation} stands in {len(leaf.scopes)} scopes: name each depth once.")
    order = [leaf.scopes[d].provenance for d in depths]
    for depth, provenance in zip(sorted(depths), order, strict=True):
        while len(path := sketch.path(provenance)) - 1 > depth:
            sketch.play("interchange", sketch.place(path[:-1]))


@recipe(Parameter("scope", "scope"), Parameter("other", "scope"))
def fuse_with(sketch: Sketch, scope: Place, other: Place) -> None:
    """Join a scope with a later one of its block: what stands between goes before the first, else behind."""
    path, first, _ = scope_at(sketch.program, scope)
    later, second, _ = scope_at(sketch.program, other)
    if path[:-1] != later[:-1] or later <= path:
        raise NoSuchPlace(f"{other} does not follow {scope} in the same block.")
    behind = []
    for provenance in [sketch.provenance((*path[:-1], n)) for n in range(path[-1] + 1, later[-1])]:
        behind.append(provenance)
        with sketch.attempt():
            _raise(sketch, provenance, sketch.path(first.provenance)[-1])
            behind.pop()
    for provenance in reversed(behind):
        while (at := sketch.path(provenance)) < sketch.path(second.provenance):
            sketch.play("reorder", sketch.place(at))
    sketch.play("join_scopes", sketch.place(sketch.path(first.provenance)))


@recipe(
    Parameter("scope", "scope"),
    Parameter("stages", "number", optional=True),
    also=("software_pipeline", "software_pipelining"),
)
def pipeline(sketch: Sketch, scope: Place, stages: int | None = None) -> None:
    """Make scopes that follow each other one, each an iteration ahead of the next (software pipelining).

    Of S stages over N iterations, the first is S-1 iterations ahead of the last: the scope that they share
    has N-S+1 iterations. What fills the pipeline stands before it, what drains it behind, step by step.
    Source: Lam, "Software pipelining", PLDI 1988; here of whole loops.
    """
    path, first, _ = scope_at(sketch.program, scope)
    alike = _stages(sketch.program, path)
    count = len(alike) if stages is None else stages
    if not 2 <= count <= min(len(alike), first.size):
        raise NoSuchPlace(
            f"There are no {max(2, count)} stages at {scope}: that many scopes of one size have to "
            "follow each other there, of as many iterations or more. "
            f"There are {len(alike)}, of {first.size}."
        )
    shared = first.size - count + 1
    before: list[list[Provenance]] = [[] for _ in range(count - 1)]  # by step, what fills the pipeline
    behind: list[list[Provenance]] = [[] for _ in range(count - 1)]  # and what drains it
    bodies: list[Provenance] = []
    for number, provenance in enumerate(alike[:count]):
        at = sketch.path(provenance)
        sizes = [1] * (count - 1 - number) + [shared] + [1] * number
        for size in sizes[:-1]:
            sketch.play("cut_scope", sketch.place(at), size)
            at = (*at[:-1], at[-1] + 1)
        pieces = [sketch.provenance((*at[:-1], at[-1] - n)) for n in reversed(range(count))]
        for step in range(number, count - 1):
            before[step].append(pieces[step - number])
        bodies.append(pieces[count - 1 - number])
        for step in range(number):
            behind[step].append(pieces[count - number + step])
    filling, draining = list(chain(*before)), list(chain(*behind))
    for index, provenance in enumerate([*filling, *bodies, *draining]):
        _raise(sketch, provenance, path[-1] + index)
    for _ in bodies[1:]:
        sketch.play("join_scopes", sketch.place((*path[:-1], path[-1] + len(filling))))
    for provenance in [*filling, *draining]:
        sketch.play("unwrap", sketch.place(sketch.path(provenance)))


def _stages(program: Program, path: Path) -> list[Provenance]:
    """A scope and those of its size that follow it directly."""
    size = program.scope(path).size
    stages = []
    for node in program.siblings(path)[path[-1] :]:
        if not isinstance(node, Scope) or node.size != size or node.mark:
            break
        stages.append(node.provenance)
    return stages


def _raise(sketch: Sketch, provenance: Provenance, index: int) -> None:
    """Let a node change places with those before it until it is child ``index`` of its block."""
    while (at := sketch.path(provenance))[-1] > index:
        sketch.play("reorder", sketch.place((*at[:-1], at[-1] - 1)))


@recipe(Parameter("scope", "scope"))
def peel(sketch: Sketch, scope: Place) -> None:
    """Take the first iteration of a scope out of it; and what is left, where that is one iteration."""
    path, node, _ = scope_at(sketch.program, scope)
    sketch.play("cut_scope", scope, 1)
    rest = (*path[:-1], path[-1] + 1)
    if node.size == 2:
        sketch.play("unwrap", sketch.place(rest))
    sketch.play("unwrap", sketch.place(path))


# ---------------------------------------------------------------------------- vectors and reductions


@recipe(Parameter("reduction", "reduction"), Parameter("inner", "name"), Parameter("outer", "name"))
def lanes(sketch: Sketch, reduction: Place, inner: str, outer: str) -> None:
    """Partial results for a reduction's lanes, and for the scope around them: two split reductions."""
    _, depth = reduction_at(sketch.program, reduction)
    sketch.play("split_reduction", reduction, inner)
    sketch.play("split_reduction", Place(inner, 1, depth - 1), outer)


@recipe(
    Parameter("node", "node"),
    Parameter("copies", "number", optional=True),
    also=("vectorise_all", "auto_vectorize"),
)
def vectorize_all(sketch: Sketch, node: Place, copies: int = UNROLLED) -> None:
    """Vectorise the innermost scopes below and unroll around them, so many copies at most.

    Where none can be as it is, they are split by the vector width first, and reductions into partial results
    for the lanes. What cannot be vectorised stays as it is.
    """
    root = sketch.provenance(resolve(sketch.program, node))
    born = sketch.context.born
    if _vectorised(sketch, root, born, copies):
        return
    innermost = _innermost(sketch.program, sketch.path(root), born)
    split = [_split_by_width(sketch, provenance) for provenance in innermost]
    if not _vectorised(sketch, root, born, copies) and not any(split):
        raise NoSuchPlace(
            f"No scope in {node} can be vectorised, nor when it is split by a vector width: "
            "why vectorize SCOPE says what stands in the way of one."
        )


def _innermost(program: Program, root: Path | None, born: int) -> list[Provenance]:
    """Unmarked scopes around a single operation, below a node (if it is still there) or made by a move since
    ``born``."""
    return [
        scope.provenance
        for path, scope, _ in scopes(program)
        if ((root is not None and path[: len(root)] == root) or scope.provenance.move >= born)
        and not scope.mark
        and len(scope.body) == 1
        and isinstance(scope.body[0], Op)
    ]


def _vectorised(sketch: Sketch, root: Provenance, born: int, copies: int) -> int:
    """Vectorise what can be, and unroll around it; how many scopes that was."""
    vectorised = 0
    at = sketch.program.paths.get(root)  # gone where it was the innermost scope itself, and was split
    around_all = 0 if at is None else len(at)
    for provenance in _innermost(sketch.program, at, born):
        path = sketch.path(provenance)
        if not sketch.may("vectorize", sketch.place(path)):
            continue
        vectorised += 1
        unrolled = 1
        while len(path) > max(1, around_all):
            path = path[:-1]
            around = sketch.program.scope(path)
            if len(around.body) > 1 or around.mark or unrolled * around.size > copies:
                break
            sketch.play("unroll", sketch.place(path))
            unrolled *= around.size
    return vectorised


def _split_by_width(sketch: Sketch, provenance: Provenance) -> bool:
    """Split a scope by the widest vector that it can be vectorised with, and vectorise it; a reduction is
    kept in as many partial results as lanes, so that none waits for the one before. Was there such a one?"""
    for width in sorted(sketch.context.widths, reverse=True):
        path = sketch.path(provenance)
        size = sketch.program.scope(path).size
        if size <= width or size % width:
            continue
        before = len(sketch.moves)
        with sketch.attempt():
            sketch.play("split_scope", sketch.place(path), width)
            inner = (*path, 0)
            leaf = next(leaf for leaf in sketch.program.leaves if leaf.path == (*inner, 0))
            if is_reduction(leaf, len(path)):
                at = sketch.place(leaf.path)
                name = fresh_name(sketch.program, f"p{at.array}")
                operation = leaf.op.provenance
                sketch.play("split_reduction", Place(at.array, at.number, len(path)), name)
                inner = sketch.path(operation)[:-1]
            if not sketch.may("vectorize", sketch.place(inner)):
                raise NoSuchPlace("Its lanes cannot be one vector.")
        if len(sketch.moves) > before:
            return True
    return False


@recipe(Parameter("scope", "scope"), also=("omp_parallel_for", "private_parallel"))
def parallel_for(sketch: Sketch, scope: Place) -> None:
    """Make private what the iterations of a scope share, then give them to threads."""
    move = Move("parallelize", (scope,))
    refusal = outcome(sketch.context, move)
    if isinstance(refusal, Program):
        sketch.play(move.name, scope)
        return
    way = next((way for way in with_enablers(sketch.context, move, refusal).ways if way.then), None)
    if way is None:
        raise IllegalMove(str(move), refusal)
    for text in (*way.moves, way.then):
        sketch.do(text)


@recipe(Parameter("scope", "scope"), Parameter("factor", "number"), also=("unroll_jam", "register_tile"))
def unroll_and_jam(sketch: Sketch, scope: Place, factor: int) -> None:
    """Split a scope, bring the inner part as far inside as is legal, and unroll it there."""
    path, node, _ = scope_at(sketch.program, scope)
    if node.size > factor:
        sketch.play("split_scope", scope, factor)
        path = (*path, 0)
    if not isinstance(sketch.program.scope(path).body[0], Scope):
        raise NoSuchPlace(f"There is no loop in {scope} to jam copies into: unroll it instead.")
    sketch.play("interchange", sketch.place(path))
    path = (*path, 0)
    while sketch.may("interchange", sketch.place(path)):
        path = (*path, 0)
    sketch.play("unroll", sketch.place(path))


# ---------------------------------------------------------------------------- storage and copies


@recipe(
    Parameter("buffer", "buffer"),
    Parameter("dims", "numbers"),
    Parameter("location", "location", optional=True),
    also=("privatize", "privatise"),
)
def private(sketch: Sketch, buffer: str, *dims: int | str) -> None:
    """Stop materialising dimensions of a buffer, then move it (default: to registers)."""
    location = "register"
    for dim in dims:
        if isinstance(dim, int):
            sketch.play("reuse_dims", buffer, dim)
        else:
            location = dim
    if buffer_named(sketch.program, buffer).location != location:
        sketch.play("set_location", buffer, location)


@recipe(Parameter("buffer", "buffer"), Parameter("dim", "number"), Parameter("sizes", "numbers"))
def match_dims(sketch: Sketch, buffer: str, dim: int, *sizes: int) -> None:
    """Split a dimension as its scope was tiled: ``match_dims d 1 32 16`` follows ``tile d@1 32 16``."""
    for k, factor in enumerate(sizes, dim):
        sketch.play("split_dim", buffer, k, factor)


@recipe(
    Parameter("array", "buffer"),
    Parameter("scope", "region"),
    Parameter("name", "name"),
    Parameter("width", "number"),
)
def accum(sketch: Sketch, array: str, scope: Place | str, name: str, width: int) -> None:
    """Accumulate in a copy whose last dimension is split by a vector width, load and store loops with it."""
    sketch.play("stage_write", array, scope, name)
    copies = [
        leaf.path
        for leaf in sketch.program.leaves
        if not leaf.op.function
        and not leaf.op.accumulate
        and {leaf.op.target.array, *(a.array for a in leaf.op.reads)} == {array, name}
    ]
    for provenance in [sketch.provenance(path[:-1]) for path in copies]:
        sketch.play("split_scope", sketch.place(sketch.path(provenance)), width)
    last = len(buffer_named(sketch.program, name).dims) - 1
    sketch.play("split_dim", name, last, width)


@recipe(
    Parameter("array", "buffer"),
    Parameter("scope", "region"),
    Parameter("name", "name"),
    Parameter("dim", "number"),
    Parameter("width", "number"),
)
def pack(sketch: Sketch, array: str, scope: Place | str, name: str, dim: int, width: int) -> None:
    """Copy what a scope reads into panels: one dimension of the copy split, its inner part innermost."""
    sketch.play("stage_read", array, scope, name)
    if dim >= len(buffer_named(sketch.program, name).dims):
        raise NoSuchPlace(f"{name} has {len(buffer_named(sketch.program, name).dims)} dimensions.")
    copy = next(leaf for leaf in sketch.program.leaves if leaf.op.target.array == name)
    uses = copy.op.target.index[dim].depths
    if len(uses) != 1:
        raise NoSuchPlace(f"Dimension {dim} of {name} has no copy loop to split.")
    sketch.play("split_scope", sketch.place(copy.path[: uses[0] + 1]), width)
    sketch.play("split_dim", name, dim, width)
    last = len(buffer_named(sketch.program, name).dims) - 1
    for k in range(dim + 1, last):
        sketch.play("swap_dims", name, k, k + 1)
    inner = uses[0] + 1
    copy = next(leaf for leaf in sketch.program.leaves if leaf.op.target.array == name)
    for depth in range(inner, len(copy.scopes) - 1):
        sketch.play("interchange", sketch.place(copy.path[: depth + 1]))


# ---------------------------------------------------------------------------- recipes of a user's own


def known_recipes(faults: Callable[[pathlib.Path, TextError], None] | None = None) -> dict[str, Recipe]:
    """The recipes that come with the Dojo and those in ``recipes/*.recipe`` of the data directory.

    ``faults`` hears of a file that is no recipe; without it TextError is raised.
    """
    recipes = dict(RECIPES)
    for file in sorted((data_home() / "recipes").glob("*.recipe")):
        try:
            with file.open(encoding="utf-8-sig", errors="replace") as text:
                recipe = read_recipe(text.read(LARGEST + 1))
        except TextError as fault:
            if faults is None:
                raise
            faults(file, fault)
        else:
            recipes[recipe.name] = recipe
    return recipes


LARGEST = 16 * 1024  # characters of a file
_HEAD = re.compile(r"recipe\s+([a-z][a-z0-9_]*)((?:\s+[A-Za-z][A-Za-z0-9_]*)*)\s*\Z")
_USE = re.compile(r"\$([A-Za-z][A-Za-z0-9_]*)")


def read_recipe(text: str) -> Recipe:
    """A recipe from its text: a head line with parameters, then moves and recipes that use them.

    ::

        recipe row A S
        # comments and empty lines are left out
        fuse $A@0
        tile $A@1 $S 16

    Raises TextError with the line and what to do.
    """
    if len(text) > LARGEST:
        raise TextError(f"the recipe is longer than {LARGEST // 1024} KiB", "Split it.")
    lines = [(n, raw.strip()) for n, raw in enumerate(text.splitlines(), 1)]
    lines = [(n, line) for n, line in lines if line and not line.startswith("#")]
    head = _HEAD.match(lines[0][1]) if lines else None
    if head is None:
        number, line = lines[0] if lines else (1, "")
        raise TextError(
            "a recipe begins: recipe NAME PARAMETER…", "For example: recipe row A S", number, 1, line
        )
    name, names = head.group(1), head.group(2).split()
    if name in RECIPES or name in REGISTRY:
        raise TextError(
            f"there is a move or recipe {name} already", "Choose another name.", lines[0][0], 1, lines[0][1]
        )
    for number, line in lines[1:]:
        for used in _USE.findall(line):
            if used not in names:
                raise TextError(
                    f"no parameter {used}",
                    f"Name it in the first line: recipe {name} … {used}",
                    number,
                    1,
                    line,
                )
    if len(lines) < 2:
        raise TextError("the recipe has no moves", "Write one a line below the first.", 1, 1, lines[0][1])

    def run(sketch: Sketch, *arguments: Argument) -> None:
        values = dict(zip(names, map(str, arguments), strict=True))
        for number, line in lines[1:]:
            filled = _USE.sub(lambda m: values[m.group(1)], line)
            if filled.split()[0] == name:
                raise MoveSyntax(f"Line {number} of {name}: a recipe does not use itself.")
            try:
                sketch.do(filled)
            except MoveSyntax as error:
                raise MoveSyntax(f"Line {number} of {name}: {error}") from error

    return Recipe(name, tuple(Parameter(n.lower(), "word") for n in names), f"{len(lines) - 1} lines", run)
