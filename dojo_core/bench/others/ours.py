"""A program of ours, compiled: what it makes of constants is made when a set of arrays is, not in a run."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path

import numpy as np
from protocol import Job, Variant, Variants, paged, serve

FILE = "DOJO_BENCH_MADE"  # names a file: what is called, with which arrays (dojo_core/targets/cpu/made.py)


def prepare(job: Job) -> tuple[Variants, str]:
    told = json.loads(Path(os.environ[FILE]).read_text(encoding="utf-8"))
    return {"compiled": lambda: prepared(job, told)}, ""


def prepared(job: Job, told: dict) -> Variant:
    """A call for each set."""
    workspace = paged((told["workspace"] + 64,), np.uint8)
    runs = []
    for arrays in job.sets:
        mine = dict(arrays)
        if "once" in told:
            for name, size in told["once"]["bytes"].items():
                mine.setdefault(name, paged((size,), np.uint8))
            bound(told["once"], mine, workspace)()
        call, outputs = bound(told["each_run"], mine, workspace), tuple(arrays[name] for name in job.outputs)

        def run(call=call, outputs=outputs):
            call()
            return outputs

        runs.append(run)
    return Variant(runs)


def bound(part: dict, arrays: dict[str, np.ndarray], workspace: np.ndarray):
    """A program's function with its arrays."""
    function = getattr(ctypes.CDLL(part["library"]), part["symbol"])
    function.restype, function.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p]
    given = [arrays[name] for name in part["arrays"]]
    places = (ctypes.c_void_p * len(given))(*(array.ctypes.data for array in given))
    at = workspace.ctypes.data

    def call(held=(given, workspace)):
        function(places, at)

    return call


if __name__ == "__main__":
    serve(prepare, every_dtype=True)
