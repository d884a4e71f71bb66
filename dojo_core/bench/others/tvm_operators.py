"""The kernels as TVM's Relax operators, and how a compiled module is run."""

from __future__ import annotations

import numpy as np
import tvm
from protocol import THREADS, Job, Unsupported, Variant
from tvm import relax


def target() -> tvm.target.Target:
    """This CPU, all its cores."""
    from tvm.support import libinfo  # noqa: F401 (fails early where the library cannot be loaded)

    name = tvm.get_global_func("target.llvm_get_system_cpu")()
    return tvm.target.Target({"kind": "llvm", "mcpu": str(name), "num-cores": THREADS})


def _column(x):
    return relax.op.reshape(x, (-1, 1, 1))


def _batchnorm(x, w, b):
    mean = relax.op.mean(x, [0, 2, 3], keepdims=True)
    d = relax.op.subtract(x, mean)
    variance = relax.op.mean(relax.op.multiply(d, d), [0, 2, 3], keepdims=True)
    r = relax.op.rsqrt(relax.op.add(variance, relax.const(1e-5, "float32")))
    scaled = relax.op.multiply(d, relax.op.multiply(r, _column(w)))
    return relax.op.add(scaled, _column(b))


def _rmsnorm(x, w):
    return relax.op.nn.rms_norm(x, w, axes=[-1], epsilon=1e-6)


def _swiglu(x, w, v):
    return relax.op.multiply(relax.op.nn.silu(relax.op.matmul(x, w)), relax.op.matmul(x, v))


def _attention(q, k, v, scale):
    s = relax.op.matmul(q, relax.op.permute_dims(k, [0, 2, 1]))
    s = relax.op.multiply(s, relax.const(scale, "float32"))
    return relax.op.matmul(relax.op.nn.softmax(s, -1), v)


def _cross_entropy(x, t):
    return relax.op.negative(relax.op.sum(relax.op.multiply(t, relax.op.nn.log_softmax(x, -1)), [-1]))


def operator(job: Job) -> object:
    """A function from Relax variables to an expression. Raises Unsupported."""
    shape = job.shape
    known = {
        "add": relax.op.add,
        "mul": relax.op.multiply,
        "relu": relax.op.nn.relu,
        "relu_ffn": lambda x, w, b: relax.op.nn.relu(
            relax.op.add(relax.op.multiply(x, _column(w)), _column(b))
        ),
        "reducemean": lambda x: relax.op.mean(x, [-1]),
        "softmax": lambda x: relax.op.nn.softmax(x, -1),
        "log_softmax": lambda x: relax.op.nn.log_softmax(x, -1),
        "cross_entropy": _cross_entropy,
        "layernorm": lambda x, w, b: relax.op.nn.layer_norm(x, w, b, axes=[-1], epsilon=1e-5),
        "rmsnorm": _rmsnorm,
        "batchnorm": _batchnorm,
        "matmul": relax.op.matmul,
        "bmm": relax.op.matmul,
        "gemv": relax.op.matmul,
        "conv": relax.op.nn.conv2d,
        "swiglu": _swiglu,
        "gelu": relax.op.nn.gelu,
        "silu": relax.op.nn.silu,
        "maxpool": lambda x: relax.op.nn.max_pool2d(x, (shape[4],) * 2, (shape[5],) * 2),
        "avgpool": lambda x: relax.op.nn.avg_pool2d(x, (shape[4],) * 2, (shape[5],) * 2),
        "dwconv": lambda x, w: relax.op.nn.conv2d(x, relax.op.expand_dims(w, 1), groups=shape[1]),
        "attention": lambda q, k, v: _attention(q, k, v, shape[3] ** -0.5),
        "transpose": lambda x: relax.op.permute_dims(x, [1, 0]),
        "axpy": lambda a, x, y: relax.op.add(relax.op.multiply(a, x), y),
        "sum": lambda x: relax.op.sum(x, [0]),
    }
    if job.kernel not in known:
        raise Unsupported(f"TVM has no operators for {job.kernel} here.")
    return known[job.kernel]


def module(job: Job) -> tvm.ir.IRModule:
    """One function, ``main``, over the kernel's inputs."""
    build = operator(job)
    builder = relax.BlockBuilder()
    tensor = getattr(relax, "TensorType", None) or relax.TensorStructInfo
    given = [relax.Var(n, tensor(job.sets[0][n].shape, "float32")) for n in job.inputs]
    with builder.function("main", given):
        with builder.dataflow():
            made = builder.emit_output(builder.emit(build(*given)))
        builder.emit_func_output(made)
    return builder.get()


def running(job: Job, compiled: object) -> Variant:
    """A compiled module on every set; its virtual machine keeps a pool of memory."""
    machine = relax.VirtualMachine(compiled, tvm.cpu())
    main = machine["main"]
    sets = [[tvm.runtime.tensor(a) for a in job.ordered(number)] for number in range(len(job.sets))]
    return Variant([lambda given=given: main(*given) for given in sets], _numpy)


def _numpy(result: object) -> np.ndarray:
    return result.numpy()  # type: ignore[attr-defined]
