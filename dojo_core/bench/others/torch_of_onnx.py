"""PyTorch's counterparts of ONNX operators, for those that have a simple one: what a model would write.

Each takes the node's attributes and its inputs in order: tensors, numbers or lists where the model says the
value, None where left out. Nothing is made of text: an operator that is not in the table has no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_node
import torch
import torch_operators
from protocol import Job, Run, Unsupported, Variant, Variants, serve
from torch.nn import functional as F

Attributes = Mapping[str, Any]
Counterpart = Callable[..., Any]

CAST = {1: torch.float32, 10: torch.float16, 11: torch.float64, 3: torch.int8, 6: torch.int32, 7: torch.int64}
REDUCED: dict[str, Counterpart] = {
    "ReduceL1": lambda x, axes, keep: torch.linalg.vector_norm(x, 1, axes, keep),
    "ReduceL2": lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep),
    "ReduceLogSum": lambda x, axes, keep: torch.log(torch.sum(x, axes, keep)),
    "ReduceLogSumExp": torch.logsumexp,
    "ReduceMax": torch.amax,
    "ReduceMean": torch.mean,
    "ReduceMin": torch.amin,
    "ReduceSum": torch.sum,
    "ReduceSumSquare": lambda x, axes, keep: torch.sum(x * x, axes, keep),
}
# Inputs alone, no attributes; those of PyTorch's own that take ``out=`` are tried with it too.
PLAIN: dict[str, Counterpart] = {
    "Abs": torch.abs, "Acos": torch.acos, "Acosh": torch.acosh, "Add": torch.add, "And": torch.logical_and,
    "Asin": torch.asin, "Asinh": torch.asinh, "Atan": torch.atan, "Atanh": torch.atanh,
    "BitwiseAnd": torch.bitwise_and, "BitwiseNot": torch.bitwise_not, "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor, "Ceil": torch.ceil, "Clip": torch.clamp, "Cos": torch.cos,
    "Cosh": torch.cosh, "Det": torch.linalg.det, "Div": torch.div, "Dropout": torch.clone,
    "Equal": torch.eq, "Erf": torch.erf, "Exp": torch.exp, "Floor": torch.floor, "Greater": torch.gt,
    "GreaterOrEqual": torch.ge, "HardSwish": F.hardswish, "Identity": torch.clone, "IsInf": torch.isinf,
    "IsNaN": torch.isnan, "Less": torch.lt, "LessOrEqual": torch.le, "Log": torch.log, "MatMul": torch.matmul,
    "Mish": F.mish, "Mul": torch.mul, "Neg": torch.neg, "Not": torch.logical_not, "Or": torch.logical_or,
    "Pow": torch.pow, "Reciprocal": torch.reciprocal, "Relu": torch.relu, "Round": torch.round,
    "Selu": F.selu, "Sigmoid": torch.sigmoid, "Sign": torch.sign, "Sin": torch.sin, "Sinh": torch.sinh,
    "Softplus": F.softplus, "Softsign": F.softsign, "Sqrt": torch.sqrt, "Sub": torch.sub, "Swish": F.silu,
    "Tan": torch.tan, "Tanh": torch.tanh, "Where": torch.where, "Xor": torch.logical_xor,
    "GlobalAveragePool": lambda x: F.adaptive_avg_pool2d(x, 1),
    "GlobalMaxPool": lambda x: F.adaptive_max_pool2d(x, 1),
    "Max": lambda a, b, c: torch.maximum(torch.maximum(a, b), c),
    "Min": lambda a, b, c: torch.minimum(torch.minimum(a, b), c),
    "Mean": lambda a, b, c: (a + b + c) / 3, "Sum": lambda a, b, c: a + b + c,
    "SwiGLU": lambda a, b: F.silu(a) * b,
    "CumSum": torch.cumsum, "CumProd": torch.cumprod, "Expand": lambda x, shape: x.expand(shape).contiguous(),
    "Flatten": lambda x: x.flatten(1).clone(), "Reshape": lambda x, shape: x.reshape(shape).clone(),
    "Squeeze": lambda x, axes: x.squeeze(axes).clone(), "Tile": torch.tile,
    "Unsqueeze": lambda x, axes: x[(..., *(None for _ in axes))].clone() if axes[0] else x[None].clone(),
    "NegativeLogLikelihoodLoss": F.nll_loss, "SoftmaxCrossEntropyLoss": F.cross_entropy,
}  # fmt: skip


def _pads(attributes: Attributes, rank: int) -> tuple[int, ...]:
    """The padding before each axis. Raises Unsupported where that behind it is another."""
    pads = list(attributes.get("pads", [0] * 2 * rank))
    if pads[:rank] != pads[rank:]:
        raise Unsupported("PyTorch pads alike on both sides.")
    return tuple(pads[:rank])


def _windowed(attributes: Attributes, rank: int) -> dict[str, Any]:
    return {"stride": tuple(attributes.get("strides", [1] * rank)), "padding": _pads(attributes, rank)}


def _convolved(
    a: Attributes, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None
) -> torch.Tensor:
    rank = x.ndim - 2
    dilation, groups = tuple(a.get("dilations", [1] * rank)), a.get("group", 1)
    return (F.conv1d, F.conv2d, F.conv3d)[rank - 1](
        x, w, b, dilation=dilation, groups=groups, **_windowed(a, rank)
    )


def _transposed(
    a: Attributes, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None
) -> torch.Tensor:
    return F.conv_transpose2d(x, w, b, groups=a.get("group", 1), **_windowed(a, 2))


def _padded(a: Attributes, x: torch.Tensor, pads: list[int]) -> torch.Tensor:
    rank = x.ndim
    sides = [side for axis in reversed(range(2, rank)) for side in (pads[axis], pads[axis + rank])]
    return F.pad(x, sides, a.get("mode", "constant"))


def _sliced(
    x: torch.Tensor, starts: list[int], ends: list[int], axes: list[int], steps: list[int] | None = None
) -> Any:
    cut = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps or [1] * len(axes), strict=True):
        cut[axis] = slice(start, end, step)
    return x[tuple(cut)].contiguous()


def _gemm(a: Attributes, x: torch.Tensor, w: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    w = w.T if a.get("transB") else w
    x = x.T if a.get("transA") else x
    return torch.addmm(c, x, w, beta=a.get("beta", 1.0), alpha=a.get("alpha", 1.0))


def _normalised(a: Attributes, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, scale.shape, scale, bias, a.get("epsilon", 1e-5))


def _gathered(a: Attributes, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    return torch.index_select(x, a.get("axis", 0), indices)


def _triangle(a: Attributes, x: torch.Tensor) -> torch.Tensor:
    return torch.triu(x) if a.get("upper", 1) else torch.tril(x)


def _resized(a: Attributes, x: torch.Tensor, _: None, scales: list[float]) -> torch.Tensor:
    if a.get("mode", "nearest") == "nearest":
        return F.interpolate(x, scale_factor=scales[2:], mode="nearest")
    return F.interpolate(x, scale_factor=scales[2:], mode="bilinear", align_corners=False)


def _mod(a: Attributes, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.fmod(x, y) if a.get("fmod") else torch.remainder(x, y)


# Attributes first, then the inputs.
WITH_ATTRIBUTES: dict[str, Counterpart] = {
    "ArgMax": lambda a, x: torch.argmax(x, a["axis"], keepdim=bool(a.get("keepdims", 1))),
    "ArgMin": lambda a, x: torch.argmin(x, a["axis"], keepdim=bool(a.get("keepdims", 1))),
    "Attention": lambda a, q, k, v: F.scaled_dot_product_attention(q, k, v),
    "AveragePool": lambda a, x: F.avg_pool2d(
        x, a["kernel_shape"], count_include_pad=bool(a.get("count_include_pad", 0)), **_windowed(a, 2)
    ),
    "BatchNormalization": lambda a, x, scale, bias, mean, variance: F.batch_norm(
        x, mean, variance, scale, bias, False, 0.0, a.get("epsilon", 1e-5)
    ),
    "Cast": lambda a, x: x.to(CAST[a["to"]]),
    "Celu": lambda a, x: F.celu(x, a.get("alpha", 1.0)),
    "Concat": lambda a, *inputs: torch.cat(inputs, a["axis"]),
    "Conv": _convolved,
    "ConvTranspose": _transposed,
    "DepthToSpace": lambda a, x: _depth_to_space(x, a["blocksize"]),
    "Einsum": lambda a, *inputs: torch.einsum(a["equation"], *inputs),
    "Elu": lambda a, x: F.elu(x, a.get("alpha", 1.0)),
    "Gather": _gathered,
    "GatherElements": lambda a, x, i: torch.gather(x, a.get("axis", 0), i),
    "Gelu": lambda a, x: F.gelu(x, approximate=a.get("approximate", "none")),
    "Gemm": _gemm,
    "GroupNormalization": lambda a, x, scale, bias: F.group_norm(
        x, a["num_groups"], scale, bias, a.get("epsilon", 1e-5)
    ),
    "HardSigmoid": lambda a, x: torch.clamp(x * a.get("alpha", 0.2) + a.get("beta", 0.5), 0, 1),
    "InstanceNormalization": lambda a, x, scale, bias: F.instance_norm(
        x, weight=scale, bias=bias, eps=a.get("epsilon", 1e-5)
    ),
    "LayerNormalization": _normalised,
    "LeakyRelu": lambda a, x: F.leaky_relu(x, a.get("alpha", 0.01)),
    "LogSoftmax": lambda a, x: torch.log_softmax(x, a.get("axis", -1)),
    "LpNormalization": lambda a, x: F.normalize(x, a.get("p", 2), a.get("axis", -1)),
    "LpPool": lambda a, x: F.lp_pool2d(x, a.get("p", 2), a["kernel_shape"], tuple(a.get("strides", (1, 1)))),
    "LRN": lambda a, x: F.local_response_norm(
        x, a["size"], a.get("alpha", 1e-4), a.get("beta", 0.75), a.get("bias", 1.0)
    ),
    "MaxPool": lambda a, x: F.max_pool2d(x, a["kernel_shape"], **_windowed(a, 2)),
    "Mod": _mod,
    "PRelu": lambda a, x, slope: torch.where(x < 0, x * slope, x),
    "Pad": _padded,
    "ReduceProd": lambda a, x, axes: (
        torch.prod(x, axes[0], keepdim=bool(a.get("keepdims", 1)))
        if len(axes) == 1
        else torch.prod(x.flatten(-len(axes)), -1)
    ),
    "Resize": _resized,
    "RMSNormalization": lambda a, x, scale: F.rms_norm(x, scale.shape, scale, a.get("epsilon", 1e-5)),
    "Slice": lambda a, x, *sides: _sliced(x, *sides),
    "Softmax": lambda a, x: torch.softmax(x, a.get("axis", -1)),
    "SpaceToDepth": lambda a, x: _space_to_depth(x, a["blocksize"]),
    "Split": lambda a, x: tuple(t.contiguous() for t in torch.chunk(x, a["num_outputs"], a["axis"])),
    "ThresholdedRelu": lambda a, x: F.threshold(x, a.get("alpha", 1.0), 0.0),
    "TopK": lambda a, x, k: tuple(torch.topk(x, k[0], a.get("axis", -1))),
    "Transpose": lambda a, x: x.permute(a["perm"]).contiguous(),
    "Trilu": _triangle,
}


def _depth_to_space(x: torch.Tensor, block: int) -> torch.Tensor:
    n, c, h, w = x.shape
    inner = x.reshape(n, block, block, c // block**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return inner.reshape(n, c // block**2, h * block, w * block)


def _space_to_depth(x: torch.Tensor, block: int) -> torch.Tensor:
    n, c, h, w = x.shape
    inner = x.reshape(n, c, h // block, block, w // block, block).permute(0, 3, 5, 1, 2, 4)
    return inner.reshape(n, c * block**2, h // block, w // block)


def counterpart(operator: str, attributes: Attributes) -> Counterpart:
    """A function of the inputs. Raises Unsupported."""
    if operator in PLAIN:
        return PLAIN[operator]
    if operator in REDUCED:
        keep = bool(attributes.get("keepdims", 1))
        return lambda x, axes: REDUCED[operator](x, axes, keep)
    if operator in WITH_ATTRIBUTES:
        made = WITH_ATTRIBUTES[operator]
        return lambda *inputs: made(attributes, *inputs)
    raise Unsupported(f"PyTorch has no simple counterpart of {operator} here.")


def tensor(job: Job, number: int, name: str) -> torch.Tensor:
    array = onnx_node.as_numpy(job, number, name)
    return torch.from_numpy(array)


def given(job: Job, node: onnx_node.Node, number: int) -> list[Any]:
    """A set's inputs in the node's order."""
    values: list[Any] = []
    for each in node.inputs:
        if isinstance(each, dict):
            values.append(each["values"])
        else:
            values.append(None if each is None else tensor(job, number, str(each)))
    return values


def numbers(result: object) -> object:
    """What NumPy understands, of one result or several."""
    if isinstance(result, tuple):
        return tuple(numbers(each) for each in result)
    return result.numpy() if isinstance(result, torch.Tensor) else np.asarray(result)


def prepare(job: Job) -> tuple[Variants, str]:
    torch_operators.settings()
    node = onnx_node.read_node(job)
    function = counterpart(node.operator, node.attributes)
    sets = [given(job, node, number) for number in range(len(job.sets))]

    def plain() -> Variant:
        return Variant([lambda inputs=inputs: function(*inputs) for inputs in sets], numbers)

    def into() -> Variant:
        runs: list[Run] = []
        for number, inputs in enumerate(sets):
            out = tensor(job, number, job.outputs[0])
            runs.append(lambda inputs=inputs, out=out: function(*inputs, out=out))
        return Variant(runs, numbers)

    variants: dict[str, Callable[[], Variant]] = {"plain functions": plain}
    if node.operator in PLAIN and len(job.outputs) == 1:
        variants["out="] = into
    return variants, torch_operators.version()


if __name__ == "__main__":
    serve(prepare, every_dtype=True)
