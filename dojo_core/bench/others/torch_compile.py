"""torch.compile (Inductor): its default mode, ``max-autotune``, and weights frozen as for inference.

The fastest one competes. Frozen: weights are parameters of a module that Inductor may pack beforehand, which
gives it more freedom than our kernel has.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch._inductor.config as inductor
import torch_operators
from protocol import THREADS, WEIGHTS, Job, Variant, Variants, serve

MODES = ("default", "max-autotune-no-cudagraphs")


def compiled(job: Job, mode: str) -> Callable[[], Variant]:
    def make() -> Variant:
        torch._dynamo.reset()
        function = torch_operators.function(job.kernel, job.shape)
        made = torch.compile(function, mode=mode, fullgraph=True, dynamic=False)
        sets = [torch_operators.tensors(job, number) for number in range(len(job.sets))]
        return Variant([lambda given=given: made(*given) for given in sets])

    return make


class Frozen(torch.nn.Module):
    """The kernel with its weights as parameters."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.function = torch_operators.function(job.kernel, job.shape)
        self.weights = torch.nn.ParameterList(
            torch.nn.Parameter(torch.from_numpy(job.sets[0][name]), requires_grad=False)
            for name in WEIGHTS[job.kernel]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, *self.weights)


def frozen(job: Job) -> Variant:
    torch._dynamo.reset()
    with inductor.patch(freezing=True):
        made = torch.compile(Frozen(job).eval(), mode=MODES[1], fullgraph=True, dynamic=False)
        images = [torch_operators.tensors(job, number)[0] for number in range(len(job.sets))]
        made(images[0])  # compiled while freezing is on
    return Variant([lambda x=x: made(x) for x in images])


def prepare(job: Job) -> tuple[Variants, str]:
    torch_operators.settings()
    inductor.compile_threads = THREADS
    torch_operators.function(job.kernel, job.shape)
    variants = {mode: compiled(job, mode) for mode in MODES}
    if job.kernel in WEIGHTS:
        variants["max-autotune, weights frozen"] = lambda: frozen(job)
    return variants, torch_operators.version()


if __name__ == "__main__":
    serve(prepare)
