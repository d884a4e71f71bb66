"""A small shape of every kernel, with rows that vectors of four divide."""

TINY = {
    "add": (6, 8), "mul": (6, 8), "relu": (6, 8), "relu_ffn": (2, 3, 4, 8), "reducemean": (6, 8),
    "softmax": (6, 8), "layernorm": (6, 8), "rmsnorm": (6, 8), "batchnorm": (2, 3, 4, 8), "matmul": (4, 6, 8),
    "bmm": (2, 4, 6, 8), "conv": (2, 3, 2, 6, 7, 3), "swiglu": (1, 4, 6, 8), "gelu": (6, 8), "silu": (6, 8),
    "log_softmax": (6, 8), "cross_entropy": (6, 8), "groupnorm": (2, 2, 3, 4, 8),
    "maxpool": (2, 3, 7, 9, 3, 2), "sumpool": (2, 3, 7, 9, 3, 2), "avgpool": (2, 3, 7, 9, 3, 2),
    "dwconv": (2, 3, 6, 7, 3), "attention": (2, 4, 6, 8), "fill": (6, 8), "axpy": (24,), "dot": (24,),
    "sum": (24,), "gemv": (6, 8), "transpose": (6, 8), "qmatmul": (4, 8, 8), "qmatmul_f32": (4, 8, 8),
    "matmul_bf16": (4, 6, 8), "softmax_bf16": (6, 8), "rmsnorm_f16": (6, 8),
    "conv2d": (2, 3, 2, 6, 7, 3, 2, 1), "rope": (3, 2, 8), "gqa": (2, 2, 3, 4, 8), "gemm": (4, 6, 8),
    "nhwc": (2, 3, 4, 8), "sparse24": (3, 8, 8, 4), "blocksparse": (3, 12, 8, 4, 2),
}  # fmt: skip
