"""Programs of ours in a process like a baseline's: what they make of constants alone is made once, before.

In a model a weight is the same in every run, so that libraries lay it out beforehand, and so does the Dojo
(``graph/hoisting.py``). Beside baselines that may do so, a program of ours may.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dojo_core.bench.baselines import Baseline
from dojo_core.bench.contest import BenchFailed
from dojo_core.bench.ours import Entry
from dojo_core.codegen.built import CompileError
from dojo_core.files import write_text
from dojo_core.graph.hoisting import hoisted
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.build import build
from dojo_core.targets.cpu.codegen import generate

FILE = "DOJO_BENCH_MADE"  # the variable that names what the process reads


def made_baseline(entry: Entry, policy: str, folder: Path, name: str) -> Baseline:
    """What starts an entry in a process of its own, whose code lies in a folder by a name. Raises
    BenchFailed where it does not compile."""
    halves = hoisted(entry.program, entry.constants)
    parts = {"each_run": halves.each_run, "once": halves.once} if halves else {"each_run": entry.program}
    codes = [generate(program, policy) for program in parts.values()]
    job: dict[str, Any] = {"workspace": max(code.workspace_bytes for code in codes)}
    for (part, program), built in zip(parts.items(), build(codes), strict=True):
        if isinstance(built, CompileError):
            raise BenchFailed(f"Our {entry.name} does not compile: {built.message}")
        job[part] = {"library": built.library, "symbol": built.symbol, **_arrays(program)}
    path = folder / f"{name}.json"
    write_text(path, json.dumps(job))
    return Baseline(entry.name, entry.details, "ours.py", environment={FILE: str(path)})


def _arrays(program: Program) -> Mapping[str, Any]:
    arrays = (*program.inputs, *program.outputs)
    return {"arrays": arrays, "bytes": {name: program.buffer_of[name].bytes for name in arrays}}
