"""PyTorch eager with its memory reused: results go to the same memory in each run.

Variants: ``out=`` and in-place operators where PyTorch has them, and the plain functions with a C library
that keeps freed memory in the process (the bench sets its environment so); the faster one competes.
"""

from __future__ import annotations

import torch
import torch_operators
from protocol import Job, Run, Variant, Variants, serve
from torch import Tensor
from torch.nn import functional as F


def into(name: str, t: dict[str, Tensor]) -> Run | None:
    """The kernel into memory that exists; None where PyTorch has no such form."""
    known: dict[str, Run] = {
        "add": lambda: torch.add(t["x"], t["y"], out=t["z"]),
        "mul": lambda: torch.mul(t["x"], t["y"], out=t["z"]),
        "relu": lambda: torch.clamp_min(t["x"], 0, out=t["y"]),
        "reducemean": lambda: torch.mean(t["x"], -1, out=t["y"]),
        "softmax": lambda: torch.softmax(t["x"], -1, out=t["y"]),
        "log_softmax": lambda: torch.log_softmax(t["x"], -1, out=t["y"]),
        "matmul": lambda: torch.matmul(t["a"], t["b"], out=t["c"]),
        "bmm": lambda: torch.bmm(t["a"], t["b"], out=t["c"]),
        "fill": lambda: t["y"].fill_(t["v"]),
        "axpy": lambda: torch.addcmul(t["y"], t["a"], t["x"], out=t["z"]),
        "dot": lambda: torch.dot(t["x"], t["y"], out=t["s"]),
        "sum": lambda: torch.sum(t["x"], 0, out=t["s"]),
        "gemv": lambda: torch.mv(t["a"], t["x"], out=t["y"]),
        "transpose": lambda: t["y"].copy_(t["x"].T),
        "matmul_bf16": lambda: torch.matmul(t["a"], t["b"], out=t["c"]),
        "softmax_bf16": lambda: torch.softmax(t["x"], -1, out=t["y"]),
    }
    if name == "relu_ffn":
        w, b = t["w"][:, None, None], t["b"][:, None, None]
        return lambda: torch.mul(t["x"], w, out=t["y"]).add_(b).relu_()
    if name == "swiglu":
        other = torch.empty_like(t["y"])

        def swiglu() -> Tensor:
            torch.mm(t["x"], t["w"], out=t["y"])
            torch.mm(t["x"], t["v"], out=other)
            return F.silu(t["y"], inplace=True).mul_(other)

        return swiglu
    return known.get(name)


def prepare(job: Job) -> tuple[Variants, str]:
    torch_operators.settings()
    plain = torch_operators.plain(job)
    numbers = torch_operators.numbers
    variants = {"plain functions": lambda: Variant(plain, numbers)}
    named = job.inputs + job.outputs
    made = [
        into(job.kernel, {n: torch_operators.tensor(job, number, n) for n in named})
        for number in range(len(job.sets))
    ]
    if made[0] is not None:
        variants["out= and in place"] = lambda: Variant([run for run in made if run is not None], numbers)
    return variants, torch_operators.version()


if __name__ == "__main__":
    serve(prepare, every_dtype=True)
