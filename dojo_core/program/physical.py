"""What a program computes through the addresses that its storage leaves, one cell at a time.

``:N``, shared buffers and per-iteration storage are taken at their word: what an invalid program gives, for
tests on tiny shapes. The meaning of each operation is that of ``interpret.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from dojo_core.program.affine import Affine
from dojo_core.program.arithmetic import ACCUMULATIONS, Array, Meaning
from dojo_core.program.interpret import input_array, unwritten
from dojo_core.program.tables import Indirect
from dojo_core.program.tree import Access, Buffer, Node, Number, Op, Path, Program


def interpret_physical(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs by name in float64, as ``interpret`` gives them for a program whose storage is valid."""
    return _Physical(program, inputs).run()


class _Physical:
    """Each buffer one block of addresses, made anew in each iteration of its owner."""

    def __init__(self, program: Program, inputs: Mapping[str, Array]):
        self.program, self.meaning = program, Meaning(program)
        self.memory: dict[str, Array] = {}
        self.owners: dict[str, Path] = {}
        for buffer in program.buffers:
            self.memory[buffer.name] = self._fresh(buffer)
            for array in buffer.arrays:
                if array in program.inputs:
                    self.memory[buffer.name][...] = input_array(program, inputs, array).reshape(-1)
            if buffer.location != "heap":
                self.owners[buffer.name] = _common_scope(program, buffer)

    def _fresh(self, buffer: Buffer) -> Array:
        return unwritten((buffer.cells,), buffer.dtype)

    def run(self) -> dict[str, Array]:
        with np.errstate(all="ignore"):
            self._body(self.program.body, (), ())
        outputs: dict[str, Array] = {}
        for array in self.program.outputs:
            buffer = self.program.buffer_of[array]
            addresses = [
                self._address(Access(array, tuple(Affine((), i) for i in cell)), ())
                for cell in product(*(range(d.size) for d in buffer.dims))
            ]
            outputs[array] = self.memory[buffer.name][addresses].reshape([d.size for d in buffer.dims])
        return outputs

    def _body(self, body: tuple[Node, ...], path: Path, iterators: tuple[int, ...]) -> None:
        for number, node in enumerate(body):
            node_path = (*path, number)
            if isinstance(node, Op):
                self._op(node, iterators)
                continue
            for value in range(node.size):
                for name, owner in self.owners.items():
                    if owner == node_path:
                        buffer = next(b for b in self.program.buffers if b.name == name)
                        self.memory[name] = self._fresh(buffer)
                self._body(node.body, node_path, (*iterators, value))

    def _address(self, access: Access, iterators: tuple[int, ...]) -> int:
        address = 0
        for form, dim in zip(access.index, self.program.buffer_of[access.array].dims, strict=True):
            index = (
                form.value(iterators, self._element) if isinstance(form, Indirect) else form.value(iterators)
            )
            if not 0 <= index < dim.size:
                raise IndexError(f"{access} leaves the array: the index is {index} of {dim.size}.")
            if dim.materialised:
                address = address * dim.size + index
        return address

    def _element(self, array: str, at: tuple[int, ...]) -> int:
        address = self._address(Access(array, tuple([Affine((), n) for n in at])), ())
        return int(self.memory[self.program.buffer_of[array].name][address])

    def _op(self, op: Op, iterators: tuple[int, ...]) -> None:
        if not all(c.holds(iterators) for c in op.guard):
            return
        operands: list[Any] = []
        for operand in op.operands:
            if isinstance(operand, Access):
                memory = self.memory[self.program.buffer_of[operand.array].name]
                operands.append(memory[self._address(operand, iterators)])
            else:
                operands.append(
                    np.asarray(operand.value if isinstance(operand, Number) else operand.value(iterators))
                )
        buffer = self.program.buffer_of[op.target.array]
        address, memory = self._address(op.target, iterators), self.memory[buffer.name]
        value = self.meaning.computed(op, operands)
        if op.accumulate:
            term = self.meaning.term(value, op.target.array)
            value = ACCUMULATIONS[op.accumulate](memory[address], term)
        memory[address] = self.meaning.stored(np.asarray(value), op.target.array)


def _common_scope(program: Program, buffer: Buffer) -> Path:
    """The innermost scope that holds all accesses of a buffer."""
    paths = [
        leaf.path[:-1]
        for leaf in program.leaves
        if any(a.array in buffer.arrays for a in (leaf.op.target, *leaf.op.reads))
    ]
    common = paths[0] if paths else ()
    for path in paths[1:]:
        shared = 0
        while shared < min(len(common), len(path)) and common[shared] == path[shared]:
            shared += 1
        common = common[:shared]
    return common
