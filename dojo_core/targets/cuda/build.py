"""From CUDA text to a cubin, by NVRTC or nvcc, and what ptxas and the disassembler say of it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from dojo_core.bounded_json import read_object
from dojo_core.codegen.assembly import Assembly, linked
from dojo_core.extras import install_line
from dojo_core.files import write_text
from dojo_core.measure import sealed
from dojo_core.measure.compiling import run_watched
from dojo_core.measure.limits import COMPILE_SECONDS, MESSAGE_CHARACTERS
from dojo_core.measure.places import cache_directory
from dojo_core.targets.cuda import nvrtc
from dojo_core.targets.gpu.code import GpuCode
from dojo_core.targets.gpu.feedback import Feedback, KernelReport, NoFeedback, occupancy

ARCHITECTURE = "sm_90"  # H100 and its family: what is compiled for where there is no device

REPORTS = "2"  # of kept reports: another number where the same compiler's words are read in another way
LOG_CHARACTERS = 1_000_000  # ptxas tells some lines of every kernel

HOW_TO_GET = (
    f"No CUDA compiler is here. Install NVRTC: {install_line('gpu')} (or the CUDA toolkit, for nvcc)."
)
HOW_TO_DISASSEMBLE = (
    f"The disassembler for NVIDIA's machine code is missing: {install_line('gpu')} (or the CUDA toolkit)."
)


@dataclass(frozen=True, slots=True)
class Compiler:
    """``name`` for people; ``library`` and ``builtins`` of NVRTC, or the path of nvcc."""

    name: str
    library: str = ""
    builtins: str = ""
    nvcc: str = ""


@cache
def compiler() -> Compiler | None:
    """NVRTC from its PyPI package or a toolkit, if it loads, else nvcc, else None."""
    for folder in _library_folders():
        for library in sorted(folder.glob("libnvrtc.so.1*"), reverse=True):
            builtins = sorted(folder.glob("libnvrtc-builtins.so.*"))
            if _loads(library):
                return Compiler("NVRTC", str(library), str(builtins[0]) if builtins else "")
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    return Compiler("nvcc", nvcc=nvcc) if nvcc else None


def _loads(library: Path) -> bool:
    """Can a process load it? Not this one: what a library does on loading ends nothing but itself."""
    load = [sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", str(library)]
    try:
        return subprocess.run(load, capture_output=True, timeout=20, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _packages() -> Path:
    return Path(sysconfig.get_paths()["purelib"]) / "nvidia"


def _library_folders() -> list[Path]:
    toolkits = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    folders = [*_packages().glob("cu*/lib"), *_packages().glob("cuda_nvrtc/lib")]
    return [*folders, *(Path(t) / "lib64" for t in toolkits if t)]


def disassembler() -> str | None:
    """The path of nvdisasm, from the toolkit or its PyPI package."""
    program = shutil.which("nvdisasm")
    if program:
        return program
    folders = [
        Path("/usr/local/cuda/bin"),
        *_packages().glob("cu*/bin"),
        *_packages().glob("cuda_nvdisasm/bin"),
    ]
    for path in (folder / "nvdisasm" for folder in folders):
        if os.access(path, os.X_OK):
            return str(path)
    return None


def feedback(
    code: GpuCode, architecture: str = ARCHITECTURE, timeout: float = COMPILE_SECONDS
) -> Feedback | NoFeedback:
    """Compile and report; cached by content."""
    chosen = compiler()
    if chosen is None:
        return NoFeedback(HOW_TO_GET, True)
    disassemble = disassembler()
    key = hashlib.sha256(
        "\0".join(
            (REPORTS, code.text, architecture, str(chosen), str(disassemble), str(code.strict))
        ).encode()
    ).hexdigest()[:24]
    file = sealed.folder(cache_directory() / "objects") / f"{key}.json"
    contents = sealed.read(file)
    if contents is not None:
        held = read_object(bytes(contents))
        return Feedback(held["architecture"], held["tool"], tuple(KernelReport(**k) for k in held["kernels"]))
    with tempfile.TemporaryDirectory(dir=file.parent, prefix="build-") as name:
        folder = Path(name)
        status, log = _compile(code, chosen, architecture, folder, timeout)
        if status:
            return NoFeedback(f"{chosen.name}: {log[:MESSAGE_CHARACTERS]}", False)
        wide = _wide(disassemble, folder, code) if disassemble else {}
        reports = tuple(_report(code, symbol, log, wide.get(symbol)) for symbol in code.kernels)
        result = Feedback(architecture, chosen.name, reports)
    sealed.keep(file, json.dumps(asdict(result)).encode())
    return result


def content_key(code: GpuCode, architecture: str) -> str:
    """The key of everything known about generated code: its text, the device's kind, compiler, flags."""
    about = (code.text, architecture, str(compiler()), str(code.strict), str(code.workspace_bytes))
    return hashlib.sha256("\0".join((*about, repr(code.error_bound))).encode()).hexdigest()[:24]


def compiled(code: GpuCode, architecture: str, timeout: float = COMPILE_SECONDS) -> Path:
    """The machine code for a device as a file, kept by content and sealed (``measure/sealed.py``).

    Raises ValueError with what the compiler said, or how to get one.
    """
    chosen = compiler()
    if chosen is None:
        raise ValueError(HOW_TO_GET)
    objects = sealed.folder(cache_directory() / "objects")
    file = objects / f"{content_key(code, architecture)}.cubin"
    if sealed.is_intact(file):
        os.utime(file)
        return file
    with tempfile.TemporaryDirectory(dir=objects, prefix="build-") as name:
        status, log = _compile(code, chosen, architecture, Path(name), timeout)
        if status or not (Path(name) / "kernels.cubin").exists():
            raise ValueError(f"{chosen.name}: {log[:MESSAGE_CHARACTERS]}")
        sealed.seal(Path(name) / "kernels.cubin")
        sealed.place(Path(name) / "kernels.cubin", file)
    return file


def assembly(code: GpuCode, architecture: str = ARCHITECTURE, timeout: float = COMPILE_SECONDS) -> Assembly:
    """The machine code (SASS) as a disassembler shows it, linked line by line with the CUDA and its program.

    Raises ValueError with what the compiler said, or which tool is missing and how to get it.
    """
    chosen, tool = compiler(), disassembler()
    if chosen is None or tool is None:
        raise ValueError(HOW_TO_GET if chosen is None else HOW_TO_DISASSEMBLE)
    with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="assembly-") as name:
        folder = Path(name)
        status, log = _compile(code, chosen, architecture, folder, timeout, ["-lineinfo"])
        if status:
            raise ValueError(f"{chosen.name}: {log[:MESSAGE_CHARACTERS]}")
        text = _disassembled(tool, folder, "-gi")
    return linked("\n".join(_as_directives(text)), code.nodes, 0, ";")


def _as_directives(text: str) -> Iterator[str]:
    """nvdisasm's rows, with ``.loc`` for its comments on lines. Of an inlined function it tells its own line
    first, then its callers': the last one, the kernel's, holds."""
    for row in text.splitlines():
        place = re.match(r'\s*//## File "[^"]*kernels\.cu", line (\d+)$', row)
        if place:
            yield f".loc 1 {place[1]} 0"
        elif not row.lstrip().startswith("//"):
            yield re.sub(r"/\*[0-9a-f]{4,}\*/ {0,19}", "", row)


def _compile(
    code: GpuCode,
    chosen: Compiler,
    architecture: str,
    folder: Path,
    timeout: float,
    more: Sequence[str] = (),
) -> tuple[int | None, str]:
    """Compile to ``folder/kernels.cubin``: (the compiler's status, its log with ptxas' report)."""
    write_text(folder / "kernels.cu", code.text)
    fuse = [*more, "--fmad=false"] if code.strict else more
    if chosen.nvcc:
        flags = ["-std=c++17", f"-arch={architecture}", "-cubin", "-Xptxas", "-v", *fuse]
        command = [chosen.nvcc, *flags, "kernels.cu", "-o", "kernels.cubin"]
    else:
        fuse = [*fuse, "--device-int128"] if "i128" in code.text else fuse
        flags = ["--std=c++17", f"--gpu-architecture={architecture}", "--ptxas-options=-v", *fuse]
        script = [sys.executable, "-I", "-S", nvrtc.__file__]
        command = [*script, chosen.library, chosen.builtins, "kernels.cu", "kernels.cubin", *flags]
    return run_watched(command, folder, timeout, LOG_CHARACTERS)


def _report(code: GpuCode, symbol: str, log: str, wide: int | None) -> KernelReport:
    """One kernel's lines of ptxas' report (``-v``)."""
    part = re.search(
        rf"Compiling entry function '{symbol}'(.*?)(?=Compiling entry function|\Z)", log, re.DOTALL
    )
    assert part is not None, log

    def number(pattern: str) -> int:
        match = re.search(pattern, part[1])
        return int(match[1]) if match else 0

    launch = next(launch for launch, _ in code.launches() if launch.symbol == symbol)
    registers, shared = number(r"Used (\d+) registers"), number(r"(\d+) bytes smem")
    return KernelReport(
        symbol,
        launch.blocks,
        launch.threads,
        registers,
        number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
        number(r"(\d+) bytes stack frame"),
        shared,
        occupancy(launch.threads, registers, shared),
        wide,
    )


def _wide(tool: str, folder: Path, code: GpuCode) -> dict[str, int]:
    """128-bit accesses to global memory in each kernel's machine code."""
    text = _disassembled(tool, folder)
    counts: dict[str, int] = {}
    for symbol in code.kernels:
        section = re.search(rf"\.section\s+\.text\.{symbol},(.*?)(?=\.section|\Z)", text, re.DOTALL)
        if section:
            counts[symbol] = len(re.findall(r"\b(?:LDG|STG)\S*\.128\b", section[1]))
    return counts


def _disassembled(tool: str, folder: Path, *options: str) -> str:
    """The text of ``folder/kernels.cubin``; empty where the disassembler does not take it."""
    done = subprocess.run(
        [tool, "-c", *options, "kernels.cubin"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=COMPILE_SECONDS,
    )
    return done.stdout if done.returncode == 0 else ""
