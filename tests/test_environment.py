"""The Gymnasium environment keeps its contract, alone, vectorised and masked; the examples learn on it."""

from statistics import fmean

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from agents import shared_timing
from agents.agent import Budget, Task, run
from agents.environment import STOP, DojoEnv
from agents.examples import bandit, masked_ppo
from agents.players import AGENTS
from agents.timing import CountTiming, TableTiming
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.measure.exclusive import measuring

SMALL = {"kernel": "relu:8x8", "target": "snitch", "most_actions": 32}
CLOCKLESS = {"kernel": "softmax:4x8", "clock": "count", "most_actions": 128}


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
    env.reset()
    for wrong in ("join_scopes m@0", -1, 1024, 1.5):
        with pytest.raises(gymnasium.error.InvalidAction, match="An action is a number from 0 to 1023"):
            env.step(wrong)


def test_a_start_without_a_time_is_told():
    with pytest.raises(ValueError, match="The start position cannot be measured"):
        DojoEnv(task(), TableTiming({})).reset()


# ---------------------------------------------------------------- by name


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", [{}, {"observed": "features", "masked": True}])
def test_it_is_made_by_its_name_and_keeps_the_contract(form):
    env = gymnasium.make("agents.environment:Dojo-v1", **SMALL, **form)
    check_env(env.unwrapped, skip_render_check=True)
    env.close()
    assert not shared_timing._POOLS  # the clock is closed with the last that used it


@pytest.mark.parametrize("shape", ["4x8", pytest.param("1024x512", marks=pytest.mark.soak)])
def test_softmax_is_played_on_a_snitch(shape):
    """Its exponential is computed in software there, half a million times in the larger one."""
    env = gymnasium.make("Dojo-v1", kernel=f"softmax:{shape}", target="snitch")
    _, info = env.reset(seed=0)
    assert info["status"] == "ok" and info["seconds"] > 0
    _, reward, _, _, info = env.step(1 + info["moves"].index("ssr d@0"))
    assert info["status"] == "ok" and reward > 1
    env.close()


def test_the_mask_comes_in_each_form_that_libraries_take():
    env = gymnasium.make("Dojo-v1", **CLOCKLESS, masked=True)
    seen, info = env.reset(seed=0)
    masks = (seen["action_mask"], info["action_mask"], env.get_wrapper_attr("action_masks")())
    for mask in masks:  # RLlib and PettingZoo; Gymnasium; sb3-contrib
        assert mask.dtype == np.int8 and mask.tolist() == masks[0].tolist()
    assert seen["observation"].startswith("kernel softmax") and seen in env.observation_space
    assert all(masks[0][env.action_space.sample(masks[0])] for _ in range(20))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"kernel": "sofmax"}, "Did you mean softmax"),
        ({"kernel": "softmax:0x4"}, "at least 1"),
        ({"kernel": "qmatmul", "target": "snitch"}, "the Snitch generator has f64 and f32"),
        ({"kernel": "relu:4096x4096", "target": "snitch"}, r"choose a smaller shape\. relu:64x128 fits\."),
        ({"kernel": 3}, "A kernel is named by a text"),
        ({"kernel": "relu:8x8", "most_actions": 0}, "at least one action"),
        ({"kernel": "relu", "clock": "sun"}, "'machine' or 'count'"),
        ({"kernel": "relu", "observed": "pixels"}, "'text' or 'features'"),
    ],
)
def test_what_it_cannot_be_made_of_is_told(settings, told):
    with pytest.raises(ValueError, match=told):
        gymnasium.make("Dojo-v1", **settings)


# ---------------------------------------------------------------- vectorised


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vectorised_ones_play_alike(mode):
    envs = gymnasium.make_vec("Dojo-v1", 2, mode, **CLOCKLESS, observed="features")
    seen, info = envs.reset(seed=0)
    assert seen.shape == (2, *envs.single_observation_space.shape)
    assert info["action_mask"].shape == (2, 128) and info["moves"][0] == info["moves"][1]
    join = 1 + info["moves"][0].index("join_scopes m@0")
    _, rewards, *_, info = envs.step(np.array([join, STOP]))
    assert rewards[0] > rewards[1] == 1.0 and info["line"][0] == ("join_scopes m@0",)
    masks = envs.call("action_masks")
    assert [mask.tolist() for mask in masks] == info["action_mask"].tolist()
    envs.close()


def test_processes_wait_for_each_others_clock():
    """A measurement in an environment's process does not begin while another process measures."""
    envs = gymnasium.make_vec("Dojo-v1", 1, "async", kernel="relu:8x8", observed="features")
    [answer] = envs.parent_pipes
    with measuring():
        envs.reset_async(seed=0)
        assert not answer.poll(0.5)  # as long as a first measurement takes; a loaded machine takes longer
    _, info = envs.reset_wait()
    assert info["seconds"][0] > 0
    envs.close()


def test_environments_of_a_process_share_a_clock():
    envs = gymnasium.make_vec("Dojo-v1", 2, "sync", **SMALL)
    envs.reset()
    [pool] = shared_timing._POOLS.values()
    assert pool.users == 2
    envs.envs[0].close()
    assert envs.envs[1].reset()[1]["seconds"] > 0 and pool.users == 1
    envs.close()
    assert not shared_timing._POOLS


def test_texts_are_not_shown_from_shared_memory():
    """There Gymnasium would show none of them."""
    with pytest.raises(ValueError, match="shared_memory=False"):
        gymnasium.make_vec("Dojo-v1", 1, "async", **CLOCKLESS)


# ---------------------------------------------------------------- examples


def test_the_bandit_learns_which_moves_pay():
    ends, means = bandit.learn(bandit.Arguments("relu:8x8", "snitch", moves=3, episodes=30))
    assert fmean(ends[-10:]) > 1.2 * fmean(ends[:10])
    assert max(means, key=means.get) in (
        "ssr",
        "frep",
    )  # streams and hardware loops: what a Snitch core is for


@pytest.mark.thorough  # learning; what the environment says of each move is tried above
def test_the_masked_policy_learns():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        small = {"moves": 3, "actions": 32, "total_timesteps": 192, "n_steps": 8, "n_epochs": 4}
        ends = masked_ppo.learn(masked_ppo.Arguments("relu:8x8", "snitch", **small, learning_rate=1e-2))
    finally:
        torch.set_num_threads(threads)
    third = len(ends) // 3
    assert fmean(ends[-third:]) > 1.2 * fmean(ends[:third])
