"""A result that is wrong is a fault of the Dojo's: it is kept with all that reproduces it.

A JSON file each in the folder ``wrong`` of the data directory; ``dojo reproduce FILE`` tries it again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from dojo_core.bounded_json import read_object
from dojo_core.files import write_text
from dojo_core.measure.places import data_directory

FAULTS = ("wrong_result", "unwritten", "out_of_bounds", "crash")  # of ours: no legal program does that
KEPT = 200  # files; the oldest leave first
LONGEST = 8 * 2**20  # bytes of a file that is read


@dataclass(frozen=True)
class Evidence:
    """``start`` and ``program`` as texts, ``line`` the moves between them as far as known (one a line),
    ``code`` the generated C, ``seed`` of the inputs, ``machine`` its details with compiler and flags."""

    status: str
    message: str
    kernel: str
    policy: str
    target: str
    start: str
    program: str
    line: str
    code: str
    seed: int
    machine: str
    time: float

    @property
    def name(self) -> str:
        """Of its file: the same for the same code gone wrong in the same way."""
        content = "\0".join((self.status, self.start, self.code, self.policy, self.target))
        kernel = "".join(c for c in self.kernel if c.isalnum() or c in "-_")[:40] or "program"
        return f"{kernel}-{hashlib.sha256(content.encode()).hexdigest()[:12]}.json"


def keep(evidence: Evidence) -> Path:
    """Write it where there is none of the same yet; the file."""
    folder = data_directory() / "wrong"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / evidence.name
    if not file.exists():
        draft = file.with_suffix(".draft")
        write_text(draft, json.dumps(asdict(evidence), indent=1))
        draft.rename(file)
        for old in sorted(folder.glob("*.json"), key=lambda f: f.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)
    return file


def load(file: Path) -> Evidence:
    """Raises ValueError with a sentence where the file holds no evidence, OSError where it cannot be read."""
    if file.stat().st_size > LONGEST:
        raise ValueError(f"{file} is larger than {LONGEST // 2**20} MiB: it is no evidence of the Dojo's.")
    try:
        content = read_object(file.read_bytes(), LONGEST)
        evidence = Evidence(**{field.name: content[field.name] for field in fields(Evidence)})
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} holds no wrong result that the Dojo kept.") from error
    texts = (
        evidence.start,
        evidence.program,
        evidence.policy,
        evidence.target,
        evidence.code,
        evidence.kernel,
    )
    if not all(isinstance(text, str) for text in texts) or not isinstance(evidence.seed, int):
        raise ValueError(f"{file} holds no wrong result that the Dojo kept.")
    return evidence
