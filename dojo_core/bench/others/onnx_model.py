"""ONNX Runtime on a whole model: ``onnx_model.py MODEL INPUTS.npz OUTPUTS.npz``.

Standard output carries JSON lines. The first says whether it is ready (``status``, ``by``, ``message``); the
outputs of one run are in the second archive then, by name. Each line of standard input, a number of runs, is
answered with their ``seconds``.
"""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np
from protocol import brief


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(said: object) -> None:
        print(json.dumps(said), file=answers, flush=True)

    model, given, results = sys.argv[1:]
    try:
        import onnxruntime as ort
        from onnx_runtime_node import opened

        session = opened(model)
        with np.load(given) as archive:
            inputs = {name: archive[name] for name in archive.files}
        names = [each.name for each in session.get_outputs()]
        outputs = session.run(names, inputs)
        np.savez(results, **dict(zip(names, outputs, strict=True)))
    except ImportError:
        answer({"status": "missing", "message": "ONNX Runtime is not installed."})
        return
    except Exception as error:  # whatever it raises, it does not take this model
        answer({"status": "failed", "message": brief(error)})
        return
    answer({"status": "ok", "by": f"ONNX Runtime {ort.__version__}"})
    for line in sys.stdin:
        seconds = []
        for _ in range(json.loads(line)):
            began = time.perf_counter()
            session.run(names, inputs)
            seconds.append(time.perf_counter() - began)
        answer({"seconds": seconds})


if __name__ == "__main__":
    main()
