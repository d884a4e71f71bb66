"""PyTorch eager on the lines of a text: what it computes is what they mean; its time is kept and told."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from dojo_core.bench import eager
from dojo_core.bench.baselines import SCRIPTS
from dojo_core.bench.roofline import Question
from dojo_core.measure.records import Records
from dojo_core.program.text import parse
from dojo_core.program.tree import Program


def program(buffers: str, lines: str, inputs: str, outputs: str = "y") -> Program:
    declared = "\n".join(f"{each.strip()} heap" for each in buffers.split(";"))
    return parse(f"kernel k\nin {inputs}\nout {outputs}\n{declared}\n{lines}")


SOFTMAX = program(
    "x f32 [6, 8]; y f32 [6, 8]; m f32 [6]; d f32 [6, 8]; e f32 [6, 8]; s f32 [6]",
    """6 m[{0}] = -inf
| 8 m[{0}] max= x[{0},{1}]
6 8 d[{0},{1}] = x[{0},{1}] - m[{0}]
| | e[{0},{1}] = exp(d[{0},{1}])
6 s[{0}] = 0
| 8 s[{0}] += e[{0},{1}]
6 8 y[{0},{1}] = e[{0},{1}] / s[{0}]""",
    "x",
)
BIASED = (
    program(  # a product by a turned matrix, with its bias, to the power of two, and a sum of its columns
        "x f32 [6, 8]; w f32 [5, 8]; b f32 [5]; y f32 [6, 5]; z f32 [5, 1]; p f32 [6, 5]; t f32 [6, 5]",
        """6 5 p[{0},{1}] = 0
6 5 8 p[{0},{1}] += x[{0},{2}]*w[{1},{2}]
6 5 t[{0},{1}] = p[{0},{1}] + b[{1}]
6 5 y[{0},{1}] = t[{0},{1}]*t[{0},{1}]
5 z[{0},0] = b[{0}]
5 6 z[{0},0] += max(y[{1},{0}],0.5)""",
        "x, w, b",
        "y, z",
    )
)
CONVOLUTION = program(  # padded, strided, begun with its bias
    "x f32 [3, 8, 8]; w f32 [4, 3, 3, 3]; b f32 [4]; y f32 [4, 4, 4]; q f32 [3, 10, 10]; c f32 [4, 4, 4]",
    """3 10 10 q[{0},{1},{2}] = 0
3 8 8 q[{0},{1}+1,{2}+1] = x[{0},{1},{2}]
4 4 4 c[{0},{1},{2}] = b[{0}]
4 4 4 3 3 3 c[{0},{1},{2}] += q[{3},{1}*2+{4},{2}*2+{5}]*w[{0},{3},{4},{5}]
4 4 4 y[{0},{1},{2}] = max(c[{0},{1},{2}],0)""",
    "x, w, b",
)
HEADS = program(  # as attention has them: each head's columns of the rows, read and written in place
    "x f32 [6, 2, 4]; k f32 [6, 2, 4]; y f32 [6, 2, 6]",
    """2 6 6 y[{1},{0},{2}] = 0
2 6 6 4 y[{1},{0},{2}] += x[{1},{0},{3}]*k[{2},{0},{3}]""",
    "x, k",
)

SCAN = program("x f32 [8]; y f32 [8]; t f32 []", "8 t[] = x[{0}]\n| y[{0}] = t[]*2", "x")


@pytest.mark.parametrize("start", [SOFTMAX, BIASED, CONVOLUTION, HEADS])
def test_both_variants_compute_what_the_lines_mean(
    start: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: make setup brings it")
    monkeypatch.syspath_prepend(str(SCRIPTS))
    eager_of = importlib.import_module("torch_text").Eager

    eager.write(tmp_path, start)
    job = json.loads((tmp_path / "job.json").read_text())
    given = {name: torch.from_numpy(np.load(tmp_path / f"in.{name}.npy")) for name in start.inputs}
    calls = []
    for whole in (False, True):
        made = eager_of(job, whole)
        results = made(given)
        calls.append(len(made.steps))
        for name, result in zip(
            start.outputs, results if isinstance(results, tuple) else (results,), strict=True
        ):
            expected = np.load(tmp_path / f"out.{name}.npy")
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert calls[1] < calls[0] or start is HEADS, "several lines by one function"


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (program("x f32 [8]; i i64 [4]; y f32 [4]", "domain i 0 7\n4 y[{0}] = x[i[{0}]]", "x, i"), "index"),
        (program("x f32 [8]; y f32 [8]", "8 y[{0}] = x[{0}] + {0}", "x"), "iterators"),
        (program("x u8 [8]; y u8 [8]", "8 y[{0}] = max(x[{0}],1)", "x"), "arrays of u8"),
    ],
)
def test_what_has_no_counterpart_is_said(start: Program, said: str, tmp_path: Path) -> None:
    with pytest.raises(eager.NoCounterpart, match=said):
        eager.write(tmp_path, start)


@pytest.mark.thorough  # what it computes: above; processes that others are timed in: test_bench.py
def test_a_time_of_pytorch_is_taken_once_and_kept() -> None:
    pytest.importorskip("torch", reason="torch is not installed: make setup brings it")
    with Records(":memory:") as records:
        assert eager.doubtful(records, SOFTMAX) and eager.known(records, SOFTMAX) is None
        eager.timed(records, [Question(start, None, "", 0.0) for start in (SOFTMAX, SCAN, HEADS)])
        assert eager.known(records, SCAN) is None, "no counterpart; the next one has its turn"
        for start in (SOFTMAX, HEADS):
            seen = eager.known(records, start)
            assert seen is not None and 0 < seen.seconds < 1 and seen.source.startswith("PyTorch 2")


def test_without_pytorch_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "version", lambda: "")
    with Records(":memory:") as records:
        assert not eager.doubtful(records, SOFTMAX)
        eager.timed(records, [Question(SOFTMAX, None, "", 0.0)])
        assert eager.known(records, SOFTMAX) is None
