"""A library of kernels to take away, as the texts of its files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dojo_core.export import ported
from dojo_core.export.choice import Choice, NotExported
from dojo_core.export.kernel import (
    C_TYPES,
    Array,
    Instance,
    comment,
    instance,
    kernel_files,
    provenance,
)
from dojo_core.export.model import MODELS_OWN, WEIGHTS_FILE, Weights, Whole
from dojo_core.export.names import library_name
from dojo_core.export.templates import filled
from dojo_core.graph.graph import Graph
from dojo_core.graph.preparation import prepared
from dojo_core.measure.measurement import seconds_text
from dojo_core.program.dtypes import NUMPY_TYPES
from dojo_core.program.target import VECTOR_BYTES
from dojo_core.targets.cpu.instruction_set import InstructionSet

DEFAULT_NAME = "dojo_kernels"


@dataclass(frozen=True)
class Library:
    """``files`` maps paths inside the library's folder to texts, ``data`` to what is no text."""

    name: str
    instances: tuple[Instance, ...]
    files: dict[str, str]
    data: dict[str, Weights] = field(default_factory=dict)


def model_library(
    graph: Graph,
    choices: Mapping[str, Choice],
    name: str = DEFAULT_NAME,
    sets: Sequence[InstructionSet] = (),
) -> Library:
    """A library of a whole model: its kernels, each as chosen by the kernel's name, a function that runs them
    in turn, and a file of its constants, with what the programs copy of these (packed weights) as it is then.

    Raises as ``library`` does, and GraphError.
    """
    graph, choices = prepared(graph, choices)
    called = dict.fromkeys(call.kernel for call in graph.calls)
    # Several kernels of a graph may have one name in their texts, and none of the graph's is twice.
    chosen = [(choices[kernel], kernel) for kernel in called]
    named = [replace(choice, start=replace(choice.start, name=kernel)) for choice, kernel in chosen]
    return library(named, name, sets, Whole(graph))


def library(
    choices: Sequence[Choice],
    name: str = DEFAULT_NAME,
    sets: Sequence[InstructionSet] = (),
    whole: Whole | None = None,
) -> Library:
    """Generate the files of a library of these kernels, in C for any processor and for other sets; with
    ``whole``, of the model that they make up.

    Raises ValueError for a name that cannot be one, NotExported where two kernels have one name or an
    interface cannot be offered, NotGeneratable where the target has no C for a program.
    """
    library_name(name)
    if not choices:
        raise NotExported("There is nothing to export: name a kernel.")
    instances = tuple(instance(choice, sets) for choice in choices)
    families = _families(instances, (*_RESERVED, *(MODELS_OWN if whole else ())))
    common = {"library": name, "guard": name.upper()}
    stack = max(each.stack_bytes for each in instances)
    files = {
        "README.md": _readme(instances, families, name, sets, whole),
        "CMakeLists.txt": filled(
            "CMakeLists.txt.in",
            **{f"kernels_{8 * w}": "\n".join(f"  {e.file(w)}" for e in instances) for w in VECTOR_BYTES},
            **ported.cmake(instances, sets, name),
            **common,
        ),
        f"{name}.h": filled(
            "library.h.in",
            functions="\n\n".join(
                [_declared(each, name) for each in instances]
                + ([whole.declared(instances, name)] if whole else [])
            ),
            stack=f"{stack:,}",
            other_levels=ported.header_lines(instances, sets),
            **common,
        ),
        "library.c": filled(
            "library.c.in",
            functions="\n\n".join(
                [_defined(each, name) for each in instances]
                + ([whole.defined(instances, name)] if whole else [])
            ),
            others=ported.levels_of(instances, sets, name),
            **common,
        ),
        **ported.toolchains(sets),
        **{path: text for each in instances for path, text in kernel_files(each, name).items()},
        "pyproject.toml": filled(
            "pyproject.toml.in", project=name.replace("_", "-"), families=", ".join(families), **common
        ),
        f"{name}/__init__.py": _module(families, name, whole),
        f"{name}/_library.py": filled("library.py.in", **common),
        f"{name}/_kernels.py": filled("kernels.py.in", kernels=_table(families, name)),
        f"{name}/torch_ops.py": _operators(families, name),
    }
    data: dict[str, Weights] = {}
    if whole is not None:
        files[f"{name}/model.py"] = whole.module(instances, name)
        if whole.weights.size:
            data[f"{name}/{WEIGHTS_FILE}"] = whole.weights
    return Library(name, instances, files, data)


# What a family may not be called: the library's own functions and modules.
_RESERVED = ("level", "use_level", "message", "status", "shapes", "torch_ops", "torch")


def _families(instances: Sequence[Instance], reserved: Collection[str]) -> dict[str, list[Instance]]:
    """Kernels by name, each with its shapes. Raises NotExported where they cannot be told apart."""
    families: dict[str, list[Instance]] = {}
    names: set[str] = set()
    for each in instances:
        # File systems may not tell capitals from small letters.
        if each.name.lower() in names:
            raise NotExported(
                f"{each.choice.title} stands twice: a library has one kernel of a name and shape."
            )
        names.add(each.name.lower())
        if each.family in reserved:
            raise NotExported(f"A kernel cannot be called {each.family} in a library: rename it in its text.")
        families.setdefault(each.family, []).append(each)
    for family, known in families.items():
        first, *others = known
        for other in others:
            if [(a.name, a.output) for a in first.arrays] != [(a.name, a.output) for a in other.arrays]:
                raise NotExported(
                    f"Two kernels called {family} take different arguments: rename one in its text."
                )
            if [a.shape for a in first.inputs] == [a.shape for a in other.inputs]:
                raise NotExported(
                    f"{first.choice.title} and {other.choice.title} take inputs of the same shapes, so that "
                    "a call could mean either: export them as two libraries (--name)."
                )
    return families


# ---------------------------------------------------------------------------- C


def _macro(each: Instance, library: str) -> str:
    return f"{library}_{each.name}_WORKSPACE".upper()


def _signature(each: Instance, library: str) -> str:
    arguments = [f"{'' if a.output else 'const '}{C_TYPES[a.dtype]} *{a.name}" for a in each.arrays]
    return f"int {library}_{each.name}(\n    {', '.join([*arguments, 'void *workspace'])})"


def _declared(each: Instance, library: str) -> str:
    choice = each.choice
    formula = f": {choice.formula}" if choice.formula else ""
    lines = [f"{each.name}{formula}", *(f"  {'out' if a.output else 'in '} {a.text}" for a in each.arrays)]
    lines += provenance(choice.record)
    return (
        f"{comment(lines)}\n"
        f"#define {_macro(each, library)} {each.workspace_bytes} /* bytes */\n"
        f"{library.upper()}_API {_signature(each, library)};"
    )


def _defined(each: Instance, library: str) -> str:
    symbol = f"{library}_{each.name}"
    rows = "".join(
        f"        {{{a.bytes}, sizeof({C_TYPES[a.dtype]}), {role}}}, // {a.text}\n"
        for a, role in ((a, "OUTPUT" if a.output else "INPUT") for a in each.arrays)
    )
    given = ", ".join(f"(void *){a.name}" for a in each.arrays)
    return (
        f"DECLARE({symbol})\n"
        f"{_refused(each, symbol, library)}"
        f"{_signature(each, library)} {{\n"
        f"    static const struct array each[] = {{\n{rows}    }};\n"
        f"    static const struct kernel kernel = {{\n        ALL_LEVELS({symbol}),\n"
        f"        each, {len(each.arrays)}, {_macro(each, library)}, "
        f"{f'{symbol}_refused' if _checked(each) else 'NULL'}}};\n"
        f"    void *const arrays[] = {{{given}}};\n"
        f"    return call(&kernel, arrays, workspace);\n}}"
    )


def _checked(each: Instance) -> list[tuple[int, Array]]:
    """The inputs whose values decide what is accessed, with their numbers among the arrays."""
    return [(k, a) for k, a in enumerate(each.arrays) if a.tests or a.distinct]


def _refused(each: Instance, symbol: str, library: str) -> str:
    """A function that looks at these values; empty where there are none. It gives a status."""
    guard = library.upper()
    loops = [
        f"    values = arrays[{k}];\n"
        f"    for (size_t k = 0; k < {a.bytes // _size(a)}; ++k) {{\n"
        f"        {C_TYPES[a.dtype]} value = ((const {C_TYPES[a.dtype]} *)values)[k]; // {a.name}\n"
        f"        outside |= {' || '.join(f'value {test}' for test in a.tests)};\n    }}\n"
        for k, a in _checked(each)
        if a.tests
    ]
    if loops:
        loops = ["    const void *values;\n    int outside = 0;\n", *loops]
        loops.append(f"    if (outside) return {guard}_RANGE;\n")
    loops += [_distinct(k, a, guard) for k, a in _checked(each) if a.distinct]
    if not loops:
        return ""
    return (
        f"static int {symbol}_refused(void *const *arrays) {{\n{''.join(loops)}    return {guard}_OK;\n}}\n\n"
    )


def _distinct(number: int, array: Array, guard: str) -> str:
    """What marks each value of an input, all of them in range, and finds one that is marked already."""
    assert array.taken is not None
    low, high = map(int, array.taken)
    kind = C_TYPES[array.dtype]
    return (
        f"    {{ // {array.name}\n"
        f"        unsigned char *seen = calloc({(high - low) // 8 + 1}, 1);\n"
        f"        int twice = 0;\n"
        f"        if (seen == NULL) return {guard}_MEMORY;\n"
        f"        for (size_t k = 0; k < {array.bytes // _size(array)}; ++k) {{\n"
        f"            uint64_t place = (uint64_t)((const {kind} *)arrays[{number}])[k] - (uint64_t){low}ll;\n"
        f"            twice |= seen[place / 8] >> place % 8 & 1;\n"
        f"            seen[place / 8] |= (unsigned char)(1 << place % 8);\n"
        f"        }}\n"
        f"        free(seen);\n"
        f"        if (twice) return {guard}_DISTINCT;\n"
        f"    }}\n"
    )


# ---------------------------------------------------------------------------- Python


def _tuple(items: Sequence[object]) -> str:
    return f"({', '.join(map(repr, items))}{',' if len(items) == 1 else ''})"


def _table(families: dict[str, list[Instance]], library: str) -> str:
    def rows(arrays: Sequence[Array]) -> str:
        described = [f'("{a.name}", "{NUMPY_TYPES[a.dtype]}", {_tuple(a.shape)})' for a in arrays]
        return f"[{', '.join(described)}]"

    lines = []
    for family, known in families.items():
        lines.append(f'    "{family}": [')
        for each in known:
            lines += [
                "        (",
                f'            "{library}_{each.name}",',
                f"            {rows(each.inputs)},",
                f"            {rows(each.outputs)},",
                f"            {each.workspace_bytes},",
                "        ),",
            ]
        lines.append("    ],")
    return "\n".join(lines)


def _about(known: Sequence[Instance]) -> str:
    choice = known[0].choice
    return (
        f"{known[0].family}: {choice.formula}"
        if choice.formula
        else f"{known[0].family}, a kernel of one's own"
    )


def _shapes(known: Sequence[Instance]) -> list[str]:
    return [
        f"{', '.join(a.text for a in each.inputs)} -> {', '.join(a.text for a in each.outputs)}"
        for each in known
    ]


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _module(families: dict[str, list[Instance]], library: str, whole: Whole | None) -> str:
    functions = []
    for family, known in families.items():
        names = [a.name for a in known[0].inputs]
        functions.append(
            filled(
                "function.py.in",
                family=family,
                arguments=", ".join(names),
                given=", ".join(names) + ("," if len(names) == 1 else ""),
                about=_about(known) + ".",
                shapes="\n    ".join(_shapes(known)),
            )
        )
    return filled(
        "init.py.in",
        library=library,
        exported=_quoted([*families, "level", *(["run"] if whole else []), "shapes", "use_level"]),
        model="from .model import run\n" if whole else "",
        functions="\n\n".join(functions).rstrip(),
    )


def _operators(families: dict[str, list[Instance]], library: str) -> str:
    operators = [
        f'{family} = _operator("{family}", "{known[0].choice.formula}")' for family, known in families.items()
    ]
    return filled(
        "torch_ops.py.in", library=library, exported=_quoted(list(families)), operators="\n".join(operators)
    )


# ---------------------------------------------------------------------------- README


def _readme(
    instances: Sequence[Instance],
    families: dict[str, list[Instance]],
    library: str,
    sets: Sequence[InstructionSet],
    whole: Whole | None,
) -> str:
    rows = []
    for each in instances:
        record = each.choice.record
        time = seconds_text(record.seconds) if record is not None and record.seconds is not None else "no"
        time += " (machine busy)" if record is not None and record.conditions.busy else ""
        arguments = f"{', '.join(a.text for a in each.inputs)} → {', '.join(a.text for a in each.outputs)}"
        rows.append(f"| `{library}_{each.name}` | {arguments} | {time} |")
    first = instances[0]
    arrays = "\n".join(f"static {C_TYPES[a.dtype]} {a.name}[{a.bytes // _size(a)}];" for a in first.arrays)
    names = ", ".join(a.name for a in first.arrays)
    made = "\n".join(f'{a.name} = np.ones({_tuple(a.shape)}, "{NUMPY_TYPES[a.dtype]}")' for a in first.inputs)
    results, call = _call(first)
    return filled(
        "README.md.in",
        library=library,
        guard=library.upper(),
        table="\n".join(rows),
        whole=whole.readme(library) if whole else "",
        c_example=(
            f"{arrays}\n\nint main(void) {{\n    int status = {library}_{first.name}({names}, NULL);\n"
            f"    return status == {library.upper()}_OK ? 0 : 1;\n}}"
        ),
        python_example=f"{made}\n{results} = {library}.{call}",
        others=ported.readme(instances, sets, library),
        torch_example=_torch_example(first, library),
    )


def torch_example(made: Library) -> str:
    """Python that calls the operator of a library's first kernel."""
    return _torch_example(made.instances[0], made.name)


def _torch_example(first: Instance, library: str) -> str:
    results, call = _call(first)
    tensors = [
        f"    {a.name} = torch.ones({_tuple(a.shape)}, dtype=torch.{NUMPY_TYPES[a.dtype]})"
        for a in first.inputs
    ]
    head = ["import torch", f"from {library} import torch_ops", "", "with torch.inference_mode():"]
    return "\n".join([*head, *tensors, f"    {results} = torch_ops.{call}"])


def _call(of: Instance) -> tuple[str, str]:
    """(results, call) of a kernel's function in Python."""
    arguments = ", ".join(a.name for a in of.inputs)
    return ", ".join(a.name for a in of.outputs), f"{of.family}({arguments})"


def _size(array: Array) -> int:
    cells = 1
    for extent in array.shape:
        cells *= extent
    return array.bytes // cells
