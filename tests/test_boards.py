"""What Linux tells of boards with Arm and RISC-V: no two are one machine in the records; x86 is as it was."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, count
from pathlib import Path

import pytest

from dojo_core import system
from dojo_core.measure import compiler
from dojo_core.measure.machine import Machine
from dojo_core.targets.cpu import processor as processors
from dojo_core.targets.cpu.limits import limits_of

PI = "fp asimd evtstrm crc32 cpuid"
NEW = "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp"


def arm(part: str, variant: str, revision: int, cores: range, features: str, maker: str = "0x41") -> str:
    return "".join(
        f"processor\t: {core}\nBogoMIPS\t: 108.00\nFeatures\t: {features}\nCPU implementer\t: {maker}\n"
        f"CPU architecture: 8\nCPU variant\t: {variant}\nCPU part\t: {part}\nCPU revision\t: {revision}\n\n"
        for core in cores
    )


def riscv(isa: str, cores: int, told: str) -> str:
    return "".join(
        f"processor\t: {core}\nhart\t\t: {core + 1}\nisa\t\t: {isa}\nmmu\t\t: sv39\n{told}\n\n"
        for core in range(cores)
    )


@dataclass(frozen=True)
class Board:
    machine: str
    cpuinfo: str
    cores: int
    name: str
    tree: str = ""  # the device tree's model
    dmi: tuple[str, str] = ("", "")


BOARDS = (
    Board(
        "aarch64", arm("0xd03", "0x0", 4, range(4), PI)
        + "Revision\t: a020d3\nSerial\t\t: 0\nModel\t\t: Raspberry Pi 3 Model B Plus Rev 1.3\n", 4,
        "Raspberry Pi 3 Model B Plus Rev 1.3, 4 × Cortex-A53 r0p4",
    ),
    Board(
        "aarch64", arm("0xd03", "0x0", 4, range(4), PI)
        + "Revision\t: a02082\nSerial\t\t: 0\nModel\t\t: Raspberry Pi 3 Model B Rev 1.2\n", 4,
        "Raspberry Pi 3 Model B Rev 1.2, 4 × Cortex-A53 r0p4",
    ),
    Board(
        "aarch64", arm("0xd08", "0x0", 3, range(4), PI), 4,
        "Raspberry Pi 4 Model B Rev 1.4, 4 × Cortex-A72 r0p3", "Raspberry Pi 4 Model B Rev 1.4\0",
    ),
    Board(
        "aarch64",
        arm("0x022", "0x1", 1, range(4), NEW, "0x61") + arm("0x023", "0x1", 1, range(4, 8), NEW, "0x61"), 8,
        "Apple MacBook Air (M1, 2020), 4 × Apple M1 Icestorm r1p1 + 4 × Apple M1 Firestorm r1p1",
        "Apple MacBook Air (M1, 2020)\0",
    ),
    Board(
        "aarch64", arm("0xd40", "0x1", 1, range(2), f"{NEW} sve i8mm bf16"), 2,
        "Amazon EC2 c7g.large, 2 × Neoverse-V1 r1p1", "", ("Amazon EC2", "c7g.large"),
    ),
    Board(
        "aarch64", arm("0xd05", "0x2", 0, range(4), NEW) + arm("0xd0b", "0x4", 0, range(4, 8), NEW), 8,
        "Radxa ROCK 5B, 4 × Cortex-A55 r2p0 + 4 × Cortex-A76 r4p0", "Radxa ROCK 5B\0",
    ),
    Board(
        "riscv64", riscv("rv64imafdc_zba_zbb", 4, "uarch\t\t: sifive,u74-mc\nmvendorid\t: 0x489\n"
        "marchid\t\t: 0x8000000000000007\nmimpid\t\t: 0x4210427"), 4,
        "StarFive VisionFive 2 v1.3B, 4 × sifive,u74-mc (0x489, 0x8000000000000007, 0x4210427)",
        "StarFive VisionFive 2 v1.3B\0",
    ),
    Board(
        "riscv64",
        riscv("rv64imafdcv_zicbom_zfh_zba_zvl256b", 8, "model name\t: Spacemit(R) X60\nmvendorid\t: 0x710\n"
        "marchid\t\t: 0x8000000058000001\nmimpid\t\t: 0x1000000049772200"), 8,
        "Banana Pi BPI-F3, 8 × RISC-V (0x710, 0x8000000058000001, 0x1000000049772200)", "Banana Pi BPI-F3\0",
    ),
    Board(
        "x86_64",
        "".join(f"processor\t: {core}\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n"
        "flags\t\t: fpu sse2 avx2 fma\n\n" for core in range(2)), 2,
        "AMD EPYC", "", ("QEMU", "Standard PC"),
    ),
)  # fmt: skip
CACHED = (system._cpuinfo, system._blocks, system._caches, system.features, processors.host)


@pytest.fixture
def on(monkeypatch, tmp_path):
    """Linux on a board, all of whose cores are this process'."""

    def clear() -> None:
        for each in CACHED:
            each.cache_clear()

    folders = (tmp_path / str(number) for number in count())

    def begin(board: Board) -> None:
        folder = next(folders)
        monkeypatch.setattr(system, "PROC", folder / "proc")
        monkeypatch.setattr(system, "SYS", folder / "sys")
        monkeypatch.setattr("platform.machine", lambda: board.machine)
        monkeypatch.setattr("platform.processor", lambda: board.machine)  # as on some systems
        monkeypatch.setattr(system, "cores", lambda: frozenset(range(board.cores)))
        write(folder / "proc/cpuinfo", board.cpuinfo)
        write(folder / "proc/device-tree/model", board.tree)
        for name, text in zip(("sys_vendor", "product_name"), board.dmi, strict=True):
            write(folder / "sys/class/dmi/id" / name, text)
        clear()

    yield begin
    monkeypatch.undo()
    clear()


def write(file: Path, text: str) -> None:
    if text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def machine() -> Machine:
    """As ``this_machine``, by one compiler."""
    features = " ".join(sorted(system.features()))
    return Machine(system.processor(), len(system.cores()), features, "gcc 12", "-O2", "", 0, 0, 0)


def test_no_two_boards_are_one_machine(on: Callable[[Board], None]):
    prints = {}
    for board in BOARDS:
        on(board)
        assert system.processor() == board.name
        prints[board.name] = machine().fingerprint
    for one, other in combinations(BOARDS, 2):
        assert prints[one.name] != prints[other.name]


def test_an_x86_keeps_its_fingerprint(on: Callable[[Board], None]):
    on(BOARDS[-1])
    assert machine().cpu == "AMD EPYC" and machine().features == "avx2 fma fpu sse2"
    # as the Dojo before it knew of boards
    assert machine().fingerprint == "cee8016bff84caf3"


def test_a_board_that_nobody_names_is_known_by_its_cores(on: Callable[[Board], None]):
    names = set()
    for board in BOARDS[2:-1]:
        on(replace(board, tree="", dmi=("", "")))
        names.add(system.processor())
    assert len(names) == len(BOARDS[2:-1])


def test_what_riscv_extensions_are_called():
    assert system.riscv_extensions("rv64imafdcsu") == frozenset("imafdcsu")
    assert system.riscv_extensions("rv64gcv_zicbom_zvl256b") == {*"imafdcv", "zicbom", "zvl256b"}
    assert system.riscv_extensions("rv64imafdch_zicsr_svpbmt") == {*"imafdch", "zicsr", "svpbmt"}
    assert system.riscv_extensions("rv64imafdczicsr") == {*"imafdc", "zicsr"}


def test_compilers_on_riscv_are_told_what_the_processor_has(on: Callable[[Board], None]):
    ways = {}
    for board in BOARDS:
        on(board)
        ways[board.machine, board.tree] = compiler._for_this_processor()[0]
    assert ways["riscv64", "Banana Pi BPI-F3\0"] == ("-march=rv64gcv_zvl256b",)
    assert ways["riscv64", "StarFive VisionFive 2 v1.3B\0"] == ("-march=rv64gc",)
    assert ways["aarch64", "Radxa ROCK 5B\0"] == ("-mcpu=native",)


def test_a_boards_processor(on: Callable[[Board], None]):
    by_name = {}
    for board in BOARDS:
        on(board)
        by_name[board.name.split(",")[0]] = processors.host()
    graviton, star, banana = (by_name[n] for n in (
        "Amazon EC2 c7g.large", "StarFive VisionFive 2 v1.3B", "Banana Pi BPI-F3"
    ))  # fmt: skip
    assert graviton.instruction_set == "aarch64" and graviton.vectors == ((16, 32),)
    assert limits_of(graviton).vector_registers == 32
    assert star.vectors == ((16, 8),) and "v" not in star.features
    assert banana.vectors == ((32, 32), (16, 32)) and banana.register_bytes == 32
    assert limits_of(banana).vector_widths["f32"] == (8, 4) and banana.threads == 8


def test_of_unlike_cores_caches_are_those_that_each_has(on: Callable[[Board], None], monkeypatch):
    rock = next(b for b in BOARDS if b.tree.startswith("Radxa"))
    on(rock)
    for core in range(8):
        sizes = {1: "32K" if core < 4 else "64K", 2: "128K" if core < 4 else "512K", 3: "3072K"}
        for level, size in sizes.items():
            folder = system.SYS / f"devices/system/cpu/cpu{core}/cache/index{level}"
            for name, text in {
                "level": str(level),
                "type": "Data" if level == 1 else "Unified",
                "size": size,
                "shared_cpu_list": "0-7" if level == 3 else str(core),
            }.items():
                write(folder / name, text)
    assert [system.cache_bytes(level) for level in (1, 2, 3)] == [32 << 10, 128 << 10, 3 << 20]
    assert system.cache_bytes_together(2) == 4 * (128 << 10) + 4 * (512 << 10)
    monkeypatch.setattr(system, "cores", lambda: frozenset({4, 5}))
    for each in CACHED:
        each.cache_clear()
    assert system.cache_bytes(2) == 512 << 10 and system.cache_bytes_together(3) == 3 << 20
    assert system.processor() == "Radxa ROCK 5B, 2 × Cortex-A76 r4p0"
