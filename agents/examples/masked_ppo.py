"""Proximal policy optimisation with action masks on the Gymnasium environment, in PyTorch alone.

    python -m agents.examples.masked_ppo --kernel relu:16x16 --target snitch

One file in reading order, with the names of Stable-Baselines3 and of sb3-contrib's MaskablePPO: an illegal
move's logit is a very small number, when a move is drawn and when the policy is trained (Huang and Ontañón,
"A Closer Look at Invalid Action Masking", FLAIRS 2022). The policy sees the features of the position.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import nn
from torch.distributions import Categorical

from dojo_core.program.target import DEFAULT_TARGET


@dataclass
class Arguments:
    kernel: str = "relu:16x16"
    target: str = DEFAULT_TARGET
    moves: int = 4  # of an episode
    actions: int = 64  # of which a position's legal moves are the first
    total_timesteps: int = 512
    n_envs: int = 4
    n_steps: int = 16  # of each environment between two trainings
    batch_size: int = 32
    n_epochs: int = 6
    learning_rate: float = 3e-3
    gamma: float = 0.95
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    seed: int = 0


class MaskedPolicy(nn.Module):
    """Actor and critic on features of a position."""

    def __init__(self, features: int, actions: int, width: int = 64) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.actor, self.critic = nn.Linear(width, actions), nn.Linear(width, 1)

    def forward(self, seen: torch.Tensor, mask: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        """(n, features) and (n, actions) of bool; a distribution over the legal actions, and values (n,)."""
        hidden = self.body(seen / 16.0)  # logarithms of counts, to about 1
        logits = self.actor(hidden).masked_fill(~mask, torch.finfo(torch.float32).min)
        return Categorical(logits=logits), self.critic(hidden).squeeze(-1)


def learn(arguments: Arguments) -> list[float]:
    """Train; the speed-up at the end of each episode, in order."""
    torch.manual_seed(arguments.seed)
    envs = gymnasium.make_vec(
        "agents.environment:Dojo-v1", arguments.n_envs, "sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        kernel=arguments.kernel, target=arguments.target, observed="features", most_moves=arguments.moves,
        most_actions=arguments.actions,
    )  # fmt: skip
    policy = MaskedPolicy(envs.single_observation_space.shape[0], arguments.actions)
    optimizer = torch.optim.Adam(policy.parameters(), arguments.learning_rate, eps=1e-5)
    ends: list[float] = []
    seen, _ = envs.reset(seed=arguments.seed)
    for _ in range(arguments.total_timesteps // (arguments.n_envs * arguments.n_steps)):
        rollout = []
        for _ in range(arguments.n_steps):
            mask = np.stack(envs.call("action_masks")).astype(bool)
            states, masks = torch.from_numpy(seen), torch.from_numpy(mask)
            with torch.no_grad():
                distribution, values = policy(states, masks)
                actions = distribution.sample()
            seen, rewards, terminated, truncated, _ = envs.step(actions.numpy())
            over = terminated | truncated
            ends += rewards[over].tolist()
            told = torch.as_tensor(rewards, dtype=torch.float32), torch.as_tensor(over)
            rollout.append((states, masks, actions, distribution.log_prob(actions), values, *told))
        mask = np.stack(envs.call("action_masks")).astype(bool)
        with torch.no_grad():
            last = policy(torch.from_numpy(seen), torch.from_numpy(mask))[1]
        train(policy, optimizer, arguments, [torch.stack(each) for each in zip(*rollout, strict=True)], last)
    envs.close()
    return ends


def train(
    policy: MaskedPolicy,
    optimizer: torch.optim.Optimizer,
    arguments: Arguments,
    rollout: list[torch.Tensor],
    last: torch.Tensor,
) -> None:
    """Some epochs on a rollout, of which each tensor is (steps, environments, …)."""
    states, masks, actions, log_probs, values, rewards, over = rollout
    advantages = torch.zeros_like(values)
    running, following = torch.zeros_like(last), last
    for step in reversed(range(len(values))):  # generalised advantages (Schulman et al., ICLR 2016)
        goes_on = (~over[step]).float()
        delta = rewards[step] + arguments.gamma * following * goes_on - values[step]
        running = delta + arguments.gamma * arguments.gae_lambda * goes_on * running
        advantages[step], following = running, values[step]
    returns = advantages + values
    flat = [each.flatten(0, 1) for each in (states, masks, actions, log_probs, advantages, returns)]
    for _ in range(arguments.n_epochs):
        for chosen in torch.randperm(len(flat[0])).split(arguments.batch_size):
            state, mask, action, log_prob, advantage, target = (each[chosen] for each in flat)
            distribution, value = policy(state, mask)
            ratio = (distribution.log_prob(action) - log_prob).exp()
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            clipped = ratio.clamp(1 - arguments.clip_range, 1 + arguments.clip_range)
            loss = -torch.min(advantage * ratio, advantage * clipped).mean()
            loss = loss + arguments.vf_coef * nn.functional.mse_loss(value, target)
            loss = loss - arguments.ent_coef * distribution.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), arguments.max_grad_norm)
            optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for each in fields(Arguments):
        parser.add_argument(f"--{each.name}", type=type(each.default), default=each.default)
    ends = learn(Arguments(**vars(parser.parse_args())))
    tenth = max(1, len(ends) // 10)
    first, last = np.mean(ends[:tenth]), np.mean(ends[-tenth:])
    print(f"speed-up: {first:.2f}× in the first episodes, {last:.2f}× in the last")


if __name__ == "__main__":
    main()
