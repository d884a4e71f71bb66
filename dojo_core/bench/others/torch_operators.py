"""The kernels as PyTorch computes them: ``function(kernel, shape)`` takes the inputs in order."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
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
        "matmul_bf16": torch.matmul,
        "softmax_bf16": lambda x: torch.softmax(x, -1),
        "rmsnorm_f16": lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6),
    }
    if name not in known:
        raise Unsupported(f"PyTorch has no counterpart for {name} here.")
    return known[name]


def tensors(job: Job, number: int) -> list[Tensor]:
    """A set's inputs, sharing their memory."""
    return [tensor(job, number, name) for name in job.inputs]


def tensor(job: Job, number: int, name: str) -> Tensor:
    """An array of a set, sharing its memory."""
    stored = torch.from_numpy(job.sets[number][name])
    return stored.view(torch.bfloat16) if job.dtypes[name] == "bf16" else stored


def numbers(result: object) -> object:
    """What NumPy understands, which has no bf16; a quantised tensor's zero point is 128 higher here."""
    if not isinstance(result, Tensor):
        return result
    if result.is_quantized:
        return result.int_repr().numpy().astype(np.float64) - 128
    return result.float().numpy() if result.dtype in (torch.bfloat16, torch.float16) else result


def quantised(job: Job) -> list[Run]:
    """int8 products by PyTorch's x86 engine (to f32 by oneDNN), weights packed beforehand as it wants them.

    Its int8 output is unsigned: a zero point 128 higher gives the same numbers plus 128.
    """
    m, k, n = job.shape
    factor = 2.0 ** -(8 + round(math.log2(k) / 2))  # R of the kernel's formula
    zeros = torch.zeros(n, dtype=torch.int64)
    runs: list[Run] = []
    for number in range(len(job.sets)):
        t = {name: tensor(job, number, name) for name in job.inputs}
        scales, zero, weights = t["s"] * factor, int(t["z"]), t["w"].T.contiguous()
        if job.kernel == "qmatmul_f32":
            packed = torch.ops.onednn.qlinear_prepack(weights, [m, k])
            runs.append(
                lambda a=t["a"], packed=packed, s=scales, z=zero: torch.ops.onednn.qlinear_pointwise(
                    a, 1.0, z, packed, s, zeros, None, 1.0, 0, torch.float32, "none", [], ""
                )
            )
            continue
        torch.backends.quantized.engine = "x86"
        x = torch._make_per_tensor_quantized_tensor(t["a"], 1.0, zero)
        w = torch._make_per_channel_quantized_tensor(weights, scales.double(), zeros, 0)
        packed, point = torch.ops.quantized.linear_prepack(w, None), int(t["p"]) + 128
        runs.append(lambda x=x, packed=packed, p=point: torch.ops.quantized.linear(x, packed, 1.0, p))
    return runs


def settings() -> None:
    """Inference: no graph is recorded."""
    torch.set_grad_enabled(False)


def version() -> str:
    return str(torch.__version__).split("+")[0]


def plain(job: Job) -> list[Run]:
    """The function on every set."""
    if job.kernel in ("qmatmul", "qmatmul_f32"):
        return quantised(job)
    computed = function(job.kernel, job.shape)
    sets = [tensors(job, number) for number in range(len(job.sets))]
    return [lambda given=given: computed(*given) for given in sets]
