"""Lines of a kernel that hang on constants alone: what they give becomes a constant.

The normalisation of a batch multiplies by ``weight / sqrt(variance + eps)``, a number for each channel::

    64 t1[{0}] = x2[{0}] + 1e-05
    | t2[{0}] = rsqrt(t1[{0}])
    64 56 56 t3[{0},{1},{2}] = x1[{0},{1},{2}]*t2[{0}]

Where x2 is a constant, t2 is another one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from dojo_core.graph.emission import Emitted, canonical, parsed, unlike
from dojo_core.graph.folding import evaluated
from dojo_core.graph.hoisting import divided
from dojo_core.graph.nodes import Tensor
from dojo_core.program.tree import Program

Values = np.ndarray[Any, Any]


def worked_out(
    made: Emitted, tensors: Mapping[str, Tensor], constants: Mapping[str, Values], name: str
) -> Emitted:
    """The same kernel without such lines; what they gave is among its own constants, under the name's."""
    given = {**constants, **{key: values for key, (_, values) in made.constants.items()}}
    of_array = dict(zip(made.program.inputs, made.inputs, strict=True))
    known = _known(made.program, [array for array, tensor in of_array.items() if tensor in given])
    wanted = tuple(dict.fromkeys(a for a in _read_by_others(made.program, known) if a in known))
    if not wanted:
        return made
    every = {array: tuple(range(len(made.program.buffer_of[array].dims))) for array in known}
    parts = divided(made.program, every, wanted)
    named = {array: unlike(f"{name}.{array}", {*tensors, *made.constants}) for array in wanted}
    once = Emitted(
        parts.once,
        tuple(of_array[array] for array in parts.once.inputs),
        tuple(named[array] for array in parts.once.outputs),
        made.constants,
    )
    new = {
        key: Tensor(key, buffer.dtype, tuple(dim.size for dim in buffer.dims))
        for key, buffer in ((named[array], parts.once.buffer_of[array]) for array in wanted)
    }
    values = evaluated(once, given, {**tensors, **new})
    draft, renamed = canonical(parts.each_run)
    program = parsed(draft.text)
    originals = {after: before for before, after in renamed.items()}
    of_array |= named
    inputs = tuple(of_array[originals[array]] for array in program.inputs)
    own = {**made.constants, **{key: (tensor, values[key]) for key, tensor in new.items()}}
    return Emitted(program, inputs, made.outputs, {key: own[key] for key in inputs if key in own})


def _known(program: Program, constants: Collection[str]) -> list[str]:
    """The temporaries that hang on constants alone, and that others read only where they have no more
    elements than these constants."""
    large = set[str]()
    while True:
        behind = _behind(program, constants, large)
        read = [array for array in _read_by_others(program, behind) if array in behind]
        too_large = {a for a in read if _cells(program, {a}) > _cells(program, behind[a])}
        if not too_large:
            return list(behind)
        large |= too_large


def _behind(
    program: Program, constants: Collection[str], apart: Collection[str]
) -> dict[str, frozenset[str]]:
    """The constants that each temporary hangs on which hangs on nothing else; not those ``apart``."""
    behind: dict[str, frozenset[str]] = {}
    temporaries = [b.name for b in program.buffers if b.name not in (*program.interface, *apart)]
    while True:
        sources = {array: frozenset({array}) for array in constants} | behind
        found = {
            array: frozenset().union(*(sources[each] for each in read))
            for array in temporaries
            if array not in behind and (read := _sources(program, array)) and read <= sources.keys()
        }
        if not found:
            return behind
        behind |= found


def _sources(program: Program, array: str) -> set[str]:
    """What is read to write an array, but for itself."""
    leaves = [leaf for leaf in program.leaves if leaf.op.target.array == array]
    return {access.array for leaf in leaves for access in leaf.op.reads} - {array}


def _read_by_others(program: Program, known: Collection[str]) -> list[str]:
    """What the lines read that do not write known arrays."""
    leaves = [leaf for leaf in program.leaves if leaf.op.target.array not in known]
    return [access.array for leaf in leaves for access in leaf.op.reads]


def _cells(program: Program, arrays: Collection[str]) -> int:
    return sum(program.buffer_of[array].cells for array in arrays)
