"""What the Watch page shows of runs and recordings, without a browser."""

from dataclasses import replace

from agents.agent import Budget, Task, run
from agents.jobs.journal import event_line, read_entry, save
from agents.jobs.recording import of_game, read, shipped
from agents.jobs.spec import JobSpec
from agents.players import AGENTS
from agents.timing import CountTiming
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.program.text import parse
from pages.watch import charts
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


def test_a_recording_plays_at_its_pace_and_rests_at_its_end() -> None:
    player = Player("a", pace=2.0)
    assert player.now(5) == 1 and not player.playing(5)
    assert player.moved(9, 5, play=True).at == 5
    assert not player.moved(5, 5, play=True).playing(5)
    moved = player.moved(2, 5, play=True)
    assert moved.playing(5) and moved.now(5) == 2


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
