"""PyTorch on a GPU: ``torch_cuda.py KERNEL SHAPE FOLDER``; a line of JSON each way.

Every request names a row and a number of samples, with a ``cold`` second-level cache or a warm one. A row is
prepared, and proves its result, the first time that it is asked for: eager, compiled, compiled with CUDA
graphs, and for products the library's own call into memory that is there already, and eager with TF32.
Everywhere else TF32 is off. Times are between two events, as those of the programs beside them.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.append(str(Path(__file__).resolve().parents[3] / "bench" / "others"))
import torch_operators
from protocol import Unsupported, brief, fault, read_job

# As dojo_core/targets/cuda/session.py.
SHORTEST_SAMPLE_SECONDS, MOST_REPEATS, WARM_RUNS = 50e-6, 1000, 3
LEAD_SECONDS, MOST_FILLS = 400e-6, 100
PRODUCTS = {"matmul": torch.mm, "bmm": torch.bmm}
TF32 = ("matmul", "bmm", "conv", "swiglu")

Run = Callable[[], Any]


def tf32(allowed: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


class Rows:
    """The rows of one kernel, each made when it is first asked for."""

    def __init__(self, arguments: list[str]) -> None:
        if not torch.cuda.is_available():
            raise ImportError("a PyTorch that sees the GPU")
        torch_operators.settings()
        tf32(False)
        self._job = read_job([arguments[0], arguments[1], "1", arguments[2]])
        host = torch_operators.tensors(self._job, 0)
        self._inputs = [t.cuda() for t in host]
        self._function = torch_operators.function(self._job.kernel, self._job.shape)
        self._made: dict[str, Run] = {}
        size = torch.cuda.get_device_properties(0).L2_cache_size
        self._spare = torch.empty(2 * size, dtype=torch.uint8, device="cuda")
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def _make(self, row: str) -> Run:
        kernel, function, inputs = self._job.kernel, self._function, self._inputs
        if row == "torch":
            return lambda: function(*inputs)
        if row in ("torch-compile", "torch-compile-graphs"):
            mode = "reduce-overhead" if row.endswith("graphs") else "default"
            for tensor in inputs:  # a graph need not copy them to a place of its own
                torch._dynamo.mark_static_address(tensor)
            compiled = torch.compile(function, mode=mode)
            return lambda: compiled(*inputs)
        if row in ("library", "library-tf32") and kernel in PRODUCTS:
            product, out = PRODUCTS[kernel], torch.empty_like(function(*inputs))
            return lambda: product(*inputs, out=out)
        if row == "torch-tf32" and kernel in TF32:
            return lambda: function(*inputs)
        raise Unsupported(f"There is no such call for {kernel}.")

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Samples in nanoseconds, or why there are none."""
        row = request["row"]
        exact = not row.endswith("tf32")
        tf32(not exact)
        try:
            if row not in self._made:
                run = self._make(row)
                result = run()
                if exact:  # TF32 is less so than what is asked for
                    wrong = self._fault(result)
                    if wrong:
                        return {"status": "wrong_result", "message": wrong}
                self._made[row] = run
            samples = self._timed(self._made[row], request["samples"], request["cold"])
        except Unsupported as error:
            return {"status": "unsupported", "message": str(error)}
        except Exception as error:  # whatever the library throws is this row's failure
            return {"status": "failed", "message": brief(error)}
        finally:
            tf32(False)
        return {"status": "ok", "samples": samples, "note": self._note(row)}

    def _note(self, row: str) -> str:
        """What torch.compile left out of a graph, if it did."""
        skipped = torch._dynamo.utils.counters["inductor"].get("cudagraph_skips", 0)
        return f"{skipped} parts not captured as graphs" if row.endswith("graphs") and skipped else ""

    def _fault(self, result: Any) -> str:
        results = result if isinstance(result, tuple) else (result,)
        names = self._job.outputs
        faults = [
            fault(torch_operators.numbers(r.cpu()), self._job.expected[name], self._job.dtypes[name])
            for r, name in zip(results, names, strict=True)
        ]
        return next((each for each in faults if each), "")

    def _timed(self, run: Run, count: int, cold: bool) -> list[float]:
        for _ in range(WARM_RUNS):
            run()
        estimate = self._between(run, 1)
        repeats = 1 if cold else min(MOST_REPEATS, math.ceil(SHORTEST_SAMPLE_SECONDS / max(estimate, 1e-7)))
        fill = self._between(self._spare.zero_, WARM_RUNS)
        fills = math.ceil(LEAD_SECONDS / max(fill, LEAD_SECONDS / MOST_FILLS)) if cold else 0
        samples = []
        for _ in range(count):
            for _ in range(fills):  # in their shadow the host hands over all that is timed
                self._spare.zero_()
            samples.append(1e9 * self._between(run, repeats))
        return samples

    def _between(self, run: Run, repeats: int) -> float:
        first, last = self._events
        first.record()
        for _ in range(repeats):
            run()
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last)) / 1e3 / repeats


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not disturb the answers

    def tell(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    try:
        rows = Rows(sys.argv[1:])
    except ImportError as error:
        return tell({"status": "missing", "message": f"Not installed: {error}."})
    except Unsupported as error:
        return tell({"status": "unsupported", "message": str(error)})
    except Exception as error:
        return tell({"status": "failed", "message": brief(error)})
    tell({"status": "ok", "version": torch_operators.version()})
    for line in sys.stdin:
        tell(rows.answer(json.loads(line)))


if __name__ == "__main__":
    main()
