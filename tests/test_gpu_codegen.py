"""Generated CUDA and HIP: what it computes, in the emulator, and that each of its barriers is needed."""

import itertools
import random
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from dojo_core import kernels, parse
from dojo_core.measure.pool import to_double
from dojo_core.moves.api import apply
from dojo_core.program.dtypes import HALVES, LOGICAL, OF_REALS, SHIFTS, TO_WHOLE
from dojo_core.program.functions import FUNCTIONS
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import Program
from dojo_core.targets.cuda import build
from dojo_core.targets.gpu.codegen import generate
from tests import walks
from tests.compiled import random_inputs
from tests.emulated import ORDERS, code_of, emulate
from tests.gpu import TINY
from tests.thorough import one_of

PROGRAMS = Path(__file__).parent / "gpu_programs"
NAMES = sorted(p.stem for p in PROGRAMS.glob("*.txt"))


def program_named(name: str) -> Program:
    return parse((PROGRAMS / f"{name}.txt").read_text())


def agree(program: Program, got: dict, inputs: dict, tolerance: float = 1e-4) -> bool:
    expected = interpret(program, inputs)
    for array in program.outputs:
        want = np.asarray(expected[array], np.float64)
        have = np.asarray(got[program.buffer_of[array].name], np.float64).reshape(want.shape)
        if not np.allclose(
            have, want, rtol=tolerance, atol=tolerance * max(1, np.nanmax(np.abs(want))), equal_nan=True
        ):
            return False
    return True


@pytest.mark.parametrize(
    ("name", "dialect"), one_of(3, itertools.product([*NAMES[1:], NAMES[0]], ["cuda", "hip"]))
)
def test_what_is_generated_computes_what_the_program_says(name, dialect):
    program = program_named(name)
    inputs = random_inputs(program)
    code = code_of(program, hip=dialect == "hip")
    for order in ORDERS if dialect == "cuda" else (-1,):
        got, fault = emulate(code, inputs, order)
        assert not fault
        assert agree(program, got, inputs)


FROM_SHARED = """kernel k
in x
out y
x f32 [2, 32] heap
y f32 [2, 32] heap
t f32 [2, 32] heap
2:g 32:b t[{0},{1}] = x[{0},{1}]*2
| 32:b y[{0},{1}] = t[{0},-{1}+31] + 1
"""


STREAMED_ACCESSES = {
    "stream_store t": ("STREAM_STORE(&t_", r"(t_\[[^;]*?\]) = ([^;]*);", r"STREAM_STORE(&\1, (f32)(\2));"),
    "stream_load y": ("STREAM_LOAD(&t_", r"= (t_\[[^;]*?\]) \+", r"= STREAM_LOAD(&\1) +"),
}


@pytest.mark.parametrize("location", ["shared", "heap"])
@pytest.mark.parametrize("move", STREAMED_ACCESSES)
def test_only_accesses_to_global_memory_go_past_the_caches(move, location):
    """To an address of a block or a thread the instruction would be a fault; the emulator says so too."""
    streamed, plain, wrong = STREAMED_ACCESSES[move]
    program = apply(parse(FROM_SHARED), move, "cuda")
    if location == "shared":
        program = apply(program, "reuse_dims t 0 shared", "cuda")
    code, inputs = code_of(program), random_inputs(program)
    assert (streamed in code.text) == (location == "heap")
    got, fault = emulate(code, inputs)
    assert not fault and agree(program, got, inputs)
    if location == "shared":
        lines = [
            line if line.lstrip().startswith("//") else re.sub(plain, wrong, line)
            for line in code.text.splitlines()
        ]
        assert "not global memory" in emulate(code, inputs, text="\n".join(lines) + "\n")[1]


@pytest.mark.parametrize(
    "body",
    [
        "64 y[{0}] = x[{0}]\n64 y[{0}] += x[{0}] !stream",
        "64 y[{0}] = x[{0}] !stream_load\n64 y[{0}] = y[{0}]*x[{0}] !stream_load",
        "64 y[{0}] = 0\n2:g 1:b 32:w y[{0}] += x[{0}*32+{2}] !stream_load",
        "64 y[{0}] = x[{0}] !prefetch(x[{0}+100000000000000000])",
        "64 __LINE_[{0}] = x[{0}]\n64 y[{0}] = __LINE_[{0}]",
        "64 y[{0}] = {0}*1000000000 - 2000000000",
    ],
)
def test_the_texts_of_odd_programs_compile_and_compute(body):
    """Parts of a sum in int, addresses in 64 bits, names that no compiler has."""
    held = [f"{name} f64 [64] heap" for name in ("x", "y", "__LINE_") if name in body or name == "x"]
    program = parse("\n".join(["kernel k", "in x", "out y", *held, body, ""]))
    inputs = random_inputs(program)
    for hip in (False, True):
        got, fault = emulate(code_of(program, hip=hip), inputs)
        assert not fault and agree(program, got, inputs)


NEEDED = {"softmax": 0, "mul": 0, "rmsnorm": 1, "batchnorm": 1, "matmul": 2}


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_has_the_barriers_that_it_needs_and_no_others(name):
    """As many as a person would write; with any one taken away, some order of threads goes wrong."""
    program = program_named(name)
    code = code_of(program)
    assert len(code.barriers) == NEEDED[name]
    inputs = random_inputs(program)
    lines = code.text.splitlines()
    for barrier in code.barriers:
        assert "__sync" in lines[barrier]
        without = "\n".join(lines[:barrier] + lines[barrier + 1 :]) + "\n"
        results = [emulate(code, inputs, order, without) for order in ORDERS]
        assert any(fault or not agree(program, got, inputs) for got, fault in results), lines[barrier]


# Lanes that hand values over through memory, and the same in a loop, whose next iteration writes again.
HANDED = """kernel handed
in x
out y
x f32 [2, 3, 32] heap
y f32 [2, 3, 32] heap
t f32 [2:N, 3:N, 32] shared
2:g 1:b 3 32:w t[{0},{2},{3}] = x[{0},{2},{3}]
| | | 32:w y[{0},{2},{3}] = t[{0},{2},-{3}+31]
"""


def test_lanes_wait_for_each_other():
    program = parse(HANDED)
    code, inputs = code_of(program), random_inputs(program)
    assert [code.text.splitlines()[n].strip() for n in code.barriers] == ["__syncwarp();"] * 2
    for order in ORDERS:
        got, fault = emulate(code, inputs, order)
        assert not fault and agree(program, got, inputs)
    lines = code.text.splitlines()
    for barrier in code.barriers:
        without = "\n".join(lines[:barrier] + lines[barrier + 1 :]) + "\n"
        results = [emulate(code, inputs, order, without) for order in ORDERS]
        assert any(fault or not agree(program, got, inputs) for got, fault in results)


def test_threads_that_part_at_a_barrier_are_a_fault():
    code = code_of(program_named("rmsnorm"))
    parted = code.text.replace("__syncthreads();", "if (thread % 2) __syncthreads();")
    _, fault = emulate(code, random_inputs(program_named("rmsnorm")), 0, parted)
    assert fault.startswith("Thread") and "barrier" in fault


def test_a_maximum_keeps_nan_and_a_sum_in_lanes_its_infinity():
    program = program_named("softmax")
    x = random_inputs(program)["x"]
    x[0, 5], x[1, 7] = np.nan, np.inf
    got, fault = emulate(code_of(program), {"x": x})
    assert not fault
    assert np.isnan(got["y"][0]).all() and np.isnan(got["y"][1]).any() and np.isfinite(got["y"][2]).all()


def test_a_program_that_is_not_mapped_runs_on_one_thread():
    program = kernels.get("softmax").program((3, 8))
    code, inputs = code_of(program), random_inputs(program)
    assert "Not mapped" in code.text and all(launch.threads == 1 for launch, _ in code.launches())
    got, fault = emulate(code, inputs)
    assert not fault and agree(program, got, inputs)


def test_loops_around_the_grid_are_launches():
    program = kernels.get("matmul").program((4, 3, 8))
    for move in (
        "interchange c#1@1",
        "interchange c#1@0",
        "map_grid c@0",
        "map_grid c#1@1",
        "map_block c#1@2",
    ):
        program = apply(program, move, TINY)
    code, inputs = code_of(program), random_inputs(program)
    assert [(launch.symbol, loops) for launch, loops in code.launches()] == [
        ("kernel_matmul_0", ()), *(("kernel_matmul_1", (k,)) for k in range(3)),
    ]  # fmt: skip
    got, fault = emulate(code, inputs)
    assert not fault and agree(program, got, inputs)


@pytest.mark.parametrize("seed", one_of(3, range(6)))
def test_random_gpu_programs_compute_what_they_say(seed):
    rng = random.Random(f"emulated {seed}")
    while True:
        program, rules = walks.start_on_a_gpu(rng)
        halves = any(b.dtype in HALVES for b in program.buffers)  # which this target does not compute
        in_blocks = "b" in {m for n in program.body if hasattr(n, "summary") for m in n.summary.marks}
        if in_blocks and not halves:
            break
    check_emulated(program, rules.policy)


def check_emulated(program: Program, policy: str) -> None:
    inputs = random_inputs(program)
    code = generate(program, policy, "cuda", TINY.warp)
    for order in ORDERS:
        got, fault = emulate(code, inputs, order)
        assert not fault, f"{fault}\n{program.text}"
        assert agree(program, got, inputs, 1e-3), f"{policy}\n{program.text}\n{code.text}"


MIXED = """kernel mixed
in x, k
out y, n
x f32 [8, 32] heap
k i32 [8, 32] heap
y i8 [8, 32] heap
n i32 [8] heap
2:g 4:b 32:w y[{0}*4+{1},{2}] = i8(x[{0}*4+{1},{2}])
| | n[{0}*4+{1}] = 0
| | 32:w n[{0}*4+{1}] += k[{0}*4+{1},{2}]*k[{0}*4+{1},{2}]
"""


def test_integers_wrap_and_conversions_saturate():
    inputs = random_inputs(parse(MIXED))
    inputs["x"][0, :5] = [np.nan, np.inf, -np.inf, 200, -1.9]
    inputs["k"][0] = 2**30 + 3
    got, fault = emulate(code_of(parse(MIXED)), inputs)
    assert not fault and got["y"][0, :5].tolist() == [0, 127, -128, 127, -1]
    assert got["n"][0] == np.int32((32 * (2**30 + 3) ** 2 + 2**31) % 2**32 - 2**31)
    assert agree(parse(MIXED), {**got, "n": got["n"]}, inputs)


STAGED = """kernel staged
in x, w
out y
x f32 [2, 64] heap
w f32 [64, 48] heap
y f32 [2, 48] heap
2:g 48:b y[{0},{1}] = 0
| | 64 y[{0},{1}] += x[{0},{2}]*w[{2},{1}]
"""


def test_a_block_stages_what_it_reads_and_writes_in_shared_memory():
    """What is staged in a grid scope is the block's: threads fill it together, and wait for each other."""
    program = parse(STAGED)
    for move in ("stage_read x y@0 s", "map_block s@1", "stage_write y y@0 t", "map_block y@1"):
        program = apply(program, move, "cuda")
    assert {b.name: b.location for b in program.buffers if b.name in "st"} == {"s": "shared", "t": "shared"}
    code, inputs = code_of(program), random_inputs(program)
    assert len(code.barriers) == 1 and "__shared__" in code.text  # of t each thread stores what it summed
    lines = code.text.splitlines()
    for order in ORDERS:
        got, fault = emulate(code, inputs, order)
        assert not fault and agree(program, got, inputs)
    for barrier in code.barriers:
        without = "\n".join(lines[:barrier] + lines[barrier + 1 :]) + "\n"
        results = [emulate(code, inputs, order, without) for order in ORDERS]
        assert any(fault or not agree(program, got, inputs) for got, fault in results), lines[barrier + 1]


# ---------------------------------------------------------------------------- the real compilers


def nvrtc():
    found = build.compiler()
    return found is not None and found.name == "NVRTC"


# A row asked for ahead of its turn, and stored past the caches.
STREAMED = """kernel streamed
in x
out y
x f32 [8, 64] heap
y f32 [8, 64] heap
8:g 16:b 4:v y[{0},{1}*4+{2}] = max(x[{0},{1}*4+{2}],0) !prefetch(x[{0}+1,{1}*4+{2}]) !stream !stream_load
"""
UNSIGNED = """kernel unsigned
in x, k, h
out n, m, s, f, q
x u32 [8, 32] heap
k u64 [8, 32] heap
h u16 [8, 32] heap
n u32 [8] heap
m u64 [8] heap
s u16 [8] heap
f f8e4m3fn [8, 32] heap
q i4 [8, 32] heap
8:g 32:b f[{0},{1}] = f8e4m3fn(h[{0},{1}])
8:g 32:b q[{0},{1}] = i4(f[{0},{1}])
1:g 8:b n[{1}] = 0
| | 32:w n[{1}] += x[{1},{2}]*x[{1},{2}]
| | m[{1}] = -inf
| | 32:w m[{1}] max= k[{1},{2}]
| | s[{1}] = inf
| | 32:w s[{1}] min= h[{1},{2}]
"""
WRITTEN = {"mixed": MIXED, "streamed": STREAMED, "unsigned": UNSIGNED}


@pytest.mark.parametrize("hip", [False, True])
def test_unsigned_integers_are_reduced_by_warps_and_what_is_only_stored_is_converted(hip):
    program = parse(UNSIGNED)
    inputs = random_inputs(program, full=True)
    inputs["h"] //= 40  # half of them beyond f8e4m3fn's 448
    code = code_of(program, hip=hip)
    assert "SHUFFLE_XOR" in code.text
    meant = interpret(program, inputs)
    for order in ORDERS:
        got, fault = emulate(code, inputs, order)
        assert not fault
        for name, dtype in (("n", "u32"), ("m", "u64"), ("s", "u16"), ("f", "f8e4m3fn"), ("q", "i4")):
            np.testing.assert_array_equal(to_double(got[name], dtype), meant[name].astype(np.float64))


def functions(x: str, w: str, names: Iterable[str]) -> str:
    """A kernel of functions, each of the arrays x and w (binary ones) and into one of x's dtype."""
    named = {f"y{k}": FUNCTIONS[name] for k, name in enumerate(names)}
    operands = ("x[{0}*32+{1}]", "w[{0}*32+{1}]")
    lines = [
        f"kernel functions_{x}",
        "in x, w",
        f"out {', '.join(named)}",
        f"x {x} [64] heap",
        f"w {w} [64] heap",
    ]
    lines += [f"{y} {x} [64] heap" for y in named]
    for y, f in named.items():
        lines.append(f"2:g 32:b {y}[{{0}}*32+{{1}}] = {f.name}({','.join(operands[: f.arity])})")
    return "\n".join(lines) + "\n"


OF_FLOATS = (*OF_REALS, *TO_WHOLE, "abs", "sign", "isnan", "isinf", "fmod")
OF_INTEGERS = (*LOGICAL, *SHIFTS, "fmod", "sign", "abs", "max")
WRITTEN |= {
    "functions_f32": functions("f32", "f32", OF_FLOATS),
    "functions_i32": functions("i32", "i32", OF_INTEGERS),
}
MORE = {
    "functions_f64": functions("f64", "f32", OF_FLOATS),
    "functions_u8": functions("u8", "u8", OF_INTEGERS),
}


COMPILED = [*NAMES, *WRITTEN, *(pytest.param(name, marks=pytest.mark.soak) for name in MORE)]


@pytest.mark.parametrize("dialect", ["cuda", pytest.param("hip", marks=pytest.mark.soak)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_compute_what_they_say(dialect):
    rng = np.random.default_rng(3)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 0.5, 1e-40, -1e-40, 2.5, 88.0, -104.0, 12345.0]
    reals = np.array([*special, *rng.standard_normal(50) * 3]).astype(np.float32)
    whole = np.concatenate([[-(2**31), -7, -1, 0, 1, 7, 8, 31, 32, 2**31 - 1], rng.integers(-99, 99, 54)])
    for name, inputs in (
        ("functions_f32", {"x": reals, "w": np.roll(reals, 5)}),
        ("functions_f64", {"x": reals, "w": np.roll(reals, 5)}),
        ("functions_i32", {"x": whole, "w": np.roll(whole, 5)}),
        ("functions_u8", {"x": whole % 256, "w": np.roll(whole, 5) % 12}),
    ):
        program = parse((WRITTEN | MORE)[name])
        got, fault = emulate(code_of(program, hip=dialect == "hip"), inputs)
        assert not fault
        meant = interpret(program, inputs)
        for y, leaf in zip(program.outputs, program.leaves, strict=True):
            value = meant[y] if name[-3] != "f" else meant[y].astype(got[y].dtype)
            np.testing.assert_allclose(got[y], value, 1e-6, 1e-44, err_msg=f"{name} {leaf.op.function}")


def test_what_is_streamed_computes_the_same():
    program = parse(STREAMED)
    code, inputs = code_of(program), random_inputs(program)
    assert "STREAM_STORE((f32x4 *)" in code.text and "    prefetch(x_" in code.text
    assert "STREAM_LOAD((const f32x4 *)&x_" in code.text
    got, fault = emulate(code, inputs)
    assert not fault and agree(program, got, inputs)


@pytest.mark.thorough  # NVRTC takes them below, without a warning
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is missing: install the CUDA toolkit")
def test_nvcc_takes_them_without_a_warning(tmp_path):
    """Each text as it is, all in one run: most of its time is the toolkit's own headers."""
    texts = {name: code_of(parse(WRITTEN[name]) if name in WRITTEN else program_named(name)).text
             for name in (*NAMES, *WRITTEN)}  # fmt: skip
    for name, text in texts.items():
        (tmp_path / f"{name}.cu").write_text(text)
    whole = "".join(f'namespace in_{name} {{\n#include "{name}.cu"\n}}\n' for name in texts)
    (tmp_path / "all.cu").write_text(whole)
    command = ["nvcc", "-std=c++17", "-arch=sm_90", "-c", "-Werror", "all-warnings", "all.cu", "-o", "all.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not nvrtc(), reason="NVRTC is missing: pip install 'dojo[gpu]'")
@pytest.mark.parametrize("name", one_of(3, COMPILED))
def test_nvrtc_takes_it(name):
    assert build.compiled(
        code_of(parse((WRITTEN | MORE)[name]) if name not in NAMES else program_named(name)), "sm_90"
    ).exists()


@pytest.mark.skipif(shutil.which("clang-19") is None, reason="clang-19 is missing: apt-get install clang-19")
@pytest.mark.parametrize("name", one_of(3, COMPILED))
def test_clang_takes_it_for_an_amd_gpu(name, tmp_path):
    source = tmp_path / "kernels.hip"
    mixed = MIXED.replace("4:b", "8:b").replace("2:g", "1:g").replace("*4", "*8")  # a wave of 64
    written = {**WRITTEN, **MORE, "mixed": mixed}
    program = parse(written[name]) if name in written else program_named(name)
    source.write_text(code_of(program, hip=True).text)
    command = [
        "clang-19",
        "-x",
        "hip",
        "--offload-arch=gfx90a",
        "--cuda-device-only",
        "-nogpuinc",
        "-nogpulib",
        "-O3",
    ]
    done = subprocess.run(
        [*command, "-S", str(source), "-o", str(tmp_path / "k.s")],
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    assert f".amdhsa_kernel kernel_{name}_0" in (tmp_path / "k.s").read_text()


# What hipcc includes by itself, as far as launches go.
RUNTIME = """#define HIP_INCLUDE_HIP_HIP_RUNTIME_H
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
typedef struct ihipStream_t *hipStream_t;
typedef unsigned long size_t;
struct dim3 { unsigned x, y, z; dim3(unsigned x) : x(x), y(1), z(1) {} };
extern "C" int __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, hipStream_t stream);
extern "C" int hipLaunchKernel(const void *f, dim3 g, dim3 b, void **arguments, size_t shared, hipStream_t s);
struct Place { unsigned x; };
extern Place threadIdx, blockIdx;
__device__ void __syncthreads();
template <class T> __device__ T __shfl_xor(T value, int mask);
__device__ float sqrtf(float), rsqrtf(float);
"""


@pytest.mark.skipif(shutil.which("clang-19") is None, reason="clang-19 is missing: apt-get install clang-19")
@pytest.mark.parametrize("name", ["mul", "rmsnorm"])
def test_clang_takes_the_launches_of_hip(name, tmp_path):
    (tmp_path / "runtime.h").write_text(RUNTIME)
    (tmp_path / "kernels.hip").write_text(code_of(program_named(name), hip=True).text)
    command = ["clang-19", "-x", "hip", "--cuda-host-only", "-nogpuinc", "-include", "runtime.h", "-S"]
    done = subprocess.run(
        [*command, "kernels.hip", "-o", "host.s"], cwd=tmp_path, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    host = (tmp_path / "host.s").read_text()
    assert f"kernel_{name}:" in host and "__hipPushCallConfiguration" in host
