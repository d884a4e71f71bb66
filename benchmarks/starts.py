"""How long a model takes to start: ``torch.compile(model, backend="dojo")``, ``python -m benchmarks.starts``.

Each network starts in a process of its own, twice: with an empty cache, and with what the first process kept.
Told are CPU seconds of each part, without what other parts called by it took, from the import of torch to the
first result; and the seconds that passed. ``--runs``: so many second starts, of which the least is told.
The last line is what PyTorch takes by itself, with a backend that gives back what TorchDynamo traced.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

PARTS = (
    "import of torch",
    "import of the Dojo",
    "TorchDynamo",
    "AOTAutograd",
    "translation",
    "partition",
    "entry of the cache",
    "programs",
    "code",
    "first run",
)
FROM_HERE = PARTS.index("TorchDynamo")  # what torch.compile and the first call take


@dataclass
class Clock:
    """CPU seconds of parts, each without those within it."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _within: list[float] = field(default_factory=lambda: [0.0])

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        begin = time.process_time()
        self._within.append(0.0)
        try:
            yield
        finally:
            took = time.process_time() - begin
            self.seconds[name] += took - self._within.pop()
            self._within[-1] += took

    def watch(self, owner: Any, function: str, name: str) -> None:
        """Count what calls of a function take to a part."""
        watched = getattr(owner, function)

        def counted(*given: Any, **named: Any) -> Any:
            with self.part(name):
                return watched(*given, **named)

        setattr(owner, function, counted)


def bert() -> tuple[Any, Any]:
    import torch
    import transformers

    config = transformers.BertConfig(num_hidden_layers=2)
    return transformers.BertModel(config), torch.randint(config.vocab_size, (1, 128))


def gpt2() -> tuple[Any, Any]:
    import torch
    import transformers

    config = transformers.GPT2Config(n_layer=2)
    return transformers.GPT2Model(config), torch.randint(config.vocab_size, (1, 128))


def resnet() -> tuple[Any, Any]:
    import torch
    import transformers

    config = transformers.ResNetConfig(
        layer_type="basic", hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], num_labels=1000
    )
    return transformers.ResNetForImageClassification(config), torch.randn(1, 3, 224, 224)


NETWORKS: dict[str, tuple[str, Callable[[], tuple[Any, Any]]]] = {
    "bert": ("BERT-base, 2 layers, 128 tokens", bert),
    "gpt2": ("GPT-2-small, 2 layers, 128 tokens", gpt2),
    "resnet": ("ResNet-18, an image of 224x224", resnet),
}


def start(network: str) -> dict[str, float]:
    """Start a network in this process; gives the seconds of each part, and ``passed``, those of the clock on
    the wall from torch.compile on."""
    clock = Clock()
    with clock.part("import of torch"):
        import torch
        import torch._dynamo
    model, given = NETWORKS[network][1]()
    with clock.part("import of the Dojo"):
        from agents.torch_backend import backend, part, programs
    _watch(clock, backend, part, programs)
    begin = time.perf_counter()
    with torch.no_grad(), clock.part("TorchDynamo"):
        torch.compile(model.eval(), backend="dojo")(given)
    return {**clock.seconds, "passed": time.perf_counter() - begin}


def start_alone(network: str) -> dict[str, float]:
    """The same without the Dojo: ``alone``, CPU seconds from torch.compile to the first result."""
    import torch
    import torch._dynamo

    model, given = NETWORKS[network][1]()
    begin = time.process_time()
    with torch.no_grad():
        torch.compile(model.eval(), backend=lambda module, inputs: module.forward)(given)
    return {"alone": time.process_time() - begin}


def _watch(clock: Clock, backend: Any, part: Any, programs: Any) -> None:
    clock.watch(backend, "keep", "entry of the cache")
    clock.watch(programs, "heuristic", "programs")
    clock.watch(part.Model, "__init__", "code")
    clock.watch(part.Part, "__call__", "first run")
    compiled, kept = backend._compiled, backend.kept

    def read(*given: Any) -> Any:
        with clock.part("entry of the cache"):
            found = kept(*given)
        if found is None:  # what follows is imported and called in its course
            from agents.torch_backend import compiling, lowering

            clock.watch(compiling, "split", "translation")
            clock.watch(lowering, "build", "partition")
        return found

    def traced(*given: Any) -> Any:
        with clock.part("AOTAutograd"):
            return compiled(*given)

    backend._compiled, backend.kept = traced, read


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), metavar="NETWORK")
    parser.add_argument("--runs", type=int, default=3, help="second starts of each network")
    parser.add_argument("--here", help=argparse.SUPPRESS)  # a process of ours
    parser.add_argument("--alone", help=argparse.SUPPRESS)  # one without the Dojo
    options = parser.parse_args()
    if options.here or options.alone:
        print(json.dumps(start(options.here) if options.here else start_alone(options.alone)))
        return 0
    starts = {name: _both(name, options.runs) for name in options.networks}
    for line in table(starts):
        print(line)
    return 0


def _both(network: str, runs: int) -> tuple[dict[str, float], dict[str, float]]:
    with tempfile.TemporaryDirectory() as home:

        def told(option: str) -> dict[str, float]:
            command = [sys.executable, "-m", "benchmarks.starts", option, network]
            ended = subprocess.run(
                command, env={**os.environ, "DOJO_HOME": home}, check=True, stdout=subprocess.PIPE
            )
            return dict(json.loads(ended.stdout.splitlines()[-1]))

        first = told("--here")
        # In turns, for a machine's clock may change.
        others = [{**told("--here"), **told("--alone")} for _ in range(runs)]
    alone = min(other["alone"] for other in others)
    return first, {**min(others, key=lambda seconds: seconds["passed"]), "alone": alone}


def table(starts: dict[str, tuple[dict[str, float], dict[str, float]]]) -> Iterator[str]:
    """The lines of a table in Markdown: parts down, networks across, their first and second start."""
    titles = [f"{NETWORKS[name][0]}: first | second" for name in starts]
    yield f"| CPU seconds | {' | '.join(titles)} |"
    yield "|---|" + "---:|" * (2 * len(starts))
    columns = [start for both in starts.values() for start in both]
    for name in PARTS:
        yield _row(name, [column.get(name, 0.0) for column in columns])
    last = [sum(column.get(name, 0.0) for name in PARTS[FROM_HERE:]) for column in columns]
    yield _row("**from torch.compile to the first result**", last)
    yield _row("seconds that passed meanwhile", [column["passed"] for column in columns])
    yield _row("PyTorch by itself, to the first result", [column.get("alone", 0.0) for column in columns])


def _row(name: str, seconds: list[float]) -> str:
    cells = (f"{each:.2f}" if each >= 0.005 else "" for each in seconds)
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
