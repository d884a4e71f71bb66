"""The Gymnasium environment keeps its contract, and is deterministic with a recorded table of times."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from agents.agent import Budget, Task, run
from agents.environment import STOP, DojoEnv
from agents.players import AGENTS
from agents.timing import CountTiming, TableTiming
from dojo_core import kernels
from dojo_core.game import Game


def task() -> Task:
    return Task(Game.new(kernels.get("softmax").program((4, 8)), "softmax", "4x8"))


@pytest.fixture
def env() -> DojoEnv:
    return DojoEnv(task(), CountTiming(), most_moves=5)


@pytest.mark.filterwarnings("error")
def test_gymnasium_finds_nothing_to_complain_about():
    check_env(DojoEnv(task(), CountTiming(), most_actions=64), skip_render_check=True)


def test_the_reward_is_the_speed_up_after_every_move(env):
    text, info = env.reset(seed=0)
    assert text == task().game.start.text
    start = info["seconds"]
    for name in ("join_scopes m@0", "reuse_dims m 0"):
        text, reward, terminated, truncated, info = env.step(1 + info["moves"].index(name))
        assert reward == pytest.approx(start / info["seconds"]) and not terminated and not truncated
    assert info["line"] == ("join_scopes m@0", "reuse_dims m 0")
    assert reward > 1 and "m f32 [4:N] heap" in text


def test_stop_ends_an_episode_and_changes_nothing(env):
    env.reset()
    before = env.step(1)
    text, reward, terminated, _, _ = env.step(STOP)
    assert terminated and (text, reward) == before[:2]


def test_the_mask_is_that_of_the_legal_moves_and_others_play_nothing(env):
    _, info = env.reset()
    assert info["action_mask"].sum() == 1 + len(info["moves"])
    small = DojoEnv(task(), CountTiming(), most_actions=8)
    text, info = small.reset()
    assert len(info["moves"]) == 7 and info["action_mask"].tolist() == [1] * 8
    unfilled = DojoEnv(task(), CountTiming(), most_actions=4096)
    text, info = unfilled.reset()
    assert unfilled.step(4095)[0] == text


def test_an_episode_is_cut_off_after_so_many_moves(env):
    env.reset()
    assert [env.step(1)[3] for _ in range(5)] == [False] * 4 + [True]


def test_a_recorded_run_is_an_environment_without_a_clock():
    events = list(run(task(), AGENTS["random-edges"], CountTiming(), Budget(20)))
    table = {e.program.hash: e.measurement for e in events}
    env = DojoEnv(task(), TableTiming(table), most_actions=256)
    line = next(e for e in events if len(e.line) == 2 and str(e.line[0]) != str(e.line[1]))
    _, info = env.reset(seed=1)
    rewards = []
    for move in line.line:
        _, reward, _, _, info = env.step(1 + info["moves"].index(str(move)))
        rewards.append(reward)
    assert rewards[-1] == pytest.approx(events[0].measurement.seconds / line.measurement.seconds)
    rng = np.random.default_rng(0)
    _, info = env.reset()
    while info["status"] == "ok":  # what the table does not have failed: no reward
        _, reward, _, _, info = env.step(1 + int(rng.integers(len(info["moves"]))))
    assert reward == 0.0


def test_before_the_first_reset_there_is_nothing_to_play(env):
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(1)


def test_a_start_without_a_time_is_told():
    with pytest.raises(ValueError, match="The start position cannot be measured"):
        DojoEnv(task(), TableTiming({})).reset()
