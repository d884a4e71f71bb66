"""Pools on disk: drawn and computed once, and again where damaged; the longest unused leave first."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import math
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from dojo_core.codegen.code import Parameter
from dojo_core.measure import sealed
from dojo_core.measure.input_sets import InputSet
from dojo_core.measure.limits import POOL_BYTES, POOL_CACHE_BYTES, USUAL_SEED
from dojo_core.measure.pool import Array, Pool, make_pool
from dojo_core.measure.worst_pool import make_worst_pool
from dojo_core.program.text import parse
from dojo_core.program.tree import Program

log = logging.getLogger(__name__)

POOL_VERSION = 8  # of what is kept on disk
USUAL = InputSet()
WORTH_KEEPING = 0.05  # seconds
HEADER_BYTES = 4096  # the most that stands before an array's numbers
PARTS = ("inputs", "references", "sensitivity", "order", "factors", "reach")  # arrays by name


def pool_key(program: Program, parameters: tuple[Parameter, ...], seed: int, chosen: InputSet = USUAL) -> str:
    content = json.dumps([POOL_VERSION, program.hash, repr(parameters), seed, repr(chosen)])
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def cached_pool(
    text: str,
    parameters: tuple[Parameter, ...],
    seed: int,
    cache: Path | None,
    chosen: InputSet = USUAL,
) -> Pool:
    """The pool from disk, else made and kept there (unless it is large, or used this once).

    ``chosen``: the set of inputs; ``cache`` None: nothing is kept.
    """
    program = parse(text)
    if seed != USUAL_SEED or cache is None:
        return _made(program, parameters, seed, chosen)
    folder = cache / "pools" / pool_key(program, parameters, seed, chosen)
    stored = _load(folder)
    if stored is not None:
        os.utime(folder)
        return stored
    began = time.perf_counter()
    pool = _made(program, parameters, seed, chosen)
    if chosen.worst and time.perf_counter() - began < WORTH_KEEPING:
        return pool  # a small program has many such sets, as soon drawn as read
    if sum(a.nbytes for a in (*pool.inputs.values(), *pool.references.values())) <= POOL_BYTES:
        try:
            sealed.folder(folder.parent)
            sealed.remove(folder)
            _save(pool, folder)
            _prune(folder.parent, keep=folder)
        except OSError:  # a disk that is full: the pool is no worse for that
            log.exception("the pool of %s is not kept", program.name)
    return pool


def _made(program: Program, parameters: tuple[Parameter, ...], seed: int, chosen: InputSet) -> Pool:
    if chosen.worst:
        return make_worst_pool(program, parameters, seed, chosen)
    return make_pool(program, parameters, seed, chosen.tame, chosen.normwise, chosen.tf32)


def _save(pool: Pool, folder: Path) -> None:
    draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix="draft-"))
    try:
        _write(pool, draft)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    try:
        draft.rename(folder)
    except OSError:  # another process was quicker
        shutil.rmtree(draft, ignore_errors=True)


def _write(pool: Pool, draft: Path) -> None:
    index: dict[str, object] = {"adversarial": pool.adversarial, "inexact": pool.inexact}
    for part in PARTS:
        arrays: dict[str, Array] = getattr(pool, part)
        for number, array in enumerate(arrays.values()):
            file = draft / f"{part}-{number}.npy"
            np.save(file, array, allow_pickle=False)
            sealed.seal(file)
        index[part] = list(arrays)
    sealed.keep(draft / "index.json", json.dumps(index).encode())


def _load(folder: Path) -> Pool | None:
    """None where it is not there, or not whole."""
    contents = sealed.read(folder / "index.json")
    if contents is None:
        return None
    index = json.loads(bytes(contents))
    parts: dict[str, dict[str, Any]] = {}
    for part in PARTS:
        parts[part] = {}
        for number, name in enumerate(index[part]):
            stored = sealed.read(folder / f"{part}-{number}.npy")
            if stored is None:
                return None
            parts[part][name] = _array(stored)
    return Pool(**parts, adversarial=index["adversarial"], inexact=tuple(index["inexact"]))


def _array(stored: memoryview) -> Array:
    """What ``np.save`` wrote, in the memory that it was read into."""
    head = io.BytesIO(stored[:HEADER_BYTES])
    version = np.lib.format.read_magic(head)
    assert version == (1, 0), version
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(head)
    flat = np.frombuffer(stored, dtype, count=math.prod(shape), offset=head.tell())
    return flat.reshape(shape, order="F" if fortran else "C")


def _prune(pools: Path, keep: Path) -> None:
    sizes = []
    for folder in pools.iterdir():
        try:
            if folder.name.startswith("draft-") and folder.stat().st_mtime < time.time() - 3600:
                shutil.rmtree(folder, ignore_errors=True)  # its process died
                continue
            size = sum(f.stat().st_size for f in folder.iterdir())
            sizes.append((folder.stat().st_mtime, size, folder))
        except OSError:
            continue
    total = sum(size for _, size, _ in sizes)
    for _, size, folder in sorted(sizes):
        if total <= POOL_CACHE_BYTES:
            break
        if folder != keep:
            shutil.rmtree(folder, ignore_errors=True)
            total -= size
