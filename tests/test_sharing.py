"""Links: short, replayed through the checks, and harmless whatever they hold."""

import base64
import random
import zlib

import pytest

from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.program.expressions import TextError
from dojo_core.program.text import parse
from dojo_core.sharing import LONGEST_LINK, BadLink, is_link, link, open_link, open_text, unfolded

OWN = """kernel pair
in x
out y
x f32 [64] heap
t f32 [64] heap
y f32 [64] heap
64 t[{0}] = x[{0}]*2
64 y[{0}] = t[{0}] + 1
"""


def softmax() -> Game:
    found = kernels.get("softmax")
    game = Game.new(found.program((96, 32)), "softmax", "96x32")
    for move in ("join_scopes m@0", "parallelize m@0"):
        game.play(move)
    return game


def forged(text: bytes) -> str:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return "1." + base64.urlsafe_b64encode(packer.compress(text) + packer.flush()).decode().rstrip("=")


def test_a_link_brings_the_position_back() -> None:
    game = softmax()
    text = link(game)
    assert text is not None and is_link(text) and len(text) < 200
    opened = open_link(text)
    assert opened.game.current.program.text == game.current.program.text
    assert (opened.game.title, opened.game.kernel, opened.gone) == ("softmax 96x32", "softmax", ())
    assert opened.words == "Replayed 2 moves through the legality checks."


def test_a_text_of_ones_own_travels_with_its_program() -> None:
    game = Game.new(parse(OWN))
    game.play("join_scopes t@0")
    opened = open_link(link(game) or "")
    assert opened.game.kernel is None
    assert opened.game.current.program.text == game.current.program.text


def test_what_no_longer_applies_is_told() -> None:
    opened = open_link(
        forged(b"kernel softmax\nshape 96x32\n1: join_scopes m@0\n2: join_scopes y@7\n3: parallelize m@0")
    )
    assert len(opened.game.positions) == 2
    assert opened.words.startswith("1 of 3 moves still apply. join_scopes y@7 does not:")


def test_a_game_file_keeps_the_branches_that_replay() -> None:
    game = softmax()
    game.goto(0)
    game.play("join_scopes d@0")
    text = game.to_text().replace("1: join_scopes m@0", "1: join_scopes m@5")
    opened = open_text(text)
    assert [str(p.move) for p in opened.game.main_line(0)[1:]] == ["join_scopes d@0"]
    assert [e.move for e in opened.gone] == ["join_scopes m@5", "parallelize m@0"]


def test_a_link_that_unfolds_without_end_is_stopped() -> None:
    bomb = forged(b"# " + b"a" * 1_000_000)
    assert len(bomb) < LONGEST_LINK
    with pytest.raises(BadLink, match="more than 64 KB"):
        unfolded(bomb)


@pytest.mark.parametrize("text", ["1.", "1.AAAA", "1.%%%", "1." + "A" * 4000, (link(softmax()) or "")[:-9]])
def test_a_damaged_link_is_told_in_a_sentence(text: str) -> None:
    with pytest.raises(BadLink, match="damaged or cut off"):
        open_link(text)


@pytest.mark.parametrize(
    "text",
    [
        b"kernel nonsense\nshape 4",
        b"kernel softmax\nshape 0x0",
        b"policy reassoc",
        b"policy reassoc\nstart:\nkernel x",
    ],
)
def test_a_link_to_nothing_says_what_is_missing(text: bytes) -> None:
    with pytest.raises((BadLink, TextError)):
        open_link(forged(text))


def test_a_program_too_long_for_a_link_has_none() -> None:
    rng = random.Random(1)
    lines = "".join(f"64 y[{{0}}] = t[{{0}}] + {rng.random():.17f}\n" for _ in range(240))
    assert link(Game.new(parse(OWN + lines))) is None
