"""Recipes: what each comes to, the recorded lines made of them, a recipe of one's own, and refusals."""

import re
from inspect import signature
from itertools import zip_longest
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from dojo_core import IllegalMove, MoveSyntax, TextError, kernels, parse
from dojo_core.cli import app
from dojo_core.game import Game
from dojo_core.line import read_line, recorded_lines
from dojo_core.moves.core import KINDS, REGISTRY
from dojo_core.moves.examples import WIDE
from dojo_core.program.tree import walk
from dojo_core.recipes import RECIPES, expand, known_recipes, play, read_recipe
from dojo_core.service.view import commands

NEST = "kernel k\nin x\nout y\nx f32 [8, 64] heap\ny f32 [8, 64] heap\n"
COPY = NEST + "8 64 y[{0},{1}] = x[{0},{1}]\n"
SUM = "kernel k\nin x\nout y\nx f32 [8, 64] heap\ny f32 [8] heap\n8 y[{0}] = 0\n8 64 y[{0}] += x[{0},{1}]\n"
TEMPORARY = (
    "kernel k\nin x\nout y\nx f32 [8, 64] heap\ny f32 [8, 64] heap\nt f32 [8, 64] heap\n"
    "8 64 t[{0},{1}] = x[{0},{1}]\n| | y[{0},{1}] = t[{0},{1}]\n"
)
MATMUL = (
    "kernel k\nin a, b\nout c\na f32 [12, 8] heap\nb f32 [8, 32] heap\nc f32 [12, 32] heap\n"
    "12 32 c[{0},{1}] = 0\n12 32 8 c[{0},{1}] += a[{0},{2}]*b[{2},{1}]\n"
)
TILED = MATMUL.replace(
    "12 32 8 c[{0},{1}] += a[{0},{2}]*b[{2},{1}]",
    "12 2 16 2 4 c[{0},{1}*16+{2}] += a[{0},{3}*4+{4}]*b[{3}*4+{4},{1}*16+{2}]",
)
STAGES = """kernel k
in x
out y
x f32 [8] heap
y f32 [8] heap
t f32 [8] heap
8 t[{0}] = x[{0}]
8 y[{0}] = t[{0}]
"""
APART = (
    "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap\nu f32 [] heap\ns f32 [] heap\n"
    "8 t[{0}] = x[{0}]\nu[] = t[7]\ns[] = x[7]\n8 y[{0}] = t[{0}]\n8 y[{0}] += u[]*s[]\n"
)

CASES = [
    ("fuse y@0", SUM, "join_scopes y@0"),
    ("tile y@1 32 16", COPY, "split_scope y@1 32 / split_scope y@2 16"),
    ("permute c#1 2 0 1", MATMUL, "interchange c#1@1 / interchange c#1@0"),
    ("peel y@0", COPY, "cut_scope y@0 1 / unwrap y@0"),
    ("fuse_with t@0 y@0", APART, "reorder u / reorder t@0 / reorder u / join_scopes t@0"),
    ("pipeline t@0", STAGES,
     "cut_scope t@0 1 / cut_scope y@0 7 / join_scopes t#1@0 / unwrap t@0 / unwrap y#1@0"),
    ("lanes y#1@2 q p", SUM.replace("8 64 y[{0}] += x[{0},{1}]", "8 4 16 y[{0}] += x[{0},{1}*16+{2}]"),
     "split_reduction y#1@2 q / split_reduction q#1@1 p"),
    ("vectorize_all y@0", NEST + "8 4 16 y[{0},{1}*16+{2}] = x[{0},{1}*16+{2}]\n",
     "vectorize y@2 / unroll y@1"),
    ("vectorize_all y@1", COPY, "split_scope y@1 16 / vectorize y@2"),
    ("vectorize_all y#1@0", SUM, "split_scope y#1@1 16 / split_reduction y#1@2 py / vectorize py#1@2"
     " / vectorize py@1 / vectorize y#1@1"),
    ("parallel_for t@0", TEMPORARY.replace("t f32 [8, 64]", "t f32 [8:N, 64:N]"),
     "set_location t stack / parallelize t@0"),
    ("unroll_and_jam c#1@0 4", MATMUL,
     "split_scope c#1@0 4 / interchange c#1@1 / interchange c#1@2 / unroll c#1@3"),
    ("private t 0 1 stack", TEMPORARY, "reuse_dims t 0 / reuse_dims t 1 / set_location t stack"),
    ("match_dims t 1 32 16", TEMPORARY.replace("8 64", "8 2 2 16").replace("{1}", "{1}*32+{2}*16+{3}")
     .replace("| |", "| | | |"), "split_dim t 1 32 / split_dim t 2 16"),
    ("accum c c#1@0 t 16", TILED,
     "stage_write c c#1@0 t / split_scope t@1 16 / split_scope c#1@1 16 / split_dim t 1 16"),
    ("pack a c#1@0 p 1 4", TILED, "stage_read a c#1@0 p / split_scope p@1 4 / split_dim p 1 4"),
    ("pack b root p 0 4", TILED,
     "stage_read b root p / split_scope p@0 4 / split_dim p 0 4 / swap_dims p 1 2 / interchange p@1"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text", "moves"), CASES, ids=[c[0] for c in CASES])
def test_what_a_recipe_comes_to(call, text, moves):
    assert [str(m) for m in expand(parse(text), call, WIDE)] == moves.split(" / ")


def test_several_on_a_line_are_played_all_or_none():
    game = Game.new(parse(SUM), "", "")
    assert [str(m) for m in play(game, "fuse y@0; unroll y#1@1;")] == ["join_scopes y@0", "unroll y#1@1"]
    with pytest.raises(IllegalMove, match="unroll y#1@1"):  # which is unrolled by now
        play(game, "parallelize y@0; unroll y#1@1")
    assert len(game.line()) == 3


@pytest.mark.parametrize(
    ("typed", "move"),
    [
        ("omp y@0", "parallelize y@0"),
        ("fusion y@0", "join_scopes y@0"),
        ("blocking y#1@1 16", "split_scope y#1@1 16"),
    ],
)
def test_moves_and_recipes_answer_to_other_words(typed, move):
    assert [str(m) for m in expand(parse(SUM), typed, WIDE)] == [move]


def test_other_words_mean_one_thing():
    words = [*RECIPES, *(word for each in RECIPES.values() for word in each.also)]
    assert len(words) == len(set(words)) and not set(words) & set(REGISTRY)


def test_every_recipe_is_shown_here():
    assert {call.split()[0] for call, _, _ in CASES} == set(RECIPES)


SOFTMAX = """
    fuse m@0 4 / tile m#1@1 64 16 / tile d@1 64 16 / tile e@1 64 16 / tile s#1@1 64 16 / tile y@1 64 16
    join_scopes d@1 / reorder d@1 / join_scopes d@1 / lanes m#1@3 qm pm / lanes s#1@3 qs ps
    use_reciprocal y@1 r / vectorize_all m@0
    split_scope m@0 2 / fission_scope m@1 s / fission_scope s@1 r / match_dims d 1 64 16 / private d 0 1
    split_dim m 0 2 / private m 0 stack / split_dim s 0 2 / private s 0 stack
    split_dim e 0 2 / private e 0 stack / set_location r register / set_location pm register
    set_location qm register / set_location ps register / set_location qs register
    prefetch d x[{0}*2+{1}+8,{2}*64+{3}*16+{4}] / stream_store y / parallelize m@0
"""
MATMUL_LINE = """
    tile c@0 384 6 / tile c@3 64 16 / tile c#1@0 384 6 / tile c#1@3 64 16 / split_scope c#1@6 512
    permute c 3 1 2 / permute c#1 6 3 1 7 2 4 5 / pack a c#1@1 pa 2 6 / unroll pa@4 / pack b c#1@2 pb 4 16
    vectorize_all pb@1 / prefetch pb b[{1}*512+{3}+16,{2}*64+{4}*16+{5}] / peel c#1@1
    join_scopes c@0 / reorder c@1 / join_scopes c@1 / reorder c@2 / join_scopes c@2 / vectorize_all c@2
    accum c c@2 acc0 16 / vectorize_all c@3 / set_location acc0 register
    accum c c#1@2 acc1 16 / vectorize_all acc1@3 / vectorize_all c#1@3 / set_location acc1 register
    parallelize pa@0
"""


@pytest.mark.parametrize(("name", "calls"), [("softmax", SOFTMAX), ("matmul_packed", MATMUL_LINE)])
def test_a_recorded_line_is_a_few_recipes(name, calls, monkeypatch):
    monkeypatch.setattr("dojo_core.moves.legality.target_named", lambda name: WIDE)
    line = recorded_lines()[name]
    kernel, found = line.kernel, kernels.get(line.kernel)
    start = found.program(found.shape(line.shape))
    by_hand = Game.new(start, kernel, policy=line.policy)
    line.play(by_hand)
    cooked = Game.new(start, kernel, policy=line.policy)
    for call in calls.replace("/", "\n").strip().splitlines():
        play(cooked, call.strip())
    assert cooked.current.program.text == by_hand.current.program.text


def test_a_line_may_hold_recipes():
    game = Game.new(parse(COPY))
    report = read_line("let width = 16\ntile y@1 32 $width\nunroll y@2").play(game)
    assert [e.move for e in report.entries] == ["split_scope y@1 32", "split_scope y@2 16", "unroll y@2"]
    stopped = read_line("tile y@1 24\nunroll y@2").play(Game.new(parse(COPY)))
    assert [(e.outcome, "24 does not cut 64" in e.reason) for e in stopped.entries] == [("refused", True)]


def test_a_recipe_of_ones_own():
    own = read_recipe("# rows in vectors\nrecipe rows A W\ntile $A@1 $W\nvectorize_all $A@1\n")
    moves = expand(parse(COPY), "rows y 16", WIDE, recipes={**RECIPES, "rows": own})
    assert [str(m) for m in moves] == ["split_scope y@1 16", "vectorize y@2", "unroll y@1"]


def test_recipes_in_the_data_directory_are_known(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "rows.recipe").write_text("recipe rows A W\ntile $A@1 $W\n")
    assert set(known_recipes()) == {*RECIPES, "rows"}
    (tmp_path / "recipes" / "tile.recipe").write_text("recipe tile A\nunroll $A@1\n")
    with pytest.raises(TextError, match="there is a move or recipe tile already"):
        known_recipes()
    faults = []
    assert "rows" in known_recipes(lambda file, fault: faults.append(file.name))
    assert faults == ["tile.recipe"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "a recipe begins: recipe NAME"),
        ("tile y@1 16", "a recipe begins: recipe NAME"),
        ("recipe rows A", "no moves"),
        ("recipe rows A\ntile $B@1 16", "no parameter B"),
    ],
)
def test_a_bad_recipe_is_told_with_its_line(text, told):
    with pytest.raises(TextError, match=told):
        read_recipe(text)


def test_a_recipe_is_played_whole_or_not_at_all():
    game = Game.new(parse(COPY))
    with pytest.raises(IllegalMove, match="24 does not cut 32"):
        play(game, "tile y@1 32 24")
    assert game.current.id == 0 and len(game.positions) == 1
    with pytest.raises(MoveSyntax, match="tile SCOPE SIZES"):
        play(game, "tile y 32")
    with pytest.raises(MoveSyntax, match="Did you mean tile"):
        play(game, "tiel y@1 32")
    with pytest.raises(IllegalMove, match="name each depth once"):
        play(game, "permute y 1 1")


@pytest.mark.parametrize("call", ["fuse y@0 0", "permute y 0 1"])
def test_a_recipe_that_makes_no_move_says_so(call):
    game = Game.new(parse(COPY))
    with pytest.raises(IllegalMove, match="nothing to do"):
        play(game, call)


def test_a_recipe_finds_its_nodes_whatever_was_played_before():
    """Its moves are numbered on from the game's: were they not, nodes would share a provenance."""
    game = Game.new(parse(COPY))
    for call in ("split_scope y@1 32", "split_scope y@2 16", "interchange y@1", "interchange y@1"):
        play(game, call)
    assert [str(m) for m in play(game, "permute y 3 0 1 2")] == [
        "interchange y@2",
        "interchange y@1",
        "interchange y@0",
    ]
    provenances = [node.provenance for node, _, _ in walk(game.current.program.body)]
    assert len(set(provenances)) == len(provenances)


def test_recipes_that_use_each_other_without_end_are_stopped():
    loop = {
        name: read_recipe(f"recipe {name} A\n{other} $A")
        for name, other in (("ping", "pong"), ("pong", "ping"))
    }
    with pytest.raises(MoveSyntax, match="deep"):
        expand(parse(COPY), "ping y", WIDE, recipes=loop)


def test_stages_of_a_pipeline_that_are_not_there_or_do_not_fit_are_told():
    with pytest.raises(IllegalMove, match=r"There are no 3 stages at t@0: .* There are 2, of 8"):
        expand(parse(STAGES), "pipeline t@0 3", WIDE)
    with pytest.raises(IllegalMove, match="conflicts with on t"):  # what it needs is made last
        expand(parse(STAGES.replace("= t[{0}]", "= t[-{0}+7]")), "pipeline t@0", WIDE)
    with pytest.raises(IllegalMove, match="t@0 does not follow y@0"):
        expand(parse(APART), "fuse_with y@0 t@0", WIDE)


def test_the_page_about_recipes_is_true():
    page = (Path(__file__).parent.parent / "docs" / "recipes.md").read_text()
    told = dict(re.findall(r"^\| `(\w+) [^`]*` \| (.*) \|$", page, re.MULTILINE))
    assert told == {name: recipe.about.replace("``", "`") for name, recipe in RECIPES.items()}
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shown: dict[str, object] = {}
    exec(next(text for language, text in blocks if language == "python"), shown)
    assert len(shown["moves"]) == 4
    line = read_line(next(text for _, text in blocks if text.startswith("kernel ")))
    assert line.values(line.shape, on=WIDE) == {"lanes": 16, "rows": 384, "whole": 1008}
    assert len(line.steps()) == 1
    before, behind = (text.splitlines() for _, text in blocks if "y[{0}] = t[{0}]" in text)
    head = STAGES.splitlines()[:6]
    assert STAGES.splitlines() == head + before
    game = Game.new(parse(STAGES))
    play(game, "pipeline t@0")
    assert game.current.program.text.splitlines() == head + behind
    own = read_recipe(next(text for _, text in blocks if text.startswith("recipe ")))
    start = kernels.get("softmax").program((64, 512))
    moves = expand(start, "rows m#1 32", recipes={**RECIPES, own.name: own})
    assert [str(m) for m in moves] == [*["join_scopes m#1@0"] * 4, "split_scope m#1@1 32"]


def test_a_bad_recipe_is_named_and_the_others_are_there(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "bad.recipe").write_text("recipe bad A\nunroll $B@0\n")
    shown = CliRunner().invoke(app, ["recipes"])
    assert shown.exit_code == 0 and "vectorize_all" in shown.stdout
    assert "bad.recipe is left out. line 2, column 1: no parameter B" in shown.stderr.replace("\n", " ")


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda each: each.name)
def test_a_recipes_arguments_have_the_types_of_their_kinds(recipe):
    _, *taken = signature(recipe.run, eval_str=True).parameters.values()
    for parameter, own in zip_longest(recipe.parameters, taken, fillvalue=taken[-1]):
        kind = KINDS[parameter.kind]
        assert {*(get_args(kind) or [kind])} <= {*(get_args(own.annotation) or [own.annotation])}
        assert parameter.optional == (own.default is not own.empty) or own.kind == own.VAR_POSITIONAL


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("vectorise", "vectorize"),
        ("simd", "vectorize"),
        ("omp", "parallelize"),
        ("parallel for", "parallel_for"),
        ("fusion", "join_scopes"),
        ("tile", "tile"),
        ("private", "private"),
        ("inline", "forward"),
        ("unroll and jam", "unroll_and_jam"),
    ],
)
def test_the_words_that_people_type_find_a_move_or_recipe(typed, meant):
    """As the board's field looks for them: each word, in the name or in what others call it."""
    form, _, also = commands(RECIPES)[meant]
    assert all(word in f"{form} {also}" for word in typed.split())
