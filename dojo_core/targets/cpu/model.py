"""Estimated cycles of a program on a processor that is not here: how often each instruction is executed, by
an emulator, times what a model of the pipeline says of the block that it stands in; and for each cache what
its traffic takes.

Instructions are counted exactly, by a plugin of qemu. llvm-mca takes an innermost loop as it goes round: a
short one together with the loop around it, since a core begins the next time round before the last one's sums
have arrived. Any other straight piece of code it takes by what it keeps busy, as if what stands around it
filled all waiting; ``cores.py`` adds what it does not know of some cores. Then the bytes that each cache
exchanges with the next (``traffic.py``), over that one's bandwidth, are added: the pipeline waits for them,
as in the ECM model (Treibig and Hager, Introducing a performance model for bandwidth-limited loop kernels,
PPAM 2009). Every branch is foretold, wherever it lies, and what a called function takes is left out. There is
one core. This is no time: it is told with its model's name and never beside seconds.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dojo_core.codegen.code import Code
from dojo_core.files import write_text
from dojo_core.measure.compiler import the_compiler
from dojo_core.measure.compiling import run_watched
from dojo_core.measure.exclusive import compiling
from dojo_core.measure.limits import COMPILE_SECONDS
from dojo_core.measure.places import cache_directory
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.cores import bandwidths, store_cycles, with_branches_fused, with_loads_apart
from dojo_core.targets.cpu.processor import RISCV, SHARED_BYTES_OF_A_CORE, NotRun, Processor, llvm
from dojo_core.targets.cpu.traffic import streamed, traffic

if TYPE_CHECKING:
    from dojo_core.targets.cpu.cross import Arrays

# Of this method: 1 had all data in the first cache, 2 streamed into caches, 3 knew the stores of one core, 4
# those of several, and nothing of loops that overlap, 5 had each loop begin anew, and its comparisons apart.
VERSION = 7
RUN_SECONDS = 120.0
# A block goes round in the model so often, and then twice as often: what the second half takes longer is what
# it takes as it goes round, without the latencies of its first instructions and its last ones.
ITERATIONS = 64
# A loop goes round in the model with the loop around it where all of that is at most so many instructions, of
# which cores today hold 200 to 512 at once; less often, for it is longer.
NEST_INSTRUCTIONS, NEST_ITERATIONS = 1024, 16
_INSTALL = "apt-get install llvm-19"

# The interface of qemu's plugins, version 1 (qemu-plugin.h), as far as it is used here.
_PLUGIN = """\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*call)(uint64_t id, void *block));
extern void qemu_plugin_register_atexit_cb(uint64_t id, void (*call)(uint64_t id, void *data), void *data);
extern size_t qemu_plugin_tb_n_insns(const void *block);
extern void *qemu_plugin_tb_get_insn(const void *block, size_t number);
extern uint64_t qemu_plugin_insn_vaddr(const void *instruction);
extern void qemu_plugin_register_vcpu_insn_exec_inline(void *instruction, int add, void *place, uint64_t by);

static uint64_t first, last, *counts;

static void translated(uint64_t id, void *block) {
    for (size_t k = 0; k < qemu_plugin_tb_n_insns(block); ++k) {
        void *instruction = qemu_plugin_tb_get_insn(block, k);
        uint64_t at = qemu_plugin_insn_vaddr(instruction);
        if (at >= first && at < last)
            qemu_plugin_register_vcpu_insn_exec_inline(instruction, 0, &counts[at - first], 1);
    }
}

static void ended(uint64_t id, void *data) {
    FILE *file = fopen("counts", "w");
    if (file == NULL) return;
    for (uint64_t at = first; at < last; ++at)
        if (counts[at - first])
            fprintf(file, "%llx %llu\\n", (unsigned long long)at, (unsigned long long)counts[at - first]);
    fclose(file);
}

__attribute__((visibility("default")))
int qemu_plugin_install(uint64_t id, const void *info, int count, char **words) {
    for (int k = 0; k < count; ++k) {
        if (!strncmp(words[k], "first=", 6)) first = strtoull(words[k] + 6, NULL, 16);
        if (!strncmp(words[k], "last=", 5)) last = strtoull(words[k] + 5, NULL, 16);
    }
    counts = calloc(last - first + 1, sizeof *counts);
    if (counts == NULL) return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
"""


@dataclass(frozen=True)
class Block:
    """A piece of code without a branch but at its end: its address, instructions as text, how often it is
    executed, and the model's cycles of one execution. ``loop``: its branch leads to its start. ``issue`` and
    ``ports``: the least cycles for handing its micro-operations to the ports, and for the busiest port;
    ``chain``: the cycles but for what stores are known to take."""

    address: int
    instructions: tuple[str, ...]
    executions: int
    loop: bool
    cycles: float = 0.0
    issue: float = 0.0
    ports: float = 0.0
    chain: float = 0.0


@dataclass(frozen=True)
class Estimate:
    """``cycles`` of one core, of which ``waiting`` for its caches. ``traffic``: bytes that each of these
    exchanges with the next, the first cache first. ``model``: what says so, with its version."""

    cycles: float
    waiting: float
    instructions: int
    traffic: tuple[int, ...]
    model: str
    blocks: tuple[Block, ...]


def missing(processor: Processor) -> str:
    """What an estimate needs and is not here, as a sentence; empty where all is."""
    if processor.model is None:
        return f"There is no model of the pipeline of {processor.name}."
    if processor.toolchain is None or not processor.toolchain.emulator:
        return f"There is no emulator for {processor.name} here."
    absent = [name for name in ("llvm-mca", "llvm-objdump") if not _tool(name)]
    sentence = (
        f"{' and '.join(absent)} {'are' if len(absent) > 1 else 'is'} not here. This brings it: {_INSTALL}"
    )
    return processor.toolchain.missing or (sentence if absent else "")


def estimate(
    program: Program, code: Code, inputs: Arrays, processor: Processor, seconds: float = RUN_SECONDS
) -> Estimate:
    """The estimate of one run of a program's generated code on these inputs, as they are stored, after others
    like it. Raises NotRun."""
    from dojo_core.targets.cpu.cross import Call, build_program, execute

    if absent := missing(processor):
        raise NotRun(absent)
    with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="model-") as name, compiling():
        folder = Path(name)
        build_program([code], processor, folder, COMPILE_SECONDS)
        listing = _listing(folder, processor)
        write_text(folder / "plugin.c", _PLUGIN)
        command = [the_compiler().path, "-O2", "-fPIC", "-shared", "-w", "plugin.c", "-o", "plugin.so"]
        status, output = run_watched(command, folder, COMPILE_SECONDS)
        if status:
            raise NotRun(f"The plugin that counts instructions does not compile: {output}")
        plugin = f"{folder / 'plugin.so'},first={min(listing):x},last={max(listing) + 1:x}"
        # One thread: the counts of several would be lost among them.
        options = ["-E", "OMP_NUM_THREADS=1", "-plugin", plugin]
        execute([code], [Call(0, inputs)], processor, folder, seconds, options)
        rows = (row.split() for row in (folder / "counts").read_text().splitlines())
        counts = {int(at, 16): int(count) for at, count in rows}
        blocks = timed(blocks_of(listing, counts), processor, folder)
    exchanged, waiting = waits(program, processor)
    return Estimate(
        cycles=sum(block.executions * block.cycles for block in blocks) + waiting,
        waiting=waiting,
        instructions=sum(counts.values()),
        traffic=exchanged,
        model=named(processor),
        blocks=tuple(blocks),
    )


def named(processor: Processor) -> str:
    """What says so, with its version."""
    return f"model {VERSION}: llvm-mca {_version()}, {processor.model}, {len(_capacities(processor))} caches"


def waits(program: Program, processor: Processor) -> tuple[tuple[int, ...], float]:
    """Bytes that each of the caches exchanges with the next in one run of a program, and cycles for all."""
    capacities = _capacities(processor)
    *nearer, last = (traffic(program, capacity) for capacity in capacities)
    exchanged = (*nearer, last + streamed(program))
    *caches, memory = bandwidths(processor.model)
    beyond = (*caches[: len(capacities) - 1], memory)
    return exchanged, sum(size / bandwidth for size, bandwidth in zip(exchanged, beyond, strict=True))


def _capacities(processor: Processor) -> tuple[int, ...]:
    """Of the caches that one core may fill, the first one first."""
    first, second, last = processor.caches
    own = min(last, SHARED_BYTES_OF_A_CORE)
    return tuple(size for size in (first, second, own) if size)


def _tool(name: str) -> str:
    return shutil.which(llvm(name)) or ""


def host_model() -> str:
    """llvm-mca's name of this computer's core; empty where it is not here, or does not know one."""
    match = re.search(r"Host CPU: (\S+)", _told()) if _tool("llvm-mca") else None
    return match[1] if match and match[1] != "generic" else ""


def _version() -> str:
    match = re.search(r"LLVM version (\S+)", _told())
    return match[1] if match else "?"


@cache
def _told() -> str:
    """What llvm-mca says of itself and of this computer."""
    command = [_tool("llvm-mca"), "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


_COMMENT = re.compile(r"\s+(?:#|//) ")
_ROW = re.compile(r"^ *([0-9a-f]+): *\t?(?P<text>.*)$")


def _listing(folder: Path, processor: Processor) -> dict[int, str]:
    """The instructions of the kernel, and of the parts of it that are functions of their own, by address."""
    features = ["--mattr=+v"] if processor.instruction_set == RISCV else []
    command = [_tool("llvm-objdump"), "-d", "--no-show-raw-insn", *features, "program"]
    with (folder / "listing").open("w") as file:
        subprocess.run(command, cwd=folder, stdout=file, stderr=subprocess.DEVNULL, check=False)
    instructions: dict[int, str] = {}
    inside = False
    for line in (folder / "listing").read_text(errors="replace").splitlines():
        if head := re.match(r"^[0-9a-f]+ <(.*)>:$", line):
            inside = re.fullmatch(r"kernel_0(\..*)?", head[1]) is not None
        elif inside and (row := _ROW.match(line)) and row["text"].strip():
            instructions[int(row[1], 16)] = _COMMENT.split(row["text"].strip().replace("\t", " "))[0]
    if not instructions:
        raise NotRun("The kernel is not found in its own program.")
    return instructions


_TARGET = re.compile(r"0x([0-9a-f]+) <[^>]*>")
_DATA = re.compile(r"(adrp?|auipc|lea|ldr|mov)\w*\b")  # name an address, and lead nowhere
_AWAY = re.compile(r"(ret|br|blr|jr|jalr)\w*\b")


def blocks_of(listing: Mapping[int, str], counts: Mapping[int, int]) -> list[Block]:
    """Pieces of straight code that were executed: cut where the count changes, before what a branch leads to,
    and behind a branch."""
    leading = {address: text for address, text in listing.items() if _leads(text)}
    aims = {int(match[1], 16) for text in leading.values() if (match := _TARGET.search(text))}
    pieces: list[list[int]] = []
    for address in listing:
        last = pieces[-1][-1] if pieces else None
        changed = last is None or counts.get(address, 0) != counts.get(last, 0)
        if changed or address in aims or last in leading:
            pieces.append([])
        pieces[-1].append(address)
    blocks = []
    for piece in pieces:
        if executions := counts.get(piece[0], 0):
            aim = _TARGET.search(leading.get(piece[-1], ""))
            loop = aim is not None and int(aim[1], 16) == piece[0]
            blocks.append(Block(piece[0], tuple(listing[a] for a in piece), executions, loop))
    return blocks


def _leads(text: str) -> bool:
    return not _DATA.match(text) and (_TARGET.search(text) is not None or _AWAY.match(text) is not None)


_LENGTHS = re.compile(r"vsetiv?li .*\be(\d+), m(\w+),")


@dataclass(frozen=True)
class _Nest:
    """The numbers of a loop's block, of those right before and behind it, which are all of the loop around
    it, and how often the inner one goes round."""

    before: int
    loop: int
    behind: int
    rounds: int


def _nests(blocks: Sequence[Block]) -> list[_Nest]:
    """Short loops that are all there is in the loop around them."""
    nests = []
    for number in range(1, len(blocks) - 1):
        before, loop, behind = blocks[number - 1 : number + 2]
        aim = _TARGET.search(behind.instructions[-1])
        around = aim is not None and int(aim[1], 16) == before.address
        if not (loop.loop and around and before.executions == behind.executions):
            continue
        rounds, rest = divmod(loop.executions, behind.executions)
        size = len(before.instructions) + rounds * len(loop.instructions) + len(behind.instructions)
        if not rest and rounds > 1 and size <= NEST_INSTRUCTIONS:
            nests.append(_Nest(number - 1, number, number + 1, rounds))
    return nests


def timed(
    blocks: Sequence[Block], processor: Processor, folder: Path, iterations: int = ITERATIONS
) -> list[Block]:
    """The blocks with the model's cycles, of so many iterations. Raises NotRun with what llvm-mca said."""
    texts, vectors = [], []
    lengths = "32", "1"
    for block in blocks:
        vectors.append(lengths)  # as set by whoever came before, in the order of addresses
        for text in block.instructions:
            if match := _LENGTHS.search(text):
                lengths = match[1], match[2]
        lines = [_TARGET.sub("elsewhere", text) for text in block.instructions]
        texts.append(with_loads_apart(with_branches_fused(lines), processor.model))
    regions = [_Region(lines, set_) for lines, set_ in zip(texts, vectors, strict=True)]
    summaries = _asked(regions, iterations, processor, folder)
    told = []
    for block, summary in zip(blocks, summaries, strict=True):
        cycles = float(len(block.instructions))  # where the model knows no instruction of it
        if summary is not None:
            block = replace(block, issue=summary.issued, ports=summary.kept_busy)
            cycles = summary.going_round if block.loop else summary.kept_busy
        least = store_cycles(block.instructions, block.loop, processor.model)
        told.append(replace(block, cycles=max(cycles, least), chain=cycles))
    nests = _nests(blocks)
    regions = [
        _Region([*texts[n.before], *texts[n.loop] * n.rounds, *texts[n.behind]], vectors[n.before])
        for n in nests
    ]
    for nest, summary in zip(nests, _asked(regions, NEST_ITERATIONS, processor, folder), strict=True):
        if summary is not None:
            loop = told[nest.loop]
            apart = told[nest.before].cycles + nest.rounds * loop.cycles + told[nest.behind].cycles
            least = nest.rounds * store_cycles(loop.instructions, True, processor.model)
            chain = summary.going_round
            cycles = max(chain, least)
            if cycles < apart:
                for number in (nest.before, nest.behind):
                    told[number] = replace(told[number], cycles=0.0, chain=0.0)
                told[nest.loop] = replace(loop, cycles=cycles / nest.rounds, chain=chain / nest.rounds)
    return told


@dataclass(frozen=True)
class _Region:
    """Instructions that llvm-mca is asked about at once, and for RISC-V the element bits and the group of
    registers that its vectors begin with."""

    lines: Sequence[str]
    vectors: tuple[str, str]


@dataclass(frozen=True)
class _Summary:
    """Cycles of a region: of each time that it goes round, for which its instructions keep what they need
    most busy, and in which they are handed to the ports at the least."""

    going_round: float
    kept_busy: float
    issued: float


def _asked(
    regions: Sequence[_Region], iterations: int, processor: Processor, folder: Path
) -> list[_Summary | None]:
    """What llvm-mca says of regions that each go round so often, and twice as often; None of one of which it
    knows no instruction. Raises NotRun."""
    summaries: list[_Summary | None] = []
    once, twice = (_views(regions, times * iterations, processor, folder) for times in (1, 2))
    for one, other in zip(once, twice, strict=True):
        if one is None or other is None:
            summaries.append(None)
        else:
            cycles = (other["TotalCycles"] - one["TotalCycles"]) / iterations
            issued = one["TotaluOps"] / iterations / one["DispatchWidth"]
            summaries.append(_Summary(cycles, one["BlockRThroughput"], issued))
    return summaries


def _views(
    regions: Sequence[_Region], iterations: int, processor: Processor, folder: Path
) -> list[dict[str, float] | None]:
    """llvm-mca's summaries, by its own names, of regions that go round so often. Raises NotRun."""
    assert processor.toolchain is not None and processor.model is not None
    if not regions:
        return []
    rows = []
    for number, region in enumerate(regions):
        rows.append(f"# LLVM-MCA-BEGIN b{number}")
        if processor.instruction_set == RISCV:
            bits, group = region.vectors
            rows += [f"# LLVM-MCA-RISCV-LMUL M{group.upper()}", f"# LLVM-MCA-RISCV-SEW E{bits}"]
        rows += [*region.lines, f"# LLVM-MCA-END b{number}"]
    write_text(folder / "blocks.s", "\n".join([*rows, ""]))
    features = ["-mattr=+v,+m,+a,+f,+d,+c"] if processor.instruction_set == RISCV else []
    command = [
        _tool("llvm-mca"), f"-mtriple={processor.toolchain.triple}", f"-mcpu={processor.model}", *features,
        f"-iterations={iterations}", "-skip-unsupported-instructions=lack-sched", "-call-latency=1",
        "-json", "-o", "cycles.json", "blocks.s",
    ]  # fmt: skip
    status, output = run_watched(command, folder, COMPILE_SECONDS)
    if status:
        raise NotRun(f"llvm-mca ended with status {status}: {output}")
    told = {
        r["Name"]: r["SummaryView"] for r in json.loads((folder / "cycles.json").read_text())["CodeRegions"]
    }
    return [told.get(f"b{number}") for number in range(len(regions))]
