"""Estimated cycles: how a listing is cut into blocks, what the model says of a start and of its line."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from agents.cli import app
from benchmarks import model as ranking
from benchmarks.in_turns import NotTimed, Turns, in_turns
from dojo_core import kernels, parse
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.measure.conditions import UNKNOWN, Conditions
from dojo_core.program.tree import Program
from dojo_core.targets.cpu import model
from dojo_core.targets.cpu.codegen import PREAMBLE, generate
from dojo_core.targets.cpu.cores import bandwidths, store_cycles, with_branches_fused, with_loads_apart
from dojo_core.targets.cpu.cross import NotRun
from dojo_core.targets.cpu.limits import limits_of
from dojo_core.targets.cpu.model import Block, Estimate, blocks_of, estimate, missing, waits
from dojo_core.targets.cpu.processor import Processor, known
from dojo_core.targets.registry import backend
from tests.compiled import random_inputs
from tests.crossed import with_tools
from tests.thorough import one_of

LISTING = {
    0x10: "mov x1, #0x0",
    0x14: "ldr q0, [x0], #0x10",
    0x18: "fadd v1.4s, v1.4s, v0.4s",
    0x1C: "b.ne 0x14 <kernel_0+0x4>",
    0x20: "cbz x2, 0x28 <kernel_0+0x18>",
    0x24: "adrp x3, 0x28 <kernel_0+0x18>",
    0x28: "ret",
}


def test_a_listing_is_cut_at_branches_at_their_aims_and_where_counts_change():
    counts = {0x10: 1, 0x14: 8, 0x18: 8, 0x1C: 8, 0x20: 1, 0x28: 1}
    assert blocks_of(LISTING, counts) == [
        Block(0x10, ("mov x1, #0x0",), 1, False),
        Block(0x14, tuple(LISTING[at] for at in (0x14, 0x18, 0x1C)), 8, True),
        Block(0x20, ("cbz x2, 0x28 <kernel_0+0x18>",), 1, False),
        Block(0x28, ("ret",), 1, False),
    ]


def needs_model(name: str) -> Processor:
    processor = with_tools(name)
    if told := missing(processor):
        pytest.skip(told)
    return processor


@pytest.mark.thorough  # cycles of small programs: below
@pytest.mark.parametrize("name", one_of(2, ["armv8.4-a", "rv64gcv-128"]))
def test_a_line_takes_fewer_cycles_than_its_start(name):
    processor = needs_model(name)
    found, line = kernels.get("matmul"), recorded_lines()["matmul"]
    game = Game.new(found.program(found.shape("12x64x64")), "matmul", "12x64x64", limits=limits_of(processor))
    line.play(game)
    inputs = random_inputs(game.start)
    first, last = (
        estimate(program, generate(program, line.policy, processor), inputs, processor)
        for program in (game.start, game.current.program)
    )
    assert last.cycles < first.cycles / 4
    said = rf"model 7: llvm-mca \d\S+, {processor.model}, {2 if name.startswith('rv') else 3} caches"
    assert re.fullmatch(said, last.model)
    # Products of vectors, and some instructions more for each.
    products = 12 * 64 * 64 // limits_of(processor).vector_widths["f32"][0]
    assert products < last.instructions < 8 * products
    assert last.instructions == sum(b.executions * len(b.instructions) for b in last.blocks)
    assert max(last.blocks, key=lambda b: b.executions * b.cycles).loop


ROWS = "kernel k\nin a, b\nout c\na f32 [{0}, {1}] heap\nb f32 [{1}] heap\nc f32 [{0}] heap\n"
SUMS = ROWS + "{0} c[{{0}}] = 0\n{0} {1} c[{{0}}] += a[{{0}},{{1}}]*b[{{1}}]\n"


@pytest.mark.thorough  # of a line, and of its start: above
def test_short_sums_one_after_the_other_overlap_and_a_long_one_waits_for_itself():
    processor = needs_model("armv8.4-a")
    short, long = (
        estimate(program, generate(program, "strict", processor), random_inputs(program), processor)
        for program in (parse(SUMS.format(64, 16)), parse(SUMS.format(2, 512)))
    )
    assert short.cycles < 0.8 * long.cycles
    # Each sum of the long one waits for the one before it, and for no load: that is there long before.
    assert {block.cycles for block in long.blocks if block.loop} == {4}


@pytest.mark.thorough  # cycles of a line: above; the instruction: test_crossed.py
@pytest.mark.parametrize(
    ("name", "times"), [("rv64gcv-128", 6), pytest.param("rv64gcv-256", 3.5, marks=pytest.mark.soak)]
)
def test_the_int8_line_multiplies_and_adds_in_one_instruction(name, times):
    """The start, too, is in vectors: clang makes them."""
    processor = needs_model(name)
    found, line = kernels.get("qmatmul"), recorded_lines()["qmatmul_widened"]
    start = found.program(found.shape("12x128x128"))
    game = Game.new(start, "qmatmul", "12x128x128", limits=limits_of(processor))
    line.play(game)
    inputs = random_inputs(start, full=True)
    first, last = (
        estimate(program, generate(program, line.policy, processor), inputs, processor)
        for program in (start, game.current.program)
    )
    assert last.cycles < first.cycles / times
    longest = max(last.blocks, key=lambda b: b.executions * b.cycles)
    assert longest.loop and sum(text.startswith("vwmaccus.vx ") for text in longest.instructions) == 12


COPY = "kernel k\nin x\nout y\nx f32 [{n}] heap\ny f32 [{n}] heap\n{times}{n} y[{{{last}}}] = x[{{{last}}}]\n"
# c of 96 rows of 512 bytes, a of 96 rows of 1 KiB, b of 128 KiB.
PRODUCT = """\
kernel k
in a, b
out c
a f32 [96, 256] heap
b f32 [256, 128] heap
c f32 [96, 128] heap
96 128 c[{0},{1}] = 0
"""
AS_WRITTEN = "96 128 256 c[{0},{1}] += a[{0},{2}]*b[{2},{1}]\n"
TILED = "8 96 256 16 c[{1},{0}*16+{3}] += a[{1},{2}]*b[{2},{0}*16+{3}]\n"
KB = 1 << 10


def copied(cells: int, times: int = 1) -> Program:
    again = f"{times} " if times > 1 else ""
    return parse(COPY.format(n=cells, times=again, last=1 if times > 1 else 0))


@pytest.mark.parametrize(
    ("program", "bytes_", "cycles"),
    [
        # Arrays of 4 KiB each stay in the first cache, of 32 KiB.
        (copied(1 << 10), (0, 0, 0), 0),
        # Of 64 KiB, in the second, of 1 MiB: x comes, y comes and goes back.
        (copied(1 << 14), (3 * 64 * KB, 0, 0), 3 * 64 * KB / 20),
        # Of 1 MiB, in the last, of 8 MiB: no iteration of four leaves the next one anything.
        (copied(1 << 18, 4), (4 * 3072 * KB,) * 2 + (0,), 4 * 3072 * KB * (1 / 20 + 1 / 10)),
        # Of 16 MiB, in none.
        (copied(1 << 22), (3 * (16 << 20),) * 3, 3 * (16 << 20) * (1 / 20 + 1 / 10 + 1 / 4)),
        # A column of b is 256 lines, half of the first cache; all of b is four times the cache.
        (
            parse(PRODUCT + AS_WRITTEN),
            (96 * (1 + 128 + 2 * 0.5) * KB + 2 * 48 * KB, 0, 0),
            (96 * 130 + 96) * KB / 20,
        ),
        # 16 columns of b are 16 KiB: they stay for all rows of a, which comes 8 times.
        (parse(PRODUCT + TILED), (8 * (96 + 16 + 2 * 6) * KB + 2 * 48 * KB, 0, 0), (8 * 124 + 96) * KB / 20),
    ],
    ids=["first", "second", "last", "memory", "as written", "tiled"],
)
def test_what_does_not_fit_a_cache_comes_from_the_next(program, bytes_, cycles):
    assert waits(program, known("armv8.4-a")) == (bytes_, pytest.approx(cycles))


def test_where_there_is_no_last_cache_memory_is_next():
    board, size = known("rv64gcv-128"), 3072 * KB
    assert board.caches == (32 * KB, 512 * KB, 0)
    assert waits(copied(1 << 18), board) == ((size, size), pytest.approx(size * (1 / 20 + 1 / 4)))


@pytest.mark.parametrize(("cells", "read"), [(1 << 10, 0), (1 << 18, 1024 * KB)])
def test_what_is_streamed_goes_to_memory_however_little_it_is(cells, read):
    program = parse(copied(cells).text.rstrip() + " !stream\n")
    bytes_, cycles = waits(program, known("rv64gcv-128"))
    assert bytes_ == (read, read + 4 * cells)
    assert cycles == pytest.approx(read * (1 / 20 + 1 / 4) + 4 * cells / 4)


SUM = ("vmovups 64(%rsp), %ymm0", "vfmadd231ps %ymm1, %ymm2, %ymm0", "vmovups %ymm0, 64(%rsp)")


@pytest.mark.parametrize(
    ("instructions", "loop", "cycles"),
    [
        (
            ("vmovups %ymm0, (%rdi)", "vmovups %xmm1, 32(%rdi)", "movl %eax, 48(%rdi)"),
            False,
            (32 + 16 + 8) / 16,
        ),
        (("vmovups (%rdi), %ymm0", "vfmadd231ps 32(%rdi), %ymm1, %ymm0"), True, 0),
        (SUM, True, 8 + 4),  # round by way of the stack
        (SUM, False, 2),
        ((SUM[2], SUM[0], SUM[1]), True, 2),  # what it loads, it has just stored: nothing goes round
    ],
    ids=["widths", "loads", "a sum on the stack", "once", "stored first"],
)
def test_stores_take_a_cycle_for_16_bytes_and_sums_on_the_stack_go_round(instructions, loop, cycles):
    assert store_cycles(instructions, loop, "znver1") == cycles
    assert store_cycles(instructions, loop, "neoverse-v1") == 0  # nothing is known of its stores


def test_each_core_has_its_own_stores():
    assert store_cycles(SUM, True, "sapphirerapids") == 6 + 4
    many = [text.replace("64(", f"{64 + 32 * n}(") for n in range(32) for text in SUM]
    assert store_cycles(many, True, "sapphirerapids") == 5.5 + 32 * 0.75  # as was measured of such loops
    assert store_cycles(many, False, "sapphirerapids") == 32
    assert store_cycles(SUM, True, "znver4") == 1  # how long a value takes by way of the stack is not known


def test_loads_stand_apart_where_the_model_would_have_a_sum_wait_for_them():
    folded = [
        "vfmadd231ps -0x20(%rax,%rdi), %ymm1, %ymm31",
        "vaddss (%rcx), %xmm2, %xmm2",
        "vmovups (%rax), %ymm3",
    ]
    assert with_loads_apart(folded, "sapphirerapids") == [
        "vmovups -0x20(%rax,%rdi), %ymm30",
        "vfmadd231ps %ymm30, %ymm1, %ymm31",
        "vmovss (%rcx), %xmm30",
        "vaddss %xmm30, %xmm2, %xmm2",
        "vmovups (%rax), %ymm3",
    ]
    assert with_loads_apart(folded, "znver4") == folded


def test_a_comparison_and_the_jump_behind_it_are_one_operation():
    loop = ["addq $0x4, %rax", "cmpq %rax, %rdx", "jne elsewhere"]
    assert with_branches_fused(loop) == ["addq $0x4, %rax", "jne elsewhere"]
    apart = ["testl %eax, %eax", "movl %ecx, %edx", "cmpq $0x1, (%rdi)", "je elsewhere", "cmpq %rax, %rdx"]
    assert with_branches_fused(apart) == apart
    assert with_branches_fused(["cmp x0, x1", "b.ne elsewhere"]) == ["cmp x0, x1", "b.ne elsewhere"]


def test_a_core_has_its_own_bandwidths_where_they_were_measured():
    assert bandwidths("sapphirerapids") == (64, 12, 7)
    assert bandwidths("neoverse-v1") == (20, 10, 4)


TIMES = {  # cycles, and its time over that of the first
    "a": (100, 1.0), "b": (110, 0.8), "c": (130, 1.1), "d": (150, 1.5), "e": (140, 2.0),
}  # fmt: skip


@pytest.mark.parametrize(
    ("load", "told"),
    [
        (
            0.02,
            [
                "cycles 0.80 (asked: 0.9)",
                "takes 1.00 times the best (",
                "other half: 1.00",
                "2% of the cores: idle",
            ],
        ),
        (0.4, ["took 40% of the cores", "Nothing is concluded"]),
        (None, ["load not known", "Nothing is concluded"]),
    ],
    ids=["idle", "busy", "not known"],
)
def test_ranks_are_concluded_on_an_idle_machine_alone(capsys, load, told):
    clocks = np.array([1.0, 3.0, 2.0, 1.7]).reshape(2, 2, 1)  # of two rounds in each of two processes
    times = Turns(clocks * [ratio for _, ratio in TIMES.values()], Conditions(load))
    estimates = {
        name: Estimate(cycles, 0.0, 10 * cycles, (), "a model", ()) for name, (cycles, _) in TIMES.items()
    }
    assert ranking.compared("a set", estimates, times, 0.9) == (load == 0.02)
    said = capsys.readouterr().out
    assert all(each in said for each in told), said
    assert ("Rank correlation" in said) == (load == 0.02)


def test_times_of_different_clocks_repeat_and_those_of_other_programs_do_not():
    ratios = np.array([1.0, 2.0, 4.0])
    swinging = np.stack([ratios, 3 * ratios])[:, None]  # two processes of one round
    assert Turns(swinging, ()).relative == pytest.approx(ratios)
    assert Turns(swinging, ()).repeatability == 1
    assert Turns(np.stack([ratios, ratios[::-1]])[:, None], UNKNOWN).repeatability == -1


def test_programs_are_verified_and_take_turns():
    start = copied(1 << 10)
    twice = parse(start.text.replace("x[{0}]", "x[{0}]*2"))
    turns = in_turns(start, [start, copied(1 << 10)], "strict", generate, PREAMBLE, processes=1, rounds=3)
    assert turns.seconds.shape == (1, 3, 2) and (turns.seconds > 0).all()
    with pytest.raises(NotTimed, match="wrong_result"):
        in_turns(start, [twice], "strict", generate, PREAMBLE, processes=1, rounds=3)


def test_what_an_estimate_lacks_is_told(monkeypatch):
    arm = known("armv8-a")
    assert missing(replace(arm, model=None)) == "There is no model of the pipeline of armv8-a."
    assert missing(replace(arm, toolchain=None)) == "There is no emulator for armv8-a here."
    monkeypatch.setattr(model, "_tool", lambda name: "")
    told = missing(needs_tools_or_told(arm))
    assert told == "llvm-mca and llvm-objdump are not here. This brings it: apt-get install llvm-19"
    relu = kernels.get("relu").program((4, 8))
    with pytest.raises(NotRun, match="are not here"):
        estimate(relu, generate(relu, processor=arm), {}, arm)


def needs_tools_or_told(processor: Processor) -> Processor:
    """Its compiler and emulator stand for any that are there."""
    assert processor.toolchain is not None
    return replace(processor, toolchain=replace(processor.toolchain, compiler="sh", emulator=("sh",)))


def test_a_number_is_told_with_its_models_name_and_never_as_seconds():
    needs_model("armv8.6-a")
    clock = backend("arm").clock()
    assert (clock.kind, clock.unit, clock.steady) == ("modelled", "cycles", 1.0)
    assert clock.label.startswith("cycles estimated by model 7: llvm-mca") and "neoverse-v1" in clock.label
    shown = CliRunner().invoke(app, ["time", "relu", "--shape", "8x64", "--target", "arm", "--json"])
    (told,) = json.loads(shown.stdout)
    assert (told["seconds"], told["samples_ns"], told["unit"]) == (None, [], clock.label)
    assert told["verified"] and told["number"] > 0
