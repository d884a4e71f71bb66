"""Pools on disk: drawn and computed once, the longest unused leave first."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from dojo_core.files import naming, write_text
from dojo_core.measure.limits import POOL_BYTES, POOL_CACHE_BYTES, USUAL_SEED
from dojo_core.measure.pool import Array, Pool, make_pool
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.code import Parameter

POOL_VERSION = 2  # of what is kept on disk


def pool_key(program: Program, parameters: tuple[Parameter, ...], seed: int) -> str:
    content = json.dumps([POOL_VERSION, program.hash, repr(parameters), seed])
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def cached_pool(text: str, parameters: tuple[Parameter, ...], seed: int, cache: Path) -> Pool:
    """The pool from disk, else made and kept there (unless it is large, or used this once)."""
    program = parse(text)
    if seed != USUAL_SEED:
        return make_pool(program, parameters, seed)
    folder = cache / "pools" / pool_key(program, parameters, seed)
    if folder.is_dir():
        os.utime(folder)
        return _load(folder)
    pool = make_pool(program, parameters, seed)
    if sum(a.nbytes for a in (*pool.inputs.values(), *pool.references.values())) <= POOL_BYTES:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _save(pool, folder)
        _prune(folder.parent, keep=folder)
    return pool


def _save(pool: Pool, folder: Path) -> None:
    draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix="draft-"))
    index: dict[str, object] = {"adversarial": pool.adversarial, "inexact": pool.inexact}
    for part in ("inputs", "references", "sensitivity"):
        arrays: dict[str, Array] = getattr(pool, part)
        for number, array in enumerate(arrays.values()):
            with naming(draft):
                np.save(draft / f"{part}-{number}.npy", array, allow_pickle=False)
        index[part] = list(arrays)
    write_text(draft / "index.json", json.dumps(index))
    try:
        draft.rename(folder)
    except OSError:  # another process was quicker
        shutil.rmtree(draft, ignore_errors=True)


def _load(folder: Path) -> Pool:
    index = json.loads((folder / "index.json").read_text())
    parts = {
        part: {
            name: np.load(folder / f"{part}-{number}.npy", allow_pickle=False)
            for number, name in enumerate(index[part])
        }
        for part in ("inputs", "references", "sensitivity")
    }
    return Pool(**parts, adversarial=index["adversarial"], inexact=tuple(index["inexact"]))


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
