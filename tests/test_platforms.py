"""Other compilers, and systems without what only Linux has: enough is left to play, to time and to export."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dojo_core import system
from dojo_core.cli.serving import check_port
from dojo_core.cli.terminal import Failure
from dojo_core.codegen.assembly import linked
from dojo_core.export import of_line
from dojo_core.export.narrow import narrowed
from dojo_core.line import recorded_lines
from dojo_core.measure import places
from dojo_core.measure.compiler import NoCompiler, short_version, the_compiler
from dojo_core.measure.holders import activity
from dojo_core.recipes import RECIPES, known_recipes
from dojo_core.targets.cpu.codegen import generate, preamble
from dojo_core.targets.cpu.processor import known
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("as", "ld", "ps", "sh")  # what a compiler and we start besides
# Taken away from every Python process: what other systems do not have.
TAKEN = """\
import importlib.machinery, mmap, os, pathlib, sys
for module, name in (
    (os, "pidfd_open"), (os, "sched_getaffinity"), (os, "sched_setaffinity"), (mmap, "MADV_HUGEPAGE")
):
    if hasattr(module, name):
        delattr(module, name)
others = [entry for entry in sys.path if pathlib.Path(entry) != pathlib.Path(__file__).parent]
other = importlib.machinery.PathFinder.find_spec("sitecustomize", others)  # this environment's own
if other is not None:
    exec(other.loader.get_code("sitecustomize"), {"__name__": "sitecustomize", "__file__": other.origin})
import dojo_core.system
dojo_core.system.PROC = dojo_core.system.SYS = pathlib.Path("/nowhere")
"""


def needs_clang() -> str:
    path = shutil.which("clang")
    if path is None:
        pytest.skip("clang is not installed (Debian: apt-get install clang libomp-dev)")
    return path


def without_openmp(clang: str) -> str:
    """A clang to which libomp is not installed."""
    return f"""\
#!/bin/sh
for word in "$@"; do
    if [ "$word" = -fopenmp ]; then echo "cannot find -lomp" >&2; exit 1; fi
done
exec {clang} "$@"
"""


def folder_with(tmp_path: Path, **programs: str) -> Path:
    """A folder for a PATH: tools under their names, and compilers, a path or a script, under these."""
    folder = tmp_path / "bin"
    folder.mkdir(parents=True)
    for tool in TOOLS:
        if (path := shutil.which(tool)) is not None:
            (folder / tool).symlink_to(path)
    for name, program in programs.items():
        if program.startswith("#!"):
            (folder / name).write_text(program)
            (folder / name).chmod(stat.S_IRWXU)
        else:
            (folder / name).symlink_to(program)
    return folder


@pytest.mark.parametrize("name", ["clang", "cc", "gcc"])
def test_clang_is_known_whatever_it_is_called(tmp_path, monkeypatch, name):
    monkeypatch.setenv("PATH", str(folder_with(tmp_path, **{name: needs_clang()})))
    found = the_compiler.__wrapped__()
    assert found.clang and Path(found.path).name == name
    assert short_version(found.version).startswith("clang ")
    assert not any("fira" in flag for flag in found.flags), "an option of gcc alone"


def test_a_compiler_without_openmp_is_used_and_told_of(tmp_path, monkeypatch):
    script = without_openmp(needs_clang())
    monkeypatch.setenv("PATH", str(folder_with(tmp_path, clang=script, **{"apt-get": "/bin/true"})))
    found = the_compiler.__wrapped__()
    assert "-O2" in found.flags and not found.openmp
    assert found.advice == (
        "clang has no OpenMP here: kernels run on one thread. This brings it: apt-get install libomp-dev"
    )
    bare = """\
#!/bin/sh
case "$1" in --version) echo "gcc (Alpine 13.2.1) 13.2.1";; *) echo libgomp.spec;; esac
"""
    monkeypatch.setenv("PATH", str(folder_with(tmp_path / "other", gcc=bare, apk="/bin/true")))
    assert the_compiler.__wrapped__().advice.endswith("This brings it: apk add libgomp")


def test_no_compiler_and_one_that_does_not_run_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompiler, match=r"^No C compiler: install gcc or clang \(.*install"):
        the_compiler.__wrapped__()
    # as macOS' own, before its developer tools are there
    stub = "#!/bin/sh\necho 'xcode-select: note: No developer tools were found' >&2\nexit 1\n"
    monkeypatch.setenv("PATH", str(folder_with(tmp_path, gcc=stub)))
    with pytest.raises(NoCompiler, match="gcc does not run: xcode-select: note"):
        the_compiler.__wrapped__()


@pytest.mark.parametrize(
    ("said", "short"),
    [
        ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0", "gcc 12.2.0"),
        ("gcc (GCC) 13.2.1 20230801 (Red Hat 13.2.1-4)", "gcc 13.2.1"),
        ("Debian clang version 14.0.6", "clang 14.0.6"),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", "clang 18.1.3"),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)", "clang 15.0.0"),
    ],
)
def test_a_compilers_name_in_two_words(said, short):
    assert short_version(said) == short


@pytest.mark.thorough  # clang: above, and its code in test_export.py; what systems have: below
@pytest.mark.parametrize("openmp", [True, False], ids=["with libomp", "without libomp"])
def test_a_game_is_played_timed_and_exported_where_only_clang_is_and_nothing_of_linux(tmp_path, openmp):
    clang = needs_clang()
    programs = folder_with(tmp_path, clang=clang if openmp else without_openmp(clang))
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "sitecustomize.py").write_text(TAKEN)
    path = os.pathsep.join(filter(None, [str(tmp_path / "taken"), os.environ.get("PYTHONPATH"), str(ROOT)]))
    environment = {
        **os.environ,
        "PATH": str(programs),
        "PYTHONPATH": path,
        "DOJO_HOME": str(tmp_path / "home"),
        "DOJO_LOCK_DIR": str(tmp_path / "lock"),
    }

    commands = [
        ["play", "softmax", "--shape", "64x64", "--line", "softmax", "--text"],
        ["time", "softmax", "--shape", "64x64", "--line", "softmax", "--json"],
        ["export", "softmax:64x64", "--to", str(tmp_path / "library")],
    ]
    if not openmp:  # of one thread only what is timed differs
        commands = commands[1:2]
    script = f"from dojo_core.cli import app\nfor words in {commands!r}: app(words, standalone_mode=False)"
    command = [sys.executable, "-c", script]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert '"status": "ok"' in ran.stdout, ran.stdout + ran.stderr
    assert ("kernels run on one thread" in ran.stderr) == (not openmp)
    if openmp:
        made = (tmp_path / "library" / "kernels" / "softmax_64x64.c").read_text()
        assert "clang" in made, "its compiler"


@pytest.mark.skipif(shutil.which("ps") is None, reason="ps is missing (Debian: apt-get install procps)")
def test_processes_are_known_by_ps_where_there_is_no_proc(monkeypatch):
    told = system.process(os.getpid())
    monkeypatch.setattr(system, "PROC", Path("/nowhere"))
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        own = system.process(os.getpid())
        assert told is not None and own is not None and own.parent == told.parent
        assert child.pid in [each.pid for each in system.children(os.getpid())]
        child.send_signal(signal.SIGSTOP)
        wait_until(lambda: system.process(child.pid).state == "T")
        assert activity(child.pid).stopped
    finally:
        child.kill()
        child.wait()
    assert system.process(child.pid) is None
    assert system.available_bytes() > 0 and system.processor() and system.cache_bytes(2) >= 0


def test_a_limit_that_is_lower_already_stays():
    script = """
import resource
from dojo_core.measure.watchdog import restrict
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 2000))
restrict(resource.RLIMIT_FSIZE, 5000)
assert resource.getrlimit(resource.RLIMIT_FSIZE) == (2000, 2000), resource.getrlimit(resource.RLIMIT_FSIZE)
restrict(resource.RLIMIT_CORE, 0)
assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_assembly_of_other_systems_is_read():
    arm = "\t.text\nkernel_t:\n\t.loc 1 3 5\n#APP\n\tadd\tx0, x0, #1 // one\n#NO_APP\n\tret\n"
    read = linked(arm, [(0,), (1,)], 2, "//")
    assert read.lines == ("kernel_t:", "        add     x0, x0, #1", "        ret")
    assert read.nodes == (None, (0,), (0,))
    apple = "\t.section\t__TEXT,__text,regular\n_kernel_t:\n\tret ; done\n\t.section\t__DWARF,x\nL1:\n"
    assert linked(apple, [], 0, ";").lines == ("_kernel_t:", "        ret")


@pytest.mark.parametrize(
    ("system", "processor"),
    [
        ("aarch64-linux-gnu", "armv8-a"),
        ("arm64-apple-macos13", "armv8-a"),
        ("x86_64-apple-macos13", "x86-64-v2"),
    ],
)
def test_generated_code_is_c_for_other_processors_and_systems(system, processor):
    """Checked, not linked or run: nothing of these systems is here."""
    clang, there = needs_clang(), known(processor)
    program = narrowed(of_line(recorded_lines()["softmax"], "softmax", "64x64").program, 16)
    command = [clang, f"--target={system}", "-std=gnu11", "-O2", "-fsyntax-only", "-w", "-x", "c", "-"]
    source = preamble(there) + generate(program, processor=there).text
    ran = subprocess.run(command, input=source, text=True, capture_output=True)
    assert ran.returncode == 0, ran.stderr


def test_an_occupied_port_is_told_with_the_next():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(Failure, match=rf"^Port {port} is occupied.* dojo demo --port \d+$"):
            check_port("127.0.0.1", port, "dojo demo --port")
    check_port("127.0.0.1", port)
    with pytest.raises(Failure, match=r"^The Dojo cannot listen at 192\.0\.2\.1:8501: "):
        check_port("192.0.2.1", 8501)


def test_a_home_that_cannot_be_written_is_told_with_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("DOJO_HOME", raising=False)
    for variable in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    for directory in (places.data_directory, places.cache_directory):
        with pytest.raises(OSError, match=r"cannot keep its files in .*: name another folder in DOJO_HOME"):
            directory()
    assert list(known_recipes()) == list(RECIPES), "what only reads goes on without one"
    monkeypatch.setenv("DOJO_HOME", str(tmp_path / "elsewhere"))
    assert places.data_directory().is_dir()


def test_a_terminal_of_few_letters_gets_a_question_mark_for_others():
    script = "from dojo_core.cli import terminal as t; t.write_what_can_be_written(); t.out.print('▲ 8 µs')"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ran = subprocess.run([sys.executable, "-X", "utf8=0", "-c", script], cwd=ROOT, env=environment, stdout=-1)
    assert ran.stdout == b"? 8 ?s\n"
