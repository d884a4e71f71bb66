"""Apache TVM tuned by MetaSchedule for this kernel and shape, as Relax's static_shape_tuning has it.

The limits on building and running a candidate are longer than that pipeline's, which a slow machine exceeds.
``$DOJO_TVM_TRIALS`` candidates are measured (0: none; the default is below), or as many as
``$DOJO_TVM_SECONDS`` allow: then the best found by that time runs. The logs are kept in the folder
``$DOJO_TVM_LOGS``, so that a second bench finds them. ``--tune`` after the protocol's arguments: the process
that tunes, which ends with all that it started when its standard input closes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import tvm
import tvm_operators
from protocol import THREADS, Job, Unsupported, Variant, Variants, read_job, serve
from tvm import relax
from tvm.s_tir.meta_schedule import relax_integration
from tvm.s_tir.meta_schedule.builder import LocalBuilder
from tvm.s_tir.meta_schedule.runner import LocalRunner

BUILD_SECONDS, RUN_SECONDS = 300.0, 120.0  # of one candidate; each worker first imports TVM
TRIALS = int(os.environ.get("DOJO_TVM_TRIALS", "256"))
SECONDS = float(os.environ.get("DOJO_TVM_SECONDS", "0"))  # 0: as long as the trials take
AT_ONCE = 64 if not SECONDS else 8  # candidates of a step: a short search learns of its first ones soon


def logs(job: Job) -> Path:
    place = os.environ.get("DOJO_TVM_LOGS") or Path(tempfile.gettempdir()) / f"dojo-tvm-{os.getuid()}"
    shape = "x".join(map(str, job.shape))
    within = f"-{SECONDS:g}s" if SECONDS else ""
    return Path(place) / f"{tvm.__version__}-{job.kernel}-{shape}-{TRIALS}{within}"


def lowered(job: Job, goal: tvm.target.Target) -> tvm.ir.IRModule:
    """The kernel's module as the tuner sees it."""
    module = tvm_operators.module(job)
    with goal:
        for step in (relax.transform.DecomposeOpsForInference(), relax.transform.CanonicalizeBindings()):
            module = step(module)
        return relax.get_pipeline("zero")(module)


def tune(job: Job) -> None:
    """Search; what is measured goes into the folder of logs as it comes."""
    goal = tvm_operators.target()
    module = lowered(job, goal)
    with goal:
        relax_integration.tune_relax(
            module,
            {},
            goal,
            str(logs(job)),
            max_trials_global=TRIALS,
            num_trials_per_iter=AT_ONCE,
            builder=LocalBuilder(max_workers=THREADS, timeout_sec=BUILD_SECONDS),
            runner=LocalRunner(timeout_sec=RUN_SECONDS),
        )


def search() -> str:
    """Tune in a process of its own, which ends when its time is up, or with this one; how it ended."""
    command = [sys.executable, __file__, *sys.argv[1:3], "1", *sys.argv[4:], "--tune"]
    # OpenMP, which comes with TVM, has bound this thread to a core: all that builds would share it.
    bind = getattr(os, "sched_setaffinity", None)  # where there is no such thing, nothing was bound
    cores = os.sched_getaffinity(os.getppid()) if bind else ()
    unbound = {
        name: value for name, value in os.environ.items() if name not in ("OMP_PROC_BIND", "OMP_PLACES")
    }
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=sys.stderr,
        start_new_session=True,
        env=unbound,
        preexec_fn=(lambda: bind(0, cores)) if bind else None,
    )
    try:
        process.wait(SECONDS or None)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):  # the compilers too, which would run while others are timed
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"within {SECONDS:g} s"
    return f"before it ended with status {process.returncode}" if process.returncode else "in all its trials"


def tuned(job: Job) -> Variant:
    folder = logs(job)
    folder.mkdir(parents=True, exist_ok=True)
    done, records = folder / "done", folder / "database_tuning_record.json"
    if not done.exists():
        done.write_text(search())
    if not records.exists() or not records.read_text(encoding="utf-8").strip():
        how = done.read_text(encoding="utf-8")
        raise RuntimeError(
            f"MetaSchedule found no candidate that runs {how}; "
            f"its logs are in {folder.name}/logs of DOJO_TVM_LOGS."
        )
    goal = tvm_operators.target()
    module = lowered(job, goal)
    with goal:
        module = relax.transform.MetaScheduleApplyDatabase(str(folder))(module)
    return tvm_operators.running(job, tvm.compile(module, goal))


def end_with_parent() -> None:
    """End this process and all that it started when whoever started it is gone."""

    def listen() -> None:
        sys.stdin.read()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=listen, daemon=True).start()


def prepare(job: Job) -> tuple[Variants, str]:
    tvm_operators.operator(job)
    if TRIALS == 0:
        raise Unsupported("Tuning is switched off (DOJO_TVM_TRIALS is 0).")
    named = f"what {SECONDS:g} s of tuning find" if SECONDS else f"{TRIALS} trials"
    return {named: lambda: tuned(job)}, tvm.__version__


if __name__ == "__main__":
    if sys.argv[-1] == "--tune":
        end_with_parent()
        tune(read_job(sys.argv[1:-1]))
    else:
        serve(prepare)
