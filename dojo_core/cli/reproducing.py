"""``dojo reproduce``: a result that was wrong, tried again on the same inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dojo_core.cli.terminal import Failure, out
from dojo_core.measure.evidence import FAULTS, load
from dojo_core.program.text import parse
from dojo_core.targets.cpu.measurer import Effort, Measurer, Workload
from dojo_core.targets.registry import backend


def reproduce(
    file: Annotated[Path, typer.Argument(help="A file of the folder wrong in the data directory.")],
) -> None:
    """Try a wrong result again: the same program on the same inputs. Ends with 1 where it is wrong still.

    Example: [bold]dojo reproduce ~/.local/share/dojo/wrong/softmax-0123456789ab.json[/bold]
    """
    try:
        evidence = load(file)
    except ValueError as error:
        raise Failure(str(error)) from None
    if not backend(evidence.target).native:
        raise Failure(f"This is a program for {evidence.target}: dojo check judges it in the emulator.")
    workload = Workload(parse(evidence.start), evidence.kernel or None, evidence.policy)
    with Measurer() as measurer:
        measurer.use_inputs(evidence.seed)
        measurement = measurer.measure(workload, [parse(evidence.program)], Effort.QUICK)[0]
        same = measurer.code_text(parse(evidence.program), evidence.policy) == evidence.code
        machine = measurer.machine.details == evidence.machine
    out.print(f"then: {escape(evidence.status)}. {escape(evidence.message)}", soft_wrap=True)
    out.print(
        f"now:  {escape(measurement.status)}. {escape(measurement.message)}".rstrip(". ") + ".",
        soft_wrap=True,
    )
    words = {True: "the same", False: "another"}
    out.print(f"Generated code: {words[same]}. Machine and compiler: {words[machine]}.")
    if measurement.status in FAULTS:
        raise typer.Exit(1)
