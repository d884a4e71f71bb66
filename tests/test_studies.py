"""Studies: what a file means, what is told of one that is wrong, its times, and the page that is built."""

import base64
import http.client
import json
import os
import re
import threading
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from dojo_core.cli import app
from dojo_core.game import Game
from dojo_core.moves.examples import WIDE
from dojo_core.package_data import data_path
from dojo_core.program.expressions import TextError
from dojo_core.program.target import Target
from dojo_core.study.export import markdown
from dojo_core.study.page import study_page
from dojo_core.study.reports import of_report, report_of
from dojo_core.study.serving import StudyServer, Unbuilt
from dojo_core.study.sheets import Packer, study_data
from dojo_core.study.study import Study, is_study, read_study
from dojo_core.study.times import Times, chosen, joined, read_times, times_file, write_times
from dojo_core.study.writing import of_game
from dojo_core.targets.registry import target
from tests.goldens import Golden

PROGRAM = """\
kernel two
in x
out y
x f32 [64] heap
y f32 [64] heap
t f32 [64] heap
64 t[{0}] = x[{0}]*2
64 y[{0}] = t[{0}] + 1
"""

STUDY = f"""\
# Two loops
kind: study
about: What a neighbour is good for.
authors: Ann, Bo

## One loop
Two loops, **one** after the other.

```program
{PROGRAM}```

```question move
What would you play?
+ join_scopes t@0 :: One loop.
- vectorize t@0 :: Later.
```

```moves as joined
# Fusion: t is read where it was written.
join_scopes t@0
```

Now one.

```question refused vectorize t@0
Why is this refused?
+ It has two operations :: A vector loop has one.
- It is too late
```

```moves after start
split_scope t@0 8
```

Another way.

## On
It goes on after the variation.

```moves after joined
split_scope t@0 8
```
"""

LINE = """\
# A line of one's own.
kernel relu
shape 8x32
let lanes = 4
# Vectors: one instruction does four elements.
split_scope y@1 $lanes
vectorize y@2
# Threads: each core takes rows
parallelize y@0
"""


def study(text: str = STUDY) -> Study:
    return read_study(text, Path("two.md"))


def test_a_study_walks_through_a_game_and_its_variations() -> None:
    one, on = study().chapters
    moves = {n: str(p.move) for n, p in one.game.positions.items()}
    assert moves == {0: "None", 1: "join_scopes t@0", 2: "split_scope t@0 8", 3: "split_scope t@0 8"}
    assert [one.game.positions[n].parent for n in (1, 2, 3)] == [0, 0, 1]
    assert on.game is one.game and (on.begins, on.ends) == (2, 3)
    assert one.titles == {1: "Fusion"} and sorted(one.notes) == [0, 1, 2]
    assert [(n, asked.kind) for n, asked in one.questions.items()] == [(0, "move"), (1, "refused")]
    refusal = one.questions[1].refusal
    assert refusal is not None and "wraps exactly one operation" in str(refusal)


def test_a_chapter_goes_through_a_recorded_line_whose_comments_are_its_notes() -> None:
    text = "# S\nkind: study\nabout: x.\n\n## A line\nline: softmax\nshape: 48x64\n\nTold at the start.\n"
    (chapter,) = study(text).chapters
    assert chapter.game.shape == "48x64" and len(chapter.game.line(chapter.ends)) > 60
    assert chapter.titles[1] == "One pass" and 0 in chapter.notes and 1 in chapter.notes


@pytest.mark.parametrize(
    ("before", "after", "line", "told"),
    [
        ("kind: study\n", "", 1, "does not say that it is a study"),
        ("join_scopes t@0\n```\n\nNow", "join_scopes q@0\n```\n\nNow", 28, "No operation writes q"),
        ("after joined", "after fused", 48, "no position is called 'fused'"),
        ("+ join_scopes t@0", "+ vectorize t@0", 20, "is to be right, and is refused"),
        ("refused vectorize t@0", "refused split_scope t@0 8", 33, "split_scope t@0 8 is legal here"),
        ("moves as joined", "moves as start", 26, "a position is called 'start' already"),
        ("## On\n", "## On\npolicy: strict\n", 46, "goes on has the policy of the one before it"),
        ("## On\n", "## One loop\n", 45, "two chapters have this title"),
        ("```moves after joined", "```movs", 48, "there is no block 'movs'"),
    ],
)
def test_what_is_not_understood_is_told_with_its_line(before: str, after: str, line: int, told: str) -> None:
    assert before in STUDY
    with pytest.raises(TextError) as fault:
        study(STUDY.replace(before, after, 1))
    assert told in str(fault.value) and fault.value.line == line and fault.value.remedy


def test_a_lesson_is_no_study() -> None:
    assert is_study(STUDY) and not is_study(STUDY.replace("kind: study", "kind: lesson"))
    with pytest.raises(TextError, match="kind: study"):
        study(STUDY.replace("kind: study", "kind: lesson"))


def test_a_game_becomes_a_study_with_the_same_positions() -> None:
    game = study().games[0]
    again = study(of_game(Game.from_text(game.to_text()))).games[0]
    ways = [{tuple(str(p.move) for p in g.line(n)) for n in g.positions} for g in (game, again)]
    assert ways[0] == ways[1]


def test_times_are_kept_by_machine_and_read_with_care() -> None:
    times = Times("a" * 16, "A machine", "2026-11-27", {"h": [1e-3, 2e-3]}, {"g": "crash"})
    other = Times("b" * 16, "Another", "2026-11-26", speeds={"h": {"g": ["faster", 2.0, 1.9, 2.1, 7]}})
    kept = read_times(write_times(joined([times], other)))
    assert kept == [times, other]
    anew = Times("a" * 16, "A machine", "2026-11-28")
    assert joined(kept, anew) == [anew, other]
    for wrong in ("[]", "{}", '{"dojo times": 1, "machines": [{"key": "a"}]}', write_times([times])[:-9]):
        with pytest.raises(TextError, match="no times of a study"):
            read_times(wrong)
    negative = write_times([times]).replace("0.001", "-0.001")
    with pytest.raises(TextError, match="is no time"):
        read_times(negative)


PROFILE: dict[str, Any] = {
    "parts": {"0": {"text": "64", "share": 0.9, "bound": "L3", "source": "timer", "sentence": "Slow."}},
    "hot": [[1, 2, 0.5]],
    "note": "n",
}
LIMIT = {
    "seconds": 1e-6, "gbytes_per_second": 9.0, "gflops": 1.0, "bound": "memory", "pattern": "1", "reached": ""
}  # fmt: skip


@pytest.mark.parametrize(
    ("field", "content"),
    [
        ("profiles", {"h": {**PROFILE, "hot": [[1, 2, "0.5"]]}}),
        ("profiles", {"h": {**PROFILE, "hot": [[-1, 2, 0.5]]}}),
        ("profiles", {"h": {**PROFILE, "hot": [[1, 2, 0.5]] * 3000}}),
        ("profiles", {"h": {**PROFILE, "parts": {"0": {"text": "64"}}}}),
        ("profiles", {"h": {**PROFILE, "parts": [1]}}),
        ("profiles", {"h": {**PROFILE, "parts": {"__proto__": PROFILE["parts"]["0"]}}}),
        ("profiles", {"h": {**PROFILE, "note": {"a": 1}}}),
        ("limits", {"h": {"roofline": {**LIMIT, "seconds": "soon"}}}),
        ("limits", {"h": {"roofline": {**LIMIT, "reached": ["a"]}}}),
        ("limits", {"h": {"roofline": 1}}),
        ("limits", [1]),
        ("speeds", {"h": {"g": ["faster", 2.0, 1.9, 2.1, "7"]}}),
        ("speeds", {"h": {"g": ["fast", 2.0, 1.9, 2.1, 7]}}),
        ("seconds", {"h" * 201: [1.0, 1.0]}),
        ("seconds", {"h": [True, 1.0]}),
        ("failed", {"h": 1}),
        ("machine", 1),
    ],
)
def test_what_others_write_into_times_is_checked(field: str, content: object) -> None:
    sound = Times(
        "k", "m", "d", {"h": [1.0, 1.0]}, profiles={"h": PROFILE}, limits={"h": {"roofline": LIMIT}}
    )
    assert read_times(write_times([sound])) == [sound]
    hostile = json.loads(write_times([sound]))
    hostile["machines"][0][field] = content
    with pytest.raises(TextError, match="no times of a study"):
        read_times(json.dumps(hostile))


def test_of_times_only_what_a_page_shows_is_taken() -> None:
    more = json.loads(write_times([Times("k", "m", "d", profiles={"h": PROFILE}, limits={"h": {}})]))
    (told,) = more["machines"]
    told["profiles"]["h"] |= {"more": "x" * 9000, "note": "n" * 9000}
    told["limits"]["h"] = {"torch": 1.0}
    (read,) = read_times(json.dumps(more))
    assert set(read.profiles["h"]) == {"parts", "hot", "note"} and len(read.profiles["h"]["note"]) == 600
    assert read.limits == {"h": {}}


@pytest.fixture(scope="module")
def page() -> str:
    hostile = STUDY.replace(
        "Two loops, **one**", "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    )
    hostile = hostile.replace("# Two loops", "# Two <b>loops</b> </title><script>alert(3)</script>")
    hostile = hostile.replace("about: What", 'about: "><script>alert(4)</script> What')
    return study_page(study_data(study(hostile), []))


def told_by(page: str) -> dict[str, Any]:
    """The data of a page, as its script reads them."""
    parts = re.findall(r'id="study-(?:first|rest)">([^<]*)</script>', page)
    (first, told), (more, rest) = (json.loads(zlib.decompress(base64.b64decode(part))) for part in parts)
    strings = first + more

    def taken(value: object) -> object:
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            return strings[value]
        if isinstance(value, dict):
            return {key: taken(each) for key, each in value.items()}
        assert isinstance(value, list)
        return [taken(each) for each in value[1:]] if value[0] == "" else value[0]

    data, later = taken(told), taken(rest)
    assert isinstance(data, dict) and isinstance(later, dict)
    for name in ("games", "machines"):
        for whole, part in zip(data[name], later[name], strict=True):
            whole |= part
    return data


def test_a_page_holds_what_the_study_says_and_the_board_would_show(page: str) -> None:
    data = told_by(page)
    assert isinstance(data, dict)
    (game,) = data["games"]
    assert set(game["sheets"]) == {"0", "1", "2", "3"}
    sheet = game["sheets"]["1"]
    assert sheet["program"]["lines"][0]["text"].startswith("64 t[{0}] = ")
    assert len(sheet["after"]) == len(sheet["moves"]) > 5 and sheet["blocked"] and sheet["assembly"]
    assert ["-", "64 y[{0}] = t[{0}] + 1"] in sheet["program"]["diff"]
    assert data["chapters"][0]["stops"][0]["question"]["answers"][0]["right"] is True


def test_words_of_others_are_never_markup_nor_script(page: str) -> None:
    scripts = re.findall(r"<script[^>]*>", page)
    data = [f'<script type="text/plain" id="study-{part}">' for part in ("first", "rest")]
    assert scripts == [*data, '<script type="module">']
    assert (
        "<img" not in page.split('<script type="module">')[0] and "<b>" not in page.split("<body>")[1][:400]
    )
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy and "default-src &#x27;none&#x27;" in policy[1]
    assert "unsafe-inline" not in policy[1].split("style-src")[0], "no script but the one of that hash"


def test_parts_of_a_page_have_each_string_once() -> None:
    packer = Packer()
    first, told = packer.part({"a": ["x", 1, 2.5, None, True, ["", "y"]], "b": {"c": []}})
    assert first == ["x", "", "y"]
    assert told == {"a": ["", 0, [1], [2.5], None, True, ["", 1, 2]], "b": {"c": [""]}}
    assert packer.part(["y", "z"]) == [["z"], ["", 2, 3]]


def test_the_server_answers_this_machine_alone_and_tells_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("a", encoding="utf-8")
    texts: Iterator[str | Unbuilt] = iter(["<p>page</p>", Unbuilt("line 1: <no> study")])

    def build() -> str:
        told = next(texts)
        if isinstance(told, Unbuilt):
            raise told
        return told

    server = StudyServer(0, [file], build)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]

    def get(path: str = "/", host: str = f"127.0.0.1:{port}") -> tuple[int, str]:
        asked = http.client.HTTPConnection("127.0.0.1", port)
        asked.request("GET", path, headers={"Host": host})
        answer = asked.getresponse()
        return answer.status, answer.read().decode()

    try:
        assert get() == (200, "<p>page</p>") and get() == (200, "<p>page</p>"), "built once for each change"
        assert get("/etc")[0] == 404 and get(host="evil.example")[0] == 421
        file.write_text("ab", encoding="utf-8")
        os.utime(file, ns=(1, 1))
        status, told = get()
        assert status == 500 and "line 1: &lt;no&gt; study" in told
    finally:
        server.shutdown()
        server.server_close()


def test_the_commands_check_begin_and_build(tmp_path: Path) -> None:
    file = tmp_path / "two.md"
    file.write_text(STUDY, encoding="utf-8")
    run = CliRunner()
    checked = run.invoke(app, ["study", "check", str(file)])
    assert checked.exit_code == 0 and "2 chapters, 4 positions, all legal; no times yet" in checked.output
    game = tmp_path / "a.line"
    game.write_text(study().games[0].to_text(), encoding="utf-8")
    begun = tmp_path / "begun.md"
    assert run.invoke(app, ["study", "begin", str(game), "--to", str(begun)]).exit_code == 0
    assert run.invoke(app, ["study", "check", str(begun)]).exit_code == 0
    again = run.invoke(app, ["study", "begin", str(game), "--to", str(begun)])
    assert again.exit_code == 1 and "is there already" in again.output
    line = tmp_path / "mine.line"
    line.write_text(LINE, encoding="utf-8")
    told = run.invoke(app, ["study", "begin", str(line)]).output
    assert [c.titles for c in study(told).chapters] == [{1: "Vectors", 3: "Threads"}]
    start = run.invoke(app, ["study", "begin", "relu:4x8"]).output
    assert [c.title for c in study(start).chapters] == ["The game"], "a kernel by its name, at its start"
    file.write_text(
        STUDY.replace("join_scopes t@0\n```\n\nNow", "join_scopes q@0\n```\n\nNow"), encoding="utf-8"
    )
    wrong = run.invoke(app, ["study", "build", str(file)])
    assert (
        wrong.exit_code == 1 and "No operation writes q" in wrong.output and "Traceback" not in wrong.output
    )


# ------------------------------------------------------------------ as Markdown


def timed(*seconds: float) -> Times:
    """The main line of STUDY's game with times, start first."""
    game = study().games[0]
    positions = [game.positions[n].program.hash for n in (0, 1, 3)]
    return Times("k", "A machine", "2026-11-27", {h: [s, s] for h, s in zip(positions, seconds, strict=True)})


def test_a_study_exported_shows_what_moves_change_and_the_times() -> None:
    text = markdown(study(), [timed(1e-3, 2e-3, 1e-4)], "two.md", "two").text
    assert "(A machine; 2026-11-27)" in text and "Two loops, **one** after the other." in text
    assert "### 1. Fusion: 2 ms\n\nT is read where it was written.\n\n```diff\n- 64 y[{0}]" in text
    assert (
        "| 1 | `join_scopes t@0` | 2 ms | 0.5× |" in text
        and "| 2 | `split_scope t@0 8` | 100 µs | 10× |" in text
    )
    assert "*From the start:*\n\n```diff" in text and "| 1 | `split_scope t@0 8` | no time |  |" in text
    assert text.index("Now one.") > text.index("| 1 | `join_scopes t@0`"), "told where it stands"
    assert "- Right: `join_scopes t@0`. One loop." in text
    both = markdown(study(), [timed(1e-3, 2e-3, 1e-4), timed(2e-3, 1e-3, 1e-3)], "two.md", "two").text
    assert "| 1 | `join_scopes t@0` | 2 ms | 0.5× | 1 ms | 2× |" in both
    assert "| 1 | `join_scopes" not in markdown(study(), [], "two.md", "two").text


def test_what_is_text_in_a_study_is_text_in_its_export() -> None:
    hostile = STUDY.replace("Two loops, **one**", "<img src=x> a[1] 2 * 3 * 4")
    text = markdown(study(hostile), [], "two.md", "two").text
    assert "<img" not in text and "&lt;img src=x>" in text
    assert "2 \\* 3 \\* 4" in text and "a\\[1\\]" in text


def test_a_chapter_of_a_long_line_has_a_chart() -> None:
    read = study("# S\nkind: study\nabout: x.\n\n## A line\nline: softmax\nshape: 48x64\n")
    game = read.games[0]
    times = Times("k", "A machine", "2026-11-27", {p.program.hash: [1 / (p.id + 1)] * 2 for p in game.line()})
    exported = markdown(read, [times], "softmax", "s")
    assert list(exported.pictures) == ["s.svg"] and "![Time after each move](s.svg)" in exported.text
    ElementTree.fromstring(exported.pictures["s.svg"])
    assert "1: join_scopes m@0, 500 ms" in exported.pictures["s.svg"]


@pytest.mark.parametrize("most", [1, 5, None])
def test_the_moves_that_are_timed_are_the_studys_own_then_one_of_each_kind(most: int | None) -> None:
    read = study()
    game = read.games[0]
    after = chosen(read, game, game.positions[0], most)
    assert len(after) == (most or len(after)) == len({each.hash for each in after})
    told = [
        game.positions[n].program.hash for n in (1, 2)
    ]  # join_scopes is asked about, split_scope is played
    assert after[0].hash in told and (most == 1 or {each.hash for each in after[:3]} >= set(told))


# ------------------------------------------------------------------ those of the Dojo

STUDIES = sorted(data_path("dojo_core", "studies").glob("*.md"))
DOCS = Path(__file__).parent.parent / "docs"


Shipped = Callable[[str], tuple[Study, list[Times]]]


@pytest.fixture(scope="module")
def shipped() -> Iterator[Shipped]:
    """Reads a study of the Dojo with its times, as a machine with vectors of 64 bytes does."""

    @cache
    def read(name: str) -> tuple[Study, list[Times]]:
        file = data_path("dojo_core", "studies", f"{name}.md")
        times = read_times(times_file(file).read_text(encoding="utf-8"))
        return read_study(file.read_text(encoding="utf-8"), file), times

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dojo_core.moves.legality.target_named", _wide)
        yield read


def _wide(name: str) -> Target:
    return WIDE if name == "cpu" else target(name)


@pytest.mark.parametrize("name", [file.stem for file in STUDIES])
def test_a_study_of_the_dojo_is_sound_and_each_of_its_positions_has_a_time(
    shipped: Shipped, name: str
) -> None:
    read, (times, *_) = shipped(name)
    untimed = [
        number
        for game in read.games
        for number, position in game.positions.items()
        if position.program.hash not in times.seconds and position.program.hash not in times.failed
    ]
    assert not untimed, f"take them anew: dojo study time dojo_core/studies/{name}.md"


def test_a_row_of_a_benchmark_and_a_comparison_become_studies() -> None:
    """Of a comparison each of ours whose moves are known is a chapter; of a benchmark the line it timed."""
    entries = [
        {"name": "ours: line", "status": "ok", "min": 2e-6},
        {"name": "PyTorch eager", "status": "ok", "min": 1e-6},
        {"name": "JAX", "status": "missing", "message": "JAX is not installed."},
    ]
    row = {
        "kernel": "relu", "shape": "4x64", "policy": "reassoc", "rounds": 5, "machine_summary": "A machine",
        "line": ["split_scope y@1 4"], "program": "", "entries": entries,
    }  # fmt: skip
    document = {"time": "2026-11-27T10:00:00Z", "reports": [row, {**row, "shape": "8x64"}]}
    with pytest.raises(TextError, match="2 rows are meant") as meant:
        report_of(json.dumps(document), "relu")
    assert meant.value.remedy == "Name one by --row: relu:4x64, relu:8x64."
    chosen = report_of(json.dumps(document), "relu:8x64")
    study = read_study(of_report(chosen, "Ann"), Path("relu.md"))
    assert [chapter.title for chapter in study.chapters] == ["The times", "Ours: line"]
    assert study.title == "relu 8x64, side by side" and study.chapters[1].game.shape == "8x64"
    played = {
        "start": {"line": [], "policy": "reassoc"},
        "mine": {"line": ["unroll y@0"], "policy": "strict"},
    }
    own = {**row, "kernel": "two", "shape": ""}
    text = of_report({**chosen, "reports": [own], "programs": played, "spec": {"start": PROGRAM}})
    assert text.index("PyTorch eager  1 µs") < text.index("ours: line") < text.index("JAX is not installed.")
    (_, chapter) = read_study(text, Path("own.md")).chapters
    assert (chapter.title, chapter.game.policy) == ("Ours: mine", "strict")
    assert [str(position.move) for position in chapter.game.line()[1:]] == ["unroll y@0"]


@pytest.mark.parametrize("name", ["softmax", "matmul"])
def test_pages_of_the_documentation_are_exports_of_studies(
    shipped: Shipped, golden: Golden, name: str
) -> None:
    exported = markdown(*shipped(name), name, name)
    golden(DOCS / f"{name}.md", exported.text)
    assert list(exported.pictures) == [f"{name}.svg"]
    golden(DOCS / f"{name}.svg", exported.pictures[f"{name}.svg"])
