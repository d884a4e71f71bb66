"""One kernel of an exported library: its interface as a caller sees it, and its C file."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dojo_core.bounded_json import NotJson, read_object
from dojo_core.codegen.code import Code, NotGeneratable
from dojo_core.export.choice import Choice, NotExported, used_instruction
from dojo_core.export.elsewhere import Elsewhere, elsewhere
from dojo_core.export.names import argument
from dojo_core.export.narrow import narrowed, widest_vector
from dojo_core.export.templates import filled
from dojo_core.measure.compiler import the_compiler
from dojo_core.measure.measurement import seconds_text
from dojo_core.measure.records import Record
from dojo_core.program.dtypes import FLOATS, HALVES, NUMPY_TYPES, STORAGE_FLOATS, extremes
from dojo_core.program.indices import promised
from dojo_core.program.target import VECTOR_BYTES
from dojo_core.program.tree import DTYPE_BYTES, Program
from dojo_core.targets.cpu.codegen import STRICT, WRITTEN_OUT, generate, preamble
from dojo_core.targets.cpu.dialect import Dialect
from dojo_core.targets.cpu.elsewhere import processor_of
from dojo_core.targets.cpu.excerpt import needed
from dojo_core.targets.cpu.instruction_set import InstructionSet, Level
from dojo_core.targets.cpu.processor import Processor
from dojo_core.version import version

WIDTH = 110  # columns of comments

C_TYPES = {
    "f64": "double", "f32": "float", "f16": "uint16_t", "bf16": "uint16_t",
    "i64": "int64_t", "i32": "int32_t", "i16": "int16_t", "i8": "int8_t",
    "u64": "uint64_t", "u32": "uint32_t", "u16": "uint16_t", "u8": "uint8_t", "bool": "uint8_t",
    **dict.fromkeys((*STORAGE_FLOATS, "u4", "u2"), "uint8_t"), "i4": "int8_t", "i2": "int8_t",
}  # fmt: skip
"""Of an interface array, in the header; a bool is a byte of 0 or 1, and floats of 16 bits and fewer have
theirs, in the lower ones of a byte where they are fewer than eight."""

MOST_DISTINCT = 2**33  # values in a domain of distinct ones: a bit for each


@dataclass(frozen=True)
class Array:
    """An input or output. ``shape`` as the start program has it, whatever the moves merged or split.

    ``taken`` are the least and the greatest value of an input that indices are made of: others could lead
    outside of an array. ``distinct``: no two of its values are the same, else threads could meet on an
    element.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    output: bool
    taken: tuple[float, float] | None = None
    distinct: bool = False

    @property
    def bytes(self) -> int:
        size = DTYPE_BYTES[self.dtype]
        for extent in self.shape:
            size *= extent
        return size

    @property
    def bytes_of_one(self) -> int:
        """Of an element: what the array has to be aligned to."""
        return DTYPE_BYTES[self.dtype]

    @property
    def text(self) -> str:
        """``x float32 [24576, 512]``, ``i int32 [64] from 0 to 511``."""
        text = f"{self.name} {NUMPY_TYPES[self.dtype]} [{', '.join(map(str, self.shape))}]"
        if self.taken is not None and self.tests:
            low, high = self.taken
            text += f" from {low:.17g} to {high:.17g}"
        return f"{text}, distinct" if self.distinct else text

    @property
    def tests(self) -> tuple[str, ...]:
        """What of C says that a value is not taken; none where its dtype holds no such value."""
        if self.taken is None:
            return ()
        low, high = self.taken
        if self.dtype in FLOATS:
            return f"< {low!r}", f"> {high!r}"
        least, most = extremes(self.dtype)
        tests = [f"< {_whole(low)}"] if low > least else []
        return (*tests, f"> {_whole(high)}") if high < most else tuple(tests)


@dataclass(frozen=True)
class Instance:
    """One kernel at one shape. ``name`` is that of its file and, after the library's, of its C function.

    ``family`` names what is the same kernel at several shapes. ``codes`` holds the code for registers of a
    number of bytes, the program's own first; narrower ones are there where they differ. ``others`` holds it
    for other instruction sets. ``stack_bytes`` is the most that the locals of one call take in each thread.
    """

    name: str
    family: str
    choice: Choice
    codes: dict[int, Code]
    arrays: tuple[Array, ...]
    stack_bytes: int
    others: tuple[Elsewhere, ...] = ()

    @property
    def workspace_bytes(self) -> int:
        codes = (*self.codes.values(), *(other.code for other in self.others))
        return max(code.workspace_bytes for code in codes)

    def file(self, register_bytes: int) -> str:
        """The C file for a processor whose registers have so many bytes, inside the library's folder."""
        widest = next(iter(self.codes))
        width = max((w for w in self.codes if w <= register_bytes), default=min(self.codes))
        return f"kernels/{self.name}.c" if width == widest else f"kernels/{self.name}_{8 * width}bit.c"

    def file_for(self, level: Level, of: InstructionSet) -> str:
        """The C file for a level of another instruction set: its own, or the nearest lower one's."""
        up_to = of.levels[: of.levels.index(level) + 1]
        *_, nearest = (other for other in self.others if other.level in up_to and other.of == of)
        return f"kernels/{self.name}_{of.word}_{nearest.level.name}.c"

    @property
    def inputs(self) -> tuple[Array, ...]:
        return tuple(a for a in self.arrays if not a.output)

    @property
    def outputs(self) -> tuple[Array, ...]:
        return tuple(a for a in self.arrays if a.output)


def _whole(value: float) -> str:
    return f"{int(value)}{'ll' if abs(value) >= 2**31 else ''}"


def instance(choice: Choice, sets: Sequence[InstructionSet] = ()) -> Instance:
    """Generate a choice's code, and that for other instruction sets.

    Raises NotExported for an interface that the library cannot offer, NotGeneratable where the target has no
    C for the program.
    """
    used = used_instruction(choice.program)
    if used is not None:
        # Its C is a builtin of gcc for one kind of processor; the library is for any, and for clang too.
        raise NotExported(
            f"{choice.title} uses the machine instruction {used}, which not every processor has: "
            "export a game that ends before use_instruction, or --from start."
        )
    widest = max(widest_vector(choice.program), min(VECTOR_BYTES))
    processor = processor_of(choice.target).portable
    codes = {widest: generate(choice.program, choice.policy, processor)}
    for width in VECTOR_BYTES:
        if width < widest:
            try:
                program = choice.narrower.get(width) or narrowed(choice.program, width)
                codes[width] = generate(program, choice.policy, processor)
            except NotGeneratable:  # too long, unrolled so far: the compiler then cuts the vectors itself
                continue
    family = argument(choice.kernel or choice.start.name)
    name = f"{family}_{choice.shape}" if choice.shape else family
    arrays = _arrays(choice, codes[widest])

    def fits(program: Program, code: Code) -> bool:
        """Does it take the same arrays as the choice's own program?"""
        try:
            return _arrays(replace(choice, program=program), code) == arrays
        except NotExported:
            return False

    others = tuple(each for one in sets for each in elsewhere(choice, one, fits))
    programs = (choice.program, *choice.narrower.values(), *(each.program for each in others))
    stack = max(sum(b.bytes for b in program.buffers if b.location == "stack") for program in programs)
    return Instance(name, family, choice, codes, arrays, stack, others)


def _arrays(choice: Choice, code: Code) -> tuple[Array, ...]:
    """The parameters of the code in order, under the start program's names and shapes."""
    start, end = choice.start, choice.program
    arrays: list[Array] = []
    for parameter in code.parameters:
        (name, *others) = [
            a for a in (*start.inputs, *start.outputs) if end.buffer_of[a].name == parameter.name
        ]
        if others:
            raise NotExported(
                f"In {choice.title} {name} and {', '.join(others)} share one buffer: give each array its own."
            )
        buffer = start.buffer_of[name]
        if buffer.dtype not in C_TYPES:
            raise NotExported(
                f"{name} of {choice.title} is {buffer.dtype}, which a library cannot take: use f32."
            )
        shape = tuple(d.size for d in buffer.dims if d.materialised)
        taken = None if parameter.role == "out" else promised(start, name)
        if taken is not None and buffer.dtype in HALVES:
            raise NotExported(
                f"Indices of {choice.title} are made of {name}, which a library "
                f"cannot compare with its domain, as {buffer.dtype}: clamp it in the text instead."
            )
        domain = start.domain_of(name)
        distinct = taken is not None and domain is not None and domain.distinct
        if taken is not None and distinct and taken[1] - taken[0] >= MOST_DISTINCT:
            raise NotExported(
                f"The domain of {name} in {choice.title} is too wide for a library to look whether its "
                "values are distinct: take a narrower one, or drop the word."
            )
        array = Array(
            argument(name, [a.name for a in arrays]),
            buffer.dtype,
            shape,
            parameter.role == "out",
            taken,
            distinct,
        )
        if array.bytes != end.buffer_of[name].bytes:
            raise NotExported(
                f"The moves changed the size of {name} in {choice.title} from {array.bytes} bytes to "
                f"{end.buffer_of[name].bytes}: a caller's array stays as it is, so export another position."
            )
        arrays.append(array)
    return tuple(arrays)


def kernel_files(made: Instance, library: str) -> dict[str, str]:
    """The kernel's C files: where it comes from, the vector functions it needs, and the generated code."""
    widest, *narrower = made.codes
    files = {made.file(widest): _file(made, made.codes[widest], _header(made), library)}
    for width in narrower:
        lines = [
            f"{made.name} for registers of {8 * width} bits: the program of {made.name}.c,",
            "whose wider vector loops are unrolled loops of narrower ones here.",
        ]
        if width in made.choice.narrower:
            lines = [
                f"{made.name} for registers of {8 * width} bits: {made.choice.source},",
                "with the parameters that it has for these.",
            ]
        if width in made.choice.others:
            lines = [f"{made.name} for registers of {8 * width} bits: {made.choice.others[width]}."]
        lines += ["It was not verified by itself on the machine that exported it."]
        files[made.file(width)] = _file(made, made.codes[width], lines, library)
    for other in made.others:
        lines = [
            f"{made.name} for {other.of.title}, level {other.level.name} ({other.level.processor.name}):",
            f"{other.source}.",
            "It was not run on such a processor by the machine that exported it.",
            *_program("The program that this C was generated from:", other.program),
        ]
        files[made.file_for(other.level, other.of)] = _file(
            made, other.code, lines, library, other.level.processor, f"defined {other.of.macro}"
        )
    return files


def _file(
    made: Instance,
    code: Code,
    lines: list[str],
    library: str,
    processor: Processor | None = None,
    condition: str = "",
) -> str:
    """``processor``: what the code is for, where that is not any; ``condition``: of the C
    preprocessor, under which there is anything in the file."""
    text, attributes = code.text, []
    for name, attribute in {"STRICT": STRICT, "WRITTEN_OUT": WRITTEN_OUT}.items():
        if text.startswith(attribute):
            text = text.removeprefix(attribute)
            attributes.append(name)
    written_for = processor or processor_of(made.choice.target).portable
    functions = needed(text, preamble(written_for))
    if re.search(r"\bf16\b", functions) and not Dialect(written_for.instruction_set).soft_halves:
        functions = filled("half.h.in") + "\n" + functions
    for name in attributes:
        functions += "\n" + filled(f"{name.lower()}.h.in").rstrip() + "\n"
    if condition:
        functions = f"#if {condition}\n\n{functions}"
    filled_in = filled(
        "kernel.c.in",
        comment=comment(lines),
        functions=functions.rstrip(),
        kernel=f"static {''.join(f'{name} ' for name in attributes)}{text}".rstrip(),
        entry=f"{library}_{made.name}",
        symbol=code.symbol,
        fence="\n" + filled("fence.h.in").rstrip() if "_stream(" in text and processor is None else "",
    )
    return f"{filled_in}#endif\n" if condition else filled_in


def comment(lines: Iterable[str]) -> str:
    """A C comment; nothing in the text can end it."""
    rows = [re.sub(r"[^\x20-\x7e\u00a0-\uffff]", " ", line) for line in lines]
    rows = [row.replace("*/", "* /").replace("/*", "/ *") for row in rows]
    return "/* " + "\n".join(f" * {row}".rstrip() for row in rows)[3:] + "\n */"


def _header(made: Instance) -> list[str]:
    """What the header comment says, line by line."""
    choice = made.choice
    formula = f": {choice.formula}" if choice.formula else ""
    lines = [f"{made.name}{formula}", ""]
    lines += [f"{'out' if a.output else 'in '} {a.text}" for a in made.arrays]
    return [*lines, "", *_origin(choice)]


def single_file(choice: Choice) -> str:
    """A program's C as it is compiled here, with what it needs and no more before it, and a comment that says
    what it is: program, moves, time and machine. Raises NotGeneratable."""
    processor = processor_of(choice.target)
    code = generate(choice.program, choice.policy, processor)
    flags = the_compiler().flags if processor.toolchain is None else processor.toolchain.flags
    lines = [choice.title, "", *_origin(choice), "", f"Compile it with: gcc {' '.join(flags)} -c"]
    before = needed(code.text, preamble(processor)).rstrip()
    return f"{comment(lines)}\n\n{before}\n\n{code.text}\n"


def _origin(choice: Choice) -> list[str]:
    """Where a choice comes from, its time, its moves and its text."""
    lines = [
        f"Generated by Dojo {version()} from {choice.source}, floating-point policy {choice.policy}.",
    ]
    lines += provenance(choice.record)
    if choice.moves is None:
        lines += ["", "The moves that led to it are not known."]
    elif choice.moves:
        lines += ["", "Its line of moves, from the start program:", ""]
        lines += [f"  {number}: {move}" for number, move in enumerate(choice.moves, 1)]
    else:
        lines += ["", "No moves: this is the start program."]
    if choice.moves != () and choice.start.body != choice.program.body:
        lines += _program("The start program:", choice.start)
    return lines + _program("The program that this C was generated from:", choice.program)


def _program(title: str, program: Program) -> list[str]:
    return ["", title, "", *(f"  {row}" for row in program.text.splitlines())]


def provenance(record: Record | None) -> list[str]:
    """Where and when a program was verified and timed, in sentences of at most WIDTH columns."""
    if record is None or record.seconds is None:
        return ["It has not been measured on the machine that exported it."]
    machine = _facts(record.machine)
    when = datetime.fromtimestamp(record.time, UTC).strftime("%Y-%m-%d %H:%M UTC")
    by = f" by {record.player}" if record.player else ""
    busy = f" ({record.conditions.words}: it need not take so long)" if record.conditions.busy else ""
    sentences = (
        f"Verified (every element against a float64 reference) and timed{by} on {when}: "
        f"{seconds_text(record.seconds)}, the least of {len(record.samples)} runs{busy}. "
        f"Machine: {machine.get('cpu', 'unknown')}, {machine.get('cores', '?')} cores; "
        f"{machine.get('compiler', 'compiler unknown')}; {machine.get('flags', 'flags unknown')}."
    )
    return textwrap.wrap(sentences, WIDTH)


def _facts(machine: str) -> dict[str, Any]:
    try:
        return read_object(machine)
    except NotJson:
        return {}
