"""What no measurement can have: records from elsewhere are held against it before they are kept."""

from __future__ import annotations

import math
import re
import time

from dojo_core.bounded_json import NotJson, read_object
from dojo_core.measure.measurement import STATUSES
from dojo_core.measure.records import Record
from dojo_core.plugins import names
from dojo_core.program.dependence import POLICIES
from dojo_core.program.tree import DTYPE_BYTES, text_hash

SHORTEST = 1e-9  # seconds: no call of anything takes less
LONGEST = 86_400.0  # seconds of one run
FIRST_DAY = 1_577_836_800.0  # 2020-01-01 in seconds since the epoch: there was no Dojo before
AHEAD = 86_400.0  # seconds that another machine's clock may be ahead
MOST_SAMPLES = 10_000
LARGEST_COUNT = 2**53  # of switches and faults of one run
LONGEST_CALIBRATION = 3.6e6  # milliseconds
SAME = 1e-6  # relative: a time and the least of its samples

_HASH = re.compile(r"[0-9A-Za-z_.:-]{1,128}")
_SHAPE = re.compile(r"(\d{1,13}(x\d{1,13}){0,15})?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LONGEST_TEXT = {
    "kernel": 200, "player": 200, "effort": 40, "machine": 20_000, "message": 100_000, "line": 200_000,
    "program_text": 200_000,
}  # fmt: skip


def implausible(record: Record, now: float | None = None) -> str:
    """Why no measurement of the Dojo has such values, as the end of a sentence; empty where one may.

    ``now``: seconds since the epoch, this machine's clock where none is given.
    """
    return (
        _words(record)
        or _identity(record)
        or _times(record)
        or _date(record, time.time() if now is None else now)
    )


def _words(record: Record) -> str:
    if record.status not in STATUSES:
        return f"there is no status {record.status!r:.40}"
    if record.policy not in POLICIES:
        return f"there is no policy {record.policy!r:.40}"
    if record.target not in names("dojo.targets"):
        return f"there is no target {record.target!r:.40}"
    if record.dtype not in DTYPE_BYTES:
        return f"there is no dtype {record.dtype!r:.40}"
    if not _SHAPE.fullmatch(record.shape):
        return f"{record.shape!r:.40} is no shape"
    for name, most in _LONGEST_TEXT.items():
        if len(getattr(record, name)) > most:
            return f"its {name} is longer than {most:,} characters"
    for name in ("kernel", "player", "effort"):
        if _CONTROL.search(getattr(record, name)):
            return f"its {name} holds a control character"
    if not record.kernel:
        return "it names no kernel"
    return ""


def _identity(record: Record) -> str:
    for name in ("program_hash", "start_hash", "fingerprint"):
        if not _HASH.fullmatch(getattr(record, name)):
            return f"its {name} is {getattr(record, name)!r:.40}"
    if record.code_hash and not _HASH.fullmatch(record.code_hash):
        return f"its code_hash is {record.code_hash!r:.40}"
    if text_hash(record.program_text) != record.program_hash:
        return "its program_hash is that of another program text"
    try:
        read_object(record.machine)
    except NotJson:
        return "its machine is no JSON object"
    return ""


def _times(record: Record) -> str:
    if len(record.samples) > MOST_SAMPLES:
        return f"it has more than {MOST_SAMPLES:,} samples"
    for sample in record.samples:
        if not SHORTEST <= sample.nanoseconds / 1e9 <= LONGEST:
            return f"a sample of {sample.nanoseconds:.6g} ns is none: it lies between 1 ns and a day"
        if max(sample.switches, sample.faults) > LARGEST_COUNT:
            return "a sample counts more than there can be"
    if not 0 <= record.calibration <= LONGEST_CALIBRATION:
        return f"its calibration took {record.calibration:.6g} ms"
    if record.error < 0 and record.error != -1.0:  # -1: it was not finite
        return f"its error is {record.error:.6g}"
    if record.load is not None and not 0 <= record.load <= 1:
        return "its load is no share of the cores, from 0 to 1"
    if record.verified and (record.status != "ok" or not record.samples or record.seconds is None):
        return "it is verified without a time"
    if record.status == "ok" and record.seconds is None:
        return "its status is ok and it has no time"
    if record.seconds is None:
        return ""
    if not SHORTEST <= record.seconds <= LONGEST:
        return f"a time of {record.seconds:.6g} s is none: it lies between 1 ns and a day"
    clean = [s.nanoseconds for s in record.samples if s.clean] or [s.nanoseconds for s in record.samples]
    if clean and not math.isclose(min(clean) / 1e9, record.seconds, rel_tol=SAME):
        return "its time is not the least of its samples"
    return ""


def _date(record: Record, now: float) -> str:
    if record.time <= 0:
        return "it has no date"
    if record.time < FIRST_DAY:
        return "it is dated before 2020, when there was no Dojo"
    if record.time > now + AHEAD:
        return "it is dated in the future"
    return ""
