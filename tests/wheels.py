"""Has every pin a wheel for each Python and platform? ``python -m tests.wheels`` asks the index, for minutes.

pip is asked once for each file of pins, Python and platform, for wheels alone. Nothing is downloaded but
their metadata, and nothing is installed. A pin is asked for where its environment marker says so on *that*
platform, not on this one. What the wheels need themselves must be pinned as well. With ``--write`` the tables
go into docs/platforms.md. Ends with 1 where anything is lacking on Linux; other systems are told for
information.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "platforms.md"
BEGIN, END = "<!-- written by python -m tests.wheels --write -->\n", "<!-- end -->\n"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
NEWEST_GLIBC = 34  # 2.34: RHEL 9; Debian 12 and Ubuntu 22.04 have a newer one
JOBS = 4


@dataclass(frozen=True)
class Platform:
    """``tags``: the platform tags of wheels that run there. ``required``: a lack there is a failure."""

    title: str
    system: str  # as sys.platform
    machine: str  # as platform.machine()
    tags: tuple[str, ...]
    required: bool = True

    def environment(self, python: str, extra: str = "") -> dict[str, str]:
        """What environment markers are evaluated with."""
        return {
            "python_version": python,
            "python_full_version": f"{python}.0",
            "implementation_name": "cpython",
            "implementation_version": f"{python}.0",
            "platform_python_implementation": "CPython",
            "os_name": "posix",
            "sys_platform": self.system,
            "platform_system": {"linux": "Linux", "darwin": "Darwin"}[self.system],
            "platform_machine": self.machine,
            "platform_release": "",
            "platform_version": "",
            "extra": extra,
        }


def _linux(machine: str) -> Platform:
    newer = [f"manylinux_2_{minor}_{machine}" for minor in range(NEWEST_GLIBC, 16, -1)]
    older = [f"manylinux_2_{minor}_{machine}" for minor in range(16, 4, -1)] if machine == "x86_64" else []
    named = [f"manylinux2014_{machine}"] + ["manylinux2010_x86_64", "manylinux1_x86_64"] * bool(older)
    return Platform(f"Linux {machine}", "linux", machine, (*newer, *older, *named))


PLATFORMS = (
    _linux("x86_64"),
    _linux("aarch64"),
    Platform(
        "macOS arm64", "darwin", "arm64", ("macosx_14_0_arm64",), required=False
    ),  # pip adds the older ones
)


@dataclass(frozen=True)
class Answer:
    """What pip says of one file of pins: how many apply, which have no wheel, which dependencies no pin."""

    pins: int
    lacking: tuple[str, ...]
    unpinned: tuple[str, ...]

    def __str__(self) -> str:
        if not self.lacking and not self.unpinned:
            return f"all {self.pins}"
        told = [f"no wheel: {', '.join(self.lacking)}"] * bool(self.lacking)
        told += [f"not pinned: {', '.join(self.unpinned)}"] * bool(self.unpinned)
        return f"{self.pins - len(self.lacking)} of {self.pins}; " + "; ".join(told)


def pins() -> dict[str, list[Requirement]]:
    """By the name of the file: each requirements*.txt, and what pyproject.toml pins in its extras.

    Constraints (``-c FILE``) count as pins of the file that names them.
    """
    rows = {file.name: _rows(file) for file in sorted(ROOT.glob("requirements*.txt"))}
    constraints = {name: [row.split()[1] for row in own if row[:2] == "-c"] for name, own in rows.items()}
    found: dict[str, list[Requirement]] = {}
    for name in rows:
        if not any(name in others for others in constraints.values()):
            every = [row for file in (name, *constraints[name]) for row in rows[file]]
            found[name] = [Requirement(row) for row in every if row[0] != "-"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [Requirement(row) for each in project.get("optional-dependencies", {}).values() for row in each]
    pinned = [requirement for requirement in extras if str(requirement.specifier).startswith("==")]
    return found | ({"extras of pyproject.toml": pinned} if pinned else {})


def _rows(file: Path) -> list[str]:
    rows = (re.sub(r"(^|\s)#.*", "", row).strip() for row in file.read_text(encoding="utf-8").splitlines())
    return [row for row in rows if row]


def asked(requirements: Iterable[Requirement], python: str, platform: Platform, complete: bool) -> Answer:
    """Ask pip. ``complete``: the dependencies of each pin must be among the pins."""
    environment = platform.environment(python)
    pinned = {
        canonicalize_name(r.name): r
        for r in requirements
        if r.marker is None or r.marker.evaluate(environment)
    }
    count, lacking = len(pinned), []
    while pinned:
        report, message = _report(pinned.values(), python, platform)
        if report is not None:
            unpinned = _unpinned(report, pinned, python, platform) if complete else ()
            return Answer(count, tuple(lacking), unpinned)
        refused = re.search(
            r"No matching distribution found for ([A-Za-z0-9._-]+?)(?:\[|==|$)", message, re.M
        )
        if refused is None:
            raise RuntimeError(f"pip could not say, for Python {python} on {platform.title}:\n{message}")
        requirement = pinned.pop(canonicalize_name(refused[1]))
        lacking.append(str(requirement).partition(";")[0].strip())
    return Answer(count, tuple(lacking), ())


def _report(pinned: Iterable[Requirement], python: str, platform: Platform) -> tuple[list[dict] | None, str]:
    """What pip would install, as its report tells; or None and what it says."""
    rows = [f"{r.name}{r.specifier}" for r in pinned]
    # The index itself is asked, not what a machine's configuration puts before it.
    hidden = ("PIP_CONSTRAINT", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_REQUIREMENT")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--dry-run",
            "--quiet",
        ]
        command += ["--ignore-installed", "--no-deps", "--only-binary=:all:", "--python-version", python]
        command += [word for tag in platform.tags for word in ("--platform", tag)]
        command += ["--target", str(Path(folder) / "nowhere"), "--report", str(report), *rows]
        told = subprocess.run(
            command, capture_output=True, text=True, env={**environment, "PIP_CONFIG_FILE": os.devnull}
        )
        if told.returncode == 0:
            return json.loads(report.read_text(encoding="utf-8"))["install"], ""
    return None, told.stderr


def _unpinned(
    report: list[dict], pinned: dict[str, Requirement], python: str, platform: Platform
) -> tuple[str, ...]:
    """Dependencies of the wheels that no pin names, or whose pin does not meet what they ask."""
    metadata = {canonicalize_name(each["metadata"]["name"]): each["metadata"] for each in report}
    extras: dict[str, set[str]] = {name: {"", *pinned[name].extras} for name in metadata}
    lacking: set[str] = set()
    waiting = list(metadata)
    while waiting:
        name = waiting.pop()
        for row in metadata[name].get("requires_dist", []):
            need = Requirement(row)
            wanted = any(
                need.marker is None or need.marker.evaluate(platform.environment(python, extra))
                for extra in extras[name]
            )
            if not wanted:
                continue
            needed = canonicalize_name(need.name)
            if needed not in metadata:
                if needed not in pinned:  # else it has no wheel, which is told
                    lacking.add(f"{need.name} (for {name})")
            elif not need.specifier.contains(metadata[needed]["version"], prereleases=True):
                lacking.add(f"{need.name}{need.specifier} (for {name})")
            elif not need.extras <= extras[needed]:
                extras[needed] |= need.extras
                waiting.append(needed)
    return tuple(sorted(lacking))


def tables(answers: dict[tuple[str, str, Platform], Answer]) -> str:
    """Markdown: for each file of pins, Pythons by platforms."""
    parts = []
    for file in dict.fromkeys(file for file, _, _ in answers):
        head = "".join(f" {platform.title} |" for platform in PLATFORMS)
        rows = [f"| {file} |{head}", "|---|" + "---|" * len(PLATFORMS)]
        for python in PYTHONS:
            cells = "".join(f" {answers[file, python, platform]} |" for platform in PLATFORMS)
            rows.append(f"| Python {python} |{cells}")
        parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.wheels", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.relative_to(ROOT)}")
    write = parser.parse_args().write
    files = pins()
    keys = [(file, python, platform) for file in files for python in PYTHONS for platform in PLATFORMS]
    with ThreadPoolExecutor(JOBS) as pool:

        def answer(key: tuple[str, str, Platform]) -> Answer:
            file, python, platform = key
            # An extra stands on the project's own pins; what its packages need beside is theirs.
            found = asked(files[file], python, platform, complete=file.startswith("requirements"))
            print(f"{file}, Python {python}, {platform.title}: {found}", file=sys.stderr, flush=True)
            return found

        answers = dict(zip(keys, pool.map(answer, keys), strict=True))
    text = tables(answers)
    print(text, end="")
    if write:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        after = rest.partition(END)[2]
        day = datetime.now(UTC).strftime("%Y-%m-%d")
        PAGE.write_text(f"{before}{BEGIN}\nAsked on {day}:\n\n{text}\n{END}{after}", encoding="utf-8")
    failed = [a for (_, _, platform), a in answers.items() if platform.required and (a.lacking or a.unpinned)]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
