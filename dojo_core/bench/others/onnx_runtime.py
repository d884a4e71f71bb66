"""ONNX Runtime, CPU provider: standard operators, all graph optimisations, arrays bound once.

Variants: inputs as given; weights as constants of the model, which the runtime may pack beforehand; and where
operators can express the kernel in more than one way, each way.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from protocol import THREADS, WEIGHTS, Job, Unsupported, Variant, Variants, serve

OPSET = 23


class _Graph:
    """Nodes and constants as they are added; the last node gives the output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def __call__(self, operator: str, *inputs: str, **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, values: object, dtype: type = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(values, np.int64)


def _batchnorm(g: _Graph, x: str, w: str, b: str) -> None:
    """Training statistics, composed: the runtime's own operator has only the inference form."""
    axes = g.integers(0, 2, 3)
    d = g("Sub", x, g("ReduceMean", x, axes))
    r = g("Sqrt", g("Add", g("ReduceMean", g("Mul", d, d), axes), g.constant(1e-5)))
    column = g.integers(1, -1, 1, 1)
    scale = g("Div", g("Reshape", w, column), r)
    g("Add", g("Mul", d, scale), g("Reshape", b, column))


def _batchnorm_affine(g: _Graph, x: str, w: str, b: str) -> None:
    """The same with one scale and shift per element: fewer passes over x."""
    axes = g.integers(0, 2, 3)
    mean = g("ReduceMean", x, axes)
    d = g("Sub", x, mean)
    variance = g("Div", g("ReduceSumSquare", d, axes), g("Cast", _count(g, x), to=TensorProto.FLOAT))
    column = g.integers(1, -1, 1, 1)
    r = g("Sqrt", g("Add", variance, g.constant(1e-5)))
    scale = g("Div", g("Reshape", w, column), r)
    shift = g("Sub", g("Reshape", b, column), g("Mul", mean, scale))
    g("Add", g("Mul", x, scale), shift)


def _count(g: _Graph, x: str) -> str:
    sizes = g("Gather", g("Shape", x), g.integers(0, 2, 3))
    return g("ReduceProd", sizes, keepdims=0)


def _batchnorm_by_instances(g: _Graph, x: str, w: str, b: str) -> None:
    """Channels brought to the front: an instance normalisation of one image."""
    turned = g("Transpose", x, perm=[1, 0, 2, 3])
    flat = g(
        "Reshape", turned, g("Concat", g.integers(1), g("Shape", x, start=1, end=2), g.integers(-1), axis=0)
    )
    n = g("InstanceNormalization", flat, w, b, epsilon=1e-5)
    g("Transpose", g("Reshape", n, g("Shape", turned)), perm=[1, 0, 2, 3])


def _relu_ffn(g: _Graph, x: str, w: str, b: str) -> None:
    column = g.integers(-1, 1, 1)
    g("Relu", g("Add", g("Mul", x, g("Reshape", w, column)), g("Reshape", b, column)))


def _relu_ffn_by_norm(g: _Graph, x: str, w: str, b: str) -> None:
    """As an inference batch norm with mean 0 and variance 1."""
    zero = g("Sub", w, w)
    one = g("Add", zero, g.constant(1.0))
    g("Relu", g("BatchNormalization", x, w, b, zero, one, epsilon=0.0))


def _swiglu(g: _Graph, x: str, w: str, v: str) -> None:
    a = g("MatMul", x, w)
    g("Mul", g("Mul", a, g("Sigmoid", a)), g("MatMul", x, v))


def _attention(g: _Graph, q: str, k: str, v: str, scale: float) -> None:
    s = g("Mul", g("MatMul", q, g("Transpose", k, perm=[0, 2, 1])), g.constant(scale))
    g("MatMul", g("Softmax", s, axis=-1), v)


def _pool(g: _Graph, operator: str, x: str, job: Job) -> str:
    k, s = job.shape[4:6]
    return g(operator, x, kernel_shape=[k, k], strides=[s, s])


def _cross_entropy(g: _Graph, x: str, t: str) -> None:
    g("Neg", g("ReduceSum", g("Mul", t, g("LogSoftmax", x, axis=-1)), g.integers(-1), keepdims=0))


def _groupnorm(g: _Graph, x: str, gain: str, bias: str, job: Job) -> None:
    n, groups, channels, h, w = job.shape
    flat = g("Reshape", x, g.integers(n, groups * channels, h, w))
    per_channel = g.integers(-1)
    y = g(
        "GroupNormalization", flat, g("Reshape", gain, per_channel), g("Reshape", bias, per_channel),
        num_groups=groups, epsilon=1e-5,
    )  # fmt: skip
    g("Reshape", y, g.integers(*job.shape))


def ways(job: Job) -> dict[str, object]:
    """How operators express the kernel: functions of a graph and the inputs' names."""
    known = {
        "add": lambda g, x, y: g("Add", x, y),
        "mul": lambda g, x, y: g("Mul", x, y),
        "relu": lambda g, x: g("Relu", x),
        "relu_ffn": _relu_ffn,
        "reducemean": lambda g, x: g("ReduceMean", x, g.integers(-1), keepdims=0),
        "softmax": lambda g, x: g("Softmax", x, axis=-1),
        "log_softmax": lambda g, x: g("LogSoftmax", x, axis=-1),
        "cross_entropy": _cross_entropy,
        "layernorm": lambda g, x, w, b: g("LayerNormalization", x, w, b, axis=-1, epsilon=1e-5),
        "rmsnorm": lambda g, x, w: g("RMSNormalization", x, w, axis=-1, epsilon=1e-6),
        "batchnorm": _batchnorm,
        "groupnorm": lambda g, x, gain, bias: _groupnorm(g, x, gain, bias, job),
        "matmul": lambda g, a, b: g("MatMul", a, b),
        "bmm": lambda g, a, b: g("MatMul", a, b),
        "gemv": lambda g, a, x: g("MatMul", a, x),
        "dot": lambda g, x, y: g("MatMul", x, y),
        "conv": lambda g, x, w: g("Conv", x, w),
        "conv2d": lambda g, x, w: g("Conv", x, w, strides=[job.shape[6]] * 2, pads=[job.shape[7]] * 4),
        "swiglu": _swiglu,
        "gelu": lambda g, x: g("Gelu", x),
        "silu": lambda g, x: g("Mul", x, g("Sigmoid", x)),
        "maxpool": lambda g, x: _pool(g, "MaxPool", x, job),
        "avgpool": lambda g, x: _pool(g, "AveragePool", x, job),
        "sumpool": lambda g, x: g(
            "Mul", _pool(g, "AveragePool", x, job), g.constant(float(job.shape[4]) ** 2)
        ),
        "dwconv": lambda g, x, w: g("Conv", x, g("Unsqueeze", w, g.integers(1)), group=job.shape[1]),
        "attention": lambda g, q, k, v: _attention(g, q, k, v, job.shape[3] ** -0.5),
        "transpose": lambda g, x: g("Transpose", x, perm=[1, 0]),
        "fill": lambda g, v: g("Expand", v, g.integers(*job.shape)),
        "axpy": lambda g, a, x, y: g("Add", g("Mul", a, x), y),
        "sum": lambda g, x: g("ReduceSum", x, g.integers(0), keepdims=0),
    }
    if job.kernel not in known:
        raise Unsupported(f"ONNX has no operators for {job.kernel} here.")
    variants = {"standard operators": known[job.kernel]}
    if job.kernel == "batchnorm":
        variants["one scale and shift"] = _batchnorm_affine
        variants["by instance normalisation"] = _batchnorm_by_instances
    if job.kernel == "relu_ffn":
        variants["by batch normalisation"] = _relu_ffn_by_norm
    return variants


def model(job: Job, way: object, constants: tuple[str, ...]) -> bytes:
    g = _Graph()
    way(g, *job.inputs)  # type: ignore[operator]
    g.nodes[-1].output[0] = job.outputs[0]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, job.sets[0][name].shape)
        for name in job.inputs
        if name not in constants
    ]
    shape = job.sets[0][job.outputs[0]].shape
    outputs = [helper.make_tensor_value_info(job.outputs[0], TensorProto.FLOAT, shape)]
    held = [numpy_helper.from_array(job.sets[0][name], name) for name in constants]
    graph = helper.make_graph(g.nodes, job.kernel, inputs, outputs, [*held, *g.constants])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)
    return made.SerializeToString()


def session(job: Job, way: object, constants: tuple[str, ...]) -> Variant:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 4
    if THREADS > 1:  # its first thread is the caller's; the others one a core, counted from 1
        options.add_session_config_entry(
            "session.intra_op_thread_affinities", ";".join(str(n + 1) for n in range(1, THREADS))
        )
    made = ort.InferenceSession(model(job, way, constants), options, providers=["CPUExecutionProvider"])
    runs = []
    for arrays in job.sets:
        bound = made.io_binding()
        for name in job.inputs:
            if name not in constants:
                bound.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(arrays[name]))
        out = arrays[job.outputs[0]]
        bound.bind_output(job.outputs[0], "cpu", 0, np.float32, out.shape, out.ctypes.data)

        def run(bound=bound, out=out):
            made.run_with_iobinding(bound)
            return out

        runs.append(run)
    return Variant(runs)


def prepare(job: Job) -> tuple[Variants, str]:
    variants = {}
    for name, way in ways(job).items():
        variants[name] = lambda way=way: session(job, way, ())
        if job.kernel in WEIGHTS:
            variants[f"{name}, weights constant"] = lambda way=way: session(job, way, WEIGHTS[job.kernel])
    return variants, ort.__version__


if __name__ == "__main__":
    serve(prepare)
