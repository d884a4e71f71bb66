"""A GPU position without a GPU: verified in the emulator, compiled, and never given a time."""

from __future__ import annotations

from dataclasses import asdict

import typer
from rich.markup import escape

from dojo_core.cli.terminal import columns, out, print_table
from dojo_core.extras import install_line
from dojo_core.game import Game
from dojo_core.targets.gpu.feedback import Feedback


def check_gpu(game: Game, as_json: bool) -> None:
    """Print what is known of a game's position on a GPU target. Exits with 1 where it is not verified."""
    from dojo_core.measure.measurement import Workload
    from dojo_core.targets.gpu.check import Checker

    with Checker(game.target) as checker:
        checked = checker.check(Workload(game.start, game.kernel, game.policy), game.current.program)
    verdict, feedback = checked.verdict, checked.feedback
    if as_json:
        out.print_json(
            data={
                "target": game.target,
                "status": verdict.status,
                "verified": verdict.verified,
                "message": verdict.message,
                "seconds": None,
                "feedback": asdict(feedback),
            }
        )
    else:
        if verdict.verified:
            out.print("Verified in the emulator: every output element agrees.", style="green")
        else:
            told = f"{verdict.status.replace('_', ' ')}: {verdict.message}"
            out.print(escape(told), style="red", soft_wrap=True)
        if isinstance(feedback, Feedback):
            _table(feedback)
        else:
            out.print(escape(feedback.message), style="yellow", soft_wrap=True)
        out.print("No time: seconds need a GPU, and nothing here makes one up.", style="dim", soft_wrap=True)
    if not verdict.verified:
        raise typer.Exit(1)


def _table(feedback: Feedback) -> None:
    numbers = ("blocks", "threads", "registers", "spills", "stack", "shared", "occupancy", "128-bit")
    table = columns("kernel", *numbers, right=numbers)
    for k in feedback.kernels:
        table.add_row(
            escape(k.symbol), f"{k.blocks:,}", str(k.threads), str(k.registers), f"{k.spill_bytes} B",
            f"{k.stack_bytes} B", f"{k.shared_bytes:,} B", f"{k.occupancy:.0%}",
            "–" if k.wide is None else str(k.wide),
        )  # fmt: skip
    print_table(table)
    note = f"Compiled for {feedback.architecture} by {feedback.tool}, not executed."
    note += " Registers, spills and stack are of a thread."
    if all(k.wide is None for k in feedback.kernels) and feedback.architecture.startswith("sm_"):
        note += f" The count of 128-bit accesses needs nvdisasm: {install_line('gpu')}"
    out.print(escape(note), style="dim", soft_wrap=True)
