"""Is what a profile says right? Ten programs, each made to be bound by one thing, and what a profile names;
and how near what the timers of a kernel's parts add up to comes to the whole, timed without: of its start,
with ``--lines`` of the recorded line of its name.

``python -m benchmarks.profiles`` runs both. ``--readings FILE`` keeps what was read of the ten, by which
tests/test_profile.py tries the naming without a clock; KERNEL… are others than the paper's.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from dojo_core.cli.positions import TABLE_3, played
from dojo_core.measure.measurement import Workload
from dojo_core.measure.profile import KINDS, Part, Profile
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.processor import host
from dojo_core.targets.registry import backend

WITHIN = 0.1  # of the whole

_CHAIN = """\
kernel chain
in x
out y
x f32 [4096] heap
y f32 [1] heap
y[0] = 0
16 4096 y[0] += x[{1}]
"""
_POWERS = """\
kernel powers
in x
out y
domain x -2 2
x f32 [64, LANES] heap
y f32 [64, LANES] heap
64 64 LANES:v y[{1},{2}] = exp(x[{1},{2}])
"""
_LOOKUPS = """\
kernel lookups
in x, i
out y
domain i 0 1023
x i32 [1024] heap
i i32 [1024] heap
y i32 [1024] heap
64 1024 y[{1}] = fma(x[i[{1}]],5,7)
"""
_FILL = """\
kernel fill
in x
out y
x f32 [1] heap
y f32 [16, 8, LANES] heap
128 16 8:u LANES:v y[{1},{2},{3}] = x[0]
"""
_QUOTIENTS = """\
kernel quotients
in x, d
out y
domain d 0 1
x i32 [32768] heap
d i32 [32768] heap
y i32 [32768] heap
32768 y[{0}] = x[{0}] / d[{0}]
"""
_TINY = """\
kernel tiny
in x
out y
domain x 1e-20 2e-20
x f32 [64, LANES] heap
y f32 [64, LANES] heap
64 64 LANES:v y[{1},{2}] = x[{1},{2}]*x[{1},{2}]
"""


def _sums(rounds: int, size: int) -> str:
    """Eight sums of vectors over so many bytes, so many times."""
    steps = size // (8 * host().vectors[0][0])
    return f"""\
kernel sums
in x
out y
x f32 [{steps}, 8, LANES] heap
y f32 [8, LANES] heap
a f32 [8, LANES] register
8:u LANES:v a[{{0}},{{1}}] = 0
{rounds} {steps} 8:u LANES:v a[{{2}},{{3}}] += x[{{1}},{{2}},{{3}}]
8:u LANES:v y[{{0}},{{1}}] = a[{{0}},{{1}}]
"""


def programs() -> dict[str, Program]:
    """The ten, by what each is bound by, for this machine's vectors."""
    texts = {
        "instructions": _LOOKUPS,
        "latency": _CHAIN,
        "ports": _POWERS,
        "L1": _sums(64, 16 << 10),
        "L2": _sums(16, 512 << 10),
        "L3": _sums(2, 8 << 20),
        "memory": _sums(1, 128 << 20),
        "stores": _FILL,
        "branch": _QUOTIENTS,
        "fault": _TINY,
    }
    lanes = str(host().vectors[0][0] // 4)
    return {kind: parse(texts[kind].replace("LANES", lanes)) for kind in KINDS}


def largest(told: Profile) -> Part:
    """The innermost part that takes most of the time."""
    share = max(part.share for part in told.parts)
    return max((p for p in told.parts if p.share >= 0.95 * share), key=lambda part: len(part.path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", default=TABLE_3, metavar="KERNEL")
    parser.add_argument("--readings", type=Path, metavar="FILE")
    parser.add_argument("--ten-alone", action="store_true")
    parser.add_argument("--lines", action="store_true")
    given = parser.parse_args()
    right, near, readings = 0, 0, {}
    with backend("cpu").measurer() as measurer:
        print(f"{'made for':13} {'named':13} of it  agreement  limits")
        for kind, program in programs().items():
            told = measurer.profile(Workload(program), program)
            part = largest(told)
            right += part.bound == kind
            readings[kind] = {"seconds": part.seconds, "together": part.together,
                              "limits": [asdict(limit) for limit in part.limits]}  # fmt: skip
            limits = ", ".join(f"{one.kind} {one.seconds / part.seconds:.0%}" for one in part.limits[:4])
            print(
                f"{kind:13} {part.bound:13} {part.explained:5.0%}  {told.agreement:9.3f}  {limits}",
                flush=True,
            )
        print(f"{right} of {len(readings)} are named.")
        if given.readings is not None:
            given.readings.write_text(json.dumps(readings, indent=1) + "\n")
        if given.ten_alone:
            sys.exit(right < len(readings))
        for name in given.kernels:
            game = played(name, line=Path(name) if given.lines else None)
            workload = Workload(game.start, game.kernel, game.policy)
            try:
                told = measurer.profile(workload, game.current.program)
            except ValueError as fault:
                print(f"{name:13} {fault}")
                continue
            near += abs(told.agreement - 1.0) <= WITHIN
            print(f"{name:13} {told.agreement:9.3f}  {1e6 * told.seconds:12,.1f} us", flush=True)
    print(f"{near} of {len(given.kernels)} agree within {WITHIN:.0%}.")
    sys.exit(right < len(readings) or near < len(given.kernels))


if __name__ == "__main__":
    main()
