"""Exported libraries: what they hold, where they may be written, and that they work without the Dojo."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import cmake
import numpy as np
import pytest
from typer.testing import CliRunner

from dojo_core import kernels, parse
from dojo_core.bench import ours
from dojo_core.cli import app
from dojo_core.export import (
    NotExported,
    best,
    library,
    of_game,
    of_line,
    sets_for,
    start_game,
    verified,
    write,
    zipped,
)
from dojo_core.export.folder import MANIFEST
from dojo_core.export.kernel import comment, instance, kernel_files
from dojo_core.export.names import argument, library_name
from dojo_core.export.narrow import narrowed, widest_vector
from dojo_core.game import Game
from dojo_core.line import line_for, read_line, recorded_lines
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.machine import this_machine
from dojo_core.measure.pool import STORED
from dojo_core.measure.records import Record, Records, Sample, SavedGame
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.program.interpret import interpret
from dojo_core.targets.cpu.codegen import PREAMBLE, generate
from dojo_core.targets.cpu.excerpt import declarations, needed
from dojo_core.targets.cpu.limits import cpu, narrower
from dojo_core.targets.cpu.processor import host, known
from tests.compiled import random_inputs, run_program

pytestmark = pytest.mark.usefixtures("kept_workers")

USED = Path(__file__).parent / "exported"
LANES = cpu().vector_widths["f32"][0]
PAIR = """\
kernel pair
in new, lambda
out workspace, n
new f32 [6, 32] heap
lambda i32 [6, 32] heap
workspace f32 [6, 32] heap
n i32 [6] heap
t f32 [6, 32] heap
6 32 t[{0},{1}] = exp(new[{0},{1}])
6 32 workspace[{0},{1}] = t[{0},{1}] / 2
6 n[{0}] = 0
| 32 n[{0}] += lambda[{0},{1}]
"""
ROWS = """\
kernel rows
in table, k, scale
out picked
domain k 2 6 distinct
domain scale 0 1
table f32 [5, 8] heap
k i64 [4] heap
scale f32 [4] heap
picked f32 [4, 8] heap
j i32 [4] heap
4 j[{0}] = i32(scale[{0}])
4 8 picked[{0},{1}] = table[k[{0}]-2,{1}]
| 8 picked[{0},{1}] += table[j[{0}],{1}]
"""
OWN = "kernel mine\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = x[{0}]*2\n"


def softmax(shape: str = "64x64"):
    """The recorded line with this machine's widest vectors."""
    return of_line(recorded_lines()["softmax"], "softmax", shape)


def own(text: str, policy: str = "reassoc"):
    return of_game(Game.new(parse(text), policy=policy), "a text")


@pytest.fixture
def records(tmp_path):
    with Records(tmp_path / "records.sqlite") as opened:
        yield opened


def record(choice, seconds: float, line: str = "", status: str = "ok") -> Record:
    return Record(
        choice.program.hash, choice.program.text, choice.start.hash, "softmax", "64x64", "f32", choice.policy,
        line, "cpu", this_machine().fingerprint, this_machine().details, "c", status, status == "ok", seconds,
        (Sample(seconds * 1e9),), player="Ada */", time=1.0e9,
    )  # fmt: skip


# ------------------------------------------------------------------------- without the Dojo


def environment() -> dict[str, str]:
    """What a stranger's machine has: compilers and CMake."""
    return {"PATH": os.pathsep.join([cmake.CMAKE_BIN_DIR, *os.defpath.split(os.pathsep)]), "HOME": "/nowhere"}


def done(*command: object, cwd: Path, **added: str) -> str:
    ran = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment() | added,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "warning" not in (ran.stdout + ran.stderr).lower(), ran.stdout + ran.stderr
    return ran.stdout


def various():
    """Two shapes of one kernel, one of strange names, under the policy strict, and one that reads indices
    from its inputs."""
    return [softmax(), softmax("8x96"), own(PAIR, "strict"), own(ROWS)]


@pytest.fixture
def exported(tmp_path) -> Path:
    folder = tmp_path / "library"
    write(library(various(), "kept"), folder)
    return folder


# The suite has clang compile such kernels without a warning, below; make soak has it build all of it.
@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=pytest.mark.soak)])
def test_a_c_program_builds_with_it_and_gets_its_results(exported, tmp_path, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed (Debian: apt-get install {compiler})")
    none = "int main(void) { return 0; }"
    command = [compiler, "-fopenmp", "-x", "c", "-", "-o", tmp_path / "none"]
    if subprocess.run(command, input=none, text=True, capture_output=True, check=False).returncode:
        pytest.skip(f"{compiler} has no OpenMP here (Debian: apt-get install libomp-dev)")
    build, prefix, user = tmp_path / "build", tmp_path / "prefix", tmp_path / "user"
    done("cmake", "-S", exported, "-B", build, f"-DCMAKE_C_COMPILER={compiler}",
         "-DCMAKE_C_FLAGS=-Wall -Wextra", cwd=tmp_path)  # fmt: skip
    done("cmake", "--build", build, "-j2", cwd=tmp_path)
    done("cmake", "--install", build, "--prefix", prefix, cwd=tmp_path)
    shutil.copytree(USED, user)
    done("cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=tmp_path)
    done("cmake", "--build", user / "build", cwd=tmp_path)
    levels = {64: 3, 32: 2, 16: 1}[host().vector_bytes[0]]
    told = done(user / "build" / "main", cwd=tmp_path, OMP_NUM_THREADS="4")
    assert told.endswith(f"of {levels} levels\n")
    # What pip installs is this library beside the Python files: here without it, which would build anew.
    package = tmp_path / "site" / "kept"
    shutil.copytree(exported / "kept", package)
    [shared] = [path for path in build.iterdir() if path.name in ("libkept.so", "libkept.dylib")]
    shutil.copy(shared, package)
    assert run_alone(["use_python.py"], package.parent, tmp_path).endswith(f"of {levels} levels\n")


def run_without_the_dojo(scripts: list[str], libraries: list[Path], scratch: Path, *words: str) -> str:
    """What scripts that use libraries say, these installed by pip where nothing of ours is."""
    site = scratch / "site"
    install = "-m pip install --no-index --no-deps --no-build-isolation --disable-pip-version-check --target"
    done(sys.executable, *install.split(), site, *libraries, cwd=scratch)
    return run_alone(scripts, site, scratch, *words)


def run_alone(scripts: list[str], site: Path, scratch: Path, *words: str) -> str:
    """What scripts say that use the packages in a folder. One process runs them all: importing torch and
    readying its compiler is the greater part of their time."""
    # -I -S: neither this folder nor what .pth files add, so that the Dojo is not importable
    paths = [str(site), sysconfig.get_paths()["purelib"]]
    files = [str(USED / script) for script in scripts]
    start = f"import sys, runpy; sys.path[:0] = {paths!r}; [runpy.run_path(file) for file in {files!r}]"
    # Inductor would start processes that compile beside it, each with a torch of its own.
    inductor = {"TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    threads = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}
    return done(sys.executable, "-I", "-S", "-c", start, *words, cwd=scratch, **inductor, **threads)


# The recorded lines where they apply, else the heuristic pass; some sizes that no vector width divides.
MANY = {
    "add": "12x50", "relu_ffn": "2x8x14x14", "reducemean": "24x96", "layernorm": "32x64", "rmsnorm": "16x96",
    "batchnorm": "4x8x12x12", "matmul": "96x64x96", "bmm": "3x32x32x48", "gemv": "40x70",
    "conv": "1x16x8x14x14x3", "swiglu": "1x8x64x96", "gelu": "12x50", "attention": "2x16x24x32",
    "gqa": "2x2x16x24x32",
}  # fmt: skip
FEW = ("gelu", "matmul")


# Two kernels more are in the one library, as installing a second takes seconds. make test uses it with NumPy
# and without pip, above. torch.compile takes longest: make thorough has it trace a graph, and what that leads
# to, make soak has Inductor compile that.
@pytest.mark.parametrize(
    ("names", "name", "compiler"),
    [
        pytest.param((), "kept", "", marks=pytest.mark.thorough),
        pytest.param(FEW, "kept", "aot_eager", marks=pytest.mark.thorough),
        pytest.param(tuple(MANY), "many", "inductor", marks=pytest.mark.soak),
    ],
)
def test_a_python_package_works_with_numpy_and_operators_of_many_kernels_with_pytorch(
    records, tmp_path, names, name, compiler
):
    chosen = [best(kernel, MANY[kernel], records) for kernel in names]
    sources = {choice.source.partition(" ")[2].split()[0] for choice in chosen}
    assert not names or sources == {"line", "heuristic"}
    held = {"kept": various(), "many": []}
    held[name] += chosen
    libraries = [tmp_path / each for each in held if held[each]]
    for folder in libraries:
        write(library(held[folder.name], folder.name), folder)
    scripts = ["use_torch.py", "use_many.py"] if compiler else ["use_python.py"]
    told = run_without_the_dojo(scripts, libraries, tmp_path, compiler, name, *names)
    assert "levels" in told and (not names or f"{len(names)} operators" in told)


def test_a_kernel_file_tells_where_it_comes_from_and_holds_just_what_it_needs(records):
    chosen = softmax()
    records.add(record(chosen, 2.5e-3))
    files = library([verified(chosen, records)], "kept").files
    text = files["kernels/softmax_64x64.c"]
    head, _, code = text.partition("*/")
    assert "softmax_64x64: y = exp(x" in head and "in  x float32 [64, 64]" in head
    sentences = " ".join(head.replace("\n *", " ").split())
    assert "timed by Ada * / on 2001-09-09 01:46 UTC: 2.5 ms, the least of 1 runs." in sentences
    assert this_machine().compiler in sentences
    assert "\n *   1: join_scopes m@0\n" in head and f"\n *   {len(chosen.moves)}: parallelize m@0\n" in head
    for program in (chosen.start, chosen.program):
        assert all(f"\n *   {row}".rstrip() in head for row in program.text.splitlines())
    assert generate(chosen.program, chosen.policy).text.rstrip() in code
    assert "_erf(" not in code and "_exp(" in code
    assert "| 2.5 ms |" in files["README.md"]


def test_every_file_has_its_fields_filled_in():
    for path, text in library([softmax(), own(PAIR, "strict")], "kept").files.items():
        assert "@" not in text.replace("m@", "").replace("#1@", "") or path.startswith("kernels/"), path
        if path.endswith(".py"):
            compile(text, path, "exec")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", ["strict", "written_out", "STRICT"])
def test_macros_of_a_file_clash_with_no_name_and_say_how_gcc_is_to_compile_it(tmp_path, compiler, name):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed (Debian: apt-get install {compiler})")
    much = f"kernel {name}\nin x\nout y\nx f32 [520] heap\ny f32 [1] heap\n1 y[{{0}}] = 0\n"
    much += "1 65:u 8 y[{0}] += x[{1}*8+{2}]\n"
    write(library([own(much, "strict")], "kept"), tmp_path / "library")
    (code,) = (tmp_path / "library" / "kernels").glob("*.c")
    assert "static STRICT WRITTEN_OUT void" in code.read_text()
    done(
        compiler, "-Wall", "-Wextra", "-Werror", "-DKERNEL_LEVEL=avx2", "-c", code, "-o", "k.o", cwd=tmp_path
    )


def test_the_preamble_is_cut_into_declarations_that_are_the_preamble_again():
    cut = declarations(PREAMBLE)
    assert "".join(d.text for d in cut) == PREAMBLE
    assert all(d.names for d in cut if d.text.strip())
    assert needed("int x;", PREAMBLE) == ""
    root = declarations(needed("f32_sqrt(x)", PREAMBLE))
    assert [d.names for d in root if d.names] == [("INLINE",), ("f32",), ("f32_sqrt",)]


def test_float16_asks_for_a_compiler_that_has_it():
    files = library([of_game(start_game("rmsnorm_f16", "8x64", "reassoc"), "")]).files
    assert "#error float16 needs" in files["kernels/rmsnorm_f16_8x64.c"]
    assert "const uint16_t *x" in files["dojo_kernels.h"] and '"float16"' in files["dojo_kernels/_kernels.py"]


def test_what_stands_under_one_condition_stays_together():
    either = "#ifdef A\nINLINE int f(int x) { /* one */\n    return x;\n}\n#else\n#define f(x) 0\n#endif\n"
    preamble = (
        f"#define INLINE static\ntypedef int g;\n{either}/* about h */\nINLINE g h(g x) {{ return f(x); }}\n"
    )
    assert needed("h(1)", preamble) == preamble.replace(either, f"\n{either}\n")
    assert needed("g x", preamble) == "typedef int g;\n"


@pytest.mark.parametrize("name", ["softmax", "layernorm", "reducemean", "conv"])
def test_narrower_vectors_compute_the_same(name):
    shape = {"softmax": "64x64", "layernorm": "16x1024", "reducemean": "8x4096", "conv": "1x64x64x56x56x3"}[
        name
    ]
    line = recorded_lines()[name]
    settings = {"lanes": LANES} | ({"block": 2 * LANES} if name == "softmax" else {})
    chosen = of_line(line, name, shape, settings=settings)
    narrow = narrowed(chosen.program, 16)
    assert widest_vector(chosen.program) == 4 * LANES and widest_vector(narrow) == 16
    assert narrowed(narrow, 16) is narrow and parse(narrow.text).text == narrow.text
    inputs = random_inputs(chosen.program)
    wide, small = (run_program(p, inputs, chosen.policy)["y"] for p in (chosen.program, narrow))
    np.testing.assert_allclose(small, wide, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["armv8-a", "rv64gcv-256"])
def test_what_is_exported_on_other_processors_is_c_for_any(monkeypatch, name):
    monkeypatch.setattr("dojo_core.targets.cpu.elsewhere.host", lambda: known(name))
    chosen = of_line(recorded_lines()["softmax"], "softmax", "64x192")
    small = replace(chosen, program=narrowed(chosen.program, 16), narrower={}, others={})
    text = "".join(kernel_files(instance(small), "kept").values())
    assert "f32x4_exp(" in text and "__FMA__" in text
    assert "__asm__" not in text and "__has_builtin" not in text


def test_a_line_has_programs_of_its_own_for_narrower_vectors():
    chosen = of_line(recorded_lines()["matmul_packed"], "matmul", "64x64x64")
    assert [widest_vector(p) for p in chosen.narrower.values()] == list(chosen.narrower)
    assert {4 * LANES, *chosen.narrower} == set(host().vector_bytes)
    inputs = random_inputs(chosen.program)
    wide, *narrow = (
        run_program(p, inputs, chosen.policy)["c"] for p in (chosen.program, *chosen.narrower.values())
    )
    for each in narrow:
        np.testing.assert_allclose(each, wide, rtol=1e-4, atol=1e-5)
    codes = instance(chosen).codes
    assert all(codes[width] == generate(p, chosen.policy) for width, p in chosen.narrower.items())
    assert (
        of_line(recorded_lines()["matmul_packed"], "matmul", "64x64x64", settings={"lanes": 4}).narrower == {}
    )


def test_narrower_vectors_take_the_line_that_is_for_them():
    shape = "1x16x256x448"
    line = line_for("swiglu", shape)
    chosen = of_line(line, "swiglu", shape)
    others = {16: {32: "swiglu_avx2"}, 8: {16: "swiglu"}}.get(LANES, {})
    assert chosen.others == {width: f"the line {name}" for width, name in others.items()}
    files = kernel_files(instance(chosen), "kept")
    for width, name in others.items():
        there = Game.new(chosen.start, "swiglu", shape, policy=line.policy, limits=narrower(width))
        recorded_lines()[name].play(there)
        assert chosen.narrower[width].text == there.current.program.text
        told = files[f"kernels/swiglu_{shape}_{8 * width}bit.c"]
        assert f"for registers of {8 * width} bits: the line {name}." in told
        assert "It was not verified by itself on the machine that exported it." in told


# ------------------------------------------------------------------------- for other processors


DOTS = """\
kernel dots
in a, w
out y
a i8 [3, 8] heap
w i8 [2, 4, 4] heap
y i32 [3, 4] heap
3 4 y[{0},{1}] = 7
3 2 4 4 y[{0},{2}] += a[{0},{1}*4+{3}]*w[{1},{2},{3}]
"""
PORTED = {"softmax": "8x192", "qmatmul": "12x128x128"}
SETS = {"arm": "aarch64", "riscv": "riscv64"}
# The processor that an emulator is, and the level that the library takes there.
EMULATED = {
    "arm": {"cortex-a57": "neon", "neoverse-n1": "dotprod", "max": "i8mm"},
    "riscv": {
        "rv64": "scalar",
        "rv64,v=true,vlen=128": "v128",
        "rv64,v=true,vlen=256": "v256",
        "rv64,v=true,vlen=512": "v256",
    },
}


@pytest.fixture(scope="module")
def ported(tmp_path_factory):
    """Lines of softmax and the int8 product, and a text that asks for a dot product where there is one; and
    the library of these."""
    return ported_ones(PORTED, tmp_path_factory)


def ported_ones(lines, tmp_path_factory):

    def again(on):
        marked = DOTS.replace("2 4 4 y", "2 4:sdot 4 y") if ("sdot", 4) in on.instructions else DOTS
        return parse(marked), "a text"

    with Records(tmp_path_factory.mktemp("ported") / "records.sqlite") as none:
        chosen = [best(kernel, shape, none) for kernel, shape in lines.items()]
    chosen.append(replace(own(DOTS), again=again))
    return chosen, library(chosen, "kept", sets_for("riscv, x86,arm"))


def test_what_is_for_other_processors_changes_no_file_of_this_ones(tmp_path_factory):
    chosen, made = ported_ones({"softmax": PORTED["softmax"]}, tmp_path_factory)
    alone, more = library(chosen, "kept").files, made.files
    assert library(chosen, "kept", sets_for("x86")).files == alone
    assert not [path for path, text in alone.items() if re.search("arm|riscv|toolchain", path + text, re.I)]
    changed = {path for path, text in alone.items() if more[path] != text}
    assert changed == {"CMakeLists.txt", "README.md", "kept.h", "library.c"}
    # Taking the lines of the others out leaves what stands there without them, but sizes, which are for all.
    for path in changed:
        lines = iter(more[path].splitlines())
        kept = [line for line in alone[path].splitlines() if not re.search("_WORKSPACE|bytes of stack", line)]
        assert all(line in lines for line in kept), path
    levels = ("dots_arm_neon", "dots_arm_dotprod", "dots_riscv_scalar")
    softmaxes = (f"softmax_8x192_{level}" for level in ("arm_neon", "riscv_scalar", "riscv_v128"))
    new = {path for path in set(more) - set(alone) if path.startswith("kernels/")}
    assert new == {f"kernels/{name}.c" for name in (*levels, *softmaxes)}
    assert {path for path in more if path.startswith("cmake/")} == {
        "cmake/aarch64-linux-gnu.cmake",
        "cmake/riscv64-linux-gnu.cmake",
    }
    for path in (set(more) - set(alone)) | changed:
        assert path.startswith("kernels/") or not re.search("@[a-z_]+@", more[path]), path


@pytest.mark.thorough  # the line of one, and what has none: above, below
def test_a_kernel_has_its_line_at_the_widths_of_each_processor(ported):
    files = ported[1].files
    assert {path for path in files if re.search("arm|riscv", path) and path.startswith("kernels")} == {
        f"kernels/{name}_{level}.c"
        for name, levels in {
            "softmax_8x192": ("arm_neon", "riscv_scalar", "riscv_v128"),
            "qmatmul_12x128x128": ("arm_neon", "arm_i8mm", "riscv_scalar", "riscv_v128"),
            "dots": ("arm_neon", "arm_dotprod", "riscv_scalar"),
        }.items()
        for level in levels
    }
    for name, line in {"arm_neon": "_widened", "arm_i8mm": "_usdot", "riscv_v128": "_widened"}.items():
        text = files[f"kernels/qmatmul_12x128x128_{name}.c"]
        assert f"the line qmatmul{line}, with the parameters that it has for this processor." in text
        assert ("usdot_4(" in text) == (name == "arm_i8mm")
    wide = files["kernels/softmax_8x192_riscv_v128.c"]
    assert "f32x8_exp(" in wide and "f32x16" not in wide
    assert "f32x4_exp(" in (narrow := files["kernels/softmax_8x192_arm_neon.c"]) and "f32x8" not in narrow
    assert "__builtin_ia32" not in wide + narrow


def test_what_does_not_apply_elsewhere_is_played_anew_or_narrowed(monkeypatch):
    if LANES == 4:
        pytest.skip("what is for this machine's vectors is for any Arm's as well")
    (arm,) = sets_for("arm")
    start = start_game("relu", "64x4096", "reassoc")
    start.play(f"split_scope y@1 {LANES}")
    assert [each.source for each in instance(of_game(start, "a game"), (arm,)).others] == ["a game"]
    start.play("vectorize y@2")
    made = of_game(start, "a game")
    assert widest_vector(made.program) == 4 * LANES
    (there,) = instance(made, (arm,)).others
    assert there.source == "the line relu, with the parameters that it has for this processor"
    assert widest_vector(there.program) == 16
    monkeypatch.setattr("dojo_core.export.elsewhere.line_for", lambda *_, **__: None)
    assert instance(made, (arm,)).others[0].source == "the heuristic pass"
    monkeypatch.setattr(ours, "heuristics", dict)
    (there,) = instance(made, (arm,)).others
    assert there.source == "a game, its wider vector loops unrolled loops of narrower ones here"
    assert widest_vector(there.program) == 16
    with pytest.raises(NotExported, match=r"--for takes x86, arm, riscv, with commas between, not 'z80'"):
        sets_for("arm,z80")


def crossing(*command: object, cwd: Path) -> str:
    ran = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment(), capture_output=True, text=True, timeout=500
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


GCC = ["-DCMAKE_C_COMPILER=riscv64-linux-gnu-gcc"]
NATIVE = ["-DKEPT_NATIVE=ON", "-DCMAKE_C_FLAGS=-march=rv64gcv_zvl256b"]


@pytest.mark.parametrize(
    ("name", "options", "levels"),
    [
        pytest.param("arm", [], EMULATED["arm"], marks=pytest.mark.thorough),  # C for Arm: test_crossed.py
        pytest.param("riscv", [], EMULATED["riscv"], marks=pytest.mark.thorough),
        pytest.param("riscv", GCC, dict.fromkeys(EMULATED["riscv"], "scalar"), marks=pytest.mark.soak),
        pytest.param("riscv", NATIVE, {"rv64,v=true,vlen=256": "native"}, marks=pytest.mark.soak),
    ],
    ids=["arm", "riscv", "riscv gcc", "riscv native"],
)
def test_one_library_is_built_for_other_processors_and_picks_as_it_runs(
    ported, tmp_path, name, options, levels
):
    named = SETS[name]
    for tool in [f"{named}-linux-gnu-gcc", f"qemu-{named}"] + ["clang-19"] * (name == "riscv"):
        if shutil.which(tool) is None:
            where = f"cmake/{named}-linux-gnu.cmake"
            pytest.skip(f"{tool} is not here; the first lines of an exported {where} say what brings it")
    chosen, made = ported
    write(made, tmp_path / "library")
    build = tmp_path / "build"
    toolchain = tmp_path / "library" / "cmake" / f"{named}-linux-gnu.cmake"
    told = crossing(
        "cmake", "-S", USED / "crossed", "-B", build, f"-DLIBRARY={tmp_path / 'library'}",
        f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror", *options,
        cwd=tmp_path,
    )  # fmt: skip
    assert ("scalar code is built" in told) == (options == GCC)
    crossing("cmake", "--build", build, "-j2", cwd=tmp_path)
    for choice in chosen:
        given = random_inputs(choice.start, full=True)
        (tmp_path / "in").write_bytes(b"".join(given[name].tobytes() for name in choice.start.inputs))
        (output,) = choice.start.outputs
        if choice.kernel:
            known = kernels.get(choice.kernel)
            meant = known.reference(given, known.shape(choice.shape))[output]
        else:
            meant = interpret(choice.start, given)[output]
        for processor, best_level in levels.items():
            emulated = [shutil.which(f"qemu-{named}"), "-L", f"/usr/{named}-linux-gnu", "-cpu", processor]
            emulated.append(build / "crossed")
            kernel = choice.kernel or choice.start.name
            told = crossing(*emulated, kernel, "best", "in", "out", cwd=tmp_path)
            assert told.splitlines()[0] == best_level, processor
            stored = np.frombuffer(
                (tmp_path / "out").read_bytes(), STORED[choice.start.buffer_of[output].dtype]
            )
            allowed = 1e-5 if stored.dtype == np.float32 else 0
            np.testing.assert_allclose(
                stored.reshape(meant.shape),
                meant,
                rtol=allowed,
                atol=allowed,
                err_msg=f"{kernel} {processor}",
            )
            if best_level == "v128":
                assert crossing(*emulated, kernel, "v256", "in", "out", cwd=tmp_path).startswith("none\n")


def test_names_that_mean_something_in_c_or_python_get_an_underscore():
    assert [argument(n) for n in ("x", "new", "lambda", "out", "_t", "int")] == [
        "x", "new_", "lambda_", "out_", "v_t", "int_",
    ]  # fmt: skip
    assert argument("new", ["new_"]) == "new__"
    for bad in ("Kept", "two words", "9lives", "for", "torch", "", "a" * 41):
        with pytest.raises(ValueError, match=r"library"):
            library_name(bad)
    assert comment(["a */ b", "/* c"]).count("*/") == 1


def test_what_cannot_stand_in_one_library_is_refused():
    with pytest.raises(NotExported, match="mine stands twice"):
        library([own(OWN), own(OWN)])
    with pytest.raises(NotExported, match="take different arguments"):
        library([softmax(), own(OWN.replace("mine", "softmax").replace("y", "z"))])
    with pytest.raises(NotExported, match="cannot be called level"):
        library([own(OWN.replace("mine", "level"))])
    with pytest.raises(NotExported, match="runs on the CPU, and a game is made for cuda"):
        of_game(Game.new(parse(OWN), target="cuda"), "a game")
    used = INSTRUCTIONS["vpdpbusd"].program_text(4).replace("4 4 c[", "4:vpdpbusd 4 c[")
    with pytest.raises(NotExported, match="machine instruction vpdpbusd"):
        library([of_game(Game.new(parse(used)), "a text")])
    with pytest.raises(NotExported, match="name a kernel"):
        library([])


# ------------------------------------------------------------------------- which program


def test_the_best_record_is_taken_then_the_line_then_the_heuristic_then_the_start(records, monkeypatch):
    start = start_game("softmax", "64x64", "algebraic")
    assert best("silu", "8x64", records).source == "the heuristic pass"
    assert best("softmax", "8x100", records).source == "the heuristic pass", "no line applies"
    with pytest.raises(NotExported, match=r"Set its parameters \(block, rows, lanes, ahead\) with --set"):
        of_line(recorded_lines()["softmax"], "softmax", "8x100")
    monkeypatch.setattr(ours, "heuristics", dict)
    assert best("silu", "8x64", records).source == "the start program"
    line = best("softmax", None, records)
    first = "softmax_pipelined" if LANES == 16 else "softmax"
    assert (line.source, line.shape, line.record) == (f"the line {first}", "24576x512", None)

    game = start_game("softmax", "64x64", "algebraic")
    game.play("join_scopes m@0")
    records.add(record(of_game(game, ""), 2e-3, "join_scopes m@0"))
    game.play("join_scopes m@0")
    records.add(record(of_game(game, ""), 1e-3))
    records.add(record(of_game(start, ""), 1e-4, status="wrong_result"))
    found = best("softmax", "64x64", records)
    assert (found.program, found.record.seconds, found.moves) == (game.current.program, 1e-3, None)
    records.save_game(SavedGame("1", "", "softmax", "", game.to_text()))
    found = best("softmax", "64x64", records)
    assert found.moves == ("join_scopes m@0", "join_scopes m@0")
    assert found.source == "the best verified record of this machine"
    assert best("softmax", "64x64", records, "algebraic").program == found.program
    assert "moves that led to it" not in library([found]).files["kernels/softmax_64x64.c"]


def test_a_line_that_was_never_timed_here_is_timed_before_a_record_wins(records):
    start = of_game(start_game("relu", "64x4096", "reassoc"), "")
    records.add(record(start, 1e-3))
    timed = []

    def measure(choice):
        timed.append(choice.source)
        records.add(replace(record(choice, 1e-4), time=time.time(), load=0.0))

    assert best("relu", "64x4096", records).program == start.program
    found = best("relu", "64x4096", records, measure=measure)
    assert timed == ["the line relu"] and found.record.seconds == 1e-4 and len(found.moves) > 3
    assert best("relu", "64x4096", records, measure=measure).program == found.program and len(timed) == 1


def test_merged_dimensions_are_as_the_kernel_has_them():
    text = "kernel flat\nin x\nout y\nx f32 [4, 6] heap\ny f32 [4, 6] heap\n4 6 y[{0},{1}] = x[{0},{1}]*2\n"
    game = Game.new(parse(text))
    for move in ("merge_dims x 0", "merge_dims y 0", "merge_scopes y@0"):
        game.play(move)
    made = library([of_game(game, "")])
    assert game.current.program.buffer_of["x"].dims[0].size == 24
    assert [a.shape for a in made.instances[0].arrays] == [(4, 6), (4, 6)]


# ------------------------------------------------------------------------- where it goes


def test_a_folder_gets_new_files_over_old_ones_and_keeps_others(tmp_path):
    folder = tmp_path / "a" / "b"
    first = library([own(OWN), own(PAIR)])
    write(first, folder)
    assert {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} == {*first.files, MANIFEST}
    (folder / "notes.txt").write_text("mine")
    write(first, folder)
    write(library([own(OWN)], "other"), folder)
    assert (folder / "notes.txt").read_text() == "mine"
    assert not (folder / "dojo_kernels").exists() and not (folder / "kernels" / "pair.c").exists()
    assert (folder / "other" / "__init__.py").exists()


def test_files_that_are_not_an_exports_stay_as_they_are(tmp_path):
    made = library([own(OWN)])
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(NotExported, match="holds files that no export wrote"):
        write(made, tmp_path)
    with pytest.raises(NotExported, match="is a file: name a folder"):
        write(made, tmp_path / "notes.txt")
    folder = tmp_path / "library"
    write(made, folder)
    (folder / "library.c").write_text("edited")
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    with pytest.raises(
        NotExported, match=r"were edited since they were exported: library\.c\. Move them away"
    ):
        write(library([own(PAIR)]), folder)
    (folder / "library.c").write_text(made.files["library.c"])
    (folder / "kernels" / "pair.c").write_text("mine")
    with pytest.raises(NotExported, match=r"no export's: kernels/pair\.c"):
        write(library([own(PAIR)]), folder)
    (folder / "kernels" / "pair.c").unlink()
    (folder / "library.c").write_text("edited")
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


def test_a_list_of_files_that_leads_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    folder = tmp_path / "library"
    write(library([own(OWN)]), folder)
    listed = json.loads((folder / MANIFEST).read_text())
    listed["files"]["../mine.txt"] = [""]
    (folder / MANIFEST).write_text(json.dumps(listed))
    with pytest.raises(NotExported):
        write(library([own(OWN)]), folder)
    assert (tmp_path / "mine.txt").exists()


def test_an_archive_holds_the_same_files_and_is_the_same_each_time():
    made = library([own(OWN)], "kept")
    archive = zipfile.ZipFile(io.BytesIO(zipped(made)))
    assert {i.filename: archive.read(i).decode() for i in archive.infolist()} == {
        f"kept/{path}": text for path, text in made.files.items()
    }
    assert zipped(made) == zipped(made)


# ------------------------------------------------------------------------- the command


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("own.txt").write_text(OWN)
    monkeypatch.setattr("dojo_core.measure.trial.conditions_of", lambda answer: Conditions(0.0))  # idle
    game = Game.new(kernels.get("relu").program((8, 64)), "relu", "8x64")
    game.play("split_scope y@1 16")
    Path("a.game").write_text(game.to_text())
    Path("a.line").write_text("kernel relu\nshape 8x32\nlet lanes = 4\nsplit_scope y@1 $lanes\n")


def dojo(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["export", *words])
    assert isinstance(result.exception, SystemExit | None), result.exc_info
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def test_kernels_shapes_games_lines_and_texts_go_into_one_library(home):
    told = dojo("softmax", "own.txt", "--shape", "8x96", "--from", "start", "--to", "a", code=1)
    assert "leave --shape and --set out" in told
    told = dojo(
        "relu:4x64", "gelu", "own.txt", "a.game", "a.line", "--from", "start", "--to", "a", "--no-measure"
    )
    assert "relu_4x64 the start program 0 not measured" in told and "mine the text own.txt 0" in told
    assert "relu_8x64 the game a.game 1" in told and "relu_8x32 the line a.line 1" in told
    assert read_line(Path("a.line").read_text()).settings == {"lanes": 4}
    assert "relu_8x32 the line a.line 1" in dojo(
        "a.line", "--set", "lanes=8", "--to", "a.zip", "--no-measure"
    )
    assert zipfile.is_zipfile("a.zip")


def test_a_kernel_without_a_line_is_not_exported_naive(home):
    assert "silu_8x64 the heuristic pass" in dojo("silu:8x64", "--to", "a", "--no-measure")
    assert "relu_8x64 the heuristic pass" in dojo(
        "relu:8x64", "--from", "heuristic", "--to", "b", "--no-measure"
    )


@pytest.mark.parametrize("layers", [("matmul", "gelu"), pytest.param((), marks=pytest.mark.soak)])
def test_a_network_is_exported_as_its_layers(home, monkeypatch, layers):
    every = {name: layer for name, layer in kernels.named_layers().items() if layer.network == "bert-base"}
    if layers:  # the first of each
        first = {layer.kernel: name for name, layer in reversed(every.items()) if layer.kernel in layers}
        monkeypatch.setattr(kernels, "named_layers", lambda: {name: every[name] for name in first.values()})
    told = dojo("bert-base", "relu:4x64", "--to", "a", "--no-measure")
    wanted = {layer.kernel for layer in kernels.named_layers().values() if layer.network == "bert-base"}
    assert wanted == {line.split("_")[0] for line in told.split() if "_" in line} - {"relu"}
    assert "matmul_512x768x2304 the line matmul" in told and "gelu_512x3072 the line gelu" in told
    told = dojo("bert-base", "--shape", "8x64", "--to", "b", "--no-measure", code=1)
    assert "have shapes of their own" in told


def test_what_is_exported_is_verified_and_timed_first(home):
    assert "Measuring mine" in (told := dojo("own.txt", "--to", "a")) and "not measured" not in told
    assert "Verified (every element" in Path("a/kernels/mine.c").read_text()
    assert "Measuring" not in dojo("own.txt", "--to", "a"), "what is known is not measured again"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("softmx", "--to", "b"), "There is no kernel 'softmx'."),
        (("softmax:12", "--to", "b"), "softmax takes 2 sizes"),
        (("gone.game", "--to", "b"), "There is no file gone.game."),
        (("relu", "--from", "afar", "--to", "b"), "--from takes best, line, heuristic, start, not 'afar'."),
        (("silu", "--from", "line", "--to", "b"), "There is no recorded line of silu"),
        (("relu", "--from", "heuristic", "--set", "a=1", "--to", "b"), "--set is of a line"),
        (("relu", "--name", "My Kernels", "--to", "b", "--no-measure"), "'My Kernels' cannot name a library"),
        (("own.txt", "--to", "there", "--no-measure"), "holds files that no export wrote"),
        (("own.txt", "--to", "there.zip"), "there.zip is there already"),
        (("a.game", "--policy", "strict", "--to", "b"), "A game has its shape and policy in its text"),
    ],
)
def test_what_cannot_be_exported_is_a_sentence(home, words, sentence):
    Path("there").mkdir()
    Path("there/notes.txt").write_text("mine")
    Path("there.zip").write_text("mine")
    told = dojo(*words, code=1)
    assert sentence in told and "Traceback" not in told
    assert not Path("b").exists()
