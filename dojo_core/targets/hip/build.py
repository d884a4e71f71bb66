"""HIP text compiled for an AMD GPU by clang, offline, and what the assembly says of it: never executed."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dojo_core.codegen.assembly import Assembly, linked
from dojo_core.files import write_text
from dojo_core.measure.compiling import run_watched
from dojo_core.measure.limits import COMPILE_SECONDS, MESSAGE_CHARACTERS
from dojo_core.measure.places import cache_directory
from dojo_core.targets.gpu.code import GpuCode
from dojo_core.targets.gpu.feedback import Feedback, KernelReport, NoFeedback

ARCHITECTURE = "gfx90a"  # MI200
HOW_TO_GET = "No compiler for AMD GPUs is here. Install clang: apt-get install clang-19."


def compiler() -> str | None:
    """The path of clang, where one is."""
    return shutil.which("clang-19") or shutil.which("clang")


def feedback(
    code: GpuCode, architecture: str = ARCHITECTURE, timeout: float = COMPILE_SECONDS
) -> Feedback | NoFeedback:
    """Compile and report. Occupancy: waves of a SIMD over its 8, by its 512 vector registers alone."""
    clang = compiler()
    if clang is None:
        return NoFeedback(HOW_TO_GET, True)
    try:
        text = _compiled(clang, code, architecture, timeout)
    except ValueError as error:
        return NoFeedback(str(error), False)
    return Feedback(architecture, Path(clang).name, tuple(_report(code, s, text) for s in code.kernels))


def assembly(code: GpuCode, architecture: str = ARCHITECTURE, timeout: float = COMPILE_SECONDS) -> Assembly:
    """The assembly, linked line by line with the HIP text and its program.

    Raises ValueError with what the compiler said, or how to get one.
    """
    clang = compiler()
    if clang is None:
        raise ValueError(HOW_TO_GET)
    text = _compiled(clang, code, architecture, timeout, ("-gline-tables-only",))
    return linked("\n".join(map(_called_from, text.splitlines())), code.nodes, 0, ";")


def _called_from(row: str) -> str:
    """A ``.loc`` of an inlined function as one of the kernel's own line, the last in clang's comment."""
    callers = re.findall(r"@\[ [^ ]*:(\d+):\d+", row)
    return f".loc 1 {callers[-1]} 0" if callers else row


def _compiled(clang: str, code: GpuCode, architecture: str, timeout: float, more: Sequence[str] = ()) -> str:
    """The assembly's text. Raises ValueError with what the compiler said."""
    with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="hip-") as name:
        folder = Path(name)
        write_text(folder / "kernels.hip", code.text)
        device = [
            "-x",
            "hip",
            f"--offload-arch={architecture}",
            "--cuda-device-only",
            "-nogpuinc",
            "-nogpulib",
        ]
        fuse = "-ffp-contract=off" if code.strict else "-ffp-contract=fast"
        command = [clang, *device, *more, "-O3", fuse, "-S", "kernels.hip", "-o", "kernels.s"]
        status, log = run_watched(command, folder, timeout)
        if status:
            raise ValueError(f"{Path(clang).name}: {log[:MESSAGE_CHARACTERS]}")
        return (folder / "kernels.s").read_text(encoding="utf-8")


def _report(code: GpuCode, symbol: str, text: str) -> KernelReport:
    entry = next(e for e in text.split("  - .agpr_count:")[1:] if re.search(rf"\.name:\s+{symbol}\b", e))

    def number(key: str) -> int:
        match = re.search(rf"\.{key}:\s+(\d+)", entry)
        return int(match[1]) if match else 0

    launch = next(launch for launch, _ in code.launches() if launch.symbol == symbol)
    registers = number("vgpr_count")
    waves = min(8, 512 // max(8, -(-registers // 8) * 8))
    return KernelReport(
        symbol,
        launch.blocks,
        launch.threads,
        registers,
        4 * number("vgpr_spill_count"),
        number("private_segment_fixed_size"),
        number("group_segment_fixed_size"),
        waves / 8,
    )
