"""The command line with the agents."""

from __future__ import annotations

from dojo_core.cli import app, main
from dojo_core.cli.commands import COMMANDS, Command
from dojo_core.cli.foreign import READERS, RUNS
from dojo_core.package_data import document

__all__ = ["COMMANDS", "app", "main"]

GOES_ON = "A run that was stopped goes on where it was."
READERS[".pt2"] = ("learn", "agents.torch_backend.exported:graph_of_file")
RUNS.append("agents.puzzles.sources:sources")

COMMANDS |= {
    "pass": Command(
        "agents.commands:play_a_pass",
        "Let a pass play: it measures nothing and follows the structure of the program.",
    ),
    "tune": Command(
        "agents.commands:tune",
        f"Let an agent make kernels fast. {GOES_ON}",
        measures=True,
    ),
    "puzzles": Command(
        "agents.puzzles.commands:puzzles",
        f"Puzzles of one move, from games and runs: mine, check and rate them ({document('lessons.md')}).",
    ),
    "library": Command(
        "agents.operators.commands:library",
        "Write a tuned library of operators for this machine, and a page beside PyTorch and ONNX Runtime.",
        measures=True,
    ),
    "mcp": Command(
        "agents.doors.commands:mcp",
        "Let language models play: a server of the Model Context Protocol.",
    ),
    "serve": Command(
        "agents.doors.commands:serve",
        "Serve the calls of the game to programs on this machine, as JSON with a token.",
    ),
    "compare": Command(
        "agents.comparing:compare",
        "Compare players: best-so-far against evaluations and seconds, and how sure the difference is.",
        measures=True,
    ),
    "cost-model": Command(
        "agents.modelling:fit_cost_model",
        "Fit the cost model to this machine's records, and tell how well it ranks a kernel it has not seen.",
    ),
    "scheduler": Command(
        "agents.scale.commands:scheduler",
        "Be the scheduler that workers and tunings meet at. Only who has its key file takes part.",
    ),
    "worker": Command(
        "agents.scale.commands:worker",
        "Measure for a scheduler on this machine, one program at a time, until stopped.",
        measures=True,
    ),
    "machines": Command(
        "agents.scale.commands:machines",
        "List the machines to play for: this one, and those that workers or records told of.",
    ),
    "train": Command(
        "agents.perfllm.cli:train",
        f"Let PerfLLM learn on kernels. {GOES_ON}",
        measures=True,
    ),
    "try": Command(
        "agents.perfllm.cli:try_policy",
        "Let what PerfLLM has learned play kernels, greedily and without learning more.",
        measures=True,
    ),
    "train-encoder": Command(
        "agents.perfllm.cli:train_encoder",
        "Pretrain our own encoder on random legal walks. What was stopped goes on.",
    ),
    "probe-encoder": Command(
        "agents.perfllm.cli:probe_encoder",
        "What embeddings know of kernels that our encoder never saw: structure, legal moves, moves, "
        "run time.",
        measures=True,
    ),
}


if __name__ == "__main__":
    main()
