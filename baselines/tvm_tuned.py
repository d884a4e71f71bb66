"""Apache TVM tuned by MetaSchedule for this kernel and shape, as Relax's static_shape_tuning has it.

The limits on building and running a candidate are longer than that pipeline's, which a slow machine exceeds.
``$DOJO_TVM_TRIALS`` candidates are measured (0: none; the default is below); the logs are kept in the folder
``$DOJO_TVM_LOGS``, so that a second bench finds them.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import tvm
import tvm_operators
from protocol import THREADS, Job, Unsupported, Variant, Variants, serve
from tvm import relax
from tvm.s_tir.meta_schedule import relax_integration
from tvm.s_tir.meta_schedule.builder import LocalBuilder
from tvm.s_tir.meta_schedule.runner import LocalRunner

BUILD_SECONDS, RUN_SECONDS = 300.0, 120.0  # of one candidate; each worker first imports TVM
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
    module = tvm_operators.module(job)
    with goal:
        for step in (relax.transform.DecomposeOpsForInference(), relax.transform.CanonicalizeBindings()):
            module = step(module)
        module = relax.get_pipeline("zero")(module)
        if not done.exists():
            relax_integration.tune_relax(
                module,
                {},
                goal,
                str(folder),
                max_trials_global=TRIALS,
                builder=LocalBuilder(max_workers=THREADS, timeout_sec=BUILD_SECONDS),
                runner=LocalRunner(timeout_sec=RUN_SECONDS),
            )
            done.touch()
        records = folder / "database_tuning_record.json"
        if not records.exists() or not records.read_text().strip():
            raise RuntimeError(
                f"MetaSchedule found no candidate that runs; its logs are in {folder / 'logs'}."
            )
        module = relax.transform.MetaScheduleApplyDatabase(str(folder))(module)
    return tvm_operators.running(job, tvm.compile(module, goal))


def prepare(job: Job) -> tuple[Variants, str]:
    tvm_operators.operator(job)
    if TRIALS == 0:
        raise Unsupported("Tuning is switched off (DOJO_TVM_TRIALS is 0).")
    return {f"{TRIALS} trials": lambda: tuned(job)}, tvm.__version__


if __name__ == "__main__":
    serve(prepare)
