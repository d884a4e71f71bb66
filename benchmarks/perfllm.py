"""What PerfLLM is worth: ``python -m benchmarks.perfllm PART [--budget 300] [--seeds 3]``.

    search     against uniform random, random sampling and annealing over edges, at equal evaluations
    ablations  max against plain Q-learning, double DQN, dueling heads, the encoder
    transfer   one policy trained on several kernels, played greedily on kernels that it has not seen

Each part runs the commands that a person would, printed before they run. A part that was stopped goes on.
Nothing else should run on the machine: hours at the default budget. ``--count`` counts operations in place of
times, of ``transfer``, and shows only that it all runs.

``search`` and ``ablations`` end with ratios: the geometric mean of the reference's time over the agent's,
over all pairs of kernel and seed, with a 95% interval.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

KERNELS = ("softmax", "rmsnorm", "layernorm", "reducemean", "matmul", "bmm", "relu_ffn", "swiglu")
LEARNED_ON = ("softmax", "layernorm", "matmul", "relu_ffn", "batchnorm")
UNSEEN = ("rmsnorm", "reducemean", "bmm", "swiglu")
SEARCH = ("perfllm", "random-edges", "sampling-edges", "annealing-edges")
ABLATIONS = ("perfllm", "perfllm-plain", "perfllm-single", "perfllm-flat", "perfllm-bag")
RESAMPLED = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("search", "ablations", "transfer"))
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kernels", nargs="+", default=KERNELS)
    parser.add_argument("--out", type=Path, default=Path("build/perfllm"))
    parser.add_argument("--count", action="store_true", help="of transfer: operations, not times")
    options = parser.parse_args()
    folder = options.out / options.part
    if options.part == "transfer":
        for seed in range(options.seeds):
            tries = [word for name in UNSEEN for word in ("--try", name)]
            more = ["--count"] if options.count else []
            _dojo("train", *LEARNED_ON, "--budget", str(options.budget), "--seed", str(seed), *tries, *more,
                  "--out", str(folder / str(seed)))  # fmt: skip
        return
    agents, reference = (SEARCH, "random-edges") if options.part == "search" else (ABLATIONS, "perfllm-plain")
    _dojo("compare", *options.kernels, "--agents", ",".join(agents), "--against", reference, "--seeds",
          str(options.seeds), "--budget", str(options.budget), "--out", str(folder))  # fmt: skip
    for agent in agents:
        if agent != reference:
            print(_line(folder / "compare.json", agent, reference))
    if options.part == "search":
        for rival in ("sampling-edges", "annealing-edges"):
            print(_line(folder / "compare.json", "perfllm", rival))


def _dojo(*words: str) -> None:
    print("dojo " + " ".join(words), flush=True)
    subprocess.run([sys.executable, "-c", "from agents.cli import main; main()", *words], check=True)


def _line(path: Path, agent: str, reference: str) -> str:
    finals = {
        (c["kernel"], c["agent"], c["seed"]): c["final"]
        for c in json.loads(path.read_text())["curves"]
        if c["final"]
    }
    ratios: dict[str, list[float]] = defaultdict(list)
    for (kernel, who, seed), seconds in finals.items():
        if who == agent and (kernel, reference, seed) in finals:
            ratios[kernel].append(math.log(finals[kernel, reference, seed] / seconds))
    if not ratios:
        return f"{agent}: no pairs with {reference}"
    mean, low, high = interval(list(ratios.values()))
    pairs = sum(map(len, ratios.values()))
    return f"{agent} against {reference}: {mean:.3f}x ({low:.3f} to {high:.3f}, {pairs} pairs)"


def interval(groups: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """The geometric mean of ratios given as logarithms, by kernel, and its 95% interval: kernels are drawn
    with replacement, then seeds of each."""
    rng = random.Random(0)

    def mean(drawn: Sequence[Sequence[float]]) -> float:
        flat = [ratio for group in drawn for ratio in group]
        return math.exp(sum(flat) / len(flat))

    drawn = sorted(
        mean([rng.choices(group, k=len(group)) for group in rng.choices(groups, k=len(groups))])
        for _ in range(RESAMPLED)
    )
    return mean(groups), drawn[int(0.025 * RESAMPLED)], drawn[int(0.975 * RESAMPLED)]


if __name__ == "__main__":
    main()
