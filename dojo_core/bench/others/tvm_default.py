"""Apache TVM with its default CPU pipeline; as a variant, with the CPU rules of DLight where they apply."""

from __future__ import annotations

import tvm
import tvm_operators
from protocol import Job, Variant, Variants, serve
from tvm import relax
from tvm.s_tir import dlight


def default(job: Job) -> Variant:
    goal = tvm_operators.target()
    return tvm_operators.running(job, tvm.compile(tvm_operators.module(job), goal))


def scheduled(job: Job) -> Variant:
    goal = tvm_operators.target()
    with goal:
        module = relax.get_pipeline("zero")(tvm_operators.module(job))
        rules = (dlight.cpu.GEMV(), dlight.cpu.Reduction())
        module = dlight.ApplyDefaultSchedule(*rules)(module)
    return tvm_operators.running(job, tvm.compile(module, goal))


def prepare(job: Job) -> tuple[Variants, str]:
    tvm_operators.operator(job)
    variants = {"default pipeline": lambda: default(job), "DLight's CPU rules": lambda: scheduled(job)}
    return variants, tvm.__version__


if __name__ == "__main__":
    serve(prepare)
