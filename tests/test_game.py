"""The game: playing, taking back, variations, dropping a move, and its text."""

import pytest

from dojo_core import IllegalMove, TextError, parse
from dojo_core.game import Game
from dojo_core.line import read_line, with_provenance
from tests.test_moves import kernel

START = kernel(
    "16 64 t[{0},{1}] = x[{0},{1}]*2\n16 64 y[{0},{1}] = t[{0},{1}] + 1",
    "x f32 [16, 64] heap\ny f32 [16, 64] heap\nt f32 [16, 64] heap",
)


def new_game() -> Game:
    return Game.new(parse(START), title="two nests")


def test_play_take_back_and_branch():
    game = new_game()
    first = game.play("join_scopes t@0")
    second = game.play("join_scopes t@1")
    assert [str(p.move) for p in game.line()] == ["None", "join_scopes t@0", "join_scopes t@1"]
    assert game.back() is first
    variation = game.play("parallelize t@0")
    assert [p.id for p in game.children(first.id)] == [second.id, variation.id]
    game.promote(variation.id)
    assert [p.id for p in game.children(first.id)] == [variation.id, second.id]
    assert game.play("join_scopes t@1", at=first.id) is second  # entered, not made twice
    assert game.forward() is second
    game.goto(0)
    assert game.back().id == 0


def test_an_illegal_move_changes_nothing():
    game = new_game()
    before = game.to_text()
    with pytest.raises(IllegalMove):
        game.play("reuse_dims t 0")
    assert game.to_text() == before


def test_deleting_a_variation_keeps_the_rest():
    game = new_game()
    first = game.play("join_scopes t@0")
    game.play("parallelize t@0")
    game.delete(first.id)
    assert list(game.positions) == [0]
    assert game.cursor == 0
    with pytest.raises(ValueError, match="start"):
        game.delete(0)


def test_a_text_is_read_with_what_is_known_of_the_game():
    game = new_game()
    game.play("join_scopes t@0")
    known = Game.from_text(game.to_text())
    game.play("join_scopes t@1")
    game.play("split_scope t@0 4", at=0)
    read = Game.from_text(game.to_text(), known=known)
    assert read.positions[1].program is known.positions[1].program  # not found out again
    assert read.to_text() == game.to_text() == Game.from_text(game.to_text()).to_text()
    assert len(known.positions) == 2
    # of the same moves under other rules nothing is taken over
    other = Game.from_text(game.to_text().replace("policy: reassoc", "policy: strict"), known=known)
    assert other.positions[1].program is not known.positions[1].program


def test_the_text_reads_back_byte_for_byte():
    game = new_game()
    first = game.play("join_scopes t@0")
    game.play("join_scopes t@1")
    game.play("split_scope t@1 16")
    game.goto(first.id)
    game.play("parallelize t@0")
    text = game.to_text()
    again = Game.from_text(text)
    assert again.to_text() == text
    assert again.cursor == game.cursor
    assert {i: p.program for i, p in again.positions.items()} == {
        i: p.program for i, p in game.positions.items()
    }


def test_dropping_a_middle_move_follows_nodes_and_reports_each_move():
    game = new_game()
    game.play("join_scopes t@0")
    split = game.play("split_scope t@0 4")
    game.play("join_scopes t@2")
    game.play("unroll t@1")
    report = game.drop(split.id, skip_invalid=True)
    assert [(e.move, e.outcome, e.new) for e in report.entries] == [
        ("join_scopes t@2", "readdressed", "join_scopes t@1"),
        ("unroll t@1", "place changed", "unroll t@1"),
    ]
    assert "made by move 2" in report.entries[1].reason
    # The old branch is untouched, the new one stands beside it.
    assert len(game.children(1)) == 2
    assert Game.from_text(game.to_text()).to_text() == game.to_text()


def test_dropping_stops_at_the_first_move_that_no_longer_applies():
    game = new_game()
    join = game.play("join_scopes t@0")
    game.play("reuse_dims t 0")
    game.play("parallelize y@1")
    report = game.drop(join.id)
    assert [e.outcome for e in report.entries] == ["refused", "refused"]
    assert "Try first: join_scopes t@0" in report.entries[0].reason
    skipping = game.drop(join.id, skip_invalid=True)
    assert skipping.entries[0].outcome == "refused"


def test_a_dropped_split_of_a_dimension_moves_no_other_dimension():
    game = Game.new(
        parse(
            kernel(
                "4 2 16 t[{0},{1}*16+{2}] = x[{0},{1}*16+{2}]\n| 2 16 y[{0},{1}*16+{2}] = t[{0},{1}*16+{2}]",
                "x f32 [4, 32] heap\ny f32 [4, 32] heap\nt f32 [4, 32] heap",
            )
        )
    )
    game.play("join_scopes t@1")
    split = game.play("split_dim t 1 16")
    game.play("reuse_dims t 1")
    report = game.drop(split.id, skip_invalid=True)
    assert report.entries[0].outcome == "place changed"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("dojo game 1", "chess"), "no game of the Dojo"),
        (("policy: reassoc", "policy: fast"), "no policy 'fast'"),
        (("target: cpu", "target: abacus"), "no target 'abacus'"),
        (("title: two nests\n", ""), "names no title"),
        (("1: join_scopes t@0", "1: jump t@0"), "no move 'jump'"),
        (("1: join_scopes t@0", "1: reuse_dims t 0"), "does not apply"),
        (("1: join_scopes t@0", "1 after 7: join_scopes t@0"), "follows 7"),
        (("moves:", "plays:"), "no moves section"),
        (("16 64 t[{0},{1}] = x", "16 64 t[{0},{1}] = q"), "no buffer holds an array q"),
    ],
)
def test_a_bad_game_text_says_what_is_wrong(change, message):
    game = new_game()
    game.play("join_scopes t@0")
    text = game.to_text()
    assert change[0] in text
    with pytest.raises(TextError, match=message):
        Game.from_text(text.replace(*change, 1))


def test_a_line_file_has_parameters_and_remembers_what_it_named():
    text = "# tiles\nkernel none\nlet tile = 16\nsplit_scope t@1 $tile\nunroll t@2\n"
    line = read_line(text)
    game = new_game()
    report = line.play(game, {"tile": 4})
    assert [e.outcome for e in report.entries] == ["same", "same"]
    assert "16 16 4:u t" in game.current.program.text
    recorded = with_provenance(text, game)
    assert "1: split_scope t@1 $tile" in recorded
    assert "2: unroll t@2  ; 1.1" in recorded
    # Dropping the split by hand: the provenances tell that the unroll meant another scope.
    edited = read_line("\n".join(x for x in recorded.splitlines() if "split_scope" not in x))
    fresh = new_game()
    assert [e.outcome for e in edited.play(fresh).entries] == ["place changed"]
    with pytest.raises(TextError, match="no parameter"):
        line.steps({"size": 3})
    with pytest.raises(TextError, match="no parameter"):
        read_line("split_scope t@1 $what").steps()
