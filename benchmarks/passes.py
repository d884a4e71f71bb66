"""How long the passes think: ``python -m benchmarks.passes``. Seconds on the 16 kernels of table 3, each in a
process of its own, so that caches are cold and it is what a person waits for."""

from __future__ import annotations

import subprocess
import sys
import time

from dojo_core import kernels
from dojo_core.cli.positions import TABLE_3

ALONE = "import sys; from benchmarks.passes import seconds; print(f'{seconds(*sys.argv[1:]):.2f}')"


def seconds(name: str, kernel: str, shape: str) -> float:
    """How long a pass plays here and now."""
    from agents.passes import play_pass
    from dojo_core.game import Game

    found = kernels.get(kernel)
    game = Game.new(found.program(found.shape(shape)), kernel, shape)
    began = time.perf_counter()
    play_pass(game, name)
    return time.perf_counter() - began


def main() -> None:
    print("| kernel | naive | greedy | heuristic |\n|---|---:|---:|---:|")
    for kernel in TABLE_3:
        for sizes in kernels.get(kernel).shapes:
            shape = "x".join(map(str, sizes))
            cells = []
            for name in ("naive", "greedy", "heuristic"):
                words = [sys.executable, "-c", ALONE, name, kernel, shape]
                cells.append(subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip())
            print(f"| {kernel} {shape} | " + " | ".join(f"{c} s" for c in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
