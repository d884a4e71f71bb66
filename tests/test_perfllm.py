"""PerfLLM's learner on games with known answers, its player on kernels, its runs killed and resumed."""

from __future__ import annotations

import json
import math
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from agents.agent import Budget, Task, run
from agents.cli import app
from agents.perfllm.settings import VARIANTS, EncoderSettings, Settings
from agents.players import AGENTS
from agents.timing import CountTiming
from agents.trail import Trail
from dojo_core import kernels, legal_moves
from dojo_core.game import Game
from tests.thorough import one_of

pytestmark = pytest.mark.usefixtures("kept_workers")

SMALL = Settings(
    encoder=EncoderSettings("bag"),
    hidden=32,
    batch=16,
    most_actions=12,
    episode_moves=6,
    most_moves=6,
    updates=1,
    rate=3e-3,
)


@pytest.fixture(scope="module", autouse=True)
def modules_of_torch():
    """Their import takes seconds: only where these tests run, not wherever they are collected."""
    global torch, encoders, STOP, Choice, Learner, Player, QNetwork, Transition, look, Encoder, encoder
    global Plan, Training, ignoring_clock, Adam, agent
    import torch

    from agents.perfllm import agent, encoders
    from agents.perfllm.adam import Adam
    from agents.perfllm.agent import STOP, Choice, Learner, Player, QNetwork, Transition, look
    from agents.perfllm.encoders import Encoder, encoder
    from agents.perfllm.training import Plan, Training, ignoring_clock

    torch.set_num_threads(1)  # tests run side by side


def game(kernel: str = "softmax", shape: tuple[int, ...] = (8, 32)) -> Game:
    return Game.new(kernels.get(kernel).program(shape), kernel, "x".join(map(str, shape)))


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    return tmp_path


# ---------------------------------------------------------------------------- games with known answers

# The shape of the paper's figure 7. Where each state leads, besides to stop, and the reward there.
#   start ─ near (2.5), where to stop gives 2.5 once more: 5 in all
#         └ poor (0.1) ─ best (4), which ends: 4.1 in all
FIGURE_7 = {"start": ("near", "poor"), "near": (), "poor": ("best",), "best": ()}
REWARDS = {"start": 1.0, "near": 2.5, "poor": 0.1, "best": 4.0}
ENDS = ("best",)


def learned(settings: Settings, steps: int = 160) -> Learner:
    """A learner that saw every transition of the game."""
    learner = Learner(len(FIGURE_7), settings, seed=0)
    place = {name: torch.eye(len(FIGURE_7))[n] for n, name in enumerate(FIGURE_7)}
    for name, after in FIGURE_7.items():
        learner.choices[name] = Choice(torch.stack([place[name], *(place[a] for a in after)]).half())
    transitions = [
        Transition(name, action, REWARDS[after], None if after in ENDS else after)
        for name, there in FIGURE_7.items()
        for action, after in enumerate(there, 1)
    ]
    transitions += [Transition(name, STOP, REWARDS[name], None) for name in FIGURE_7 if name not in ENDS]
    rng = random.Random(0)
    for _ in range(steps):
        for transition in transitions if not settings.replay or not learner.memory else ():
            learner.remember(transition)
        learner.learn(rng)
    return learner


def way(learner: Learner) -> list[str]:
    """Where the learner goes from the start."""
    found = ["start"]
    while found[-1] not in ENDS:
        action = int(learner.values(learner.choices[found[-1]]).argmax())
        if action == STOP:
            return [*found, "stop"]
        found.append(FIGURE_7[found[-1]][action - 1])
    return found


KNOWN = replace(SMALL, gamma=0.9, hidden=48, batch=24, warmup=1, target_every=10)


def test_max_q_learning_goes_to_the_single_best_state():
    learner = learned(KNOWN)
    assert way(learner) == ["start", "poor", "best"]
    stop, near, poor = learner.values(learner.choices["start"]).tolist()
    assert stop == pytest.approx(1.0, abs=0.1)
    assert near == pytest.approx(2.5, abs=0.2)
    assert poor == pytest.approx(0.9 * 4.0, abs=0.2)


def test_plain_q_learning_takes_the_stop_action_with_the_higher_sum():
    learner = learned(replace(KNOWN, max_bellman=False))
    assert way(learner) == ["start", "near", "stop"]
    _, near, poor = learner.values(learner.choices["start"]).tolist()
    assert near == pytest.approx(2.5 + 0.9 * 2.5, abs=0.3)
    assert poor == pytest.approx(0.1 + 0.9 * 4.0, abs=0.3)


TECHNIQUES = [
    {"double": False}, {"dueling": False}, {"target_network": False}, {"symlog": False},
    {"replay": False, "environments": 7}, {"tightened": False}, {"tried": False},
    {"tightened": False, "tried": False},
]  # fmt: skip
WITHOUT = pytest.mark.parametrize(
    "off", TECHNIQUES, ids=lambda off: " ".join(name for name in off if name != "environments")
)


# One that cannot be switched off shows beside another that is; make thorough has each by itself.
@pytest.mark.parametrize("pair", [(0, 1), (2, 3), (4, 5), (6, 2)])
def test_techniques_can_be_switched_off_two_at_a_time(pair):
    off = {name: value for number in pair for name, value in TECHNIQUES[number].items()}
    assert way(learned(replace(KNOWN, rate=1e-2, **off), steps=80)) == ["start", "poor", "best"]


@pytest.mark.thorough
@WITHOUT
def test_each_technique_can_be_switched_off(off):
    assert way(learned(replace(KNOWN, rate=1e-2, **off), steps=80)) == ["start", "poor", "best"]


@pytest.mark.soak  # what plain targets are, with and without each, is tried by itself below
@WITHOUT
def test_each_technique_can_be_switched_off_of_plain_q_learning_too(off):
    plain = learned(replace(KNOWN, rate=1e-2, max_bellman=False, **off), steps=130)
    assert way(plain) == ["start", "near", "stop"]


@pytest.mark.soak  # what learns with it is all over these tests; PyTorch's own takes seconds to import
@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_adam_is_pytorchs_number_for_number(decay):
    start = QNetwork(4, 8, dueling=True).state_dict()
    ends = []
    for ours in (True, False):
        network = QNetwork(4, 8, dueling=True)
        network.load_state_dict(start)
        made = (
            Adam(network.parameters(), 1e-2, decay=decay)
            if ours
            else torch.optim.AdamW(network.parameters(), lr=1e-2, weight_decay=decay)
        )
        for step in range(30):
            rows = torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(step))
            made.zero_grad()
            network(rows[:, 0], rows).square().sum().backward()
            made.step()
        ends.append(network.state_dict())
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in start)


@pytest.mark.parametrize("dueling", one_of(2, [True, False]))
def test_the_kind_of_a_move_can_be_told_where_embeddings_hide_it(dueling):
    """Three moves to programs that read alike: one pays, one does not."""
    told = {}
    for kinds in (True, False):
        learner = Learner(4, replace(KNOWN, kinds=kinds, dueling=dueling), seed=0)
        learner.choices["here"] = Choice(
            torch.ones(4, 4).half(), ("unroll y@0", "vectorize y@1", "reorder y")
        )
        for action, reward in ((1, 0.5), (2, 4.0), (3, 0.5)):
            learner.remember(Transition("here", action, reward, None))
        rng = random.Random(0)
        for _ in range(120):
            learner.learn(rng)
        told[kinds] = learner.values(learner.choices["here"])[1:].tolist()
    assert told[True] == pytest.approx([0.5, 4.0, 0.5], abs=0.3)
    assert max(told[False]) - min(told[False]) < 1e-4


def test_what_was_learned_of_kinds_of_moves_stays_where_a_package_brings_another(monkeypatch):
    def learned(learner: Learner) -> list[float]:
        rng = random.Random(0)
        for _ in range(3):
            learner.learn(rng)
        return learner.values(learner.choices["here"]).tolist()

    moves = ("unroll y@0", "vectorize y@1", "reorder y")
    learner = Learner(4, replace(KNOWN, kinds=True), seed=0)
    learner.choices["here"] = Choice(torch.ones(4, 4).half(), moves)
    for action, reward in ((1, 0.5), (2, 4.0), (3, 0.5)):
        learner.remember(Transition("here", action, reward, None))
    learned(learner)
    tensors, data = learner.state()
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    then = learned(learner)
    monkeypatch.setattr(agent, "NUMBER_OF", {k: n for n, k in enumerate(["a_package_s", *data["kinds"]], 1)})
    other = Learner(4, replace(KNOWN, kinds=True), seed=1)
    other.choices["here"] = Choice(torch.ones(4, 4).half(), moves)
    other.restore(tensors, data)
    assert learned(other) == pytest.approx(then)


def one_step(settings: Settings, reward: float, after: str | None) -> tuple[Learner, float]:
    learner = Learner(3, settings, seed=1)
    learner.target = QNetwork(3, settings.hidden, settings.dueling)
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(2))
    learner.choices = {"a": Choice(rows.half()), "b": Choice(rows[2:].half())}
    return learner, float(learner._targets([Transition("a", 1, reward, after)])[0])


def test_the_target_is_the_better_of_the_reward_and_what_comes():
    linear = replace(SMALL, symlog=False, double=False, tried=False)
    learner, high = one_step(linear, 100.0, "b")
    there = learner._scaled(learner.choices["b"].embeddings)[None]
    later = linear.gamma * float(learner.target(there[:, 0], there).detach().max())
    assert high == 100.0
    assert one_step(linear, -100.0, None)[1] == -100.0
    low = Learner._targets(learner, [Transition("a", 1, -100.0, "b")])
    assert float(low[0]) == pytest.approx(later)
    learner.settings = replace(linear, max_bellman=False)
    plain = learner._targets([Transition("a", 1, 2.0, "b")])
    assert float(plain[0]) == pytest.approx(2.0 + later)


@pytest.mark.parametrize("double", [False, True])
def test_a_target_looks_ahead_through_actions_that_were_tried(double):
    """The best of many guesses is too high, and targets made of such targets grow without an end."""
    settings = replace(SMALL, symlog=False, double=double, tightened=False)
    here = Transition("a", 1, -100.0, "b")
    assert one_step(settings, 2.0, "b")[1] == 2.0, "nothing was tried there"
    plain = replace(settings, max_bellman=False)
    assert one_step(plain, 2.0, "b")[1] == pytest.approx(2.0 + settings.gamma * 2.0), "to stop is known"
    learner, _ = one_step(settings, 2.0, "b")
    learner.remember(Transition("b", 2, 1.0, None))
    there = learner._scaled(learner.choices["b"].embeddings)[None]
    later = settings.gamma * float(learner.target(there[:, 0], there)[0, 2].detach())
    assert float(learner._targets([here])[0]) == pytest.approx(later)
    learner.settings = replace(settings, max_bellman=False)
    assert float(learner._targets([here])[0]) == pytest.approx(-100.0 + later)


@pytest.mark.thorough  # what a target is, action by action: below
def test_guesses_do_not_grow_without_an_end():
    """Two positions with ways back and forth, 30 actions each of which two were tried, rewards of 1."""
    worst = {}
    for tried in (True, False):
        learner = Learner(8, replace(SMALL, tried=tried, warmup=1), seed=0)
        rows = torch.randn(31, 8, generator=torch.Generator().manual_seed(0))
        learner.choices = {"a": Choice(rows.half()), "b": Choice(rows.flip(0).half())}
        for name, other in (("a", "b"), ("b", "a")):
            for action in (STOP, 1, 2):
                learner.remember(Transition(name, action, 1.0, None if action == STOP else other))
        rng = random.Random(0)
        for _ in range(150):
            learner.learn(rng)
        worst[tried] = max(float(learner.values(choice)[:3].max()) for choice in learner.choices.values())
    assert worst[True] == pytest.approx(1.0, rel=0.15), worst
    assert worst[False] > 1.3 * worst[True], worst


def test_a_target_is_at_least_what_moves_already_made_have_come_to():
    settings = replace(SMALL, symlog=False, gamma=0.5)
    for max_bellman, wanted in ((True, 50.0), (False, 1.0 + 0.5 * 100.0)):
        learner, _ = one_step(replace(settings, max_bellman=max_bellman), 1.0, "b")
        here, there = Transition("a", 1, 1.0, "b"), Transition("b", 2, 100.0, None)
        learner.remember(here)
        learner.remember(there)
        assert float(learner._targets([here])[0]) == pytest.approx(wanted)
        learner.settings = replace(learner.settings, tightened=False)
        assert float(learner._targets([here])[0]) < wanted


def test_double_q_learning_asks_the_other_network_what_the_choice_is_worth():
    for seed in range(5):
        learner = Learner(3, replace(SMALL, symlog=False, gamma=1.0, tried=False), seed)
        with torch.random.fork_rng():
            torch.manual_seed(100 + seed)
            learner.target = QNetwork(3, SMALL.hidden, SMALL.dueling)
            learner.choices = {"b": Choice(torch.randn(20, 3).half())}
        there = learner._scaled(learner.choices["b"].embeddings)[None]
        own, other = learner.online(there[:, 0], there)[0], learner.target(there[:, 0], there)[0]
        doubled = float(learner._targets([Transition("b", 1, -1e9, "b")])[0])
        assert doubled == pytest.approx(float(other[own.argmax()].detach()), abs=1e-6)


def test_in_a_dueling_network_the_value_is_that_of_stopping():
    network = QNetwork(4, 16, dueling=True)
    state = torch.randn(3, 4)
    actions = torch.cat([state[:, None], torch.randn(3, 5, 4)], dim=1)
    assert torch.allclose(network(state, actions)[:, STOP], network.value(state)[:, 0], atol=1e-6)


def test_without_replay_only_the_last_moves_are_known():
    learner = Learner(3, replace(SMALL, replay=False, environments=2), seed=0)
    for n in range(5):
        learner.remember(Transition("a", n, 1.0, None))
    assert {action for _, action in learner.reached} == {3, 4}


def test_memory_forgets_the_oldest():
    learner = Learner(3, replace(SMALL, capacity=3), 0)
    for n in range(5):
        learner.remember(Transition(str(n), 0, 1.0, None))
    assert [t.position for t in learner.memory] == ["2", "3", "4"]


# ---------------------------------------------------------------------------- actions and play


def test_actions_are_legal_moves_to_different_programs():
    trail, embed = Trail.at(game()), encoder(SMALL.encoder)
    legal = {str(move) for move in legal_moves(trail.program)}
    every = look(trail, embed, 0, seed=0)
    assert set(every.moves) <= legal and len(every.embeddings) == len(every.moves) + 1
    assert torch.equal(every.embeddings[0], embed([trail.program])[0].half())
    reached = [trail.played([m]).program.hash for m in legal_moves(trail.program)]
    assert len(every.moves) == len(set(reached) - {trail.program.hash})
    few = look(trail, embed, 12, seed=0)
    assert len(few.moves) == 12 and set(few.moves) <= legal
    kinds = {move.split()[0] for move in legal}
    assert len({move.split()[0] for move in few.moves}) == min(12, len(kinds))  # each kind in turn
    assert look(trail, embed, 12, seed=0).moves == few.moves != look(trail, embed, 12, seed=1).moves


def played(settings: Settings = SMALL, evaluations: int = 24, seed: int = 0, start: Game | None = None):
    from agents.agent import Agent
    from agents.perfllm.agent import play

    agent = Agent("small", "", lambda task, budget, rng: play(task, budget, rng, settings))
    return list(run(Task(start or game()), agent, CountTiming(), Budget(evaluations), seed))


def test_it_plays_a_gpu_as_it_plays_any_target():
    start = Game.new(kernels.get("relu").program((16, 256)), "relu", "16x256", "cuda")
    events = played(evaluations=24, start=start)
    names = {move.name for e in events for move in e.line}
    assert names & {"map_grid", "map_block"}, names
    for move in events[-1].best.line:
        start.play(move)
    assert start.current.program == events[-1].best.program


@pytest.mark.thorough  # a GPU as any target: above; its runs: below
def test_it_plays_as_every_agent_does():
    first, again = played(), played()
    assert [(e.line, e.measurement.seconds) for e in first] == [
        (e.line, e.measurement.seconds) for e in again
    ]
    searched = [e for e in first if not e.final]
    assert [e.evaluation for e in searched] == list(range(1, 25))
    assert [e.line for e in played(seed=1)] != [e.line for e in first]
    thoughts = [t for e in first for t in e.thoughts]
    assert all(t.value is not None and 0.099 < t.heat <= 1.0 for t in thoughts) and len(thoughts) >= 20
    replay = game()
    for move in first[-1].best.line:
        replay.play(move)
    assert replay.current.program == first[-1].best.program


def test_our_own_encoder_plays_too(home):
    settings = replace(SMALL, encoder=EncoderSettings("ir"))
    first = [(e.line, e.measurement.seconds) for e in played(settings, 3)]
    assert first == [(e.line, e.measurement.seconds) for e in played(settings, 3)]
    assert (home / "cache" / "embeddings.sqlite").exists()


def test_all_variants_are_agents():
    assert set(VARIANTS) <= set(AGENTS)
    assert not VARIANTS["perfllm-plain"][1].max_bellman and VARIANTS["perfllm-scratch"][1].max_bellman


def test_exploration_fades_and_a_failed_program_ends_its_episode():
    player = Player([Task(game())], encoder(SMALL.encoder), SMALL, 0, 40)
    assert player.epsilon == 1.0
    player.propose()
    player.hear([1.0])
    proposed = player.propose()
    assert len(proposed) == SMALL.environments
    told = player.hear([math.inf] * len(proposed))
    failed = [t for t in told if t.move is not None]
    assert all(t.reward == 0.0 and t.ended for t in failed)
    assert all(t.after is None for t in player.learner.memory)
    player.times.update({str(n): 1.0 for n in range(24)})
    assert player.epsilon == pytest.approx(SMALL.epsilon_last)


def begun_player(settings: Settings) -> Player:
    """A player that has heard of its start, and of four programs: the third one is ten times as fast."""
    player = Player([Task(game())], encoder(SMALL.encoder), settings, 0, 40)
    player.propose()
    player.hear([1.0])
    player.hear([0.1 if n == 2 else 1.0 for n, _ in enumerate(player.propose())])
    return player


def test_episodes_begin_at_fast_programs_as_often_as_told():
    player = begun_player(replace(SMALL, restarts=1.0))
    fast = min(player.times, key=lambda key: player.times[key])
    assert player.elite[0][0][1].program.hash == fast
    episodes = [player._next() for _ in range(40)]
    assert sum(e.trail.program.hash == fast for e in episodes) > 20
    assert all(e.until == len(e.trail.steps) + SMALL.restart_moves for e in episodes)
    from_start = begun_player(replace(SMALL, restarts=0.0))._next()
    assert not from_start.trail.steps and from_start.until == SMALL.episode_moves


def test_an_action_never_tried_counts_for_a_little_more():
    player = begun_player(replace(SMALL, novelty=0.1))
    [(position, tried)] = {(t.position, t.action) for t in player.learner.memory if t.reward > 5}
    values = torch.zeros(len(player.learner.choices[position].moves) + 1)
    untried = next(n for n in range(1, len(values)) if (position, n) not in player.learner.reached)
    values[tried], values[untried] = 1.0, 0.95
    assert player._chosen(position, values, range(len(values))) == untried
    values[untried] = 0.85
    assert player._chosen(position, values, range(len(values))) == tried


def test_a_greedy_action_is_the_best_of_a_few_drawn_or_of_all(monkeypatch):
    asked = []
    chosen = Player._chosen

    def told(self, position, values, among):
        asked.append((len(among), len(values)))
        return chosen(self, position, values, among)

    monkeypatch.setattr(Player, "_chosen", told)
    greedy = replace(SMALL, epsilon_first=0.0, epsilon_last=0.0)
    begun_player(replace(greedy, sampled=3))
    assert all(1 <= among <= 3 for among, _ in asked) and any(among > 1 for among, _ in asked)
    asked.clear()
    begun_player(replace(greedy, sampled=0))
    assert all(among == of for among, of in asked)


def test_a_player_that_would_always_stop_plays_on():
    settings = replace(SMALL, epsilon_first=0.0, epsilon_last=0.0, restarts=0.0, updates=0)
    player = Player([Task(game())], encoder(SMALL.encoder), settings, 0, 10)
    player._chosen = lambda position, values, among: STOP
    while proposed := player.propose():
        player.hear([1.0] * len(proposed))
    assert len(player.times) == 10


def test_it_ends_where_the_start_cannot_be_measured():
    player = Player([Task(game())], encoder(SMALL.encoder), SMALL, 0, 40)
    player.propose()
    player.hear([math.inf])
    assert player.propose() == []


# ---------------------------------------------------------------------------- training runs


def training(folder, settings: Settings = SMALL, budget: int = 30, again: bool = False, **more) -> Training:
    plan = Plan((game(), game("relu", (8, 32))), settings, budget, seed=3)
    return Training(plan, CountTiming(), folder, "count", again, every=7, **more)


def events(folder) -> list[dict]:
    return [ignoring_clock(json.loads(line)) for line in (folder / "events.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    made = training(folder)
    list(made.events())
    return folder, made


LATER = [pytest.param(share, marks=pytest.mark.soak) for share in (0.45, 0.99)]


@pytest.mark.parametrize("share", one_of(2, [0.8, 0.1, *LATER]))  # after some checkpoints, before the first
def test_a_killed_run_goes_on_as_if_nothing_had_happened(whole, tmp_path, share):
    folder, uninterrupted = whole
    cut = int(share * len(events(folder)))
    running = training(tmp_path).events()
    for _ in range(cut):
        next(running)
    running.close()  # nothing is saved then: what is there is what the last checkpoint and the logs hold
    with (tmp_path / "measurements.jsonl").open("a") as file:
        file.write('{"hash": "half a li')
    second = training(tmp_path)
    list(second.events())
    assert events(tmp_path) == events(folder)
    one, other = uninterrupted.player.state(), second.player.state()
    assert one[1] == other[1]
    assert all(torch.equal(one[0][name], other[0][name]) for name in one[0])


def test_what_a_run_tells(whole):
    folder, made = whole
    told = events(folder)
    by = {kind: [e for e in told if e["event"] == kind] for kind in {e["event"] for e in told}}
    assert set(by) == {"run", "start", "move", "episode", "learn", "final", "done"}
    assert by["run"][0]["kernels"] == ["softmax 8x32", "relu 8x32"]
    assert by["done"][0]["evaluation"] == 60 == len(made.player.times)
    fresh = [e for e in by["move"] if not e["known"] and e["move"] != "stop"]
    assert len({e["program"] for e in fresh}) == 58
    starts = {e["kernel"]: e["seconds"] for e in by["start"]}
    assert all(e["reward"] == pytest.approx(starts[e["kernel"]] / e["seconds"]) for e in by["move"])
    for episode in by["episode"]:  # the best that then came, discounted
        assert len(episode["q"]) == len(episode["measured"]) == len(episode["line"])
        assert max(episode["measured"]) == pytest.approx(episode["best_reward"], rel=1e-4)
    assert {e["kernel"] for e in by["final"]} == set(starts)
    replay = game()
    for move in by["final"][0]["line"]:
        replay.play(move)
    (timed,) = CountTiming().measure(None, [replay.current.program], {}, None, bool)
    assert timed.seconds == pytest.approx(by["final"][0]["best"])


def test_a_finished_run_is_not_run_again_but_with_again(whole):
    folder, _ = whole
    before = (folder / "events.jsonl").read_bytes()
    assert list(training(folder).events()) == []
    assert (folder / "events.jsonl").read_bytes() == before
    with pytest.raises(ValueError, match="holds another run"):
        training(folder, replace(SMALL, double=False))
    other = encoder(SMALL.encoder)
    other.identity = "bag 2"
    with pytest.raises(ValueError, match="read with another encoder"):
        training(folder, embed=other)


@pytest.mark.thorough  # a run that was killed, stopped or finished: above and below
def test_begun_anew_nothing_of_the_run_before_is_left(whole, tmp_path):
    folder, _ = whole
    copied = tmp_path / "run"
    shutil.copytree(folder, copied)
    wanted = (copied / "events.jsonl").read_bytes()
    training(copied, again=True).close()  # killed before its first checkpoint
    assert not (copied / "checkpoint").exists()
    made = training(copied)
    assert made.resumed == 0 and not made.finished
    assert [e["event"] for e in made.events()] == [json.loads(line)["event"] for line in wanted.splitlines()]


def test_a_trained_network_plays_a_kernel_it_never_saw(whole):
    _, made = whole
    (told,) = made.tried([game("rmsnorm")], CountTiming())
    assert len(told["seconds"]) == len(told["line"]) + 1 == len(told["expected"]) + 1
    assert told["best"] == min(told["seconds"]) <= told["start"]


@pytest.mark.thorough  # a run that is killed goes on: above; that is stopped: test_agents.py
def test_pausing_and_stopping(tmp_path):
    made = training(tmp_path)
    told = []
    for entry in made.events():
        told.append(entry)
        if entry["event"] == "learn" and entry["evaluation"] >= 20:
            made.control.stop()
    assert 20 <= len(made.player.times) < 30
    assert "final" not in {e["event"] for e in told}
    list((second := training(tmp_path)).events())
    assert second.finished and events(tmp_path)[-1]["event"] == "done"


# ---------------------------------------------------------------------------- the command line


def dojo(*words: str, code: int = 0):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


def test_training_on_this_machine_fills_its_memory_from_records(home):
    words = (
        "train",
        "relu",
        "--shape",
        "64x64",
        "--budget",
        "4",
        "--encoder",
        "bag",
        "--actions",
        "8",
        "--json",
    )
    first = [json.loads(line) for line in dojo(*words).stdout.splitlines()]
    assert first[-1]["event"] == "done" and first[-1]["evaluation"] == 4
    more = [json.loads(line) for line in dojo(*words, "--recorded", "--seed", "1").stdout.splitlines()]
    (recorded,) = [e for e in more if e["event"] == "recorded"]
    assert recorded["transitions"] >= 1


@pytest.mark.thorough  # test_a_trained_network_plays_a_kernel_it_never_saw; how words are read: below
def test_what_was_learned_plays_other_kernels(home):
    run = str(home / "run")
    dojo("train", "softmax", "--shape", "8x32", "--count", "--budget", "12", *QUICK, "--out", run)
    told = json.loads(dojo("try", run, "rmsnorm:8x32", "--count", "--json").stdout)
    assert told["kernel"] == "rmsnorm 8x32" and len(told["expected"]) == len(told["line"])
    assert len(told["seconds"]) == len(told["line"]) + 1
    table = dojo("try", run, "rmsnorm:8x32", "relu:8x32", "--count").stdout
    assert "relu 8x32" in table and all(move in table for move in told["line"])
    wrong = dojo("try", str(home), "relu", code=1).stderr
    assert "holds no checkpoint of a training run" in " ".join(wrong.split())


QUICK = ("--encoder", "bag", "--actions", "8")


def test_a_finished_run_tells_its_events_again(home):
    words = (
        "train",
        "relu",
        "--shape",
        "8x32",
        "--count",
        "--budget",
        "5",
        "--encoder",
        "bag",
        "--actions",
        "8",
    )
    first = dojo(*words, "--json").stdout
    assert json.loads(first.splitlines()[-1])["event"] == "done"
    assert dojo(*words, "--json").stdout == first


@pytest.mark.parametrize("switch", ["plain", "no-double", "no-replay", "no-tried"])
def test_a_switch_reaches_the_run(home, switch):
    words = (
        "train",
        "relu",
        "--shape",
        "8x32",
        "--count",
        "--budget",
        "4",
        "--encoder",
        "bag",
        "--actions",
        "8",
    )
    name = {"plain": "max_bellman"}.get(switch, switch.removeprefix("no-"))
    told = json.loads(dojo(*words, f"--{switch}", "--json").stdout.splitlines()[0])
    assert told["settings"][name] is False


def test_training_ends_with_a_table(home):
    told = dojo("train", "softmax", "--shape", "8x32", "--count", "--budget", "8", "--encoder", "bag",
                "--actions", "8", "--try", "relu", "--out", str(home / "run"))  # fmt: skip
    assert "softmax 8x32" in told.stdout and "(tried, not learned on)" in told.stdout
    assert "Operations were counted" in told.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("train", "softmux"), "There is no kernel 'softmux'."),
        (("train", "relu", "softmax", "--shape", "8x8"), "--shape is of one kernel"),
        pytest.param(
            ("train", "relu", "--encoder", "nobody/nothing"),
            "'nobody/nothing' is no model on this machine",
            marks=pytest.mark.thorough,  # imports transformers
        ),
        (
            ("train", "relu", "--encoder", "bag", "--pooling", "sum"),
            "Pooling is one of auto, mean, cls, last",
        ),
    ],
)
def test_a_mistake_is_told_in_a_sentence(home, words, sentence):
    told = dojo(*words, code=1).stderr
    assert sentence in " ".join(told.split()) and "Traceback" not in told


def test_an_encoder_is_asked_once_for_each_program(home):
    asked: list[str] = []

    def embed(texts):
        asked.extend(texts)
        return torch.tensor([[float(len(text)), 1.0] for text in texts])

    programs = [game().start, game("relu").start, game().start]
    path = home / "embeddings.sqlite"
    made = Encoder("lengths 1", 2, embed, path)(programs)
    assert len(asked) == 2 and made[0].tolist() == [len(programs[0].text), 1.0] == made[2].tolist()
    again = Encoder("lengths 1", 2, embed, path)(programs)
    assert len(asked) == 2 and torch.equal(again, made)
    Encoder("lengths 2", 2, embed, path)(programs)  # another encoder has its own
    assert len(asked) == 4


@pytest.mark.parametrize("damage", ["empty", "empty in use", "cut", "rubbish", "header", "value"])
def test_embeddings_that_are_damaged_are_made_again(home, damage, monkeypatch):
    monkeypatch.setattr(encoders, "BUSY_SECONDS", 0.2)

    def embed(texts):
        return torch.tensor([[float(len(text)), 12345.0] for text in texts])

    programs = [game().start, game("relu").start]
    path = home / "embeddings.sqlite"
    first = Encoder("lengths", 2, embed, path)
    right = first(programs)
    if damage != "empty in use":
        first._store._file.close()
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    contents = bytearray(path.read_bytes())
    if damage.startswith("empty"):
        contents.clear()
    elif damage == "cut":
        del contents[len(contents) // 2 :]
    elif damage == "rubbish":
        contents[:] = b"rubbish" * 1000
    elif damage == "header":
        contents[20:120] = bytes(100)
    else:
        stored = torch.tensor([12345.0]).numpy().tobytes()
        assert contents.count(stored) == 2
        contents = bytearray(contents.replace(stored, torch.tensor([54321.0]).numpy().tobytes()))
    path.write_bytes(contents)
    for _ in range(2):
        assert torch.equal(Encoder("lengths", 2, embed, path)(programs), right)
