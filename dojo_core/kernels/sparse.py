"""sparse24, blocksparse: products with weights whose pattern of zeros is fixed when the kernel is compiled.

The pattern is a constant table of the program; the weights are stored without their zeros. Patterns are
drawn from a seed, so that a shape always gives the same program.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import numpy as np

from dojo_core.kernels.kernel import Array, Kernel, Shape, executed_flops, kernel_text
from dojo_core.program.functions import KERNEL_LIMITS
from dojo_core.program.tables import Table
from dojo_core.program.text import parse


def _chosen(count: int, of: int, rng: random.Random) -> list[int]:
    """``count`` different numbers below ``of``, in order."""
    return sorted(sorted(range(of), key=lambda _: rng.random())[:count])


def _table(name: str, dims: tuple[int, ...], of: int) -> Table:
    """Rows of the last dimension hold different numbers below ``of``, in order."""
    rng = random.Random(repr((name, dims, of)))
    rows = (_chosen(dims[-1], of, rng) for _ in range(math.prod(dims[:-1])))
    return Table("idx", "u8" if of <= 256 else "i32", dims, tuple(v for row in rows for v in row))


def _with_table(text: str, table: Table) -> str:
    head, out, rest = text.partition("out y\n")
    return f"{head}{out}{table}\n{rest}"


def _fits_in_a_table(name: str, cells: int, remedy: str) -> str:
    limit = KERNEL_LIMITS["table values"]
    if cells <= limit:
        return ""
    return f"The pattern of {name} would have {cells:,} entries, more than {limit:,}: {remedy}."


# ---------------------------------------------------------------------------- 2:4


def _pattern24(shape: Shape) -> Table:
    _, k, n, c = shape
    return _table("idx", (n // c, k // 4, 2), 4)


def _sparse24_text(shape: Shape) -> str:
    m, k, n, c = shape
    groups, quads = n // c, k // 4
    body = f"""
        {m} {groups} {c} y[{{0}},{{1}}*{c}+{{2}}] = 0
        {m} {groups} {c} {quads} 2 y[{{0}},{{1}}*{c}+{{2}}] += \
x[{{0}},idx[{{1}},{{3}},{{4}}]+{{3}}*4]*w[{{3}},{{4}},{{1}}*{c}+{{2}}]
    """
    arrays = {"x": (m, k), "w": (quads, 2, n), "y": (m, n)}
    return _with_table(kernel_text("sparse24", arrays, "x, w", "y", body), _pattern24(shape))


def _sparse24(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    _, k, n, c = shape
    pattern = np.reshape(_pattern24(shape).values, (n // c, k // 4, 2))
    dense = np.zeros((k // 4, 4, n))
    for group in range(n // c):
        columns = slice(group * c, (group + 1) * c)
        for quad in range(k // 4):
            dense[quad, pattern[group, quad], columns] = inputs["w"][quad, :, columns]
    return {"y": inputs["x"] @ dense.reshape(k, n)}


def _sparse24_fits(shape: Shape) -> str:
    _, k, n, c = shape
    if k % 4:
        return f"The second size of sparse24, K={k}, is a multiple of 4."
    if n % c:
        return f"The last size of sparse24, C={c}, divides the third, N={n}: so many columns share a pattern."
    return _fits_in_a_table("sparse24", n // c * k // 2, "let more columns share a pattern (a larger C)")


# ---------------------------------------------------------------------------- blocks


def _blocks(shape: Shape) -> Table:
    _, k, n, b, z = shape
    return _table("blocks", (n // b, z), k // b)


def _blocksparse_text(shape: Shape) -> str:
    m, k, n, b, z = shape
    columns, y = n // b, f"y[{{0}},{{1}}*{b}+{{2}}]"
    body = f"""
        {m} {columns} {b} {y} = 0
        {m} {columns} {b} {z} {b} {y} += x[{{0}},idx[{{1}},{{3}}]*{b}+{{4}}]*w[{{1}},{{3}},{{4}},{{2}}]
    """
    arrays = {"x": (m, k), "w": (columns, z, b, b), "y": (m, n)}
    return _with_table(kernel_text("blocksparse", arrays, "x, w", "y", body), _blocks(shape))


def _blocksparse(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    m, k, n, b, z = shape
    pattern = np.reshape(_blocks(shape).values, (n // b, z))
    x = inputs["x"].reshape(m, k // b, b)
    gathered = x[:, pattern]  # m, n/b, z, b
    y = np.einsum("mjzr,jzrc->mjc", gathered, inputs["w"], optimize=True)
    return {"y": y.reshape(m, n)}


def _blocksparse_fits(shape: Shape) -> str:
    _, k, n, b, z = shape
    if k % b or n % b:
        return f"The blocks of blocksparse, B={b}, cut K={k} and N={n} into equal parts."
    if z > k // b:
        return f"Of the {k // b} blocks in a column at most {k // b} are kept, not Z={z}."
    return _fits_in_a_table("blocksparse", n // b * z, "take larger blocks")


KERNELS = (
    Kernel(
        name="sparse24",
        title="2:4 sparse matrix product",
        formula="y = x · w, 2 of 4 rows of w kept, C columns alike",
        group="contraction",
        parameters=("M", "K", "N", "C"),
        shapes=((768, 1024, 1024, 64),),
        text=_sparse24_text,
        result=_sparse24,
        flops=lambda shape: executed_flops(parse(_sparse24_text(shape))),
        fits=_sparse24_fits,
    ),
    Kernel(
        name="blocksparse",
        title="Block-sparse matrix product",
        formula="y = x · w, Z blocks of B×B kept in each column of blocks of w",
        group="contraction",
        parameters=("M", "K", "N", "B", "Z"),
        shapes=((768, 1024, 1024, 16, 16),),
        text=_blocksparse_text,
        result=_blocksparse,
        flops=lambda shape: executed_flops(parse(_blocksparse_text(shape))),
        fits=_blocksparse_fits,
    ),
)
