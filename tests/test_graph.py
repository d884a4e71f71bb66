"""From nodes to kernels and wiring (docs/graph.md): what is one kernel, what is worked out beforehand."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dojo_core import primitives as p
from dojo_core.graph import Graph, GraphError, Kind, Node, Tensor, build, print_graph, reference
from dojo_core.graph.building import in_order
from tests.drawn import Drawn


def calls(graph: Graph) -> list[str]:
    """The calls as the text form has them, without the nodes."""
    return [
        line.partition(" of ")[0]
        for line in print_graph(graph).splitlines()
        if " = " in line and "(" in line and "[" not in line
    ]


def check(graph: Graph, inputs: dict[str, Any], *expected: Any) -> None:
    """Does the graph mean these outputs?"""
    for value, wanted in zip(reference(graph, inputs).values(), expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------------------- what becomes one kernel


def test_a_product_takes_what_is_done_to_its_result() -> None:
    m = Drawn()
    x, w, v, bias = m.input("x", 8, 12), m.weight("w", 12, 16), m.weight("v", 16, 4), m.weight("bias", 16)
    h = m.map("relu", "max(a, 0)", m.map("add", "a + b", m.matmul(x, w), bias))
    graph = m.model(m.matmul(h, v))
    assert calls(graph) == ["relu2 = matmul_add_relu(x, w, bias)", "matmul3 = matmul(relu2, v)"]
    inputs, c = m.drawn(), m.constants
    check(graph, inputs, np.maximum(inputs["x"] @ c["w"] + c["bias"], 0) @ c["v"])


def test_a_normalisation_by_rows_goes_with_the_product_and_its_residual() -> None:
    m = Drawn()
    x, w = m.input("x", 8, 16), m.weight("w", 16, 16)
    y = m.map("add", "a + b", m.matmul(x, w), x)
    mean = m.map("mean", "a / 16", m.reduce("sum", y, 1))
    graph = m.model(m.map("sub", "a - b", y, mean))
    assert calls(graph) == ["sub4 = matmul_add_sum_mean_sub(x, w)"]
    inputs = m.drawn()
    y = inputs["x"] @ m.constants["w"] + inputs["x"]
    check(graph, inputs, y - y.mean(1, keepdims=True))


def attention(m: Drawn, q: str, k: str, v: str) -> str:
    """Of heads of the shape (heads, places, width)."""
    scores = m.map("scale", "a * 0.25", m.matmul(q, m.transpose(k, 0, 2, 1)))
    return m.matmul(m.softmax(scores), v)


def test_attention_is_one_kernel_and_gives_its_heads_side_by_side() -> None:
    m = Drawn()
    q, k, v = (m.transpose(m.reshape(m.input(name, 6, 32), 6, 2, 16), 1, 0, 2) for name in "qkv")
    heads = m.reshape(m.transpose(attention(m, q, k, v), 1, 0, 2), 6, 32)
    w = m.weight("w", 32, 32)
    graph = m.model(m.matmul(heads, w))
    # The projection behind it reads rows of 32 in one piece: no pass brings the heads together.
    assert calls(graph) == [
        "transpose14 = matmul_scale_max_exp_sum_div_matmul(q, k, v)", "matmul16 = matmul(transpose14, w)"
    ]  # fmt: skip
    assert len(graph.kernels["matmul_scale_max_exp_sum_div_matmul"].program.leaves) == 12
    inputs = m.drawn()
    query, key, value = (inputs[name].reshape(6, 2, 16).transpose(1, 0, 2) for name in "qkv")
    e = np.exp(query @ key.transpose(0, 2, 1) * 0.25)
    mixed = (e / e.sum(-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(6, 32)
    check(graph, inputs, mixed @ m.constants["w"])


def test_attention_divides_behind_the_product() -> None:
    """Once for each result, in place of once for each weight."""
    m = Drawn()
    graph = m.model(attention(m, *(m.input(name, 2, 6, 4) for name in "qkv")))
    (kernel,) = graph.kernels.values()
    assert kernel.program.text.splitlines()[-3:] == [
        "2 6 4 t7[{0},{1},{2}] = 0",
        "2 6 4 6 t7[{0},{1},{2}] += t5[{0},{1},{3}]*x3[{0},{3},{2}]",
        "2 6 4 y1[{0},{1},{2}] = t7[{0},{1},{2}] / t6[{0},{1}]",
    ]


def test_weights_that_are_wanted_are_divided_where_they_are_made() -> None:
    m = Drawn()
    q, k, v = m.input("q", 6, 4), m.input("k", 4, 6), m.input("v", 6, 4)
    weights = m.softmax(m.matmul(q, k))
    (kernel,) = m.model(m.matmul(weights, v), weights).kernels.values()
    assert "6 6 y1[{0},{1}] = t4[{0},{1}] / t5[{0}]" in kernel.program.text


def test_two_products_with_a_normalisation_between_them_are_two_kernels() -> None:
    """Only a softmax of data, read by a product with data, is attention."""
    m = Drawn()
    x, w, v = m.input("x", 8, 16), m.weight("w", 16, 16), m.weight("v", 16, 16)
    graph = m.model(m.matmul(m.softmax(m.matmul(x, w)), v))
    assert calls(graph) == ["div4 = matmul_max_exp_sum_div(x, w)", "matmul5 = matmul(div4, v)"]


def test_a_residual_block_of_convolutions_is_two_kernels_with_their_padding() -> None:
    m = Drawn()
    x, w, v = m.input("x", 1, 4, 6, 6), m.weight("w", 4, 4, 3, 3), m.weight("v", 4, 4, 3, 3)
    h = m.map("relu", "max(a, 0)", m.convolve(x, w, pad=1))
    y = m.map("relu", "max(a + b, 0)", m.convolve(h, v, pad=1), x)
    graph = m.model(m.map("mean", "a / 36", m.reduce("sum", y, 2, 3)))
    assert calls(graph) == [
        "relu2 = pad_conv_relu(x, w)",
        "mean7 = pad_conv_relu_sum_mean(relu2, v, x)",
    ]
    inputs = m.drawn()

    def conv(x: Any, w: Any) -> Any:
        padded = np.pad(x.astype(float), ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        return np.einsum("nchwij,mcij->nmhw", windows, w)

    h = np.maximum(conv(inputs["x"], m.constants["w"]), 0)
    y = np.maximum(conv(h, m.constants["v"]) + inputs["x"], 0)
    check(graph, inputs, y.mean((2, 3), keepdims=True))


def pooled(m: Drawn, x: str, taps: int, stride: int) -> str:
    shape = (*m.shape(x)[:2], *((size - taps) // stride + 1 for size in m.shape(x)[2:]))

    def emit(b: p.Builder, x: p.Array) -> p.Array:
        return p.pool(b, "max", x, (taps, taps), (stride, stride))

    return m.node("", "pool", Kind.REDUCTION, (x,), shape, emit)


def test_a_convolution_takes_windows_that_share_none_of_its_rows() -> None:
    m = Drawn()
    x, w = m.input("x", 2, 3, 9, 9), m.weight("w", 8, 3, 2, 2)
    graph = m.model(pooled(m, m.map("relu", "max(a, 0)", m.convolve(x, w)), 3, 3))
    assert calls(graph) == ["pool2 = conv_relu_pool(x, w)"]
    inputs = m.drawn()
    windows = np.lib.stride_tricks.sliding_window_view(inputs["x"].astype(float), (2, 2), (2, 3))
    h = np.maximum(np.einsum("nchwij,mcij->nmhw", windows, m.constants["w"]), 0)
    check(graph, inputs, h[:, :, :6, :6].reshape(2, 8, 2, 3, 2, 3).max((3, 5)))


def test_a_convolution_takes_what_reduces_the_channels_of_a_place() -> None:
    m = Drawn()
    x, w = m.input("x", 2, 3, 9, 12), m.weight("w", 8, 3, 2, 2)
    h = m.convolve(x, w)
    graph = m.model(m.map("tanh", "tanh(a)", m.reduce("max", h, 1)))
    assert calls(graph) == ["tanh2 = conv_max_tanh(x, w)"]
    m = Drawn()
    x, w = m.input("x", 2, 3, 9, 12), m.weight("w", 8, 3, 2, 2)  # as many rows as channels
    graph = m.model(m.reduce("max", m.reduce("max", m.convolve(x, w), 2), 1))
    assert calls(graph) == ["conv0 = conv(x, w)", "max2 = max(conv0)"], (
        "of rows that are reduced first it does not"
    )


def test_windows_that_share_rows_are_a_kernel_of_their_own_and_so_is_what_follows_a_statistic() -> None:
    m = Drawn()
    x, w = m.input("x", 2, 3, 9, 9), m.weight("w", 8, 3, 2, 2)
    h = m.convolve(x, w)
    graph = m.model(pooled(m, h, 3, 2))
    assert calls(graph) == ["conv0 = conv(x, w)", "pool1 = pool(conv0)"]
    m = Drawn()
    x, w = m.input("x", 2, 3, 9, 9), m.weight("w", 8, 3, 2, 2)
    h = m.convolve(x, w)
    graph = m.model(pooled(m, m.map("sub", "a - b", h, m.reduce("sum", h, 2, 3)), 2, 2))
    assert calls(graph) == ["sub2 = conv_sum_sub(x, w)", "pool3 = pool(sub2)"]


def test_a_gated_half_and_a_rotation_of_columns_go_with_the_product() -> None:
    m = Drawn()
    x, w, cos, sin = m.input("x", 8, 16), m.weight("w", 16, 32), m.input("cos", 8, 32), m.input("sin", 8, 32)
    h = m.matmul(x, w)
    gated = m.map("gate", "a * sigmoid(b)", m.slice(h, 0, 16), m.slice(h, 16, 32))
    k = m.matmul(x, w)
    turned = m.concatenate(m.map("neg", "-a", m.slice(k, 16, 32)), m.slice(k, 0, 16))
    rotated = m.map("add", "a + b", m.map("mul", "a * b", k, cos), m.map("mul", "a * b", turned, sin))
    graph = m.model(gated, rotated)
    assert calls(graph) == [
        "gate3 = matmul_gate(x, w)",
        "add11 = matmul_neg_concat_mul_add(x, w, cos, sin)",
    ]
    inputs = m.drawn()
    product = inputs["x"] @ m.constants["w"]
    left, right = product[:, :16], product[:, 16:]
    turn = np.hstack([-right, left])
    check(graph, inputs, left / (1 + np.exp(-right)), product * inputs["cos"] + turn * inputs["sin"])


def test_a_part_of_a_product_that_others_read_too_is_scaled_where_it_is_read() -> None:
    """Otherwise it would lie in memory twice."""
    m = Drawn()
    x, w = m.input("x", 4, 8), m.weight("w", 8, 24)
    h = m.matmul(x, w)
    q, k = m.map("scale", "a * 0.5", m.slice(h, 0, 8)), m.slice(h, 8, 16)
    graph = m.model(m.matmul(q, m.transpose(k, 1, 0)))
    assert calls(graph) == ["matmul0 = matmul(x, w)", "matmul5 = scale_matmul(matmul0)"]


def test_a_reduction_over_rows_is_a_kernel_of_its_own() -> None:
    """It would make all of a product's rows wait for each other."""
    m = Drawn()
    x, w = m.input("x", 8, 16), m.weight("w", 16, 16)
    graph = m.model(m.reduce("sum", m.matmul(x, w), 0))
    assert calls(graph) == ["matmul0 = matmul(x, w)", "sum1 = sum(matmul0)"]


def test_rows_in_another_order_than_the_product_s_are_a_kernel_of_their_own_too() -> None:
    m = Drawn()
    x, w, c = m.input("x", 8, 16), m.weight("w", 16, 16), m.weight("c", 16, 8)
    turned = m.map("add", "a + b", m.transpose(m.matmul(x, w), 1, 0), c)
    graph = m.model(m.reduce("sum", turned, 1))
    assert calls(graph) == ["add2 = matmul_add(x, w, c)", "sum3 = sum(add2)"]


def test_what_two_kernels_read_is_computed_once() -> None:
    m = Drawn()
    x, w, v = m.input("x", 8, 16), m.weight("w", 16, 16), m.weight("v", 16, 16)
    s = m.map("sigmoid", "sigmoid(a)", x)
    graph = m.model(m.matmul(s, w), m.matmul(s, v))
    assert calls(graph) == [
        "sigmoid0 = sigmoid(x)", "matmul1 = matmul(sigmoid0, w)", "matmul2 = matmul(sigmoid0, v)"
    ]  # fmt: skip


def test_an_input_that_two_sums_go_over_comes_from_memory_once() -> None:
    """The distances from an anchor to two others. What goes over fewer elements stays apart."""
    m = Drawn()
    anchor, near, far = (m.input(name, 8, 16) for name in ("x", "near", "far"))
    few = m.input("z", 16)

    def distance(other: str) -> str:
        return m.reduce("sum", m.map("sub", "(a - b) * (a - b)", anchor, other), 1)

    one, other = distance(near), distance(far)
    graph = m.model(m.map("sub", "a - b", one, other), m.map("tanh", "tanh(a)", few))
    assert calls(graph) == ["sub4 = sub_sum_sub_sum_sub(x, near, far)", "tanh5 = tanh(z)"]
    x = m.drawn()
    wanted = ((x["x"] - x["near"]) ** 2).sum(1, keepdims=True) - ((x["x"] - x["far"]) ** 2).sum(
        1, keepdims=True
    )
    check(graph, x, wanted, np.tanh(x["z"]))


def test_no_two_kernels_need_each_other() -> None:
    """The last node reads the first kernel's result by way of the second kernel: it goes to that one."""
    m = Drawn()
    x, w, v = m.input("x", 8, 16), m.weight("w", 16, 16), m.weight("v", 16, 16)
    first = m.matmul(x, w)
    graph = m.model(m.map("add", "a + b", first, m.matmul(first, v)))
    assert calls(graph) == ["matmul0 = matmul(x, w)", "add2 = matmul_add(matmul0, v)"]


def test_kernels_that_are_equal_up_to_names_are_one() -> None:
    m = Drawn()
    x = m.input("x", 8, 16)
    for layer in "abc":
        x = m.map("tanh", "tanh(a)", m.matmul(x, m.weight(layer, 16, 16)))
    graph = m.model(x)
    assert calls(graph) == [
        "tanh1 = matmul_tanh(x, a)", "tanh3 = matmul_tanh(tanh1, b)", "tanh5 = matmul_tanh(tanh3, c)"
    ]  # fmt: skip
    assert graph.kernels["matmul_tanh"].program.text == (
        "kernel matmul_tanh\nin x1, x2\nout y1\n"
        "x1 f32 [8, 16] heap\nx2 f32 [16, 16] heap\ny1 f32 [8, 16] heap\nt1 f32 [8, 16] heap\n"
        "8 16 t1[{0},{1}] = 0\n"
        "8 16 16 t1[{0},{1}] += x1[{0},{2}]*x2[{2},{1}]\n"
        "8 16 y1[{0},{1}] = tanh(t1[{0},{1}])\n"
    )


def test_a_kernel_has_few_lines() -> None:
    m = Drawn()
    x = m.input("x", 8, 16)
    for _ in range(60):
        x = m.map("f", "sin(a) * a", x)
    graph = m.model(x)
    assert [len(kernel.program.leaves) for kernel in graph.kernels.values()] == [40]
    assert len(graph.calls) == 3


def test_nodes_that_make_no_kernel_together_are_taken_apart() -> None:
    """A text has room for few known indices."""
    m = Drawn()
    table = np.random.default_rng(0).permutation(3000)
    x = m.input("x", 3000)

    def shuffled(b: p.Builder, x: p.Array) -> p.Array:
        return p.elementwise(b, "neg", p.gather(b, x, table, 0))

    y = m.node("", "shuffle", Kind.POINTWISE, (x,), (3000,), shuffled)
    graph = m.model(m.node("", "shuffle", Kind.POINTWISE, (y,), (3000,), shuffled))
    assert calls(graph) == ["shuffle0 = shuffle(x)", "shuffle1 = shuffle(shuffle0)"]
    inputs = m.drawn()
    check(graph, inputs, inputs["x"][table][table])


# ---------------------------------------------------------------------------- what lies in memory


def test_a_reshape_between_kernels_is_the_same_memory() -> None:
    m = Drawn()
    x, w, v = m.input("x", 2, 4, 16), m.weight("w", 16, 16), m.weight("v", 16, 16)
    h = m.reshape(m.matmul(m.reshape(x, 8, 16), w), 2, 4, 16)
    y = m.reshape(m.matmul(m.reshape(h, 8, 16), v), 2, 4, 16)
    graph = m.model(y)
    assert calls(graph) == ["matmul1 = matmul(x, w)", "reshape5 = matmul(matmul1, v)"]
    assert graph.tensors["x"].shape == graph.tensors["reshape5"].shape == (2, 4, 16)
    assert graph.kernels["matmul"].program.buffer_of["x1"].dims[0].size == 8
    inputs = m.drawn()
    check(graph, inputs, inputs["x"] @ m.constants["w"] @ m.constants["v"])


def test_an_output_that_is_a_view_is_written_by_the_kernel_that_computes_it() -> None:
    m = Drawn()
    x, w = m.input("x", 8, 16), m.weight("w", 16, 4)
    y = m.matmul(x, w)
    graph = m.model(m.transpose(y, 1, 0), y, m.reshape(x, 128), "x", "w")
    assert calls(graph) == ["matmul0, transpose1 = matmul(x, w)", "reshape2 = reshape(x)"]
    inputs = m.drawn()
    y = inputs["x"] @ m.constants["w"]
    check(graph, inputs, y.T, y, inputs["x"].ravel(), inputs["x"], m.constants["w"])


def test_each_kernel_reads_through_its_own_view() -> None:
    m = Drawn()
    x, w = m.input("x", 8, 16), m.weight("w", 8, 4)
    left = m.slice(m.transpose(x, 1, 0), 0, 8)
    graph = m.model(m.matmul(left, w), m.reduce("sum", m.map("tanh", "tanh(a)", left), 0))
    assert calls(graph) == ["matmul2 = matmul(x, w)", "sum4 = tanh_sum(x)"]
    inputs = m.drawn()
    half = inputs["x"].T
    check(graph, inputs, half @ m.constants["w"], np.tanh(half).sum(0, keepdims=True))


# ---------------------------------------------------------------------------- what is worked out beforehand


def test_what_is_made_of_constants_alone_is_worked_out_once() -> None:
    m = Drawn()
    x, w, scale = m.input("x", 8, 16), m.weight("w", 16, 16), m.weight("scale", 16, 1)
    graph = m.model(m.matmul(x, m.map("mul", "a * b", m.transpose(w, 1, 0), scale)))
    assert calls(graph) == ["matmul2 = matmul(x, mul1)"]
    assert list(graph.constants) == ["mul1"]
    np.testing.assert_allclose(graph.constants["mul1"], m.constants["w"].T * m.constants["scale"], rtol=1e-6)
    assert graph.constants["mul1"].dtype == np.float32


def test_what_hangs_on_constants_alone_within_a_node_is_a_constant_too() -> None:
    m = Drawn()
    x, w, v = m.input("x", 8, 16), m.weight("w", 16, 16), m.constant("v", np.arange(16.0, dtype=np.float32))
    y = m.matmul(x, w)
    graph = m.model(m.map("norm", "a * rsqrt(b + 0.5)", y, v))
    (kernel,) = graph.kernels.values()
    assert "rsqrt" not in kernel.program.text and len(kernel.program.inputs) == 3
    inputs = m.drawn()
    check(graph, inputs, inputs["x"] @ m.constants["w"] / np.sqrt(m.constants["v"] + 0.5))


def test_what_takes_long_to_work_out_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    m = Drawn()
    x, w, scale = m.input("x", 4), m.weight("w", 4, 6), m.weight("scale", 4, 1)
    graph = m.model(m.map("add", "a + b", x, m.reduce("sum", m.map("mul", "a * b", w, scale), 1)))
    monkeypatch.setattr("dojo_core.graph.folding.STEPS", 10)
    again = m.model(*(graph.label(name) for name in graph.outputs))
    for name, values in graph.constants.items():
        np.testing.assert_allclose(again.constants[name], values, rtol=1e-5)


def test_a_weight_lies_as_its_product_reads_it() -> None:
    """Neighbours in the result are neighbours in the weight."""
    m = Drawn()
    x, w = m.input("x", 8, 16), m.weight("w", 4, 16)
    graph = m.model(m.matmul(x, w, "mk,nk->mn"))
    assert calls(graph) == ["matmul0 = matmul(x, w_packed)"]
    np.testing.assert_array_equal(graph.constants["w_packed"], m.constants["w"].T)
    assert "x1[{0},{2}]*x2[{2},{1}]" in graph.kernels["matmul"].program.text
    inputs = m.drawn()
    check(graph, inputs, inputs["x"] @ m.constants["w"].T)


def test_an_expanded_constant_takes_no_memory() -> None:
    m = Drawn()
    x, row = m.input("x", 512, 256), m.weight("row", 1, 256)
    graph = m.model(m.map("add", "a + b", x, m.expand(row, 512, 256)))
    assert calls(graph) == ["add1 = add(x, row)"]


def test_numbers_stand_in_the_text_and_known_values_of_a_node_are_constants() -> None:
    m = Drawn()
    x, two = m.input("x", 40), m.constant("two", np.float32(2))
    waves = np.sin(np.arange(40))

    def emit(b: p.Builder, x: p.Array, scale: p.Array) -> p.Array:
        return p.formula(b, "x * scale + w", x=x, scale=scale, w=p.constant(b, waves, "f32", "waves"))

    graph = m.model(m.node("", "wave", Kind.POINTWISE, (x, two), (40,), emit))
    assert calls(graph) == ["wave0 = wave(x, wave0_waves)"]
    assert "t1[{0}] = x1[{0}]*2" in graph.kernels["wave"].program.text
    inputs = m.drawn()
    check(graph, inputs, inputs["x"] * 2 + waves)


def test_constants_of_a_view_that_two_kernels_read_through_are_the_same_in_both() -> None:
    """Whatever else the kernels have of that name."""
    m = Drawn()
    x, y = m.input("x", 5000), m.input("y", 5000)
    first, second = np.random.default_rng(1).integers(0, 5000, (2, 5000))

    def by(*indices: Any) -> Any:
        def emit(b: p.Builder, x: p.Array) -> p.Array:
            for each in indices:
                x = p.gather(b, x, p.constant(b, each, "i64", "at"), 0)
            return x

        return emit

    swapped = m.node("", "view", Kind.VIEW, (x,), (5000,), by(first, second))
    other = m.node("", "gather", Kind.COPY, (y,), (5000,), by(second))
    graph = m.model(m.map("add", "a + b", other, swapped), m.reduce("sum", m.map("neg", "-a", swapped), 0))
    inputs = m.drawn()
    turned = inputs["x"][first][second]
    check(graph, inputs, inputs["y"][second] + turned, [-turned.astype(float).sum()])


def test_token_numbers_within_a_domain_are_looked_up_as_they_are() -> None:
    m = Drawn()
    ids, table = m.input("ids", 5, dtype="i64", domain=(0, 9)), m.weight("rows", 10, 8)
    row = m.node("", "gather", Kind.COPY, (table, ids), (5, 8), lambda b, t, i: p.gather(b, t, i, 0))
    graph = m.model(m.map("tanh", "tanh(a)", row))
    assert calls(graph) == ["tanh1 = gather_tanh(rows, ids)"]
    assert "8 y1[{0},{1}] = tanh(x1[x2[{0}],{1}])" in graph.kernels["gather_tanh"].program.text
    inputs = m.drawn()
    check(graph, inputs, np.tanh(m.constants["rows"][inputs["ids"]]))


def test_nothing_is_left_of_what_no_output_needs() -> None:
    m = Drawn()
    x, empty = m.input("x", 8), m.constant("empty", np.zeros((0, 8), np.float32))
    m.map("exp", "exp(a)", x)
    graph = m.model(m.map("neg", "-a", x), m.map("neg", "-a", empty))
    assert calls(graph) == ["neg1 = neg(x)"]
    inputs = m.drawn()
    check(graph, inputs, -inputs["x"], np.zeros((0, 8)))


# ---------------------------------------------------------------------------- names, and what is refused


def test_names_of_models_become_names_of_the_text() -> None:
    m = Drawn()
    long = "encoder/" + "layer." * 40 + "output"
    names = [m.input("int", 4), m.input("in", 4), m.input("/a:0", 4), m.input("a_0", 4), m.input(long, 4)]
    graph = m.model(m.map("add", "a + b + c", *names[:3]), m.map("add", "a * b", *names[3:]))
    assert graph.inputs[:4] == ("int", "in_", "a_0_2", "a_0")
    assert re.fullmatch(r"encoder_layer_\w{10,40}_output", graph.inputs[4]) and len(graph.inputs[4]) <= 60
    assert [graph.label(name) for name in graph.inputs] == names
    inputs = m.drawn()
    first, second, third, fourth, fifth = (inputs[name] for name in names)
    check(graph, inputs, first + second + third, fourth * fifth)


def test_kernels_are_called_after_what_they_compute() -> None:
    m = Drawn()
    x, w = m.input("x", 8, 16), m.weight("w", 16, 16)
    for operator in ("aten.sub.Tensor", "Sqrt", "FastGelu", "some_thing_long"):
        x = m.map(operator, "sin(a)", x)
    y = m.map("aten.relu.default", "max(a, 0)", m.matmul(x, w))
    graph = m.model(y)
    assert list(graph.kernels) == ["matmul_relu"]  # sub_sqrt_fastgelu_some_thing_long_matmul_relu is long
    short = m.model("Sqrt1")
    assert list(short.kernels) == ["sub_sqrt"]


X = Tensor("x", "f32", (4,))


def node(name: str, inputs: str, output: str, shape: tuple[int, ...] = (4,), **more: Any) -> Node:
    made = (Tensor(output, "f32", shape),)
    emit = more.pop("emit", lambda b, arrays: [p.elementwise(b, "neg", arrays[0])])
    return Node(name, "Neg", Kind.POINTWISE, (inputs,), made, emit)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node("n", "z", "y")], "n (Neg) reads z, which nothing gives."),
        ([node("n", "y", "z"), node("m", "z", "y")], "n (Neg) reads what is made of its own output."),
        ([node("n", "x", "y"), node("n", "x", "z")], "Two nodes have the name n: give each its own."),
        ([node("n", "x", "y"), node("m", "x", "y")], "Two tensors have the name y: give each its own."),
        ([node("n", "x", "y", (5,))], "n (Neg) gives f32 [4] for y f32 [5]."),
        ([node("n", "x", "y", (-1,))], "y has the shape [-1]: sizes are whole numbers."),
        ([node("n", "x", "y", emit=lambda b, a: [])], "n (Neg) gives 0 arrays and says 1."),
        (
            [node("n", "x", "y", emit=lambda b, a: [p.transpose(b, a[0], [1])])],
            "n (Neg): There is no axis 1 in an array of 1: take one from -1 to 0.",
        ),
        ([node("n", "x", "z")], "Nothing gives the output y: name a tensor of the model."),
    ],
)
def test_what_does_not_fit_together_is_told(nodes: list[Node], said: str) -> None:
    with pytest.raises(GraphError) as refused:
        build("model", [X], nodes, ["y"])
    assert str(refused.value) == said


def test_a_graph_made_by_hand_is_checked_too() -> None:
    m = Drawn()
    x, w = m.input("x", 8, 16), m.weight("w", 16, 4)
    graph = m.model(m.map("neg", "-a", m.matmul(x, w)), m.matmul(x, w))
    first, second = graph.calls
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"calls": (first, first)}, "matmul_neg gives neg1, which there is already"),
        ({"calls": (replace(first, inputs=("x", "matmul2")), second)}, "wants f32 [16, 4] for its x2"),
        ({"calls": (first,)}, "Nothing gives the output matmul2"),
        ({"calls": (replace(first, kernel="conv"), second)}, "names the kernel conv"),
        ({"calls": (replace(first, inputs=("x",)), second)}, "has 2 inputs and is called with 1"),
        ({"inputs": ("x", "x")}, "The input x stands twice"),
        ({"constants": {"w": m.constants["w"].T}}, "it is to be float32 [16, 4]"),
    ]
    for wrong, said in wrongs:
        with pytest.raises(GraphError, match=re.escape(said)):
            replace(graph, **wrong)


def test_a_long_chain_of_nodes_in_any_order() -> None:
    nodes = [node(f"n{k}", f"t{k}" if k else "x", f"t{k + 1}") for k in range(3000)]
    assert [n.name for n in in_order(nodes[::-1], {"x"})] == [n.name for n in nodes]
