"""Apache TVM tuned by MetaSchedule for this kernel and shape, as its documentation has it for CPUs.

``$DOJO_TVM_TRIALS`` candidates are measured (0: none; the default is below); the logs are kept in the folder
``$DOJO_TVM_LOGS``, so that a second bench finds them.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import tvm
import tvm_operators
from protocol import Job, Unsupported, Variant, Variants, serve
from tvm import relax

TRIALS = int(os.environ.get("DOJO_TVM_TRIALS", "256"))


def logs(job: Job) -> Path:
    place = os.environ.get("DOJO_TVM_LOGS") or Path(tempfile.gettempdir()) / f"dojo-tvm-{os.getuid()}"
    shape = "x".join(map(str, job.shape))
    return Path(place) / f"{tvm.__version__}-{job.kernel}-{shape}-{TRIALS}"


def tuned(job: Job) -> Variant:
    goal = tvm_operators.target()
    folder = logs(job)
    done = folder / "done"
    folder.mkdir(parents=True, exist_ok=True)
    pipeline = relax.get_pipeline(
        "static_shape_tuning",
        total_trials=0 if done.exists() else TRIALS,
        target=goal,
        work_dir=str(folder),
    )
    with goal:
        module = pipeline(tvm_operators.module(job))
    done.touch()
    return tvm_operators.running(job, tvm.compile(module, goal))


def prepare(job: Job) -> tuple[Variants, str]:
    tvm_operators.operator(job)
    if TRIALS == 0:
        raise Unsupported("Tuning is switched off (DOJO_TVM_TRIALS is 0).")
    return {f"{TRIALS} trials": lambda: tuned(job)}, tvm.__version__


if __name__ == "__main__":
    serve(prepare)
