"""Batches of C files become shared objects; one that does not compile costs the others nothing."""

import ctypes
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dojo_core.targets.cpu.build as builder
from dojo_core.codegen.built import Built, CompileError
from dojo_core.codegen.code import Code, Parameter
from dojo_core.targets.cpu.build import assembly, build, code_hash
from tests.waiting import wait_until

PREAMBLE = "static inline float twice(float v)\n{\n  return v * 2.0f;\n}\n"
PARAMETERS = (Parameter("x", "f32", (64,), "in"), Parameter("y", "f32", (64,), "out"))
# Ten to the sixth statements keep the compiler busy far longer than a test may take.
ENDLESS = """
#define A x[0] *= x[1];
#define B A A A A A A A A A A
#define C B B B B B B B B B B
#define D C C C C C C C C C C
#define E D D D D D D D D D D
#define F E E E E E E E E E E
float *x = arrays[0]; F F F F F F F F F F"""


def kernel(body: str, symbol: str = "kernel_t") -> Code:
    text = f"void {symbol}(void *const *arrays, void *workspace)\n{{\n{body}\n}}"
    nodes = (None, None, *(((0,),) * (body.count("\n") + 1)), None)
    return Code(text, symbol, nodes, PARAMETERS, 0, 0.0)


def add(number: int) -> Code:
    return kernel(f"  float *x = arrays[0], *y = arrays[1];\n  y[0] = twice(x[0]) + {number};")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    return tmp_path


def call(built: Built | CompileError) -> float:
    assert isinstance(built, Built), built
    x, y = (ctypes.c_float * 64)(1.0), (ctypes.c_float * 64)()
    arrays = (ctypes.c_void_p * 2)(ctypes.addressof(x), ctypes.addressof(y))
    ctypes.CDLL(built.library)[built.symbol](arrays, None)
    return float(y[0])


def test_each_kernel_of_a_batch_is_its_own() -> None:
    built = build([add(number) for number in range(60)], preamble=PREAMBLE)
    assert [call(b) for b in built] == [2.0 + number for number in range(60)]


def test_a_long_kernel_has_a_file_of_its_own() -> None:
    long = kernel("  float *x = arrays[0], *y = arrays[1];\n" + "  y[0] = twice(x[0]) + 9;\n" * 40)
    built = build([add(0), long, *(add(number) for number in range(1, 5))], jobs=2, preamble=PREAMBLE)
    assert [call(b) for b in built] == [2.0, 11.0, 3.0, 4.0, 5.0, 6.0]
    files = [os.stat(b.library).st_ino for b in built if isinstance(b, Built)]
    assert len(set(files)) == 2 and files.count(files[1]) == 1


def test_what_was_built_is_taken_from_the_cache() -> None:
    first = build([add(1), add(1)], preamble=PREAMBLE)
    assert first[0] == first[1]
    assert isinstance(first[0], Built)
    stamp = Path(first[0].library).stat().st_ino
    assert build([add(1)], preamble=PREAMBLE) == first[:1]
    assert Path(first[0].library).stat().st_ino == stamp


def test_the_hash_is_of_the_code_and_not_of_its_name() -> None:
    one, other = kernel("  ;", "kernel_a"), kernel("  ;", "kernel_b")
    assert code_hash(one, PREAMBLE) == code_hash(other, PREAMBLE)
    assert code_hash(one, PREAMBLE) != code_hash(one, "")
    assert code_hash(one, PREAMBLE) != code_hash(kernel("  ; ;"), PREAMBLE)


def test_comments_which_quote_the_program_are_no_code() -> None:
    sums = "  float *x = arrays[0], *y = arrays[1];\n{}  y[0] = x[0] + x[1];"
    bare, one, other = (
        kernel(sums.format(comment))
        for comment in ("", "  // y[0] = x[0] + x[1]\n", "    // y[0] = x[0] + x[0 + 1]\n")
    )
    assert code_hash(bare) == code_hash(one) == code_hash(other)


def test_a_compile_error_is_reported_and_the_others_are_built() -> None:
    built = build([add(1), kernel("  nonsense;"), add(2), add(3)], preamble=PREAMBLE)
    assert [type(b) for b in built] == [Built, CompileError, Built, Built]
    assert isinstance(built[1], CompileError)
    assert "'nonsense' undeclared" in built[1].message and built[1].settled
    assert call(built[3]) == 5.0


def test_a_compiler_that_takes_too_long_is_stopped(home: Path) -> None:
    built = build([kernel(ENDLESS)], preamble=PREAMBLE, timeout=0.5)
    assert isinstance(built[0], CompileError)
    assert "more than 0.5 s" in built[0].message and not built[0].settled
    wait_until(lambda: compilers_in(home) == [])


def test_a_killed_parent_leaves_no_compiler(home: Path) -> None:
    script = "from tests.test_build import *; build([kernel(ENDLESS)], preamble=PREAMBLE)"
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parent.parent)
    wait_until(lambda: compilers_in(home) != [])
    parent.kill()
    parent.wait()
    wait_until(lambda: compilers_in(home) == [])


def test_assembly_is_linked_to_the_lines_of_the_program() -> None:
    listing = assembly(add(7), preamble=PREAMBLE)
    assert any("ret" in line for line in listing.lines)
    assert not any(".cfi" in line or ".loc" in line for line in listing.lines)
    assert len(listing.lines) == len(listing.nodes) == len(listing.c_lines)
    # addss or vfmadd213ss on x86, fadd or fmadd on Arm
    additions = [n for line, n in zip(listing.lines, listing.c_lines, strict=True) if "add" in line]
    assert 3 in additions


def compilers_in(folder: Path) -> list[int]:
    """Processes that work below a folder."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.readlink(f"/proc/{entry}/cwd").startswith(str(folder)):
                found.append(int(entry))
        except OSError:
            continue
    return found


def test_the_objects_longest_unused_leave_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    def built(number: int) -> Path:
        [found] = build([add(number)], preamble=PREAMBLE)
        assert isinstance(found, Built)
        return Path(found.library)

    monkeypatch.setattr(builder._Pruned, "at", -math.inf)
    first = built(1)
    os.utime(first, (1, 1))
    monkeypatch.setattr(builder, "CACHE_OBJECT_BYTES", first.stat().st_size * 3 // 2)
    second = built(2)
    assert first.exists(), "it looks at all files, so not at each build"
    monkeypatch.setattr(builder._Pruned, "at", -math.inf)
    third = built(3)
    assert not first.exists() and not second.exists() and third.exists()
