"""ONNX Runtime on a model of one node, the very one that the Dojo imported: all optimisations, arrays bound
once.

Variants: inputs as given; weights as constants of the model, which the runtime may pack beforehand.
"""

from __future__ import annotations

import onnx
import onnx_node
import onnxruntime as ort
from onnx import numpy_helper
from protocol import THREADS, Job, Unsupported, Variant, Variants, serve


def with_constants(node: onnx_node.Node, job: Job, constants: tuple[str, ...]) -> bytes:
    """The model with some inputs as initializers, of the first set: a library is timed with one set of
    weights."""
    model = onnx.load(str(node.model))
    if constants:
        kept = [i for i in model.graph.input if i.name not in constants]
        del model.graph.input[:]
        model.graph.input.extend(kept)
        for name in constants:
            model.graph.initializer.append(numpy_helper.from_array(onnx_node.as_numpy(job, 0, name), name))
    return model.SerializeToString()


def opened(model: bytes | str) -> ort.InferenceSession:
    """A session of a model, or of that in a file, with a thread a core. Raises Unsupported where the runtime
    has no such operator."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 4
    if THREADS > 1:
        options.add_session_config_entry(
            "session.intra_op_thread_affinities", ";".join(str(n + 1) for n in range(1, THREADS))
        )
    try:
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as fault:
        if "NOT_IMPLEMENTED" in str(fault) or "Could not find an implementation" in str(fault):
            raise Unsupported(
                "ONNX Runtime has no CPU implementation of it at this dtype and opset."
            ) from None
        if "ValidateOpsetForDomain" in str(fault):
            raise Unsupported(f"It is of a newer opset than ONNX Runtime {ort.__version__} knows.") from None
        raise


def session(node: onnx_node.Node, job: Job, constants: tuple[str, ...]) -> Variant:
    made = opened(with_constants(node, job, constants))
    runs = []
    for number in range(len(job.sets)):
        bound = made.io_binding()
        for name in job.inputs:
            if name not in constants:
                bound.bind_ortvalue_input(
                    name, ort.OrtValue.ortvalue_from_numpy(onnx_node.as_numpy(job, number, name))
                )
        results = []
        for name in job.outputs:
            out = onnx_node.as_numpy(job, number, name)
            bound.bind_output(name, "cpu", 0, out.dtype, out.shape, out.ctypes.data)
            results.append(out)

        def run(bound: ort.IOBinding = bound, results: tuple = tuple(results)) -> tuple:
            made.run_with_iobinding(bound)
            return results

        runs.append(run)
        if constants:
            break  # other sets have other weights
    return Variant(runs)


def prepare(job: Job) -> tuple[Variants, str]:
    node = onnx_node.read_node(job)
    opened(with_constants(node, job, ()))  # which says so where there is none
    variants = {"the model": lambda: session(node, job, ())}
    if node.weights:
        variants["weights constant"] = lambda: session(node, job, node.weights)
    return variants, str(ort.__version__)


if __name__ == "__main__":
    serve(prepare, every_dtype=True)
