"""The small kernels of the RISC-V literature and of linear algebra's first level; a transpose."""

from __future__ import annotations

import numpy as np

from dojo_core.kernels.template import templated

KERNELS = (
    templated(
        "fill", "Fill", "y = v", "element-wise", "M N", ((4096, 4096),),
        {"v": "", "y": "M N"}, "v", "y",
        "M N y[{0},{1}] = v[]",
        lambda v, shape: np.full(shape, v),
    ),
    templated(
        "axpy", "Scaled sum of vectors", "z = a·x + y", "element-wise", "N", ((16777216,),),
        {"a": "", "x": "N", "y": "N", "z": "N"}, "a, x, y", "z",
        "N z[{0}] = fma(a[],x[{0}],y[{0}])",
        lambda a, x, y, shape: a * x + y,
    ),
    templated(
        "dot", "Inner product", "s = Σ x·y", "reduction", "N", ((16777216,),),
        {"x": "N", "y": "N", "s": ""}, "x, y", "s",
        """
        s[] = 0
        N s[] += x[{0}]*y[{0}]
        """,
        lambda x, y, shape: np.asarray(x @ y),
    ),
    templated(
        "sum", "Sum", "s = Σ x", "reduction", "N", ((16777216,),),
        {"x": "N", "s": ""}, "x", "s",
        """
        s[] = 0
        N s[] += x[{0}]
        """,
        lambda x, shape: np.asarray(x.sum()),
    ),
    templated(
        "gemv", "Matrix times vector", "y = a · x", "contraction", "M K", ((4096, 4096),),
        {"a": "M K", "x": "K", "y": "M"}, "a, x", "y",
        """
        M y[{0}] = 0
        M K y[{0}] += a[{0},{1}]*x[{1}]
        """,
        lambda a, x, shape: a @ x,
    ),
    templated(
        "gemm", "Scaled sum of matrix products", "d = α · a · b + β · c", "contraction",
        "M K N", ((768, 1024, 1024),),
        {"p": "", "q": "", "a": "M K", "b": "K N"} | dict.fromkeys("cdtuv", "M N"),
        "p, q, a, b, c", "d",
        """
        M N t[{0},{1}] = 0
        M N K t[{0},{1}] += a[{0},{2}]*b[{2},{1}]
        M N u[{0},{1}] = t[{0},{1}]*p[]
        M N v[{0},{1}] = c[{0},{1}]*q[]
        M N d[{0},{1}] = u[{0},{1}] + v[{0},{1}]
        """,
        lambda p, q, a, b, c, shape: p * (a @ b) + q * c,
    ),
    templated(
        "nhwc", "Channels last", "y[n,h,w,c] = x[n,c,h,w]", "layout", "N C H W", ((8, 64, 112, 112),),
        {"x": "N C H W", "y": "N H W C"}, "x", "y",
        "N H W C y[{0},{1},{2},{3}] = x[{0},{3},{1},{2}]",
        lambda x, shape: x.transpose(0, 2, 3, 1).copy(),
    ),
    templated(
        "transpose", "Transpose", "y = xᵀ", "layout", "M N", ((4096, 4096),),
        {"x": "M N", "y": "N M"}, "x", "y",
        "N M y[{0},{1}] = x[{1},{0}]",
        lambda x, shape: x.T.copy(),
    ),
)  # fmt: skip
