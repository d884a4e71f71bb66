"""Products of matrices and their like."""

from __future__ import annotations

import string

from dojo_core.from_onnx.arrays import joint
from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import FLOATS, Refusal
from dojo_core.primitives.array import Array

LETTERS = string.ascii_letters


def product(c: Call, a: Array, b: Array, dtype: str | None = None) -> Array:
    """NumPy's matmul: vectors are rows or columns, the axes before are broadcast."""
    if not a.shape or not b.shape:
        raise Refusal("It multiplies a scalar.", "Use Mul.")
    rank = max(len(a.shape), len(b.shape), 2)
    batch = string.ascii_uppercase[: rank - 2]
    left = batch[len(batch) - (len(a.shape) - 2) :] + "ik" if len(a.shape) > 1 else "k"
    right = batch[len(batch) - (len(b.shape) - 2) :] + "kj" if len(b.shape) > 1 else "k"
    wanted = batch + ("i" if len(a.shape) > 1 else "") + ("j" if len(b.shape) > 1 else "")
    return c.contract(f"{left},{right}->{wanted}", a, b, dtype=dtype)


@operator("MatMul")
def matmul(c: Call) -> Array:
    return product(c, c.computed(0), c.computed(1))


@operator("Gemm")
def gemm(c: Call) -> Array:
    left, right = ("ki" if c.flag("transA") else "ik"), ("jk" if c.flag("transB") else "kj")
    a, b = c.computed(0), c.computed(1)
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise Refusal("It takes two matrices.", "Mend the model.")
    result = c.contract(f"{left},{right}->ij", a, b)
    alpha, beta = float(c.attribute("alpha", 1.0)), float(c.attribute("beta", 1.0))
    floating = result.dtype in FLOATS
    if alpha != 1:
        result = c.mul(result, alpha if floating else int(alpha))
    if c.has(2):
        third = c.computed(2)
        result = c.add(result, third if beta == 1 else c.mul(third, beta if floating else int(beta)))
    return result


@operator("Einsum")
def einsum(c: Call) -> Array:
    equation = str(c.attribute("equation")).replace(" ", "")
    arrays = c.arrays()
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise Refusal(
            f"Its equation {equation} names {len(terms)} tensors, and there are {len(arrays)}.",
            "Mend the model.",
        )
    free = [letter for letter in LETTERS if letter not in equation]
    longest = max(
        (len(a.shape) - len(t.replace("...", "")) for t, a in zip(terms, arrays, strict=True) if "..." in t),
        default=0,
    )
    dots = "".join(free[:longest])
    named = []
    for term, array in zip(terms, arrays, strict=True):
        width = len(array.shape) - len(term.replace("...", ""))
        named.append(term.replace("...", dots[len(dots) - width :] if width else ""))
        if len(named[-1]) != len(array.shape):
            raise Refusal(f"Its equation {equation} does not fit {list(array.shape)}.", "Mend the model.")
    if arrow:
        wanted = right.replace("...", dots)
    else:
        once = sorted(letter for letter in set("".join(terms)) - {"."} if "".join(terms).count(letter) == 1)
        wanted = dots + "".join(once)
    return c.contract(f"{','.join(named)}->{wanted}", *arrays, dtype=joint([a.dtype for a in arrays]))


@operator("Det")
def determinant(c: Call) -> Array:
    """By the first row's minors, for small matrices."""
    x, shape = c.computed(0), c.shape(0)
    n = shape[-1] if len(shape) >= 2 else 0
    if len(shape) < 2 or shape[-2] != n:
        raise Refusal(f"It takes square matrices, not {list(shape)}.", "Mend the model.")
    if n > 4:
        raise Refusal(
            f"A determinant of {n} by {n} asks for pivots that hang on data.", "Compute it outside."
        )

    def cell(row: int, column: int) -> Array:
        rank = len(shape)
        part = c.places(c.places(x, rank - 2, row, 1), rank - 1, column, 1)
        return c.squeeze(part, [rank - 2, rank - 1])

    def minor(row: int, columns: tuple[int, ...]) -> Array:
        if row == n - 1:
            return cell(row, columns[0])
        total: Array | None = None
        for k, column in enumerate(columns):
            term = c.mul(cell(row, column), minor(row + 1, columns[:k] + columns[k + 1 :]))
            total = term if total is None else c.map("-" if k % 2 else "+", total, term)
        assert total is not None
        return total

    return minor(0, tuple(range(n)))
