"""mypy as ``make test`` runs it: what it found of files that have not changed since, in whichever checkout of
this machine, it does not look for again. Words are its own: ``python -m tests.typed --no-incremental``.

It keeps by content, and looks at a file again where that, a package's version or its own settings are others.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Sequence

from dojo_core.measure.places import cache_directory


def main(words: Sequence[str]) -> int:
    kept = cache_directory() / "mypy"
    kept.mkdir(exist_ok=True)
    with (kept / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of two could read what the other has written by half
        return subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(kept), *words]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
