"""Run by a test with an exported package of many kernels and nothing of the Dojo: beside PyTorch's own."""

import sys
from importlib import import_module

import torch
import torch.nn.functional as f

assert not any(name.partition(".")[0] in ("dojo_core", "dojo_native") for name in sys.modules)
torch.manual_seed(0)
compiler, name, *kernels = sys.argv[1:]
exported, torch_ops = import_module(name), import_module(f"{name}.torch_ops")
operators = getattr(torch.ops, name)


def per_channel(x, *vectors):
    return [v.view(1, -1, 1, 1) for v in vectors]


def relu_ffn(x, w, b):
    w, b = per_channel(x, w, b)
    return torch.relu(x * w + b)


def grouped(q, k, v):  # q: heads, queries on each, rows, columns
    h, g, m, d = q.shape
    shared = (t.repeat_interleave(g, 0) for t in (k, v))
    return f.scaled_dot_product_attention(q.reshape(h * g, m, d), *shared).view(h, g, m, d)


THEIRS = {
    "add": torch.add,
    "relu_ffn": relu_ffn,
    "reducemean": lambda x: x.mean(-1),
    "layernorm": lambda x, g, h: f.layer_norm(x, x.shape[-1:], g, h),
    "rmsnorm": lambda x, g: f.rms_norm(x, x.shape[-1:], g, 1e-6),
    "batchnorm": lambda x, g, b: f.batch_norm(x, None, None, g, b, training=True),
    "matmul": torch.matmul,
    "bmm": torch.bmm,
    "gemv": torch.mv,
    "conv": f.conv2d,
    "swiglu": lambda x, w, v: f.silu(x @ w) * (x @ v),
    "gelu": f.gelu,
    "attention": f.scaled_dot_product_attention,
    "gqa": grouped,
}


class All(torch.nn.Module):
    """Every operator in one graph, each on inputs of its own."""

    def forward(self, *inputs):
        left, results = list(inputs), []
        for name, count in COUNTS.items():
            results.append(getattr(operators, name)(*left[:count]))
            del left[:count]
        return results


inputs = {name: [torch.randn(shape) for shape in exported.shapes(name)[0].values()] for name in kernels}
assert set(inputs) <= set(THEIRS), set(inputs) - set(THEIRS)
for name, tensors in inputs.items():
    ours = getattr(torch_ops, name)(*tensors)
    torch.testing.assert_close(
        ours, THEIRS[name](*tensors), rtol=1e-4, atol=1e-4, msg=lambda m, n=name: f"{n}: {m}"
    )
    torch.library.opcheck(
        getattr(operators, name).default, tuple(tensors), test_utils=("test_schema", "test_faketensor")
    )

COUNTS = {name: len(tensors) for name, tensors in inputs.items()}
flat = [tensor for tensors in inputs.values() for tensor in tensors]
with torch.inference_mode():
    compiled = torch.compile(All(), fullgraph=True, backend=compiler)(*flat)
for name, result in zip(inputs, compiled, strict=True):
    torch.testing.assert_close(
        result, getattr(torch_ops, name)(*inputs[name]), msg=lambda m, n=name: f"{n}: {m}"
    )
print(len(inputs), "operators")
