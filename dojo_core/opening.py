"""Where a game begins: on a kernel by its name, on a target that can play it."""

from __future__ import annotations

from collections.abc import Mapping

from dojo_core import kernels
from dojo_core.codegen.code import NotGeneratable
from dojo_core.faults import program_fault
from dojo_core.from_code.recognise import kind_of
from dojo_core.game import Game
from dojo_core.kernels import Kernel, Shape
from dojo_core.program.dependence import POLICIES
from dojo_core.program.target import DEFAULT_TARGET, Target
from dojo_core.program.text import parse
from dojo_core.program.tree import DTYPE_BYTES, Program
from dojo_core.targets.registry import AT, backend
from dojo_core.targets.registry import target as target_named

# Of a naive run: a tenth of a second, or a few. A game's first time is there within three seconds then, its
# first faster move within six (python -m benchmarks.app); of 1.6 GFLOP one run takes four seconds.
FIRST_FLOPS = 1.1e8


def named_game(wanted: str, shape: str = "", target: str = DEFAULT_TARGET, policy: str = POLICIES[0]) -> Game:
    """A game at the start of a kernel: ``softmax``, at the shape that a game begins with (``first_shape``),
    ``softmax:1024x512``, or a network's layer. Raises ValueError with a sentence."""
    if not isinstance(wanted, str):
        raise ValueError(f"A kernel is named by a text, such as 'softmax:1024x512', not by {wanted!r}.")
    name, sizes = kernels.kernel_and_shape(wanted, shape)
    kernel = kernels.get(name)
    chosen = kernel.shape(sizes) if sizes else first_shape(kernel, target_named(target))
    return begun(kernel.program(chosen), name, "x".join(map(str, chosen)), target, policy)


def first_shape(kernel: Kernel, on: Target) -> Shape:
    """The shape that a kernel begins with on a target: its own first, or less where the memory is little, or
    where a run of the naive program would keep a player waiting."""
    if on.memory_bytes is None:
        return kernel.within(flops=FIRST_FLOPS)
    memory = on.memory_bytes * DTYPE_BYTES["f32"] / DTYPE_BYTES[on.kernel_float]
    return kernel.within(memory, FIRST_FLOPS)


def text_game(
    text: str, target: str = DEFAULT_TARGET, policy: str = POLICIES[0], sizes: Mapping[str, int] | None = None
) -> Game:
    """A game on a program's text, or on one that is translated, at ``sizes`` by name in place of its own.

    Raises TextError, and ValueError with a sentence where nothing can be played on it.
    """
    from dojo_core.from_code.translate import translate  # which needs a parser of C

    own = kind_of(text) == "program"
    program = parse(text) if own else translate(text, sizes or {}, lenient=True).program
    fault = program_fault(program, target, policy, text if own else None)
    if fault is not None:
        raise ValueError(fault)
    return begun(program, None, "", target, policy)


def _smaller(program: Program, kernel: str | None, target: str, policy: str) -> str:
    """A shape that fits where the arrays of a start program are more than the target's memory."""
    on = target_named(target)
    if kernel is None or on.memory_bytes is None or sum(b.bytes for b in program.buffers) <= on.memory_bytes:
        return ""
    fitting = first_shape(kernels.get(kernel), on)
    try:
        backend(target).generate(on.start(kernels.get(kernel).program(fitting)), policy)
    except NotGeneratable:
        return ""
    return f" {kernel}:{'x'.join(map(str, fitting))} fits."


def begun(program: Program, kernel: str | None, shape: str, target: str, policy: str) -> Game:
    """A game on a target that can play the program. Raises ValueError with a sentence."""
    if kernel is not None:
        program = target_named(target).start(program)
    game = Game.new(program, kernel=kernel, shape=shape, target=target, policy=policy)
    if game.target != DEFAULT_TARGET:
        on = backend(game.target)
        try:
            on.generate(program, policy)
        except NotGeneratable as fault:
            raise ValueError(f"{fault}{_smaller(program, kernel, target, policy)}") from fault
        game.title = f"{game.title} on {on.name[:10] if AT in on.name else on.name}"  # a fingerprint is long
    return game
