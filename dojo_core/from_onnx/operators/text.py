"""What is asked of words as numbers."""

from __future__ import annotations

import numpy as np

from dojo_core import primitives as p
from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import Numbers, Refusal
from dojo_core.primitives.array import Array


@operator("TfIdfVectorizer")
def tf_idf(c: Call) -> Array:
    """How often each n-gram of a pool occurs: every one is compared at every place."""
    pool = c.attribute("pool_int64s")
    if not pool:
        raise Refusal(
            "Its pool is of strings, and a kernel computes with numbers.", "Number the words outside."
        )
    x, single = c.array(0), c.rank(0) == 1
    x = c.unsqueeze(x, [0]) if single else x
    rows, length = x.shape
    starts = [*c.attribute("ngram_counts"), len(pool)]
    counts: list[Array] = []
    for n in range(1, len(starts)):
        grams = (starts[n] - starts[n - 1]) // n
        if not grams:
            continue
        tokens = np.array(pool[starts[n - 1] : starts[n]]).reshape(grams, n)
        counts.append(_counted(c, x, tokens, n, rows, length, grams))
    columns = list(c.attribute("ngram_indexes"))
    total = c.concat(counts, 1)
    if total.shape[1] != len(columns):
        raise Refusal("Its ngram_indexes are not as many as its n-grams.", "Mend the model.")
    order = np.array([columns.index(k) if k in columns else -1 for k in range(max(columns) + 1)])
    result = p.gather(c.b, c.b.copy(total, whole=True), order, 1)
    weights, mode = c.attribute("weights"), c.attribute("mode")
    if mode == "TF" or not weights:
        result = c.convert(c.formula("x > 0", x=result), "f32") if mode == "IDF" else result
    else:
        by_column = p.constant(c.b, np.array([weights[k] for k in order], np.float32))
        result = c.mul(c.convert(c.map(">", result, 0), "f32") if mode == "IDF" else result, by_column)
    return c.squeeze(result, [0]) if single else result


def _counted(c: Call, x: Array, tokens: Numbers, n: int, rows: int, length: int, grams: int) -> Array:
    """[rows, grams], in f32."""
    total: Array | None = None
    if not c.attribute("min_gram_length") <= n <= c.attribute("max_gram_length"):
        return c.number(0, "f32", (rows, grams))
    for skip in range(c.attribute("max_skip_count") + 1 if n > 1 else 1):
        places = length - (n - 1) * (skip + 1)
        if places < 1:
            continue
        shape = (rows, grams, places)
        same: Array | None = None
        for j in range(n):
            word = c.unsqueeze(c.places(x, 1, j * (skip + 1), places), [1])
            gram = c.reshape(p.constant(c.b, tokens[:, j], x.dtype), (1, grams, 1))
            here = c.broadcast(c.map("==", word, gram), shape)
            same = here if same is None else c.both(same, here)
        assert same is not None
        found = c.reduce("+", c.convert(c.broadcast(same, shape), "f32"), [2], False)
        total = found if total is None else c.add(total, found)
    return c.number(0, "f32", (rows, grams)) if total is None else total
