"""An exported kernel as an operator in a PyTorch model: attention whose softmax is ours.

Export it first, and put the package on the path:

    dojo export softmax --shape 4096x512 --to fast
    pip install ./fast
    python examples/softmax_in_a_model.py
"""

import statistics
import time

import torch
from dojo_kernels import torch_ops

HEADS, QUERIES, KEYS, WIDTH = 8, 512, 512, 64  # softmax over HEADS*QUERIES rows of KEYS


class Attention(torch.nn.Module):
    """Scaled dot products, weighted by a softmax of somebody's choice."""

    def __init__(self, softmax):
        super().__init__()
        self.softmax = softmax

    def forward(self, q, k, v):
        scores = q @ k.transpose(-1, -2) / WIDTH**0.5
        weights = self.softmax(scores.reshape(HEADS * QUERIES, KEYS))
        return weights.reshape(HEADS, QUERIES, KEYS) @ v


def median_ms(call, rounds=20):
    """Milliseconds of a call, the median of some."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return 1e3 * statistics.median(times)


torch.manual_seed(0)
q, k, v = (torch.randn(HEADS, n, WIDTH) for n in (QUERIES, KEYS, KEYS))
theirs = Attention(lambda scores: torch.softmax(scores, -1))
ours = Attention(torch_ops.softmax)
compiled = torch.compile(ours, fullgraph=True, backend="eager")
with torch.inference_mode():
    difference = (ours(q, k, v) - theirs(q, k, v)).abs().max().item()
    print(f"largest difference of the outputs: {difference:.1e}")
    print(f"inside torch.compile(fullgraph=True): {torch.equal(compiled(q, k, v), ours(q, k, v))}")
    scores = torch.randn(HEADS * QUERIES, KEYS)
    for name, softmax in (("torch.softmax", lambda s: torch.softmax(s, -1)), ("ours", torch_ops.softmax)):
        print(
            f"{name:>13}: {median_ms(lambda softmax=softmax: softmax(scores)):.2f} ms for the softmax alone"
        )
