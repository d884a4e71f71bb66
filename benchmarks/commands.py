"""A benchmark that runs what a person would: the commands of ``dojo``, printed before they run."""

from __future__ import annotations

import subprocess
import sys


def dojo(*words: str) -> None:
    """Raises CalledProcessError where the command fails."""
    print("dojo " + " ".join(words), flush=True)
    subprocess.run([sys.executable, "-c", "from agents.cli import main; main()", *words], check=True)
