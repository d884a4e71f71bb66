"""The assembly of a program on its target."""

from __future__ import annotations

from dojo_core.codegen.assembly import Assembly
from dojo_core.program.tree import Program
from dojo_core.targets.registry import SIMULATED


def assembly_of(program: Program, target: str, policy: str) -> Assembly:
    """What a target's compiler makes of a program.

    Raises ValueError with a sentence (what it said, what is missing, or that there is nothing to list), and
    NotGeneratable.
    """
    if target == "cuda":
        from dojo_core.targets.cuda import build as cuda
        from dojo_core.targets.gpu.check import gpu_code

        return cuda.assembly(gpu_code(program, target, policy))
    if target == "hip":
        from dojo_core.targets.gpu.check import gpu_code
        from dojo_core.targets.hip import build as hip

        return hip.assembly(gpu_code(program, target, policy))
    if target in SIMULATED:
        raise ValueError("The code of this target is assembly already.")
    from dojo_core.targets.cpu.build import assembly
    from dojo_core.targets.cpu.codegen import generate

    return assembly(generate(program, policy))
