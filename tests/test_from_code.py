"""Texts of other languages: what becomes of each, and why others are refused."""

import math
import re

import numpy as np
import pytest

from dojo_core.faults import text_fault
from dojo_core.from_code.recognise import kind_of
from dojo_core.from_code.source import sizes_of
from dojo_core.from_code.translate import translate
from dojo_core.program.expressions import TextError
from dojo_core.program.interpret import interpret

RMS = """
# x[m, n], gamma[n]
def rmsnorm(x, gamma, eps=1e-6):
    return x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps) * gamma
"""
ATTENTION = """
import torch.nn.functional as F

def attention(q, k, v):
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return F.softmax(s, dim=-1) @ v
"""
SCRIPT = """
import numpy as np
x = np.random.rand(6, 8)
w = np.random.randn(8)
z = x * w
y = z - z.mean(axis=1, keepdims=True)
"""
HELPER = """
def relu(x):
    return np.maximum(x, 0)

def mlp(x, w1, w2):
    h = x
    for w in [w1, w2]:
        h = relu(h @ w)
    return h
"""
GEMM = """
void gemm(int M, int N, int K, const float *A, const float *B, float *C) {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      C[i*N + j] = 0;
      for (int k = 0; k < K; k++) C[i*N + j] += A[i*K + k] * B[k*N + j];
    }
}
"""
GEMM_IN_PLACE = """
void gemm(int M, int N, int K, float alpha, float beta, float A[M][K], float B[K][N], float C[M][N]) {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      float acc = 0.f;
      for (int k = 0; k < K; k++) acc += A[i][k] * B[k][j];
      C[i][j] = alpha * acc + beta * C[i][j];
    }
}
"""
SOFTMAX = """
#include <math.h>
#define M 4
#define N 6 /* columns */
void softmax(const float x[M][N], float y[M][N]) {
  for (int i = 0; i < M; ++i) {
    float m = -INFINITY, s = 0;
    for (int j = 0; j < N; ++j) if (x[i][j] > m) m = x[i][j];  // the largest
    for (int j = 0; j < N; ++j) { y[i][j] = expf(x[i][j] - m); s += y[i][j]; }
    for (int j = 0; j < N; ++j) y[i][j] /= s;
  }
}
"""
SOLVE = """
void solve(int n, double *L, double *x, double *b) {
  for (int i = 0; i < n; i++) {
    double s = b[i];
    for (int j = 0; j < i; j++) s -= L[i*n + j] * x[j];
    x[i] = s / (L[i*n + i] + 4);
  }
}
"""
JACOBI = """
void jacobi(int n, float *A, float *B) {
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < n - 1; j++)
      B[i*n + j] = 0.25f * (A[i*n + j - 1] + A[i*n + j + 1] + A[(i + 1)*n + j] + A[(i - 1)*n + j]);
}
"""
LOOPS = """
import math
def softmax(x):
    m, n = x.shape
    y = np.zeros((m, n))
    for i in range(m):
        largest = -np.inf
        total = 0.0
        for j in range(n):
            largest = max(largest, x[i, j])
        for j in range(n):
            y[i][j] = math.exp(x[i, j] - largest)
            total += y[i][j]
        for j in range(n):
            y[i][j] /= total
    return y
"""
INLINE = """
static inline float relu(float x) { return x > 0 ? x : 0; }
void f(int n, float *x, float *y) { for (int i = n - 1; i >= 0; i--) y[i] = relu(x[i]) + 1; }
"""


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def solved(lower, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / (lower[i, i] + 4)
    return x


def stencil(a, before):
    b = before.copy()
    whole = (a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]) / 4
    b[1:, 1 : a.shape[1] - 1] = whole[:, : b.shape[1] - 1]
    return b


# A text, sizes, and what it computes of the program's inputs in their order.
TEXTS = {
    "expression": (
        "np.exp(x - x.max(axis=1, keepdims=True))",
        "m=3 n=5",
        lambda x: np.exp(x - x.max(1)[:, None]),
    ),
    "einsum alone": ("mk,kn->mn", "m=3 k=4 n=5", lambda a, b: a @ b),
    "einsum without an arrow": ("ij,jk", "i=3 j=4 k=5", lambda a, b: a @ b),
    "einsum of NumPy": (
        "np.einsum('bij,bkj->bik', x, y)",
        "m=2 n=3 k=4 h=5",
        lambda x, y: x @ y.swapaxes(1, 2),
    ),
    "a layer": ("softmax(x @ w + b, axis=-1)", "m=3 n=4 k=5", lambda x, w, b: softmax(x @ w + b)),
    "a norm": (RMS, "m=3 n=5", lambda x, g: x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6) * g),
    "attention": (ATTENTION, "m=3 n=4 k=5 h=2", lambda q, k, v: softmax(q @ k.T / 2) @ v),
    "a script with shapes": (SCRIPT, "", lambda x, w: x * w - (x * w).mean(1, keepdims=True)),
    "a helper and a loop": (
        HELPER,
        "m=3 n=4 k=5 h=2",
        lambda x, v, w: np.maximum(np.maximum(x @ v, 0) @ w, 0),
    ),
    "truth as a factor": ("(x > 0) * x", "m=3 n=5", lambda x: np.maximum(x, 0)),
    "softmax of truth": ("softmax(x > 0)", "m=3 n=5", lambda x: softmax((x > 0).astype(float))),
    "where": ("np.where(x > 0, x, 0.1*x)", "m=3 n=5", lambda x: np.maximum(x, 0.1 * x)),
    "slices": ("x[:, ::2] - x[:, 1::2]", "m=3 n=6", lambda x: x[:, ::2] - x[:, 1::2]),
    "new axes": (
        "np.sqrt(((x[:, None, :] - y[None])**2).sum(-1))",
        "m=3 n=4 k=5",
        lambda x, y: np.linalg.norm(x[:, None] - y[None], axis=-1),
    ),
    "a reshape": ("# x[8, 16]\nx.reshape(8, 4, 4).sum(axis=(1, 2))", "", lambda x: x.sum(1)),
    "an index": ("w[i]  # w[v, d], i[n] i32", "v=3 d=4 n=5", lambda w, i: w[i.astype(int)]),
    "PyTorch's max": (
        "x - x.max(dim=-1, keepdim=True).values",
        "m=3 n=5",
        lambda x: x - x.max(1, keepdims=True),
    ),
    "PyTorch's variance": ("x.var(dim=1)", "m=3 n=5", lambda x: x.var(1, ddof=1)),
    "a triangle": ("np.tril(x) @ y", "m=4 n=4 k=5", lambda x, y: np.tril(x) @ y),
    "floors and remainders": ("x // 2 + x % 3", "m=3 n=5", lambda x: x // 2 + x % 3),
    "a running sum": ("x.cumsum(axis=1)[:, ::-1]", "m=3 n=5", lambda x: x.cumsum(1)[:, ::-1]),
    "places": ("x.argmax(axis=1)", "m=3 n=5", lambda x: x.argmax(1)),
    "GELU": (
        "F.gelu(x @ w)",
        "m=3 n=4 k=5",
        lambda x, w: (x @ w) * (1 + np.vectorize(math.erf)((x @ w) / 2**0.5)) / 2,
    ),
    "loops over elements": (LOOPS, "m=3 n=5", softmax),
    "loops alone": ("for i in range(n):\n    y[i] = a*x[i] + y[i]", "n=5", lambda y, x, a: a * x + y),
    "a sum in a loop": (
        "def f(x):\n    s = 0\n    for i in range(len(x)):\n        s += x[i]**2 / len(x)\n    return s",
        "x_size0=5",
        lambda x: (x**2).mean(),
    ),
    "names of Python": ("lambda_ = x * 2\nkernel = lambda_ + inp\nkernel", "m=3 n=5", lambda x, y: 2 * x + y),
    "C: a product of flat arrays": (GEMM, "M=3 N=4 K=5", lambda a, b: a @ b),
    "C: what was there before": (GEMM_IN_PLACE, "M=3 N=4 K=5", lambda p, q, a, b, c: p * (a @ b) + q * c),
    "C: softmax": (SOFTMAX, "M=4 N=6", softmax),
    "C: a triangle": (SOLVE, "n=5", solved),
    "C: a stencil": (JACOBI, "n=6", stencil),
    "C: downwards, a helper": (INLINE, "n=5", lambda x: np.maximum(x, 0) + 1),
    "C: statements alone": (
        "for (int i = 0; i < n; i++)\n  y[i] = a * x[i] + y[i];",
        "n=5",
        lambda a, x, y: a * x + y,
    ),
    "C: what is returned": (
        "float dot(size_t n, const float *x, const float *y) {\n  float s = 0;\n"
        "  for (size_t i = 0; i != n; ++i) s = s + x[i] * y[i];\n  return s;\n}",
        "n=5",
        np.dot,
    ),
    "C: integers": (
        "void q(int n, const unsigned char *a, const signed char *b, int *c) "
        "{ int s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; c[0] = s / 2 - 7 % 4; }",
        "n=5",
        lambda a, b: np.array([int(np.dot(a, b) / 2) - 3]),
    ),
    "C: a condition on places": (
        "void f(int n, float *x, float *y) { for (int i = 0; i < n; i++) y[i] = i > 0 ? x[i - 1] : 0; }",
        "n=5",
        lambda x: np.concatenate([[0], x]),
    ),
    "C: a condition on values": (
        "void f(int n, float *x, float *y) {\n"
        "  for (int i = 0; i < n; i++) { y[i] = x[i]; if (x[i] < 0 && x[i] > -"
        "1) { y[i] *= 2; y[i] -= 1; } } }",
        "n=9",
        lambda x: np.where((x < 0) & (x > -1), 2 * x - 1, x),
    ),
    "C: steps": (
        "void f(int n, float *x, float *y) { for (int i = 0; i < n; i += 2) { "
        "y[i] = x[i]; y[i+1] = -x[i+1]; } }",
        "n=6",
        lambda x: x * np.resize([1, -1], 6),
    ),
}


@pytest.mark.parametrize("text, sizes, meaning", TEXTS.values(), ids=TEXTS)
def test_a_text_becomes_a_program_that_computes_the_same(text, sizes, meaning):
    made = translate(text, sizes_of(sizes.split()))
    assert made.checked.startswith("Checked against the text on random inputs")
    rng = np.random.default_rng(1)
    program = made.program
    inputs = {}
    for name in program.inputs:
        buffer = program.buffer_of[name]
        whole = buffer.dtype not in ("f32", "f64")
        shape = tuple(d.size for d in buffer.dims)
        inputs[name] = (
            rng.integers(0, 3, shape) if whole else rng.normal(size=shape).astype(np.float32).astype(float)
        )
    (computed,) = interpret(program, inputs).values()
    assert np.allclose(computed, meaning(*inputs.values()), rtol=1e-10, atol=1e-12)


def test_axes_that_go_together_have_one_name_and_flat_arrays_get_their_dimensions():
    assert "of q[m, n], k[k, n], v[k, h]." in translate(ATTENTION).sentence
    assert "of x[m, n], w[n, k], b[k]." in translate("softmax(x @ w + b)").sentence
    assert translate(GEMM, {"M": 3, "N": 4, "K": 5}).program.text == (
        "kernel gemm\nin A, B\nout C\nA f32 [3, 5] heap\nB f32 [5, 4] heap\nC f32 [3, 4] heap\n"
        "3 4 C[{0},{1}] = 0\n| | 5 C[{0},{1}] += A[{0},{2}]*B[{2},{1}]\n"
    )
    diagonal = "void f(int n, float *A, float *y) { for (int i = 0; i < n; i++) y[i] = A[i*n + i] + A[n*i]; }"
    assert "A[{0},{0}] + A[{0},0]" in translate(diagonal, {"n": 5}).program.text


REFUSED = [
    ("np.tanhh(x)", "line 1, column 4: there is no function tanhh\n", "Did you mean tanh?"),
    (
        "def f(x):\n    return x.sofmax(1)",
        "line 2, column 14: there is no function sofmax\n",
        "Did you mean softmax?",
    ),
    ("def f(x):\n    return xx + 1", "line 2, column 12: there is no name xx\n", "Did you mean x?"),
    ("y = (x + ", "line 1, column 5: '(' was never closed", "Python's parser stops here"),
    (
        "# x[3, 4], y[5, 4]\nx @ y",
        "line 2, column 1: A matrix product of [3, 4] and [5, 4]",
        "Look at the shapes",
    ),
    ("# x[2, 3]\nx.reshape(4, 2)", "[2, 3] is not reshaped to [4, 2]", "Look at the shapes here."),
    (
        "def f(x):\n    while x > 0:\n        x = x - 1\n    return x",
        "line 2, column 5: a while loop",
        "whole arrays",
    ),
    (
        "def f(x):\n    if x > 0:\n        return x\n    return -x",
        "a condition on an array's values",
        "np.where",
    ),
    (
        "def f(x):\n    x[0] = 1\n    return x",
        "an assignment to a part of an array",
        "np.where or np.concatenate",
    ),
    ("x.__class__", "an attribute __class__, which is not known", "Known are shape"),
    ("eval('x')", "there is no function eval", ""),
    ("class Net(nn.Module):\n    pass", "This is a module of PyTorch", "Write its forward as a function"),
    (
        "from dojo_core import kernel\n@kernel({}, x='m')\ndef f(x): return x",
        "This is Python that describes a kernel",
        "take the text",
    ),
    ("__global__ void f(float *x) { x[threadIdx.x] = 0; }", "This is a GPU kernel", "C function over arrays"),
    ("@triton.jit\ndef f(x): tl.load(x)", "This is a Triton kernel", "NumPy or PyTorch function"),
    ("hello there", "This is no text that is known here", "Paste a program of the Dojo"),
    ("ab,c->ad", "The result ad of an einsum has letters of its arrays", "mk,kn->mn"),
    ("void f(int n, float *x) { while (n) x[0] = 1; }", "line 1, column 27: a while loop", "Write for loops"),
    (
        "void f(int n, float *x, float *y) {\n  for (int i = 0; i < n; i++) y[i] = x[i*i]; }",
        "line 2, column 40: i * i is not affine",
        "i*n + j + 1",
    ),
    (
        "void f(int n, int *x, float *y) { for (int i = 0; i < n; i++) y[x[i]] += 1; }",
        "x[i] is not affine",
        "sum of loop variables",
    ),
    (
        "void f(int n, float *x, float *y) { for (int i = 0; i < n; i++) y[i] = tanhhf(x[i]); }",
        "there is no function tanhhf",
        "Did you mean tanhf?",
    ),
    (
        "void f(int n, float *x) {\n  for (int i = 0; i < n; i++) x[i] = 1 }",
        "line 2, column 40: something is wrong before }",
        "C's parser stops here",
    ),
    (
        "void f(int n, float *x) { for (int i = 0; i < n; i++) { x[i] = 1; i++; } }",
        "a loop that changes i itself",
        "head alone",
    ),
    (
        "void f(int n, float **x) { for (int i = 0; i < n; i++) x[i][0] = 1; }",
        "pointers to pointers",
        "Take one array",
    ),
    (
        "#define S(x) x\nvoid f(float *x) { x[0] = S(1); }",
        "line 1, column 1: #define, which is not expanded",
        "#define N 1024",
    ),
    (
        "void f(int n, float *x) { for (int i = 0; i < n; i++) x[i - 1] = 1; }",
        "the places of x go below 0",
        "begin at 0",
    ),
]


@pytest.mark.parametrize("text, message, remedy", REFUSED, ids=[text[:30] for text, *_ in REFUSED])
def test_what_is_not_translated_says_what_it_is_where_and_what_to_do(text, message, remedy):
    with pytest.raises(TextError) as refused:
        translate(text)
    told = text_fault(refused.value)
    assert message in told and remedy in told.splitlines()[-1], told


HOSTILE = {
    "deep brackets": "x" + "[(" * 5000,
    "deep signs": "y = " + "-" * 9000 + "x",
    "a long sum": "+".join(["x"] * 4000),
    "a tower of powers": "x ** 9 ** 9 ** 9 ** 9",
    "a long number": "x * 1" + "0" * 5000,
    "a large range": "def f(x):\n for i in range(10**12):\n  x = x + 1\n return x",
    "a large array": "np.ones((100000, 100000)) * x",
    "an array of many axes": "def f(x):\n" + " x = x[None] + x[..., None]\n" * 40 + " return x",
    "loops in loops": "def f(x):\n"
    + "".join(" " * k + f"for i{k} in range(60):\n" for k in range(1, 9))
    + " " * 9
    + "x = x + 1\n return x",
    "a range of nothing": "for i in range():\n    y[i] = x[i]",
    "a return alone": "return return",
    "C: a long sum": "void f(float *x) { x[0] = " + "+".join(["1"] * 4000) + "; }",
    "a function of itself": "def f(x):\n    return f(x)",
    "letters": "abcdefghijklmno,abcdefghijklmno->",
    "a null": "x + \0 y",
    "import": "__import__('os').system('true')",
    "a constructor": "().__class__.__bases__[0].__subclasses__()",
    "a comprehension": "[x for x in range(10) for y in range(10)]",
    "C: deep brackets": "void f(float *x) { x[0] = " + "(" * 9000 + "1; }",
    "C: deep signs": "void f(float *x) { x[0] = " + "- " * 7000 + "1; }",
    "C: a large loop": "void f(float *x) { for (int i = 0; i < 999999999999999; i++) x[i] = 1; }",
    "C: many loops": "void f(float *x) { "
    + "".join(f"for (int i{k}=0;i{k}<9;i{k}++) " for k in range(40))
    + "x[0] = 1; }",
    "C: functions of one another": "float g(float x) { return h(x); } float h(float x) { return g(x); }\n"
    "void f(float *x) { x[0] = g(1); }",
    "C: division by 0": "void f(float *x) { for (int i = 0; i < 4 / 0; i++) x[i] = 1; }",
    "C: many statements": "void f(float *x) { " + "x[0] = 1; " * 1500 + "}",
    "spaces for patterns": "int " + "a " * 8000,
    "lines": "\n" * 500_000 + "kernel",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_refused_with_a_sentence(text):
    with pytest.raises(TextError) as refused:
        translate(text)
    assert re.search(r"[.?]$", text_fault(refused.value))


def test_the_dojos_own_texts_are_known_by_their_beginnings():
    program = "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = x[{0}]\n"
    assert kind_of(program) == kind_of("Kernel k\n") == "program"
    assert kind_of(f"dojo game 1\n{program}") == "game"
    assert kind_of("kernel softmax\nshape 8x4\njoin_scopes m@0\n") == "line"
    assert kind_of("graph g\n") == "graph"


def test_sizes_are_parameters_and_those_that_there_are_not_are_named():
    assert "8 4 y[{0},{1}] = exp(x[{0},{1}])" in translate("np.exp(x)", {"m": 8, "n": 4}).program.text
    with pytest.raises(TextError, match="there is no size k"):
        translate("np.exp(x)", {"k": 8})
    assert translate("np.exp(x)", {"k": 8}, lenient=True).sizes == {"m": 1024, "n": 1024}
    with pytest.raises(TextError, match="m is 0"):
        sizes_of(["m=0"])
