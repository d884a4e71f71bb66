"""What notebooks show: drawings that say what the text says, the few functions, and the lesson on softmax."""

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from IPython.core.formatters import DisplayFormatter
from nbclient import NotebookClient

from dojo_core.line import RecordedLine
from dojo_core.measure.measurement import Measurement
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.notebook import compare, measure, measuring, moves, play, show, start, why
from dojo_core.notebook.style import STYLE
from dojo_core.own import kernel
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.service.comparing import Comparison, Contender, Spec
from tests.test_comparing import MISSING, comparisons, entry, report

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Records of a test's own, as those of a notebook's process are."""
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    yield
    if measuring._measurers.cache_info().currsize:
        measuring._measurers().close()
    measuring._measurers.cache_clear()
    measuring._RESULTS.clear()


def drawn(value: object) -> tuple[str, str]:
    """As IPython shows it: the text, and the HTML without its style sheet."""
    shown, _ = DisplayFormatter().format(value)
    assert shown["text/html"] == value._repr_html_()
    assert shown["text/html"].startswith(STYLE)
    return shown["text/plain"], shown["text/html"].removeprefix(STYLE)


def readable(drawing: str) -> str:
    """The words of HTML."""
    return html.unescape(re.sub("<[^>]*>", "", drawing))


SOFTMAX = start("softmax:4x8")


# ---------------------------------------------------------------- drawings


def test_a_program_is_its_text_in_colours_and_a_tree_of_loops():
    game = play(start("softmax:4x8"), "join_scopes m@0", "unroll m#1@1")
    text, drawing = drawn(game.current.program)
    assert text == game.current.program.text
    [pre] = re.findall("<pre>(.*?)</pre>", drawing, re.DOTALL)
    assert readable(pre) + "\n" == text
    assert '<span class="function">exp</span>(' in pre and '<span class="mark">:u</span>' in pre
    assert "for {0} from 0 to 3" in readable(drawing) and "for {1} from 0 to 7, unrolled" in readable(drawing)


def test_a_long_program_is_cut_and_says_so():
    lines = "".join(f"y[{n}] = {n}\n" for n in range(400))
    text, drawing = drawn(parse(f"kernel many\nout y\ny f32 [400] heap\n{lines}"))
    assert "y[399] = 399" in text and "y[399]" not in drawing
    assert "more lines: print(program) has them" in drawing and "… and more" in drawing


def test_a_game_shows_its_position_what_came_and_its_variations():
    game = play(start("softmax:4x8"), "join_scopes m@0", "join_scopes m@0")
    game.goto(1)
    play(game, "unroll d@1", "unroll y@1")
    text, drawing = drawn(game)
    assert text.startswith("softmax 4x8, cpu, reassoc\n1. join_scopes m@0\n2. unroll d@1\n3. unroll y@1\n")
    [came] = re.findall('<span class="came">(.*?)</span></pre>', drawing)
    assert readable(came) == "4 8:u y[{0},{1}] = e[{0},{1}] / s[{0}]" and drawing.count('"came"') == 1
    assert "<ul><li><code>unroll d@1</code> " in drawing  # beside the main line
    assert '<span class="here"><code>unroll y@1</code></span>' in drawing and "4 moves" in drawing


def test_moves_are_a_sequence_drawn_by_kind():
    legal = moves(SOFTMAX)
    text, drawing = drawn(legal)
    kinds = {move.name for move in legal}
    assert text.startswith(f"{len(legal)} legal moves.\nsplit_scope: m@0 2, ")
    assert drawing.count("<details>") == len(kinds) and "join_scopes (4)" in drawing
    assert [str(move) for move in moves(SOFTMAX, "join_scopes")[:2]] == ["join_scopes m@0", "join_scopes d@0"]
    assert "No legal move" in drawn(moves(SOFTMAX, "merge_scopes"))[1]
    with pytest.raises(ValueError, match=r"no kind of move 'split_scopes'. Did you mean split_scope\?"):
        moves(SOFTMAX, "split_scopes")
    text, drawing = drawn(legal[0])
    assert text == str(legal[0]) and f"<code>{text}</code>" in drawing


def test_a_refusal_tells_why_and_what_would_help():
    verdict = why(start("softmax:4x512"), "vectorize d@1")
    for value in (verdict, verdict.refusal, IllegalMove("vectorize d@1", verdict.refusal)):
        text, drawing = drawn(value)
        assert verdict.refusal.sentence in text and html.escape(verdict.refusal.sentence) in drawing
        assert "<code>split_scope d@1 8, then vectorize d@2</code>" in drawing
    needs = why(play(start("softmax:4x8"), *["join_scopes m@0"] * 2), "join_scopes m#1@1")
    told = readable(drawn(needs)[1])
    assert told.startswith("Not legal") and str(needs.refusal.witness) in told and needs.refusal.needs in told
    assert 'class="good"' in drawn(why(SOFTMAX, "join_scopes m@0"))[1]


def test_what_a_value_holds_is_text_and_no_markup():
    evil = '<script>alert(1)</script>"'
    game = start("softmax:4x8")
    game.title = evil
    spec = Spec(None, evil, "", "reassoc", (Contender("start", "start"), Contender("program", evil)))
    rows = entry("start", [[2.0]]), entry(evil, [[1.0]]), MISSING | {"message": evil}
    values = (
        game,
        RecordedLine(evil, None, "", "reassoc", "cpu", (), ((1, evil, ""),), (1,), evil),
        Measurement("", "", "refused", evil),
        Comparison("id", spec, "done", document={"reports": [report(*rows)]}),
    )
    for value in values:
        text, drawing = drawn(value)
        assert evil in text and html.escape(evil) in drawing and "<script" not in drawing


def test_light_and_dark_follow_the_notebook_and_then_the_browser():
    themes = dict(re.findall(r"([^{}]*\.dojo)\{(--[^}]*)\}", STYLE))
    assert [page.strip() for page in themes] == [
        "<style>.dojo",
        "@media (prefers-color-scheme:dark){.dojo".rpartition("{")[2],
        '[data-jp-theme-light="true"] .dojo,.vscode-light .dojo',
        '[data-jp-theme-light="false"] .dojo,.vscode-dark .dojo',
    ]
    names = [set(re.findall(r"--(\w+):", colours)) for colours in themes.values()]
    assert all(each == set(re.findall(r"var\(--(\w+)\)", STYLE)) for each in names)


def test_a_comparison_draws_a_bar_for_each_that_has_a_time():
    contenders = (Contender("program", "this position"), Contender("start", "start"))
    spec = Spec("softmax", "4x8", "", "reassoc", contenders)
    told = report(entry("this position", [[20.0], [20.0]]), entry("start", [[60.0], [80.0]]), MISSING)
    done = Comparison("id", spec, "done", rounds=2, document={"reports": [told]})
    text, drawing = drawn(done)
    assert text.splitlines()[1:3] == ["this position: 20 ns", "start: 60 ns, 0.29× as fast"]
    assert drawing.count("<rect") == 2 and "PyTorch eager: missing. Install it" in drawing
    assert "stopped" in drawn(Comparison("id", spec, "stopped"))[1]


# ---------------------------------------------------------------- functions


@kernel({"m": 4, "n": 8}, x="mn")
def doubled(x):
    return x * 2


@pytest.mark.parametrize(
    ("begin", "title"),
    [
        ("softmax:4x8", "softmax 4x8"),
        (doubled, "doubled"),
        (doubled.program, "doubled"),
        (doubled.text, "doubled"),
        ("def scaled(x, y, m=4):\n    for i in range(m):\n        y[i] = x[i] * 2\n", "scaled"),
        (play(start("softmax:4x8"), "join_scopes m@0").to_text(), "softmax 4x8"),
    ],
)
def test_a_game_begins_on_a_name_a_program_or_a_text(begin, title):
    assert start(begin).title == title


def test_a_recorded_line_is_played_first():
    game = start("relu:4x64", "snitch", line="relu")
    assert len(game.line()) > 1
    with pytest.raises(ValueError, match="no recorded line 'nothing'"):
        start("softmax:4x8", line="nothing")
    with pytest.raises(ValueError, match=r"Move 1 of relu, .*, does not apply: "):
        start("add:4x64", "snitch", line="relu")


def test_a_position_is_shown_in_each_form():
    game = start("relu:4x64", "snitch")
    assert isinstance(show(game), Program) and show(play(game, "unroll y@1"), at=0) == game.start
    text, drawing = drawn(show(game, "code"))
    assert "fmax.d" in text and "fmax.d" in drawing
    assert "kernel_softmax" in str(show(SOFTMAX, "code"))
    with pytest.raises(ValueError, match="no 'picture'"):
        show(game, "picture")


def test_what_a_function_cannot_take_is_told():
    with pytest.raises(ValueError, match="A kernel is named by a text, such as 'softmax:1024x512', not by 3"):
        start(3)
    with pytest.raises(TypeError, match="measure takes a game first, as start gives one, not 'softmax'"):
        measure("softmax")
    for ask in (SOFTMAX.goto, lambda number: show(SOFTMAX, at=number)):
        with pytest.raises(ValueError, match="There is no position 77 in this game: the last one is 0"):
            ask(77)
    with pytest.raises(MoveSyntax, match="vectorize_all is a recipe, which plays several moves"):
        why(SOFTMAX, "vectorize_all m@0")


def test_an_illegal_move_is_told_without_a_traceback():
    game = start("softmax:4x512")
    with pytest.raises(IllegalMove) as caught:
        play(game, "join_scopes m@0", "vectorize d@1", "unroll y@1")
    assert [str(p.move) for p in game.line()[1:]] == ["join_scopes m@0"]  # those before it
    assert caught.value._render_traceback_() == [f"IllegalMove: {caught.value}"]
    with pytest.raises(MoveSyntax, match="split_scope"):
        play(game, "splitscope y@0 2")


def test_measuring_follows_the_line_on_a_chart():
    game = start("relu:8x8", "snitch")
    first = measure(game)
    assert first.speed is None and "<svg" not in drawn(first)[1]
    play(game, "ssr y@1", "unroll y@0")
    ends = measure(game)
    assert [number for number, _, _ in ends.points] == [0, 2] and ends.seconds < first.seconds
    whole = measure(game, line=True)
    assert [name for _, name, _ in whole.points] == ["start", "ssr y@1", "unroll y@0"]
    assert whole.points[-1][2] == pytest.approx(first.seconds / whole.seconds)
    text, drawing = drawn(whole)
    assert drawing.count('class="dot"') == 3 and "1: ssr y@1, " in drawing
    assert "cycles" in text and "cycles" in drawing and "▲" in drawing
    play(game, "clear_mark y@1")
    assert len(measure(game).points) == 4  # with those that were measured before
    text, drawing = drawn(whole.result)
    assert readable(drawing).startswith(text.partition(",")[0])


def test_what_nothing_is_compared_with_is_told():
    with pytest.raises(ValueError, match="this computer's processor"):
        compare(start("relu:8x8", "snitch"))
    with pytest.raises(ValueError, match=r"'Torch' is nothing to compare with. There are: start"):
        compare(SOFTMAX, "Torch")


def test_a_comparison_is_waited_for(tmp_path, monkeypatch):
    host = comparisons(tmp_path)
    monkeypatch.setattr(measuring, "_comparisons", lambda: host)
    done = compare(play(start("softmax:4x8"), "join_scopes m@0"), "start", "torch", rounds=3)
    assert done.state == "done" and done.spec.rounds == 3
    ours, *others = done.spec.contenders
    assert (ours.name, ours.moves) == ("this position", 1)
    assert [each.name for each in others] == ["start", "PyTorch eager"]
    assert "PyTorch eager: 10 ns" in drawn(done)[0]


# ---------------------------------------------------------------- the lesson


@pytest.mark.thorough  # what its cells call draws itself, above
def test_the_notebook_on_softmax_runs(tmp_path, monkeypatch):
    path = ROOT / "docs" / "notebooks" / "softmax.ipynb"
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text.replace("softmax:64x512", "softmax:8x64"), as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # kept without
    for variable in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(tmp_path / "jupyter"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    results = [o.data for cell in code for o in cell.outputs if o.output_type == "execute_result"]
    assert len(results) == len(code) - 1  # all but the import
    assert all(each["text/html"].startswith(STYLE) for each in results)
    timed = [each for each in results if each["text/plain"].startswith("softmax 8x64\nstart: ")]
    assert len(timed) == 2 and '<polyline class="line"' in timed[-1]["text/html"]
