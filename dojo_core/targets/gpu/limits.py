"""What a GPU lets a program do: the limits that CUDA and HIP devices share in kind."""

from __future__ import annotations

from dataclasses import dataclass

from dojo_core.program.gpu import holds
from dojo_core.program.target import Target
from dojo_core.program.tree import Program, Scope
from dojo_core.program.validity import Fault

# 16 bytes a thread is the widest access of both families; dtypes without arithmetic have no vectors.
VECTOR_WIDTHS = {"f32": (4, 2), "f64": (2,), "i32": (4, 2), "i64": (2,), "u32": (4, 2), "u64": (2,)}
MARKS = frozenset("uvgbw")
TENSOR_CORES = "m"
LOCATIONS = ("heap", "shared", "local", "stack")


@dataclass(frozen=True)
class GpuTarget(Target):
    """A kind of GPU. ``stack_bytes`` and ``register_cells`` are of one thread."""

    warp: int = 32  # lanes
    block_threads: int = 1024
    shared_bytes: int = 48 * 1024  # of one block, without opting in to more
    grid_blocks: int = 2**31 - 1
    launches: int = 1024  # of one run of a program: each costs microseconds

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def own_threads(self) -> bool:
        return True

    judges_plain = False  # its conditions are of marks and of locations beside the heap

    def fault(self, program: Program, policy: str) -> Fault | None:
        from dojo_core.targets.gpu.conditions import gpu_fault

        return gpu_fault(program, self, policy)

    def temporary(self, above: tuple[Scope, ...]) -> str:
        """Shared by a block outside phases, the thread's own inside, on the heap outside kernels."""
        marks = {s.mark for s in above}
        if "b" in marks:
            return "stack"
        if "g" in marks:
            return "shared"
        return "heap" if not above or holds(above[-1], "g") else "stack"


def gpu(name: str, title: str, warp: int, more_marks: str = "") -> GpuTarget:
    """A GPU target with the limits that all devices of today share; ``more_marks``: those that some know."""
    return GpuTarget(
        name=name,
        title=title,
        vector_widths=VECTOR_WIDTHS,
        marks=MARKS | set(more_marks),
        locations=LOCATIONS,
        stack_bytes=64 * 1024,  # devices allow 512 KiB of local memory a thread; what is used is slow
        register_cells=255,  # 32-bit registers of a thread
        unrolled_ops=4096,
        threads=256,  # a usual block: what splits are offered for
        warp=warp,
        tables=False,
        passes={
            "greedy": "agents.passes.gpu:greedy_on_a_gpu",
            "heuristic": "agents.passes.gpu:heuristic_on_a_gpu",
        },
    )
