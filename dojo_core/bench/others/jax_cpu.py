"""JAX on the CPU (XLA): one jitted function, compiled for the shape; its arrays live in JAX's own memory."""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from jax import lax
from protocol import Job, Unsupported, Variant, Variants, serve


def _layernorm(x, w, b):
    d = x - x.mean(-1, keepdims=True)
    return d * lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-5) * w + b


def _batchnorm(x, w, b):
    mean = x.mean((0, 2, 3), keepdims=True)
    variance = jnp.square(x - mean).mean((0, 2, 3), keepdims=True)
    scale = w[:, None, None] * lax.rsqrt(variance + 1e-5)
    return (x - mean) * scale + b[:, None, None]


def _groupnorm(x, g, b):
    d = x - x.mean((2, 3, 4), keepdims=True)
    r = lax.rsqrt((d * d).mean((2, 3, 4), keepdims=True) + 1e-5)
    return d * r * g[..., None, None] + b[..., None, None]


def _conv(x, w, groups=1):
    numbers = ("NCHW", "OIHW", "NCHW")
    return lax.conv_general_dilated(
        x, w, (1, 1), "VALID", dimension_numbers=numbers, feature_group_count=groups
    )


def _conv_channels_last(x, w):
    """The layout that XLA's CPU convolution is written for; the transposes are part of the time."""
    numbers = ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(
        x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), (1, 1), "VALID", dimension_numbers=numbers
    )
    return y.transpose(0, 3, 1, 2)


def _pooled(x, start, operator, k, s):
    return lax.reduce_window(x, start, operator, (1, 1, k, k), (1, 1, s, s), "VALID")


def _attention(q, k, v):
    s = jnp.einsum("hmd,hnd->hmn", q, k) * q.shape[-1] ** -0.5
    return jnp.einsum("hmn,hnd->hmd", jax.nn.softmax(s, -1), v)


def functions(name: str, shape: tuple[int, ...]) -> dict[str, object]:
    """The kernel as JAX would write it, and other ways where they may be faster. Raises Unsupported."""
    k, s = shape[4:6] if len(shape) == 6 else (1, 1)
    known = {
        "add": jnp.add,
        "mul": jnp.multiply,
        "relu": jax.nn.relu,
        "relu_ffn": lambda x, w, b: jax.nn.relu(x * w[:, None, None] + b[:, None, None]),
        "reducemean": lambda x: x.mean(-1),
        "softmax": lambda x: jax.nn.softmax(x, -1),
        "log_softmax": lambda x: jax.nn.log_softmax(x, -1),
        "cross_entropy": lambda x, t: -(t * jax.nn.log_softmax(x, -1)).sum(-1),
        "layernorm": _layernorm,
        "rmsnorm": lambda x, w: x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6) * w,
        "batchnorm": _batchnorm,
        "groupnorm": _groupnorm,
        "matmul": jnp.matmul,
        "bmm": jnp.matmul,
        "gemv": jnp.matmul,
        "dot": jnp.dot,
        "sum": jnp.sum,
        "conv": _conv,
        "dwconv": lambda x, w: _conv(x, w[:, None], shape[1]),
        "swiglu": lambda x, w, v: jax.nn.silu(x @ w) * (x @ v),
        "gelu": lambda x: jax.nn.gelu(x, approximate=False),
        "silu": jax.nn.silu,
        "maxpool": lambda x: _pooled(x, -jnp.inf, lax.max, k, s),
        "sumpool": lambda x: _pooled(x, 0.0, lax.add, k, s),
        "avgpool": lambda x: _pooled(x, 0.0, lax.add, k, s) / (k * k),
        "attention": _attention,
        "transpose": lambda x: x.T,
        "fill": lambda v: jnp.full(shape, v),
        "axpy": lambda a, x, y: a * x + y,
    }
    if name not in known:
        raise Unsupported(f"JAX has no counterpart for {name} here.")
    variants = {"jit": known[name]}
    if name == "conv":
        variants["jit, channels last inside"] = _conv_channels_last
    return variants


def jitted(job: Job, function: object) -> Variant:
    sets = [[jnp.array(a) for a in job.ordered(number)] for number in range(len(job.sets))]
    made = jax.jit(function).lower(*sets[0]).compile()
    return Variant([lambda given=given: made(*given).block_until_ready() for given in sets])


def prepare(job: Job) -> tuple[Variants, str]:
    variants = functions(job.kernel, job.shape)
    return {name: lambda f=f: jitted(job, f) for name, f in variants.items()}, jax.__version__


if __name__ == "__main__":
    serve(prepare)
