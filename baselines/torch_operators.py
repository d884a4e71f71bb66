"""The kernels as PyTorch computes them: ``function(kernel, shape)`` takes the inputs in order."""

from __future__ import annotations

from collections.abc import Callable

import torch
from protocol import Job, Run, Unsupported
from torch import Tensor
from torch.nn import functional as F

Function = Callable[..., Tensor]


def function(name: str, shape: tuple[int, ...]) -> Function:
    """Out of place, as a model would write it. Raises Unsupported."""
    known: dict[str, Function] = {
        "add": torch.add,
        "mul": torch.mul,
        "relu": torch.relu,
        "relu_ffn": lambda x, w, b: torch.relu(x * w[:, None, None] + b[:, None, None]),
        "reducemean": lambda x: torch.mean(x, -1),
        "softmax": lambda x: torch.softmax(x, -1),
        "layernorm": lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
        "rmsnorm": lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6),
        "batchnorm": lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0.0, 1e-5),
        "matmul": torch.matmul,
        "bmm": torch.bmm,
        "conv": lambda x, w: F.conv2d(x, w),
        "swiglu": lambda x, w, v: F.silu(x @ w) * (x @ v),
        "gelu": lambda x: F.gelu(x),
        "silu": lambda x: F.silu(x),
        "log_softmax": lambda x: torch.log_softmax(x, -1),
        "cross_entropy": lambda x, t: F.cross_entropy(x, t, reduction="none"),
        "groupnorm": lambda x, g, b: F.group_norm(
            x.flatten(1, 2), shape[1], g.flatten(), b.flatten(), 1e-5
        ).view(x.shape),
        "maxpool": lambda x: F.max_pool2d(x, shape[4], shape[5]),
        "sumpool": lambda x: F.avg_pool2d(x, shape[4], shape[5], divisor_override=1),
        "avgpool": lambda x: F.avg_pool2d(x, shape[4], shape[5]),
        "dwconv": lambda x, w: F.conv2d(x, w[:, None], groups=shape[1]),
        "attention": lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None])[0],
        "transpose": lambda x: x.T.contiguous(),
        "fill": lambda v: v.expand(*shape).contiguous(),
        "axpy": lambda a, x, y: a * x + y,
        "dot": torch.dot,
        "sum": lambda x: torch.sum(x, 0),
        "gemv": torch.mv,
        "conv2d": lambda x, w: F.conv2d(x, w, stride=shape[6], padding=shape[7]),
        "gqa": lambda q, k, v: F.scaled_dot_product_attention(q, k[:, None], v[:, None]),
        "rope": lambda x, c, s: (
            x * torch.cat((c, c), -1)[:, None]
            + torch.cat((-x[..., shape[2] // 2 :], x[..., : shape[2] // 2]), -1)
            * torch.cat((s, s), -1)[:, None]
        ),
        "gemm": lambda p, q, a, b, c: torch.addmm(c, a, b, beta=float(q), alpha=float(p)),
        "nhwc": lambda x: x.permute(0, 2, 3, 1).contiguous(),
    }
    if name not in known:
        raise Unsupported(f"PyTorch has no counterpart for {name} here.")
    return known[name]


def tensors(job: Job, number: int) -> list[Tensor]:
    """A set's inputs, sharing their memory."""
    return [torch.from_numpy(array) for array in job.ordered(number)]


def settings() -> None:
    """Inference: no graph is recorded."""
    torch.set_grad_enabled(False)


def version() -> str:
    return str(torch.__version__).split("+")[0]


def plain(job: Job) -> list[Run]:
    """The function on every set."""
    computed = function(job.kernel, job.shape)
    sets = [tensors(job, number) for number in range(len(job.sets))]
    return [lambda given=given: computed(*given) for given in sets]
