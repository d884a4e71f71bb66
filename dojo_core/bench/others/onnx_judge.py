"""What others make of a model of one node: ONNX Runtime where it is installed and has the operator, else the
standard's own reference implementation. It is asked once, and never timed.

One line of JSON: ``status`` (ok, wrong_result, missing, unsupported, failed), ``by`` and ``message``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

import numpy as np
import onnx_node
from protocol import Job, Tell, brief, each_job, fault, read_job


def by_runtime(job: Job, node: onnx_node.Node, inputs: dict[str, np.ndarray]) -> tuple[list[np.ndarray], str]:
    import onnxruntime as ort
    from onnx_runtime_node import opened

    session = opened(node.model.read_bytes())
    return session.run(list(job.outputs), inputs), f"ONNX Runtime {ort.__version__}"


def by_reference(
    job: Job, node: onnx_node.Node, inputs: dict[str, np.ndarray]
) -> tuple[list[np.ndarray], str]:
    import onnx
    from onnx.reference import ReferenceEvaluator

    results = ReferenceEvaluator(str(node.model)).run(list(job.outputs), inputs)
    return results, f"the reference implementation of onnx {onnx.__version__}"


def judged(job: Job) -> dict[str, str]:
    node = onnx_node.read_node(job)
    reasons = []
    ways: tuple[Callable[..., tuple[list[np.ndarray], str]], ...] = (by_runtime, by_reference)
    for way in ways:
        try:
            inputs = {name: onnx_node.as_numpy(job, 0, name) for name in job.inputs}
            results, by = way(job, node, inputs)
        except NotImplementedError:
            reasons.append(f"The reference implementation has no {node.operator}.")
            continue
        except Exception as error:  # whatever it raises, it has no word on this node
            reasons.append(brief(error))
            continue
        faults = [
            fault(np.asarray(result), job.expected[name], job.dtypes[name])
            for result, name in zip(results, job.outputs, strict=True)
        ]
        sentence = next((each for each in faults if each), "")
        return {"status": "wrong_result" if sentence else "ok", "by": by, "message": sentence}
    return {"status": "unsupported", "by": "", "message": reasons[-1]}


def judge(arguments: list[str], tell: Tell) -> None:
    try:
        tell({**judged(read_job(arguments))})
    except Exception as error:
        tell({"status": "failed", "by": "", "message": brief(error)})


if __name__ == "__main__":
    for module in ("onnx.reference", "onnx_runtime_node"):
        with suppress(ImportError):  # once for all jobs; who lacks it is told of where it would judge
            import_module(module)
    each_job(judge)
