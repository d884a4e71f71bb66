"""What an engineer pastes: each is translated exactly, or told what it is and how it would be written."""

import pytest

from dojo_core.faults import text_fault
from dojo_core.from_code.translate import translate
from dojo_core.program.expressions import TextError

NUMBA = """
@njit(parallel=True)
def double(x, y):
    for i in prange(x.shape[0]):
        y[i] = x[i] * 2
    return y
"""
TRITON = """
@triton.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
"""
METHOD = """
def attention(self, q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) * self.scale, dim=-1) @ v
"""
NAIVE = """
def matmul(A, B, C):
    for i in range(len(A)):
        for j in range(len(B[0])):
            for k in range(len(B)):
                C[i][j] += A[i][k] * B[k][j]
    return C
"""
SIMD = """
float dot(const float *restrict x, const float *restrict y, int n) {
  float s = 0.f;
  #pragma omp simd reduction(+:s)
  for (int i = 0; i < n; i++) s += x[i] * y[i];
  return s;
}
"""
ROW = """
void rows(int m, int n, const float *x, float *y) {
  for (int i = 0; i < m; i++) { const float *row = x + i*n; y[i] = row[0]; }
}
"""
CONST = """
static const int N = 64;
void half(const float x[N], float y[N]) { for (int i = 0; i < N; i++) y[i] = 0.5f * x[i]; }
"""
DOUBLE = 'extern "C" void twice(int n, float *x) { for (int i = 0; i < n; i++) x[i] *= 2; }'

READ = {
    "F.relu(F.linear(x, w, b))": "Python: own of x[m, n], w[k, n], b[k].",
    "F.layer_norm(x, (64,), weight, bias, eps=1e-5)": "Python: own of x[m, 64], weight[64], bias[64].",
    METHOD: "Python: attention of q[m, n], k[k, n], v[k, h], scale[k].",
    "with torch.no_grad():\n    y = x @ w.t()": "Python: y of x[m, n], w[k, n].",
    "print(np.exp(x))": "Python: own of x[m, n].",
    "F.max_pool2d(x, 2)": "Python: own of x[m, n, k].",
    "F.avg_pool2d(x, 3, stride=2)": "Python: own of x[m, n, k].",
    "tf.nn.softmax(tf.matmul(x, w) + b1)": "Python: own of x[m, n], w[n, k], b1[k].",
    "x.std(axis=-1, keepdims=True)": "Python: own of x[m, n].",
    "np.einsum('...ij,...jk->...ik', a, b)": "Python: own of a[m, n], b[n, k].",
    "np.einsum('ij,ij', a, b)": "Python: own of a[m, n], b[m, n].",
    "np.tensordot(x, y, axes=1)": "Python: own of x[m, n], y[n, k].",
    "np.outer(x, y)": "Python: own of x[m], y[n].",
    "'bhid,bhjd->bhij'": "an einsum: own of a[b, h, i, d], b[b, h, j, d].",
    "b i k, b k j -> b i j": "an einsum: own of a[b, i, k], b[b, k, j].",
    NUMBA: "Python: double of x[65536].",
    NAIVE: "Python: matmul of A[256, 256], B[256, 256], C_in[256, 256].",
    SIMD: "C: dot of x[65536], y[65536].",
    CONST: "C: half of x[64].",
    CONST.replace("static const int N = 64;", "enum { N = 64 };"): "C: half of x[64].",
    CONST.replace("static const", "constexpr"): "C: half of x[64].",
    DOUBLE: "C: twice of x_in[65536].",
    "typedef float real;\nvoid root(int n, real *x) { for (int i = 0; i < n; i++) x[i] = sqrtf(x[i]); }": (
        "C: root of x_in[65536]."
    ),
    "void add(float *a, float *b, int n) { for (int i = 0; i < n; i++) *(b + i) = *(a + i); }": (
        "C: add of a[65536]."
    ),
}


@pytest.mark.parametrize("text, read_as", READ.items())
def test_it_is_translated_and_checked(text, read_as):
    made = translate(text)
    assert made.sentence.startswith(f"Read as {read_as}"), made.sentence
    assert made.checked.startswith("Checked against the text")


TOLD = {
    "x = F.relu(self.fc1(x))": ("self.fc1, a layer whose weights", "F.linear(x, w, b)"),
    "def forward(self, x):\n    return self.fc(x)": ("self.fc, a layer whose weights", "F.linear(x, w, b)"),
    "nn.Sequential(nn.Linear(64, 32), nn.ReLU())": ("a module of PyTorch", "F.linear(x, w, b)"),
    "F.dropout(x, 0.5)": ("dropout is not translated", "leave it out"),
    "F.cross_entropy(x, t)": ("cross_entropy is not translated", "log_softmax"),
    ROW: ("a pointer that is declared here", "in place of row[j]"),
    TRITON: ("a Triton kernel", "NumPy or PyTorch"),
    "add<<<grid, block>>>(x, y, n);": ("a GPU kernel", "C function over arrays"),
    "kernel void f(device float *x, uint i [[thread_position_in_grid]]) { x[i] += 1; }": (
        "a GPU kernel",
        "C",
    ),
    "__m256 v = _mm256_loadu_ps(x + i);": ("vector instructions", "plain loop over elements"),
    "C = te.compute((n, m), lambda i, j: A[i, j])": ("TVM", "NumPy expression or an einsum"),
    "Func blur; Var x, y;": ("Halide", "C function over arrays"),
    "vmovups (%rdi,%rax,4), %ymm0": ("assembly", "C function over arrays"),
    "cdef void f(float[:] x):\n    pass": ("Cython", "C function over arrays"),
    "for i = 1:n\n  y(i) = x(i)^2;\nend": ("Julia or MATLAB", "NumPy expression"),
    "for (auto& v : x) v *= 2;": ("C++", "plain C over arrays"),
}


@pytest.mark.parametrize("text, what, remedy", [(text, *told) for text, told in TOLD.items()])
def test_else_it_is_told_what_it_is_and_how_it_would_be_written(text, what, remedy):
    with pytest.raises(TextError) as refused:
        translate(text)
    told = text_fault(refused.value)
    assert what in told and remedy in told.splitlines()[-1], told
