"""A whole model in an exported library: a function that runs its kernels in turn, a file of its constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dojo_core.export.choice import NotExported
from dojo_core.export.kernel import C_TYPES, Array, Instance, comment
from dojo_core.export.names import argument
from dojo_core.export.templates import filled
from dojo_core.graph.graph import Call, Graph, Values
from dojo_core.graph.plan import ALIGNMENT, plan
from dojo_core.program.dtypes import NUMPY_TYPES

WEIGHTS_FILE = "model.weights"  # in the package's folder
MODELS_OWN = ("run", "weights", "model")  # functions and modules, which no kernel may be called


@dataclass(frozen=True)
class Weights:
    """A file of constants, each from a multiple of ALIGNMENT on: ``offsets`` by the tensor's name.

    ``size`` in bytes.
    """

    values: Mapping[str, Values]
    offsets: Mapping[str, int]
    size: int

    def chunks(self) -> Iterator[bytes]:
        """The file's content, a constant at a time."""
        for values in self.values.values():
            content = np.ascontiguousarray(values).tobytes()
            yield content + bytes(-len(content) % ALIGNMENT)


def weights_of(graph: Graph) -> Weights:
    """The constants that calls or a caller read."""
    read = {*graph.outputs, *(name for call in graph.calls for name in call.inputs)}
    values = {name: each for name, each in graph.constants.items() if name in read and each.size}
    offsets: dict[str, int] = {}
    size = 0
    for name, each in values.items():
        offsets[name] = size
        size += -(-each.nbytes // ALIGNMENT) * ALIGNMENT
    return Weights(values, offsets, size)


class Whole:
    """What a library's files say of the model that its kernels make up."""

    def __init__(self, graph: Graph) -> None:
        for name in (*graph.inputs, *graph.outputs):
            tensor = graph.tensors[name]
            if tensor.dtype not in C_TYPES:
                raise NotExported(
                    f"{graph.label(name)} is {tensor.dtype}, which a library cannot take: use f32."
                )
        self.graph = graph
        self.weights = weights_of(graph)
        self.places = plan(graph)
        self.arrays = self._arrays(graph.inputs, False) + self._arrays(graph.outputs, True)

    def _arrays(self, names: Sequence[str], output: bool) -> tuple[Array, ...]:
        taken: list[str] = [argument(n) for n in self.graph.inputs] if output else []
        arrays: list[Array] = []
        for name in names:
            tensor = self.graph.tensors[name]
            called = argument(name, [*taken, "weights", "memory"])
            taken.append(called)
            arrays.append(Array(called, tensor.dtype, tensor.shape, output, tensor.domain))
        return tuple(arrays)

    def memory_bytes(self, instances: Sequence[Instance]) -> int:
        """Between calls, and for the kernel that needs the largest workspace."""
        return self.places.bytes + max(each.workspace_bytes for each in instances)

    # ------------------------------------------------------------------ C

    def declared(self, instances: Sequence[Instance], library: str) -> str:
        graph, guard = self.graph, library.upper()
        lines = [f"The model {graph.name}, its {len(graph.calls)} kernels in turn.", ""]
        lines += [f"  {'out' if a.output else 'in '} {a.text}" for a in self.arrays]
        lines += [
            "",
            "memory is a workspace, of the size below. What is written before a kernel refuses a value",
            "stays.",
        ]
        text = f"{comment(lines)}\n#define {guard}_MEMORY_BYTES {self.memory_bytes(instances)}\n"
        if self.weights.size:
            about = comment(self._about_weights(library))
            text = (
                f"{about}\n#define {guard}_WEIGHTS_BYTES {self.weights.size} /* of that file */\n"
                f"{guard}_API void *{library}_weights(const char *path);\n\n{text}"
            )
        return f"{text}{guard}_API {self._signature(library)};"

    def _about_weights(self, library: str) -> list[str]:
        return [
            f"The constants of the model: the content of {library}/{WEIGHTS_FILE}, in memory of its own,",
            "which is to be freed with free(); NULL where the file cannot be read, or has another size.",
        ]

    def _signature(self, library: str) -> str:
        arguments = ["const void *weights"] if self.weights.size else []
        arguments += [f"{'' if a.output else 'const '}{C_TYPES[a.dtype]} *{a.name}" for a in self.arrays]
        return f"int {library}_run(\n    {', '.join([*arguments, 'void *memory'])})"

    def defined(self, instances: Sequence[Instance], library: str) -> str:
        rows = [(a.bytes, a.bytes_of_one, "OUTPUT" if a.output else "INPUT", a.text) for a in self.arrays]
        given = [a.name for a in self.arrays]
        if self.weights.size:
            rows.insert(0, (self.weights.size, ALIGNMENT, "INPUT", "the constants"))
            given.insert(0, "weights")
        return filled(
            "model.c.in",
            library=library,
            guard=library.upper(),
            steps="\n".join(self._steps(instances, library)),
            signature=self._signature(library),
            rows="".join(f"        {{{size}, {one}, {role}}}, // {text}\n" for size, one, role, text in rows),
            count=str(len(rows)),
            given=", ".join(f"(void *){name}" for name in given),
            planned=str(self.places.bytes),
            read=filled("weights.c.in", library=library, guard=library.upper()) if self.weights.size else "",
        )

    def _steps(self, instances: Sequence[Instance], library: str) -> Iterator[str]:
        kernels = {each.choice.start.name: each for each in instances}
        first = 1 if self.weights.size else 0
        caller = {n: f"arrays[{k}]" for k, n in enumerate((*self.graph.inputs, *self.graph.outputs), first)}
        at = {name: f"memory + {offset}" for name, offset in self.places.offsets.items()}
        at |= {name: f"weights + {offset}" for name, offset in self.weights.offsets.items()} | caller
        for call in self.graph.calls:
            made = kernels[call.kernel]
            names = _tensors(call, made)
            arguments = ", ".join(f"(void *)({at[name]})" for name in names)
            nodes = comment([", ".join(call.nodes)]).replace("\n", "")
            yield (f"    {nodes}\n    if (!*status) *status = {library}_{made.name}({arguments}, workspace);")
        outputs = dict(zip(self.graph.outputs, self.arrays[len(self.graph.inputs) :], strict=True))
        for name, array in outputs.items():
            if name in self.graph.inputs or name in self.weights.offsets:
                source = (
                    f"weights + {self.weights.offsets[name]}"
                    if name in self.weights.offsets
                    else f"arrays[{first + self.graph.inputs.index(name)}]"
                )
                yield f"    memcpy({caller[name]}, {source}, {array.bytes});"

    # ------------------------------------------------------------------ Python and README

    def module(self, instances: Sequence[Instance], library: str) -> str:
        """The Python module of the model."""
        rows = [
            (self.graph.label(name), NUMPY_TYPES[tensor.dtype], tensor.shape)
            for name in (*self.graph.inputs, *self.graph.outputs)
            for tensor in [self.graph.tensors[name]]
        ]
        count = len(self.graph.inputs)
        return filled(
            "model.py.in",
            library=library,
            name=repr(self.graph.name),
            inputs=_table(rows[:count]),
            outputs=_table(rows[count:]),
            memory=str(self.memory_bytes(instances)),
            weights=str(self.weights.size),
            file=WEIGHTS_FILE,
        )

    def readme(self, library: str) -> str:
        inputs = [a for a in self.arrays if not a.output]
        arguments = ", ".join(a.name for a in self.arrays)
        return filled(
            "model.md.in",
            library=library,
            name=self.graph.name,
            guard=library.upper(),
            file=WEIGHTS_FILE,
            calls=str(len(self.graph.calls)),
            table="\n".join(f"| {'out' if a.output else 'in'} | `{a.text}` |" for a in self.arrays),
            load=(
                f'void *weights = {library}_weights("{library}/{WEIGHTS_FILE}");\n'
                if self.weights.size
                else ""
            ),
            c_call=f"{library}_run({'weights, ' if self.weights.size else ''}{arguments}, NULL)",
            python_call=", ".join(
                f'"{self.graph.label(n)}": {a.name}' for n, a in zip(self.graph.inputs, inputs, strict=True)
            ),
        )


def _tensors(call: Call, made: Instance) -> list[str]:
    """The tensors of a call in the order of the function's arguments."""
    start = made.choice.start
    tensors = dict(zip((*start.inputs, *start.outputs), (*call.inputs, *call.outputs), strict=True))
    names: list[str] = []
    for array in made.arrays:
        (name,) = [n for n in tensors if argument(n) == array.name]
        names.append(tensors[name])
    return names


def _table(rows: Sequence[tuple[str, str, tuple[int, ...]]]) -> str:
    return "[\n" + "".join(f"    ({name!r}, {dtype!r}, {shape!r}),\n" for name, dtype, shape in rows) + "]"
