"""What the searches find: ``python -m benchmarks.search PART [--budget N] [--out FOLDER]``.

    tune       one search on the 16 kernels of table 3, 1000 programs each, from the heuristic's line.
               ``make bench`` then times the best of them beside the lines and the baselines
    compare    figure 13: the searches over edges and over lines against uniform random play, 3 seeds,
               200 programs each, with Wilcoxon's test
    model      the same for the cost model: each of two searches with and without it
    plateaus   how many moves without a gain the best lines of a comparison crossed (--of compare.json)

The logs of the runs of ``tune`` and ``compare``, every program that was measured with its moves and times,
are packed into FOLDER/runs.jsonl.gz, one after another.

Each part runs the commands that a person would, printed before they run. What was stopped goes on. Nothing
else should run on the machine: an hour or more each. ``compare`` and ``model`` play the 16 kernels in shapes
whose start programs take some milliseconds: on table 3's own, uniform play, which seldom leaves the slow
programs, would spend nearly all of its time running them.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path

from agents.players import agent_named
from benchmarks import plateaus
from benchmarks.commands import dojo
from dojo_core.measure.places import data_directory

ALGEBRAIC = "softmax"  # whose recorded line divides once for a row
SMALL = (
    "add:1024x1024", "mul:6x14336", "relu:1024x1024", "relu_ffn:2x64x56x56", "reducemean:1024x1024",
    "softmax:2048x512", "layernorm:1024x1024", "layernorm:256x4096", "rmsnorm:256x4096",
    "batchnorm:2x3x256x256", "batchnorm:2x8x150x150", "matmul:96x256x256", "bmm:4x128x128x128",
    "conv:1x10x3x64x64x5", "conv:1x32x32x28x28x3", "swiglu:1x32x256x448",
)  # fmt: skip
FIGURE = (
    "random-edges",
    "random-lines",
    "sampling-edges",
    "sampling-lines",
    "annealing-edges",
    "annealing-lines",
)
GUIDED = ("sampling-lines", "annealing-edges")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("tune", "compare", "model", "plateaus"))
    parser.add_argument("--budget", type=int)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--agent", default="sampling-lines", help="of tune")
    parser.add_argument("--agents", nargs="+", default=FIGURE, help="of compare; the first is the control")
    parser.add_argument("--kernels", nargs="+", default=SMALL, help="of compare and model")
    parser.add_argument("--of", type=Path, default=Path("build/search/compare/compare.json"))
    parser.add_argument("--out", type=Path, default=Path("build/search"))
    options = parser.parse_args()
    folder = options.out / options.part
    budget = options.budget or (1000 if options.part == "tune" else 200)
    if options.part == "tune":
        ask = ("--agent", options.agent, "--budget", str(budget))
        dojo("tune", "table3", *ask)
        dojo("tune", ALGEBRAIC, "--policy", "algebraic", *ask)
        pack(folder, (options.agent,), budget)
        return
    if options.part == "plateaus":
        plateaus.main(options.of, folder)
        return
    agents = options.agents
    if options.part == "model":
        dojo("cost-model")
        agents = [name + more for name in GUIDED for more in ("", "+model")]
    words = ("--agents", ",".join(agents), "--against", agents[0])
    words += ("--seeds", str(options.seeds), "--budget", str(budget), "--out", str(folder))
    dojo("compare", *options.kernels, *words)
    pack(folder, agents, budget)


def pack(folder: Path, agents: Sequence[str], budget: int) -> None:
    """Put the logs of the runs that these agents ended with such a budget into one file."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = 0
    with gzip.open(folder / "runs.jsonl.gz", "wt", compresslevel=9) as file:
        for log in sorted((data_directory() / "runs").glob("*.jsonl")):
            lines = log.read_text().splitlines()
            head, last = json.loads(lines[0]), json.loads(lines[-1])
            played = any(head["agent"] in (name, f"{name}-{agent_named(name).version}") for name in agents)
            if played and head["evaluations"] == budget and last.get("done"):
                file.write("\n".join(lines) + "\n")
                packed += 1
    print(f"Packed the logs of {packed} runs.")


if __name__ == "__main__":
    main()
