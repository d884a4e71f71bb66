"""Installed packages that add to the Dojo."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from dojo_core import plugins
from dojo_core.cli.terminal import Failure, columns, print_table
from dojo_core.package_page import about, page


def show_packages(
    name: Annotated[
        str | None, typer.Argument(help="Of one, a page of Markdown made from its docstrings.")
    ] = None,
) -> None:
    """List what installed packages bring, or print the page of one.

    Example: [bold]dojo packages[/bold] or [bold]dojo packages dojo[/bold]
    """
    brought = plugins.brought()
    if name is None:
        table = columns("package", "version", *(f"{kind}s" for kind in plugins.GROUPS.values()))
        for package, groups in brought.items():
            names = [", ".join(groups.get(group, ())) for group in plugins.GROUPS]
            table.add_row(f"[bold]{escape(package)}[/bold]", about(package)[0], *names)
        print_table(table)
        return
    if name not in brought:
        raise Failure(f"No package {name!r} brings anything. Those that do: {', '.join(brought)}.")
    print(page(name), end="")
