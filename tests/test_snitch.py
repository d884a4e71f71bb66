"""Snitch: what the generated code computes on the model, what the model says of it, and what it refuses."""

import math
import random
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import dojo_snitch
import numpy as np
import pytest

from dojo_core import apply, legal_moves, parse
from dojo_core.codegen.code import NotGeneratable
from dojo_core.targets.snitch.assembly import Instruction, Label, encode, frep, instruction, scfgwi
from dojo_core.targets.snitch.calibration import MEASURED, simulated, table
from dojo_core.targets.snitch.codegen import generate
from dojo_core.targets.snitch.simulate import CODE, execute, judge
from tests import walks
from tests.goldens import FOLDER
from tests.snitch import TINY, runnable
from tests.targets import SNITCH

DOCS = Path(__file__).parent.parent / "docs"


def text(buffers: str, body: str, head: str = "in x\nout y") -> str:
    return f"kernel k\n{head}\n{buffers}\n{body}\n"


# ---------------------------------------------------------------------------- the model beside the hardware


@pytest.mark.parametrize("measured", MEASURED, ids=lambda m: m.name)
def test_the_model_is_within_a_tenth_of_the_hardware(measured):
    assert simulated(measured).cycles == pytest.approx(measured.cycles, rel=0.1)


def test_the_table_of_the_page_is_what_the_command_prints(golden):
    page = DOCS / "snitch.md"
    head = table().partition("\n")[0]
    before, _, after = page.read_text().partition(head)
    golden(page, f"{before}{table().rstrip()}\n\n{after.partition(chr(10) * 2)[2]}")


def test_four_accumulators_hide_the_latency():
    """The paper's step: a sum in one register waits four cycles for itself."""
    by_name = {m.name: simulated(m) for m in MEASURED}
    one, four = (by_name[f"dot 256, SSR and FREP, {n}"] for n in ("one accumulator", "four"))
    assert one.utilisation == pytest.approx(0.245, abs=0.01) and one.latency > 700
    assert four.utilisation > 0.85 and four.latency < 30


# ---------------------------------------------------------------------------- what is computed


PROGRAMS = {
    "every function": text(
        "x f64 [9] heap\ny f64 [9] heap\nt f64 [9] heap\nu f64 [9:N] register",
        "9 t[{0}] = -x[{0}]\n9 u[{0}] = abs(t[{0}])\n| t[{0}] *= u[{0}]\n| t[{0}] max= x[{0}] - 0.3\n"
        "| t[{0}] min= 1.5\n| t[{0}] -= x[{0}]\n| t[{0}] += u[{0}] + 1e300\n| t[{0}] += -1e300\n"
        "9 y[{0}] = fma(t[{0}],x[{0}],2)",
    ),
    "streamed functions": text(
        "x f64 [8] heap\ny f64 [8] heap\nt f64 [8] heap",
        "8:s t[{0}] = -x[{0}]\n8:s y[{0}] = abs(t[{0}])\n8:s t[{0}] = y[{0}]\n8:s y[{0}] = 3\n"
        "8:s y[{0}] += t[{0}]",
    ),
    "iterators and guards": text(
        "x f64 [6, 4] heap\ny f64 [6, 4] heap",
        "6 4 y[{0},{1}] = x[{0},{1}]*({0}*3-{1})\n6 4 y[{0},{1}] = {1}+2 if {0}+{1} < 3\n"
        "| 4 y[{0},{1}] = 7 if {0} >= 5 and {1} == 2",
    ),
    "far apart": text(
        "x f64 [2, 300] heap\ny f64 [300, 2] heap\nt f64 [300, 2] stack",
        "2 300 t[{1},{0}] = x[-{0}+1,-{1}+299]\n300 2 y[{0},{1}] = t[{0},{1}]",
    ),
    "rewound": text(
        "x f64 [3, 5] heap\nw f64 [5] heap\ny f64 [3, 5] heap\ns f64 [3:N] stack",
        "3 s[{0}] = 0\n| 5 s[{0}] += x[{0},{1}]*w[{1}]\n| 5 y[{0},{1}] = x[{0},{1}]*s[{0}]",
        "in x, w\nout y",
    ),
    "loops in unrolled scopes": text(
        "x f64 [4, 6] heap\ny f64 [4, 6] heap",
        "2 2:u 2 3 y[{0}*2+{1},{2}*3+{3}] = x[{0}*2+{1},{2}*3+{3}]\n"
        "2:u 2 2:u 3 y[{0}*2+{1},{2}*3+{3}] += x[{0}*2+{1},-{2}*3-{3}+5]",
    ),
    "f32 and f64": text(
        "x f32 [5] heap\ny f32 [5] heap\nt f64 [5] heap\nu f64 [5] heap",
        "5 t[{0}] = x[{0}]\n5 u[{0}] = t[{0}]*0.5\n5 y[{0}] = f32(u[{0}])\n5 y[{0}] = y[{0}] + 2.25",
    ),
    "a region in a loop": text(
        "x f64 [4, 8] heap\ny f64 [4, 8] heap\nt f64 [8] heap",
        "4 8 t[{1}] = x[{0},{1}] + 1\n| 8:s y[{0},{1}] = t[{1}]*2",
    ),
    "staggered registers": text(
        "x f64 [64] heap\ny f64 [4] heap\nc f64 [4] register",
        "4:u c[{0}] = 0\n1:s 16:f 4:u c[{2}] += x[{1}*4+{2}]\n4:u y[{0}] = c[{0}]",
    ),
    "halves": text("x f64 [8] heap\ny f64 [8] heap", "8 y[{0}] = x[{0}] / 2\n8 y[{0}] += y[{0}] / -0.125"),
    "staggered moves": text(  # each copy has the sign of its own source
        "x f64 [4] heap\ny f64 [4] heap\na f64 [4] register\nb f64 [4] register",
        "4:u a[{0}] = x[{0}]\n16:f 4:u b[{1}] = a[{1}]\n4:u y[{0}] = b[{0}]",
    ),
    "staggered moves to a stream": text(
        "x f64 [4] heap\ny f64 [2, 4] heap\na f64 [4] register",
        "4:u a[{0}] = x[{0}]\n1:s 2:f 4:u y[{1},{2}] = a[{2}]",
    ),
    "a number first met under a guard": text(  # and used where the guard does not hold
        "x f64 [4, 2] heap\ny f64 [4, 2] heap\nz f64 [4, 2] heap",
        "4 2:u y[{0},{1}] = x[{0},{1}]\n| | y[{0},{1}] += {1}*5+3 if {0} >= 2\n| | z[{0},{1}] = {1}*5+3",
        "in x\nout y, z",
    ),
    "numbers in a hardware loop": text(
        "x f64 [8] heap\ny f64 [8] heap\nt f64 [2] register",
        "2:u t[{0}] = {0}+5\n8:f 2:u t[{1}] += {1}*3+1\n8 y[{0}] = x[{0}]*t[0]\n| y[{0}] += t[1]",
    ),
    "quotients at the ends": text(
        "x f64 [8] heap\ny f64 [8] heap",
        "8 y[{0}] = x[{0}] / 8.98846567431158e307\n8 y[{0}] += x[{0}] / 1.1125369292536007e-308",
    ),
    "functions in software": text(
        "x f64 [8] heap\ny f64 [8] heap\nt f64 [8] heap\nu f64 [8:N] register",
        "8 t[{0}] = exp(x[{0}])\n8 u[{0}] = sigmoid(x[{0}])\n| t[{0}] += tanh(u[{0}])\n"
        "8 t[{0}] *= erf(x[{0}])\n"
        "8 u[{0}] = log(t[{0}])\n| u[{0}] = u[{0}] / t[{0}]\n| y[{0}] = abs(u[{0}])\n"
        "8 y[{0}] = sqrt(y[{0}])\n8 y[{0}] = y[{0}] + 1\n8 y[{0}] = rsqrt(y[{0}])",
    ),
    "functions of streams": text(  # which give each element once, and take one result
        "x f64 [8] heap\nw f64 [8] heap\ny f64 [8] heap",
        "8:s y[{0}] = exp(x[{0}])\n8:s y[{0}] = erf(y[{0}])\n8:s y[{0}] = y[{0}] / w[{0}]\n"
        "4:s 2:u y[{0}*2+{1}] = tanh(y[{0}*2+{1}])",
        "in x, w\nout y",
    ),
    "functions of f32": text(
        "x f32 [4] heap\nw f32 [4] heap\ny f32 [4] heap",
        "4 y[{0}] = exp(x[{0}])\n4 y[{0}] = y[{0}] / w[{0}]",
        "in x, w\nout y",
    ),
    "registers that one nest after the other uses": text(
        "x f64 [8] heap\ny f64 [8] heap\n" + "\n".join(f"{a} f64 [8] register" for a in "abcd"),
        "\n".join(f"8:u {a}[{{0}}] = x[{{0}}]\n1:s 8:f 8:u {a}[{{2}}] += x[{{1}}]\n8:u y[{{0}}] = {a}[{{0}}]"
                  for a in "abcd"),
    ),
    "a scalar": text("x f64 [] heap\ny f64 [] heap", "y[] = x[]*x[]"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_code_computes_what_the_program_says(name):
    verdict = judge(parse(PROGRAMS[name]))
    assert verdict.status == "ok", verdict.message


ENDS = (0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 2.3e-308, 1.7e308, 0.3, 7.0, -40.0, 1e-9)
FUNCTIONS = {
    "exp": np.exp,
    "log": np.log,
    "sigmoid": lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x))),
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "/": np.divide,
}
TOLD = {  # what the page says of each: off by, in units of the last place, and cycles
    name: (float(units), int(cycles))
    for name, units, cycles in re.findall(
        r"^\| `(\S+)` \| ([\d.]+) \| (\d+) \|$", (DOCS / "snitch.md").read_text(), re.MULTILINE
    )
}


def values(expression: str, **inputs: np.ndarray) -> tuple[np.ndarray, int]:
    """What the code of an expression computes, element by element, and the cycles of one."""
    (count,) = {len(array) for array in inputs.values()}
    buffers = "\n".join(f"{name} f64 [{count}] heap" for name in (*inputs, "y"))
    program = text(buffers, f"{count} y[{{0}}] = {expression}", f"in {', '.join(inputs)}\nout y")
    outputs, run = execute(generate(parse(program)), inputs)
    assert not run.fault, run.fault
    return outputs["y"], run.cycles // count


def near(found: np.ndarray, wanted: np.ndarray, units: float) -> None:
    """Within units of the last place, and one that the reference is off by itself; infinite or NaN alike."""
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    off = np.abs(found[finite] - wanted[finite]) / np.spacing(np.abs(wanted[finite]))
    assert off.max() <= units + 1, (off.max(), found[finite][off.argmax()])


@np.errstate(all="ignore")
@pytest.mark.parametrize("function", sorted({*FUNCTIONS} - {"/"}))
def test_a_function_in_software_is_right_over_the_whole_range(function):
    rng = np.random.default_rng(7)
    anywhere = rng.integers(0, 2**63, 60, dtype=np.int64).view(np.float64)
    x = np.concatenate([ENDS, rng.uniform(-750, 720, 60), rng.uniform(-4, 4, 100), anywhere, 1 / anywhere])
    near(values(f"{function}(x[{{0}}])", x=x)[0], FUNCTIONS[function](x), TOLD[function][0])


@np.errstate(all="ignore")
def test_a_division_in_software_is_right_over_the_whole_range():
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-(2**63), 2**63, 200, dtype=np.int64).view(np.float64) for _ in range(2))
    ends = np.array(np.meshgrid(ENDS, ENDS)).reshape(2, -1)
    x, w = np.concatenate([a, ends[0]]), np.concatenate([b, ends[1]])
    near(values("x[{0}] / w[{0}]", x=x, w=w)[0], x / w, TOLD["/"][0])


def test_the_page_tells_the_cycles_of_each_function():
    some = np.full(64, 1.5)
    counted = {name: values(f"{name}(x[{{0}}])", x=some)[1] for name in {*FUNCTIONS} - {"/"}}
    counted["/"] = values("x[{0}] / w[{0}]", x=some, w=some)[1]
    assert counted == {name: cycles for name, (_, cycles) in TOLD.items()}


def test_a_function_in_software_can_be_read(golden):
    golden(FOLDER / "snitch" / "exp.s", generate(parse(COPY.replace("x[{0}]", "exp(x[{0}])"))).text)


def test_a_function_takes_the_same_cycles_whatever_its_number():
    counts = {
        execute(generate(parse(COPY.replace("x[{0}]", "tanh(x[{0}])"))), {"x": np.full(8, x)})[1].cycles
        for x in (1.0, -0.0, 1e-320, 800.0, np.nan)
    }
    assert len(counts) == 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("4 y[{0}] = x[{0}] + {0}*3000000000", "{0}*3000000000 goes beyond 32 bits"),
        ("4 y[{0}] = x[{0}]\n4 y[{0}] = 1 if {0}*3000000000 < 4000000000", "beyond 32 bits"),
        ("4 y[{0}] = x[{0}]\n4 y[{0}] = 1 if {0} < 4000000000", "asks beyond 32 bits"),
    ],
)
def test_what_the_core_has_no_code_for_is_refused(body, told):
    with pytest.raises(NotGeneratable, match=re.escape(told)):
        generate(parse(text("x f64 [4] heap\ny f64 [4] heap", body)))


def test_a_loop_of_one_instruction_staggers_its_registers():
    shown = generate(parse(PROGRAMS["staggered registers"])).text
    assert "the next 1, t0+1 times, registers staggered by 4" in shown and "li      t0, 63" in shown


def test_the_code_of_a_stream_is_readable(golden):
    shown = generate(parse(next(m.text for m in MEASURED if "SSR, unrolled" in m.name)))
    golden(FOLDER / "snitch" / "vadd.s", shown.text)
    assert len(shown.nodes) == len(shown.text.splitlines())


SEEDS = [2, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (0, 1, 3))]


@pytest.mark.thorough  # the code of programs of each kind: above; a walk under the oracle: below
@pytest.mark.parametrize("seed", SEEDS)
def test_walks_on_a_snitch_compute_what_they_began_with(seed):
    """Random legal moves, the target's own first: the code of each position gives the start's results."""
    rng = random.Random(f"snitch {seed}")
    ran = marked = 0
    for _ in range(5):
        start = program = runnable(rng)
        for _ in range(10):
            found = legal_moves(program, TINY)
            own = [m for m in found if m.name in ("ssr", "frep", "unroll", "set_location")]
            program = apply(program, rng.choice(own if own and rng.random() < 0.6 else found), TINY)
            verdict = judge(program, start, seed=seed)
            if verdict.status == "refused":
                assert "register" in verdict.message or "arrays" in verdict.message, verdict.message
                continue
            assert verdict.status == "ok", f"{verdict.message}\n{program.text}"
            ran += 1
            marked += bool(program.summary.marks & {"s", "f"})
    assert ran > 30 and marked > 5, (ran, marked)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_walk_on_a_snitch_keeps_the_meaning(seed):
    rng = random.Random(f"snitch {seed}")
    program, rules = walks.start_on_a_snitch(rng)
    assert rules.target is TINY
    _, finding = walks.walk_from(program, rules, rng, walks.Tally(), 12, 3, compared=4)
    assert finding is None, str(finding)


# ---------------------------------------------------------------------------- faults and refusals


MANY = text(
    "x f64 [40] heap\ny f64 [40] heap\nt f64 [40] register", "40:u t[{0}] = x[{0}]\n40:u y[{0}] = t[{0}]"
)
COPY = text("x f64 [8] heap\ny f64 [8] heap", "8 y[{0}] = x[{0}]")


@pytest.mark.parametrize("mark", ["", ":s"])
@pytest.mark.parametrize("array", ["x", "y"])
def test_an_access_outside_the_arrays_is_a_fault(mark, array):
    code = generate(parse(COPY.replace("8 y", f"8{mark} y")))
    shorter = tuple(replace(p, shape=(7,)) if p.name == array else p for p in code.parameters)
    _, run = execute(replace(code, parameters=shorter), {"x": np.arange(8.0)[: 7 if array == "x" else 8]})
    done = "reads from" if array == "x" else "writes to"
    assert f"It {done} 0x" in run.fault and f"outside every array (the nearest is {array})" in run.fault


def fault(*lines: Instruction | Label) -> str:
    """What the model says of some instructions; a0 to a7 point to 16 numbers that are only read."""
    memory = [("m", 0x10000000, np.zeros(16), False)]
    found: str = dojo_snitch.run(encode([*lines, RETURN]), CODE, memory, [0x10000000] * 8, 1000)["fault"]
    return found


RETURN = instruction("ret")
ON = instruction("csrrsi", "zero", 0x7C0, 1)
BEGUN = (instruction("li", "t0", 3), scfgwi("t0", 2, 0), scfgwi("zero", 6, 0), scfgwi("a0", 24, 0))
FOREVER = (Label(".L1"), instruction("beq", "zero", "zero", ".L1"))


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((), ""),
        ((ON, instruction("fadd.d", "ft3", "ft0", "ft4")), "whose stream has ended or not begun"),
        ((ON, instruction("fadd.d", "ft1", "ft3", "ft4")), "which no stream takes"),
        ((instruction("li", "t0", 3), scfgwi("t0", 24, 0), *FOREVER), "no multiple of 8"),
        (BEGUN, "not used up"),
        ((*BEGUN, ON, instruction("fadd.d", "ft3", "ft0", "ft0")), "twice"),
        ((instruction("fsd", "ft3", 0, "a0"),), "only read"),
        ((frep("zero", 1), instruction("fcvt.d.w", "ft3", "zero")), "cannot"),
        (FOREVER, "within 1000 cycles"),
        ((instruction("li", "ra", 4),), "leaves its own code"),
        ((scfgwi("a0", 12, 0),), "no stream register 12"),
    ],
)
def test_the_model_lets_no_error_of_a_generator_go_by(lines, told):
    assert (told in fault(*lines)) if told else not fault()


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (COPY.replace("x[{0}]", "sin(x[{0}])"), "no sin, and there is none in software here"),
        (COPY.replace("x[{0}]", "isnan(x[{0}])"), "no isnan"),
        (COPY.replace("f64", "i32"), "is i32: the Snitch generator has f64 and f32"),
        (COPY.replace("8 y", "8:p y"), "knows no :p scopes"),
        (COPY.replace("x f64 [8]", "x f32 [8]").replace("x[{0}]", "x[{0}] + x[{0}]"), "mixes f32 and f64"),
        (MANY, "no FPU register left"),
    ],
)  # fmt: skip
def test_what_cannot_run_is_refused_with_a_sentence(program, told):
    with pytest.raises(NotGeneratable, match=told):
        generate(parse(program))


def test_arrays_larger_than_the_model_holds_are_refused():
    verdict = judge(parse(COPY.replace("8", "5000000")))
    assert verdict.status == "refused" and "80,000,000 bytes" in verdict.message


# ---------------------------------------------------------------------------- the encoder beside GNU as

AS = shutil.which("riscv64-unknown-elf-as")


@pytest.mark.skipif(
    AS is None, reason="needs GNU as for RISC-V: apt-get install binutils-riscv64-unknown-elf"
)
@pytest.mark.parametrize("name", [*PROGRAMS, *(m.name for m in MEASURED)])
def test_the_words_are_those_of_gnu_as(name, tmp_path):
    program = PROGRAMS.get(name) or next(m.text for m in MEASURED if m.name == name)
    code = generate(parse(program))
    (tmp_path / "k.s").write_text(code.text)
    flags = ["-march=rv32imafd_zicsr", "-mabi=ilp32d", "-mno-relax"]
    subprocess.run([AS, *flags, "-o", tmp_path / "k.o", tmp_path / "k.s"], check=True)
    tool = AS.removesuffix("-as")
    link = ["-m", "elf32lriscv", f"-Ttext={CODE:#x}", "-e", code.symbol, "--no-relax"]
    subprocess.run([f"{tool}-ld", *link, "-o", tmp_path / "k", tmp_path / "k.o"], check=True)
    subprocess.run(
        [f"{tool}-objcopy", "-O", "binary", "-j", ".text", tmp_path / "k", tmp_path / "k.bin"], check=True
    )
    made = (tmp_path / "k.bin").read_bytes()
    nop = 0x00000013  # what as fills up with
    ours = [w or nop for w in code.words[: len(made) // 4]]
    assert [int.from_bytes(made[n : n + 4], "little") or nop for n in range(0, len(made), 4)] == ours


def test_the_target_is_registered():
    assert SNITCH.name == "snitch" and SNITCH.marks == frozenset("usf")


def test_a_fault_has_the_name_that_measurements_give_it(monkeypatch):
    slow = apply(parse(COPY), "split_scope y@0 4", SNITCH)
    monkeypatch.setattr("dojo_core.targets.snitch.simulate.LIMIT", 20)
    monkeypatch.setattr("dojo_core.targets.snitch.simulate._SLOWER", 0)
    assert judge(slow, parse(COPY)).status == "timeout"
