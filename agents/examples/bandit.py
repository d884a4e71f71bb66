"""A bandit that learns which kinds of moves pay, on the Gymnasium environment.

    python -m agents.examples.bandit --kernel matmul:8x8x8 --target snitch

Its arms are the names of the moves (``split_scope``, ``ssr``, …). It draws one by UCB1 (Auer et al., Machine
Learning 47, 2002) among those that have a legal move here, plays a random move of that kind, and is rewarded
by the logarithm of what the move gained.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from dataclasses import dataclass, fields

import gymnasium
import numpy as np

from dojo_core.program.target import DEFAULT_TARGET


@dataclass
class Arguments:
    kernel: str = "relu:16x16"
    target: str = DEFAULT_TARGET
    episodes: int = 40
    moves: int = 4  # of an episode
    exploration: float = 0.5  # the weight of what is not known yet
    seed: int = 0


def learn(arguments: Arguments) -> tuple[list[float], dict[str, float]]:
    """The speed-up at the end of each episode, and each arm's mean reward."""
    env = gymnasium.make(
        "agents.environment:Dojo-v1",
        kernel=arguments.kernel,
        target=arguments.target,
        most_moves=arguments.moves,
    )
    rng = np.random.default_rng(arguments.seed)
    pulls: defaultdict[str, int] = defaultdict(int)
    means: defaultdict[str, float] = defaultdict(float)
    ends = []
    for _ in range(arguments.episodes):
        _, info = env.reset()
        speed, over = 1.0, False
        while not over:
            moves = defaultdict(list)  # actions by the name of the move; 0 is to stop
            for action, move in enumerate(info["moves"], 1):
                moves[move.split()[0]].append(action)
            total = 1 + sum(pulls[arm] for arm in moves)

            def bound(arm: str, total: int = total) -> float:
                if not pulls[arm]:
                    return math.inf
                return means[arm] + arguments.exploration * math.sqrt(2 * math.log(total) / pulls[arm])

            arm = max(sorted(moves), key=bound)
            _, reward, terminated, truncated, info = env.step(int(rng.choice(moves[arm])))
            gain = math.log2(max(reward, 1 / 64) / speed)  # a program that failed counts as very slow
            pulls[arm] += 1
            means[arm] += (gain - means[arm]) / pulls[arm]
            speed, over = reward, terminated or truncated or not reward
        ends.append(speed)
    env.close()
    return ends, dict(means)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for each in fields(Arguments):
        parser.add_argument(f"--{each.name}", type=type(each.default), default=each.default)
    ends, means = learn(Arguments(**vars(parser.parse_args())))
    tenth = max(1, len(ends) // 10)
    first, last = np.mean(ends[:tenth]), np.mean(ends[-tenth:])
    print(f"speed-up: {first:.2f}× in the first episodes, {last:.2f}× in the last")
    for arm, mean in sorted(means.items(), key=lambda each: -each[1]):
        print(f"{arm:>24} {2**mean:.2f}×")


if __name__ == "__main__":
    main()
