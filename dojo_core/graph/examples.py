"""Small models to begin with, drawn in code, with random weights: a perceptron, a transformer, a conv net."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dojo_core import primitives as p
from dojo_core.graph.graph import Graph
from dojo_core.graph.nodes import Kind
from dojo_core.graph.sketch import Sketch


class _Layers(Sketch):
    """Layers as frontends have them, each by its name."""

    def weight(self, name: str, *shape: int, fan_in: int = 0) -> str:
        """Normal numbers over the root of ``fan_in``; zeros without it, of a bias."""
        scale = fan_in**-0.5 if fan_in else 0.0
        return self.constant(name, (scale * self.rng.standard_normal(shape)).astype(np.float32))

    def ones(self, name: str, size: int) -> str:
        return self.constant(name, np.ones(size, np.float32))

    def linear(self, name: str, x: str, size: int) -> str:
        inner = self.shape(x)[-1]
        w = self.weight(f"{name}.weight", inner, size, fan_in=inner)
        product = self.contract(f"{name}.matmul", "MatMul", "mk,kn->mn", x, w)
        return self.formula(f"{name}.bias_add", "Add", "a + b", product, self.weight(f"{name}.bias", size))

    def layer_norm(self, name: str, x: str) -> str:
        shape = self.shape(x)
        scale, shift = self.ones(f"{name}.scale", shape[-1]), self.weight(f"{name}.shift", shape[-1])

        def emit(b: p.Builder, x: p.Array, scale: p.Array, shift: p.Array) -> p.Array:
            centred = p.formula(b, "x - m", x=x, m=p.mean(b, x, -1, keepdims=True))
            variance = p.mean(b, p.formula(b, "c*c", c=centred), -1, keepdims=True)
            text = "c / sqrt(v + 0.00001) * s + t"
            return p.formula(b, text, c=centred, v=variance, s=scale, t=shift)

        return self.node(name, "LayerNormalization", Kind.REDUCTION, [x, scale, shift], shape, emit)

    def softmax(self, name: str, x: str) -> str:
        def emit(b: p.Builder, x: p.Array) -> p.Array:
            e = p.formula(b, "exp(x - m)", x=x, m=p.reduce(b, "max", x, -1, keepdims=True))
            return p.formula(b, "e / s", e=e, s=p.reduce(b, "+", e, -1, keepdims=True))

        return self.node(name, "Softmax", Kind.REDUCTION, [x], self.shape(x), emit)

    def attention(self, name: str, x: str, heads: int) -> str:
        length, width = self.shape(x)
        size = width // heads

        def projected(part: str) -> str:
            made = self.linear(f"{name}.{part}", x, width)
            apart = [length, heads, size]
            made = self.view(f"{made}.heads", "Reshape", made, apart, lambda b, y: p.reshape(b, y, apart))
            turned = [heads, length, size]
            return self.view(
                f"{made}.first", "Transpose", made, turned, lambda b, y: p.transpose(b, y, (1, 0, 2))
            )

        q, k, v = map(projected, ("query", "key", "value"))
        scores = self.contract(f"{name}.scores", "MatMul", "hmk,hnk->hmn", q, k)
        scaled = self.formula(f"{name}.scaled", "Mul", f"a * {size**-0.5!r}", scores)
        seen = self.contract(
            f"{name}.seen", "MatMul", "hmn,hnk->hmk", self.softmax(f"{name}.softmax", scaled), v
        )
        back = self.view(
            f"{name}.back",
            "Transpose",
            seen,
            [length, heads, size],
            lambda b, y: p.transpose(b, y, (1, 0, 2)),
        )
        flat = [length, width]
        joined = self.view(f"{name}.joined", "Reshape", back, flat, lambda b, y: p.reshape(b, y, flat))
        return self.linear(f"{name}.output", joined, width)

    def convolution(self, name: str, x: str, channels: int, stride: int = 1) -> str:
        """Of 3x3 taps, padded so that it keeps the size."""
        n, before, height, width = self.shape(x)
        w = self.weight(f"{name}.weight", channels, before, 3, 3, fan_in=9 * before)
        bias = self.weight(f"{name}.bias", channels)
        shape = (n, channels, -(-height // stride), -(-width // stride))

        def emit(b: p.Builder, x: p.Array, w: p.Array, bias: p.Array) -> p.Array:
            return p.convolve(b, x, w, bias, strides=[stride] * 2, pads=[(1, 1)] * 2)

        return self.node(name, "Conv", Kind.CONTRACTION, [x, w, bias], shape, emit)

    def relu(self, name: str, x: str) -> str:
        return self.formula(name, "Relu", "max(a, 0)", x)

    def pooled(self, name: str, x: str) -> str:
        """The mean of each channel."""
        shape = self.shape(x)[:2]
        return self.node(
            name, "GlobalAveragePool", Kind.REDUCTION, [x], shape, lambda b, x: p.mean(b, x, (2, 3))
        )


def perceptron() -> Graph:
    """Three layers over 64 images of 28x28."""
    m = _Layers()
    x = m.input("images", 64, 784)
    x = m.relu("relu1", m.linear("fc1", x, 512))
    x = m.relu("relu2", m.linear("fc2", x, 256))
    return m.built("perceptron", m.linear("fc3", x, 10))


def transformer() -> Graph:
    """Four layers over 64 tokens: attention and a feed-forward part, each normalised first and added."""
    m = _Layers()
    x = m.input("tokens", 64, 128)
    for number in range(4):
        name = f"layer{number}"
        seen = m.attention(f"{name}.attention", m.layer_norm(f"{name}.norm1", x), 4)
        x = m.formula(f"{name}.residual1", "Add", "a + b", x, seen)
        wide = m.linear(f"{name}.fc1", m.layer_norm(f"{name}.norm2", x), 512)
        gelu = m.formula(f"{name}.gelu", "Gelu", "a * 0.5 * (1 + erf(a * 0.7071067811865476))", wide)
        x = m.formula(f"{name}.residual2", "Add", "a + b", x, m.linear(f"{name}.fc2", gelu, 128))
    return m.built("transformer", m.layer_norm("norm", x))


def convolutional() -> Graph:
    """Two stages of residual blocks over an image of 32x32, then ten classes."""
    m = _Layers()
    x = m.relu("stem.relu", m.convolution("stem.conv", m.input("image", 1, 3, 32, 32), 16))
    for number in range(3):
        x = _block(m, f"stage1.{number}", x)
    x = m.relu("down.relu", m.convolution("down.conv", x, 32, stride=2))
    for number in range(3):
        x = _block(m, f"stage2.{number}", x)
    return m.built("convnet", m.linear("classes", m.pooled("pool", x), 10))


def _block(m: _Layers, name: str, x: str) -> str:
    channels = m.shape(x)[1]
    inner = m.relu(f"{name}.relu1", m.convolution(f"{name}.conv1", x, channels))
    added = m.formula(f"{name}.add", "Add", "a + b", m.convolution(f"{name}.conv2", inner, channels), x)
    return m.relu(f"{name}.relu2", added)


@dataclass(frozen=True)
class Example:
    """``about`` is told to people; ``make`` draws it."""

    name: str
    title: str
    about: str
    make: Callable[[], Graph]


EXAMPLES = (
    Example("perceptron", "Perceptron", "Three matrix products over 64 images.", perceptron),
    Example("transformer", "Transformer", "Four layers of attention over 64 tokens.", transformer),
    Example("convnet", "Conv net", "Residual blocks of convolutions over an image.", convolutional),
)
