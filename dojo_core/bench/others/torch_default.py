"""PyTorch eager as it comes: every run allocates its result, and pays for fresh pages where that is large."""

from __future__ import annotations

import torch_operators
from protocol import Job, Variant, Variants, serve


def prepare(job: Job) -> tuple[Variants, str]:
    torch_operators.settings()
    plain = torch_operators.plain(job)
    return {"plain functions": lambda: Variant(plain, torch_operators.numbers)}, torch_operators.version()


if __name__ == "__main__":
    serve(prepare, every_dtype=True)
