"""An exported kernel as an operator in a PyTorch model: attention whose softmax is ours.

Export it first, and put the package on the path:

    dojo export softmax --shape 4096x512 --to fast
    pip install ./fast
    python agents/examples/softmax_in_a_model.py
"""

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


def timed(calls, rounds=50):
    """Milliseconds of each call by name: in turns, the shortest of some, since noise only adds to a time."""
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - began)
    return {name: 1e3 * min(each) for name, each in times.items()}


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
    calls = {
        "torch.softmax": lambda: torch.softmax(scores, -1),
        "ours": lambda: torch_ops.softmax(scores),
    }
    for name, milliseconds in timed(calls).items():
        print(f"{name:>13}: {milliseconds:.2f} ms for the softmax alone")
