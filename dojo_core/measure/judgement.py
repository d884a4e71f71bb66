"""What a candidate's results are judged by: inputs, their references, and what it may be off by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dojo_core.codegen.code import Parameter
from dojo_core.measure.input_sets import InputSet
from dojo_core.measure.pool import Array, Doubles, Pool, columns, to_double
from dojo_core.measure.pool_cache import cached_pool
from dojo_core.measure.worst_pool import worst_tolerance

ON_THE_WORST = "That is on the inputs on which algebraic moves are worst."


@dataclass
class Judgement:
    """Inputs, their references and, once the start program was judged on them, tolerances with scales.

    ``worst``: the inputs on which algebraic moves are worst, for verifying alone.
    """

    pool: Pool
    worst: bool = False
    tolerance: dict[str, tuple[Doubles, Doubles]] = field(default_factory=dict)

    def allow(self, p: Parameter, own_error: Doubles, scale: Doubles, policy: str) -> None:
        """Set an output's tolerances by what the start program is off by; raises as ``tolerance`` does."""
        if self.worst:
            pool = self.pool
            moves, order = pool.sensitivity[p.name], pool.order.get(p.name)
            allowed = worst_tolerance(p, own_error, scale, moves, p.name in pool.inexact, order)
        else:
            allowed = self.pool.tolerance(p, own_error, scale, policy)
        self.tolerance[p.name] = (allowed, scale)

    def compared(self, p: Parameter, stored: Array, bound: float) -> tuple[dict[str, Any] | None, float]:
        """What is wrong with an output as stored, if anything, and the largest error in units of what is
        allowed. What was never written is all ones, as it was filled."""
        base, scale = self.tolerance[p.name]
        allowed = (base if bound == 0.0 else base + bound * scale)[:, None]
        width = columns(p.shape)
        got = to_double(stored, p.dtype).reshape(-1, width)
        want = self.pool.references[p.name].reshape(-1, width)
        with np.errstate(all="ignore"):
            off = np.abs(got - want)
            right = (off <= allowed) | (got == want) | (np.isnan(got) & np.isnan(want)) | np.isinf(allowed)
            share = np.where(np.isfinite(off) & np.isfinite(allowed) & (allowed > 0), off / allowed, 0.0)
        error = float(np.where(right, share, 0.0).max(initial=0.0))
        if right.all():
            return None, error
        poison = (stored.reshape(-1, width).view(np.uint8).reshape(*right.shape, -1) == 0xFF).all(axis=-1)
        unwritten = poison & ~right
        first = int(np.flatnonzero(unwritten if unwritten.any() else ~right)[0])
        place = f"{p.name}[{','.join(map(str, np.unravel_index(first, p.shape or (1,))))}]"
        if unwritten.any():
            message = f"{int(unwritten.sum())} of {got.size} elements of {p.name} are never written, "
            return {"status": "unwritten", "message": f"{message}among them {place}."}, error
        message = f"{int((~right).sum())} of {got.size} elements of {p.name} are wrong: {place} "
        message += instead(p.dtype, got.reshape(-1)[first], want.reshape(-1)[first])
        return {"status": "wrong_result", "message": message}, error

    def with_inputs(self, fault: dict[str, Any]) -> dict[str, Any]:
        """The fault, with a word on the inputs where they are not the usual ones."""
        if not self.worst:
            return fault
        return {**fault, "message": f"{fault['message']} {ON_THE_WORST}"}


def instead(dtype: str, got: float, wanted: float) -> str:
    """What an element is and should be, with all the digits that it has."""
    digits = 17 if dtype == "f64" else 9
    return f"is {got:.{digits}g} and should be {wanted:.{digits}g}."


def row_errors(got: Doubles, reference: Doubles, width: int) -> tuple[Doubles, Doubles]:
    """(largest error, largest finite magnitude) of each row of ``width``; infinity where infinities and NaN
    disagree."""
    have, want = got.reshape(-1, width), reference.reshape(-1, width)
    finite = np.isfinite(want)
    with np.errstate(all="ignore"):
        off = np.abs(have - want)
    off = np.where(np.isfinite(off), off, np.inf)
    same = (have == want) | (np.isnan(have) & np.isnan(want))
    off = np.where(finite, off, np.where(same, 0.0, np.inf))
    return off.max(axis=1, initial=0.0), np.where(finite, np.abs(want), 0.0).max(axis=1, initial=0.0)


def judgements(
    start: str,
    parameters: tuple[Parameter, ...],
    seed: int,
    sets: Sequence[InputSet],
    cache: Path | None,
) -> list[Judgement]:
    """One for each set of inputs of a start program, the usual one first. ``cache``: where pools are kept."""
    return [Judgement(cached_pool(start, parameters, seed, cache, chosen), chosen.worst) for chosen in sets]
