"""The native modules compile for Arm and RISC-V. None is linked or run: that takes Python's library there."""

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pybind11
import pytest

SOURCES = Path(__file__).resolve().parent.parent / "native" / "src"
# What Python sees: most of it headers, whose templates take seconds to compile. They have no assembly.
GLUE = ("module.cpp", "snitch_module.cpp")


PARTS = ["ours", pytest.param("glue", marks=pytest.mark.soak)]


@pytest.mark.thorough  # another machine's compiler; make setup builds them here
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("triple", ["aarch64-linux-gnu", "riscv64-linux-gnu"])
def test_the_native_modules_compile(triple, part, tmp_path):
    compiler = shutil.which(f"{triple}-g++")
    if compiler is None:
        pytest.skip(f"{triple}-g++ is not here. This brings it: apt-get install g++-{triple}")
    headers = [f"-I{sysconfig.get_path('include')}", f"-I{pybind11.get_include()}", f"-I{SOURCES}"]
    command = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fopenmp", *headers]
    others = sorted(file.name for file in SOURCES.glob("*.cpp") if file.name not in GLUE)
    assert len(others) > 3
    # At once: most of it is headers.
    source = "".join(f'#include "{name}"\n' for name in (others if part == "ours" else GLUE))
    command += ["-c", "-o", "ours.o"] if part == "ours" else ["-fsyntax-only"]
    done = subprocess.run(
        [*command, "-x", "c++", "-"],
        input=source, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [file.name for file in tmp_path.iterdir()] == (["ours.o"] if part == "ours" else [])
