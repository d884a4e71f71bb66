"""The tests as 64-bit Arm runs them, on Debian for x86-64: ``python -m tests.arm64 [PYTEST'S ARGUMENTS]``.

Debian's Python for arm64, the wheels for it that requirements.txt pins, but those LEFT_OUT, and the native
modules lie in ``build/arm64``; the first start brings them, and needs Debian's archive and PyPI. Python and
what is compiled run in qemu, which the kernel is told of in a namespace of its own (binfmt_misc, Linux 6.7 or
newer). The compiler is the cross compiler under the name of the machine's own, and runs as it is.
``/proc/cpuinfo`` is that of a Neoverse N1.

Prints each test's result, and at the end a row a file. Ends with 1 where a test fails, with 2 where such a
Python cannot be had. Emulated, a test takes ten times as long or more: what it says of time means nothing.
``--only`` sets all up and runs no test.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.wheels import PLATFORMS

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "arm64"
SYSTEM, VENV, TOOLS = PLACE / "system", PLACE / "venv", PLACE / "bin"
# What a tool is in, by Debian's packages.
NEEDED = {
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "unshare": "util-linux",
    "qemu-aarch64": "qemu-user",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
}
PACKAGES = ("python3", "python3-venv", "libpython3-dev", "libgomp1", "libstdc++6")
# What draws pages, what learns, and checkers of text. A test that imports one is skipped.
LEFT_OUT = {"streamlit", "pyarrow", "torch", "transformers", "tokenizers", "playwright", "mypy", "ruff"}
TRIPLE, CORE = "aarch64-linux-gnu", "neoverse-n1"
FEATURES = (
    "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp"
)
CPUINFO = f"""\
BogoMIPS\t: 50.00
Features\t: {FEATURES}
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1
"""
# How the kernel knows programs of ELF for AArch64. P: it tells the name each was called by (binfmt-misc.rst).
MAGIC = r"\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
FORMAT = f":arm64:M::{MAGIC}:{MASK}:{PLACE / 'run'}:P"
# Compilers are started with an environment of few variables: qemu's own would not come through.
RUN = f"""\
#!/bin/sh
path=$1 name=$2
shift 2
exec {shutil.which("qemu-aarch64")} -L "{SYSTEM}" -cpu {CORE} -0 "$name" "$path" "$@"
"""
# A namespace has a binfmt_misc of its own; an older kernel refuses that.
ENTER = f"""
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf %s '{FORMAT}' >/proc/sys/fs/binfmt_misc/register
mount --bind "{PLACE / "cpuinfo"}" /proc/cpuinfo
exec "$@"
"""
# What a compiler of that machine would find out is told, and where the headers of its Python are.
COMPILER = f"""\
#!/bin/sh
for word; do
    shift
    [ "$word" = -mcpu=native ] && word=-mcpu={CORE}
    set -- "$@" "$word"
done
exec COMMAND "$@" -idirafter "{SYSTEM}/usr/include"
"""


class NotHad(RuntimeError):
    """Such a Python cannot be had here; ``str()`` is a sentence that says why."""


def lead(*command: str | Path) -> list[str]:
    """A command as that machine runs it."""
    namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    return [*namespace, "sh", "-ec", ENTER, "sh", *map(str, command)]


def environment() -> dict[str, str]:
    """Its tools before ours; what the tests keep lies apart."""
    path = [VENV / "bin", TOOLS, Path(sys.executable).parent, os.environ.get("PATH", os.defpath)]
    own = {
        "PATH": os.pathsep.join(map(str, path)),
        "DOJO_HOME": str(PLACE / "home"),
    }
    return {**os.environ, **own}


def made(what: str, command: Sequence[str | Path], **more: str) -> None:
    """Run one step. Raises NotHad with the last that it said."""
    print(what, flush=True)
    ran = subprocess.run(
        [*map(str, command)], cwd=ROOT, env=environment() | more, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        said = "\n".join((ran.stdout + ran.stderr).strip().splitlines()[-8:])
        raise NotHad(f"{what}: this failed, with status {ran.returncode}. The last it said:\n{said}")


def bring_system() -> None:
    """Debian's packages, unpacked and not installed: apt is given a state and a cache of its own."""
    if (SYSTEM / "usr/bin/python3").exists():
        return
    release = platform.freedesktop_os_release()
    if release.get("ID") != "debian":
        raise NotHad(f"Python for arm64 comes from Debian's archive; this is {release.get('PRETTY_NAME')}.")
    apt, part = PLACE / "apt", PLACE / "system.part"
    shutil.rmtree(part, ignore_errors=True)
    for folder in ("lists/partial", "archives/partial", "none"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    where = f"http://deb.debian.org/debian {release['VERSION_CODENAME']} main"
    (apt / "sources.list").write_text(f"deb [signed-by={key}] {where}\n")
    places = {
        "State": "", "State::status": "status", "State::lists": "lists", "Cache": "",
        "Cache::archives": "archives", "Etc::sourcelist": "sources.list", "Etc::sourceparts": "none",
        "Etc::preferencesparts": "none",
    }  # fmt: skip
    rows = [f'Dir::{name} "{apt / place}";' for name, place in places.items()]
    rows += ['APT::Architecture "arm64";', 'APT::Architectures { "arm64"; };']
    (apt / "apt.conf").write_text("\n".join(rows) + "\n")
    own = {"APT_CONFIG": str(apt / "apt.conf")}
    made("Debian's list of packages for arm64", ["apt-get", "update"], **own)
    download = ["apt-get", "install", "--download-only", "--no-install-recommends", "--yes", *PACKAGES]
    made("Debian's packages for arm64", download, **own)
    for name in ("bin", "lib", "sbin"):  # some packages still have files in these
        (part / "usr" / name).mkdir(parents=True)
        (part / name).symlink_to(f"usr/{name}")
    for package in sorted((apt / "archives").glob("*.deb")):
        unpack = f'dpkg-deb --fsys-tarfile "{package}" | tar -x --keep-directory-symlink -C "{part}"'
        made(f"  {package.name}", ["sh", "-ec", unpack])
    part.rename(SYSTEM)


def bring_tools() -> None:
    """What runs programs; compilers and what belongs to them under their names there; the processor."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    scripts = {PLACE / "run": RUN}
    clang = shutil.which("clang")
    compilers = {name: f"{TRIPLE}-{name}" for name in ("gcc", "g++")}
    compilers |= {"clang": f"{clang} --target={TRIPLE}"} if clang else {}
    scripts |= {TOOLS / name: COMPILER.replace("COMMAND", command) for name, command in compilers.items()}
    for place, script in scripts.items():
        place.write_text(script)
        place.chmod(0o755)
    for tool in Path("/usr/bin").glob(f"{TRIPLE}-*"):
        own = TOOLS / tool.name.removeprefix(f"{TRIPLE}-")
        if not own.exists():
            own.symlink_to(tool)
    numbered = (f"processor\t: {core}\n{CPUINFO}" for core in range(os.cpu_count() or 1))
    (PLACE / "cpuinfo").write_text("\n".join(numbered))


def site_packages() -> Path:
    return next(VENV.glob("lib/python3*/site-packages"))


def bring_wheels() -> None:
    """An environment with the pinned versions, unpacked by this machine's pip: emulated it takes minutes."""
    rows = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = [Requirement(row) for row in rows if row and row[0] not in "#-"]  # "-c": torch's CUDA
    wanted = [str(pin) for pin in pinned if _is_wanted(pin)]
    listed, stamp = PLACE / "requirements.txt", VENV / "requirements.txt"
    listed.write_text("\n".join(wanted) + "\n")
    if stamp.exists() and stamp.read_text() == listed.read_text():
        return
    python = SYSTEM / "usr/bin/python3"
    made("A virtual environment", lead(python, "-m", "venv", "--clear", "--without-pip", VENV))
    site = site_packages()
    [linux] = (each for each in PLATFORMS if (each.system, each.machine) == ("linux", "aarch64"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    pip += [
        "--no-compile",
        "--only-binary=:all:",
        "--python-version",
        site.parent.name.removeprefix("python"),
    ]
    pip += [word for tag in linux.tags for word in ("--platform", tag)]
    made(f"{len(wanted)} wheels for aarch64", [*pip, "--target", str(site), "-r", str(listed)])
    listed.replace(stamp)


def _is_wanted(pin: Requirement) -> bool:
    return pin.name not in LEFT_OUT and (pin.marker is None or pin.marker.evaluate())


def build() -> None:
    """The native modules as an editable installation has them, and what it tells of entry points."""
    site, native = site_packages(), PLACE / "native"
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_CXX_COMPILER": TOOLS / "g++",
        "CMAKE_STRIP": TOOLS / "strip",
        "CMAKE_INSTALL_PREFIX": site,
        "Python_EXECUTABLE": VENV / "bin/python",
        "pybind11_DIR": site / "pybind11/share/cmake/pybind11",
        "SKBUILD_STATE": "editable",
    }
    named = [f"-D{name}={value}" for name, value in options.items()]
    made("CMake for the native modules", lead("cmake", "-G", "Ninja", "-S", ROOT, "-B", native, *named))
    made("The native modules", lead("cmake", "--build", native))
    made("Their installation", lead("cmake", "--install", native))
    for old in site.glob("dojo-*.dist-info"):
        shutil.rmtree(old)
    tell = "import sys, scikit_build_core.build as b; b.prepare_metadata_for_build_editable(sys.argv[1])"
    made("What the project tells of itself", [sys.executable, "-c", tell, site])


def bring() -> None:
    """All of it. Raises NotHad."""
    absent = {tool: package for tool, package in NEEDED.items() if shutil.which(tool) is None}
    if absent:
        line = " ".join(["sudo apt-get install", *absent.values()])
        raise NotHad(f"{', '.join(absent)}: not here. This brings what is missing, on Debian: {line}")
    PLACE.mkdir(parents=True, exist_ok=True)
    bring_system()
    bring_tools()
    made(
        "A namespace with programs for arm64 (Linux 6.7 or newer)", lead(SYSTEM / "usr/bin/python3", "-c", "")
    )
    bring_wheels()
    build()


RESULT = re.compile(r"(tests/\S+?\.py)::.*? (PASSED|FAILED|ERROR|SKIPPED)( |$)")
COLLECTING = re.compile(r"_+ ERROR collecting (tests/\S+\.py) _+$")
ABSENT = re.compile(r"E +ModuleNotFoundError: No module named '([\w.]+)'")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Iterator[None]:
    """This module is pytest's plugin there: what needs a package that was left out says so and is skipped."""
    outcome: Any = yield
    fault = call.excinfo and call.excinfo.value
    if isinstance(fault, ModuleNotFoundError) and fault.name in LEFT_OUT:
        report = outcome.get_result()
        report.outcome, report.longrepr = "skipped", (__file__, 0, f"Skipped: {fault.name} is left out there")


def test(arguments: Sequence[str]) -> int:
    """Run pytest there, in one process, and print what came of each file."""
    words = ["python", "-m", "pytest", "-n", "0", "-v", "-p", "no:cacheprovider", "-rfEs", "--tb=short"]
    words += ["-p", "tests.arm64", "--continue-on-collection-errors", "--ignore=tests/browser", *arguments]
    results: dict[str, Counter[str]] = {}
    absent: dict[str, str] = {}  # what a file imports, by its name
    file = ""
    command = lead(*words)
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            if found := RESULT.match(line):
                results.setdefault(found[1], Counter())[found[2].lower()] += 1
            elif found := COLLECTING.match(line):
                file = found[1]
                results.setdefault(file, Counter())["error"] += 1
            elif file and (found := ABSENT.match(line)):
                absent[file] = found[1]
                del results[file]
                file = ""
    print()
    for file, counts in sorted(results.items()):
        print(f"{file}: {', '.join(f'{count} {what}' for what, count in sorted(counts.items()))}")
    for file, module in sorted(absent.items()):
        print(f"{file}: not run, it imports {module}")
    total = sum(results.values(), Counter())
    failed = total["failed"] + total["error"]
    print(f"arm64: {total['passed']} passed, {failed} failed, {total['skipped']} skipped")
    broken = running.returncode not in (0, 1)  # 1: tests fail, or a file is not run
    return 1 if failed or broken else 0


def main() -> int:
    arguments = sys.argv[1:]
    try:
        bring()
    except NotHad as fault:
        print(fault, file=sys.stderr)
        return 2
    return 0 if arguments == ["--only"] else test(arguments)


if __name__ == "__main__":
    sys.exit(main())
