"""What the Watch page shows of runs and recordings, without a browser."""

from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from agents.agent import Budget, Task, run
from agents.jobs import JobRefused
from agents.jobs.journal import event_line, read_entry, save
from agents.jobs.recording import Recording, of_game, read, shipped
from agents.jobs.spec import JobSpec
from agents.players import AGENTS
from agents.timing import CountTiming
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.program.text import parse
from dojo_core.service.learned import Learned, LearnedMove
from pages.axes import log_ticks
from pages.jobs import the_jobs
from pages.watch import charts, learned
from pages.watch.lanes import Lane, Look, from_one_start, shown, taken_over
from pages.watch.replay import Player


def game() -> Game:
    return Game.new(kernels.get("softmax").program((8, 32)), "softmax", "8x32")


def lane(agent: str, evaluations: int = 24, state: str = "done") -> Lane:
    events = run(Task(game()), AGENTS[agent], CountTiming(), Budget(evaluations))
    entries = [read_entry(event_line(event, 0, number)) for number, event in enumerate(events, 1)]
    return Lane("run", JobSpec.of(game(), agent, 0, evaluations, 60.0, "count"), entries, state, "")


def test_a_run_tells_its_best_its_line_and_what_it_weighed() -> None:
    annealing = lane("annealing-lines")
    view = shown(annealing, Look())
    best = annealing.best
    assert best is not None
    assert view["moves"] == list(best.moves) and view["ply"] == len(best.moves)
    assert [line["text"] for line in view["program"]["lines"]] == best.text.splitlines()[
        -len(view["program"]["lines"]) :
    ]
    assert view["heat"].startswith("temperature")
    assert {row["tone"] for row in view["considered"]} <= {"accepted", "rejected"}
    assert view["log"][0]["label"] == "final"
    assert view["metrics"][0] == ("Programs", "24", "of 24")
    # looking at a position on the way: its text is the game's
    earlier = shown(annealing, Look(entry=best.number, ply=1))
    again = game()
    again.play(best.moves[0])
    assert "".join(
        line["text"] for line in earlier["program"]["lines"]
    ) in again.current.program.text.replace("\n", "")
    assert taken_over(annealing, Look(entry=best.number, ply=1)) == best.moves[:1]


def test_runs_beside_each_other_have_one_time_of_the_start() -> None:
    """The clock told two times of one program; what both began from is not faster for one of them."""
    one, other = lane("annealing-lines"), lane("annealing-edges")
    slower = [replace(e, seconds=2 * e.seconds) if e.seconds else e for e in other.entries]
    both = from_one_start([one, replace(other, entries=slower)])
    assert both[0].reference == both[1].reference != replace(other, entries=slower).reference
    apart = from_one_start([one, replace(other, spec=replace(other.spec, timing="clock"))])
    assert apart[1].reference == other.reference


def test_the_buttons_are_those_that_a_state_has() -> None:
    def buttons(state: str) -> list[str]:
        return [button["id"] for button in shown(lane("naive", 1, state), Look())["controls"]]

    assert buttons("running") == ["pause", "take_over", "stop"]
    assert buttons("paused") == ["go_on", "step", "take_over", "stop"]
    assert buttons("interrupted") == ["resume", "take_over", "keep", "replay"]
    assert buttons("recorded") == ["take_over"]
    assert buttons("elsewhere") == []


def test_curves_and_table_tell_the_same() -> None:
    lanes = [lane("annealing-edges"), lane("sampling-edges")]
    rows = charts.table(lanes)
    assert len(rows) == sum(len(each.entries) for each in lanes)
    best = charts.best_so_far(lanes, "programs")
    steps = [trace for trace in best.data if trace.mode == "lines"]
    assert [min(trace.y) for trace in steps] == [each.best.seconds * 1e9 for each in lanes if each.best]
    assert charts.weighed(lanes) is not None
    assert charts.weighed([lane("heuristic", 2)]) is None  # a pass weighs nothing


def test_a_long_run_draws_what_can_be_told_apart() -> None:
    short = lane("annealing-edges")
    long = replace(
        short,
        entries=[
            replace(short.entries[-1], evaluation=n, seconds=1e-6 * (1 + n % 7), best=1e-6 * (5 - n // 1000))
            for n in range(4_500)
        ],
    )
    points, steps = charts.best_so_far([long], "programs").data
    assert 200 < len(points.x) <= charts.MOST_POINTS and points.x[-1] == 4_499
    assert list(steps.x) == [0, 1_000, 2_000, 3_000, 4_000, 4_499]  # each step where it is, and on to the end
    assert len(steps.y) == 6 and steps.y[-1] == steps.y[-2]


def test_a_game_is_told_move_by_move() -> None:
    played = game()
    for move in ("join_scopes m@0", "join_scopes m@0"):
        played.play(move)
    times = {played.start.hash: 2e-3, played.current.program.hash: 1e-3}
    recording = of_game(played, "mine", times)
    assert [len(entry.moves) for entry in recording.entries] == [0, 1, 2]
    assert [entry.best for entry in recording.entries] == [2e-3, 2e-3, 1e-3]
    view = shown(Lane.replayed(recording, 2), Look("newest"))
    assert view["title"] == "By hand" and view["metrics"][0] == ("Moves", "1", "of 2")
    assert view["program"]["added"]


def axpy(name: str) -> Recording:
    return next(recording for recording in shipped() if recording.name == f"axpy-{name}")


def test_a_held_out_kernel_is_told_with_what_the_policy_said_of_each_move() -> None:
    line = axpy("line")
    assert [round(1e9 * entry.seconds) for entry in line.entries if entry.seconds][::5] == [2566, 276]
    whole = Lane.replayed(line, len(line.entries))
    last = whole.entries[-1]
    chances = learned.chances(whole, last)
    assert len(chances) == len(last.moves) == 5 and all(chance is not None for chance in chances)
    assert [t.probability for entry in line.entries[1:] for t in entry.thoughts] == pytest.approx(
        chances, abs=1e-4
    )
    told = learned.shown(whole, last, 3)  # a position on the way, and what the line played there
    assert told is not None and told["words"] == "It has never seen this kernel."
    assert told["played"] == last.moves[3] in [each["move"] for each in told["moves"]]
    assert shown(whole, Look("newest"))["metrics"][0] == ("Moves", "5", "of 5")


def test_runs_side_by_side_are_marked_where_they_pass_the_expert() -> None:
    pair = [axpy("learned"), axpy("unguided")]
    assert pair[1].spec.beside == pair[0].spec.id
    policy, blind = from_one_start([Lane.replayed(each, len(each.entries)) for each in pair])
    assert policy.expert == blind.expert == 2.75e-7
    half, most, whole = map(policy.passed, charts.PASSED)
    assert half is not None and most is not None and half.evaluation < most.evaluation and whole is None
    assert blind.passed(0.5) is None
    figure = charts.best_so_far([policy, blind], "programs")
    [stars] = [trace for trace in figure.data if trace.text]
    assert list(stars.text) == ["50%", "90%"] and list(stars.x) == [half.evaluation, most.evaluation]
    assert [trace.name for trace in figure.data][-1] == "the expert"
    assert figure.layout.yaxis.title.text == "cycles of the program"
    assert ("Expert", "275 cycles", "99.6% reached") in shown(policy, Look())["metrics"]
    assert {row["of the expert's speed"] for row in charts.table([policy])} >= {"10.7%", "99.6%"}


def test_a_live_run_is_drawn_before_the_policy_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, answers = Event(), [Learned("It has never seen this kernel.", 0.5, (LearnedMove("ssr z@0", 0.5),))]

    def slow(game: Game) -> Learned:
        gate.wait(300)
        return answers.pop()

    monkeypatch.setattr(learned, "shipped_says", slow)
    start = axpy("line")
    entry = start.entries[0]
    live = Lane("run", start.spec, [entry], "running", "")
    first = learned.shown(live, entry, 0)
    assert first is not None and first["pending"]
    gate.set()
    learned.asked.of(live.spec.game, ()).result(timeout=300)
    told = learned.shown(live, entry, 0)
    assert told is not None and told["moves"][0]["probability"] == 0.5 and not answers
    on_cpu = lane("naive", 1)
    assert learned.shown(on_cpu, on_cpu.entries[-1], 0) is None  # nothing was learned for it


@pytest.mark.parametrize(("runs", "order"), [(1, "stage, curves"), (2, "curves, stage")])
def test_a_run_is_looked_at_often_and_its_curves_are_drawn_seldom(runs: int, order: str) -> None:
    """Drawing them takes the processor that the agent measures on."""

    def app(runs: int) -> None:
        from collections.abc import Callable
        from unittest.mock import patch

        import streamlit as st

        from agents.jobs.host import JobView
        from agents.jobs.recording import shipped
        from pages import shell
        from pages.watch import live

        entries = shipped()[0].entries
        view = JobView(shipped()[0].spec, "running", "", tuple(entries), entries[-1], None)
        parts: list[tuple[float, str]] = []

        def fragment(run_every: float | None) -> Callable[[Callable[[], None]], Callable[[], None]]:
            def looked_at(part: Callable[[], None]) -> Callable[[], None]:
                def run() -> None:
                    with patch.object(live, "draw") as stage, patch.object(st, "plotly_chart") as chart:
                        part()
                    drawn = ["stage"] * stage.called + ["curves"] * chart.called
                    parts.append((run_every or 0.0, " and ".join(drawn)))

                return run

            return looked_at

        with (
            patch.object(live, "the_jobs") as jobs,
            patch.object(st, "fragment", fragment),
            patch.object(shell, "head"),
        ):
            jobs.return_value.view.return_value = view
            live.page(["run"] * runs)
        st.text(", ".join(drawn for _, drawn in parts))
        st.text(min(parts)[1])
        st.text(max(parts)[0] / min(parts)[0])

    shown = AppTest.from_function(app, args=(runs,), default_timeout=500).run()
    assert not shown.exception
    told, often, times = (text.value for text in shown.text)
    assert told == order and often == "stage" and float(times) >= 4


def test_two_runs_that_are_done_have_a_study_each() -> None:
    def app() -> None:
        from dataclasses import replace

        from agents.jobs.recording import shipped
        from pages.watch.studying import study_buttons

        study_buttons(
            [replace(recording, name="journal") for recording in shipped()[:2]]
        )  # as their files are

    shown = AppTest.from_function(app, default_timeout=500).run()
    assert not shown.exception


def test_marks_stand_on_an_axis_of_less_than_a_decade() -> None:
    assert log_ticks(10_761, 16_028)["ticktext"] == ["10,000", "12,000", "14,000", "16,000", "18,000"]
    assert log_ticks(275, 2_566)["ticktext"][:4] == ["100", "200", "500", "1,000"]
    assert log_ticks(3, 3)["tickvals"]


def test_a_recording_plays_at_its_pace_and_rests_at_its_end() -> None:
    player = Player("a", pace=2.0)
    assert player.now(5) == 1 and not player.playing(5)
    assert player.moved(9, 5, play=True).at == 5
    assert not player.moved(5, 5, play=True).playing(5)
    moved = player.moved(2, 5, play=True)
    assert moved.playing(5) and moved.now(5) == 2
    ended = replace(player, at=5, since=0.0)
    assert ended.told(on=True, total=5).playing(5) and ended.told(on=True, total=5).at == 1
    late = ended.told(on=False, total=5)  # Pause, pressed as it ended
    assert late.at == 5 and not late.playing(5)


def test_the_recordings_that_come_along_are_whole(tmp_path) -> None:
    recordings = {recording.name: recording for recording in shipped()}
    assert {"softmax-by-hand", "softmax-agent"} <= set(recordings)
    for recording in recordings.values():
        assert recording.source.startswith("Measured on ")
        for entry in recording.entries:
            assert parse(entry.text).hash == entry.hash
    by_hand, agent = recordings["softmax-by-hand"], recordings["softmax-agent"]
    assert len(by_hand.entries) == 11
    start = Game.from_text(agent.spec.game)  # the agent goes on where the player stopped
    assert start.current.program.hash == by_hand.entries[-1].hash
    save(tmp_path / "again.jsonl", agent.spec, [])
    assert read(tmp_path / "again.jsonl").spec == agent.spec


def test_a_run_may_be_for_another_target_with_its_shapes_and_its_policies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    st.cache_resource.clear()
    begun: list[JobSpec] = []

    def start(spec: JobSpec) -> str:
        begun.append(spec)
        raise JobRefused("enough")

    monkeypatch.setattr(the_jobs(), "start", start)

    def app() -> None:
        from pages.watch import begin

        begin.page()

    page = AppTest.from_function(app, default_timeout=500).run()
    assert not page.exception

    def offered() -> tuple[str, set[str]]:
        [shape], [policy] = page.text_input, page.segmented_control
        return shape.value, set(policy.options)

    exact = {"regroup sums", "rewrite formulas", "as written"}
    assert offered() == ("24576x512", exact)
    page.selectbox(key="watch_target").set_value("cuda").run()
    assert offered() == ("24576x512", {*exact, "factors in TF32"})
    page.selectbox(key="watch_target").set_value("snitch").run()
    assert offered() == ("48x64", exact)
    page.button(key="watch_start").click().run()
    game = Game.from_text(begun[0].game)
    assert (game.target, game.shape, game.policy) == ("snitch", "48x64", "reassoc")
