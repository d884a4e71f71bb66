"""HIP: AMD GPUs of the CDNA family, whose waves have 64 lanes."""

from __future__ import annotations

from functools import cached_property

from dojo_core.codegen.assembly import Assembly
from dojo_core.program.tree import Program
from dojo_core.targets.backend import Words
from dojo_core.targets.gpu.backend import PLAY, GpuBackend
from dojo_core.targets.gpu.code import GpuCode
from dojo_core.targets.gpu.feedback import Feedback, NoFeedback
from dojo_core.targets.gpu.limits import GpuTarget, gpu


class Hip(GpuBackend):
    """Emulated and compiled; nothing here drives an AMD GPU."""

    name = "hip"
    words = Words(
        "AMD GPU (HIP)",
        "Verified in an emulator and compiled; without the GPU nothing has a time.",
        code="HIP",
        language="cuda",
        play=PLAY,
    )

    @cached_property
    def limits(self) -> GpuTarget:
        return gpu(self.name, self.words.title, warp=64)

    def feedback(self, code: GpuCode) -> Feedback | NoFeedback:
        from dojo_core.targets.hip.build import feedback

        return feedback(code)

    def assembly(self, program: Program, policy: str) -> Assembly:
        from dojo_core.targets.hip.build import assembly

        return assembly(self.generate(program, policy))
