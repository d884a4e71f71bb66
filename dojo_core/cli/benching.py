"""``dojo bench``: our programs side by side with other implementations and with the machine's limits."""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from dojo_core import kernels
from dojo_core.bounded_json import NotJson, read_object
from dojo_core.cli.positions import (
    ShapeOption,
    TargetOption,
    is_file,
    kernels_and_shapes,
    known_policy,
    played,
)
from dojo_core.cli.records import opened
from dojo_core.cli.terminal import (
    Failure,
    check_writable,
    columns,
    err,
    out,
    print_table,
    read_file,
    write_file,
)
from dojo_core.game import Game
from dojo_core.line import lines_for
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.measurement import seconds_text
from dojo_core.program.dependence import POLICIES
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.targets.registry import backend
from dojo_core.version import version
from dojo_core.wording import counted

if TYPE_CHECKING:
    from dojo_core.bench import Entry
    from dojo_core.bench.contest import Contest

FORMAT = 2  # of the JSON
LARGEST_BENCH = 64 * 1024 * 1024  # characters of it


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Kernels (softmax, softmax:96x64), layers, networks, or table3: the paper's 16."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The 16 kernels of the paper's table 3.")] = False,
    against: Annotated[
        list[str] | None, typer.Option("--against", help="A baseline (torch, jax, …), or: all.")
    ] = None,
    shape: ShapeOption = None,
    line: Annotated[Path | None, typer.Option("--line", help="Our line; default: the recorded one.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter of the line.")] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=1000, help="Interleaved rounds.")] = 10,
    start: Annotated[bool, typer.Option("--start", help="Time the start program as well.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Time the best record as well.")] = False,
    heuristic: Annotated[
        bool, typer.Option("--heuristic", help="Time the line of the heuristic pass as well.")
    ] = False,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            help="Time the line of the heuristic pass by this policy as well, as a row of its own: "
            f"{', '.join(POLICIES)}.",
        ),
    ] = None,
    constant: Annotated[
        list[str] | None,
        typer.Option(
            "--constant",
            help="An input that is the same in every run, as weights are: time the pass's line as well with "
            "what it makes of such inputs alone made beforehand.",
        ),
    ] = None,
    ready_within: Annotated[
        float | None,
        typer.Option("--ready-within", min=1, help="Seconds that a baseline has to be ready."),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all samples to this file.")] = None,
    html_file: Annotated[Path | None, typer.Option("--html", help="Write a report to this file.")] = None,
    target: TargetOption = None,
    warm: Annotated[
        bool, typer.Option("--warm", help="On a GPU: leave the second-level cache as the last run left it.")
    ] = False,
    notes: Annotated[
        Path | None, typer.Option("--notes", help="Remarks for the report: a KERNEL SHAPE: WORDS a line.")
    ] = None,
    stored: Annotated[
        Path | None, typer.Option("--from", help="Measure nothing: show a bench that --json wrote.")
    ] = None,
) -> None:
    """Time our lines against baselines and the machine's limits, in interleaved rounds, separate processes.

    The others are those of the target (--target): on a GPU PyTorch there and the vendor's own products,
    and the limit is a copy within the device.

    Example: [bold]dojo bench softmax --against torch --json softmax.json --html softmax.html[/bold]

    The layers of a network, which the heuristic pass plays too:
    [bold]dojo bench bert-base --against torch --rounds 3 --html bert.html[/bold]

    Another policy beside the usual one, and weights made ready beforehand, as libraries may:
    [bold]dojo bench conv --policy algebraic --constant w --against onednn[/bold]
    """
    from dojo_core.bench.summary import settled, summary
    from dojo_core.targets.guarded import TargetFailed

    for path in (json_file, html_file):
        if path is not None:
            check_writable(path)
    remarks = _notes(notes) if notes is not None else {}
    if stored is not None:
        if names or everything:
            raise Failure("--from shows what was measured: leave the kernels out.")
        document = _document(stored)
        try:
            document["reports"] = [settled(report) for report in document["reports"]]
            document["summary"] = summary(document["reports"])
            for report in document["reports"]:
                _remark(report, remarks)
            for report in document["reports"]:
                _report_table(report)
            _summary_table(document)
            _write(document, json_file, html_file)
        except TargetFailed:  # a package's fault, not the file's
            raise
        except (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError) as fault:
            raise Failure(
                f"{stored} is damaged ({fault}): measure it again with dojo bench --json."
            ) from None
        return
    jobs = _jobs(names or [], everything, shape)
    held = _contest(target)
    more = _More(known_policy(policy, "") if policy else "", tuple(constant or ()))
    if more != _More() and not held.policies:
        raise Failure(f"For {target} one policy is timed: leave --policy and --constant out.")
    if start and not held.starts:
        raise Failure(f"For {target} a start program is one thread's: leave --start out.")
    wanted = _baselines(against or [], held)
    document = {
        "format": FORMAT,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": {"dojo": version(), "python": platform.python_version()},
        "reports": [],
        "skipped": [],
    }
    layers = _layers(names or [])
    for name, sizes in jobs:
        layer = layers.get((name, sizes or ""), "")
        try:
            passed = heuristic or bool(layer) or more != _More()
            report = _measured(
                held, name, sizes, line, settings, target, wanted, rounds, start, record, passed, not warm,
                ready_within, more,
            )  # fmt: skip
            report["layer"] = layer
            _remark(report, remarks)
        except Failure as failure:
            if len(jobs) == 1:
                raise
            err.print(escape(f"{layer or name} {sizes or ''}: {failure}"), style="red", soft_wrap=True)
            document["skipped"].append({"kernel": name, "shape": sizes or "", "message": str(failure)})
            continue
        document["reports"].append(report)
        document["summary"] = summary(document["reports"])
        _report_table(report)
        _write(document, json_file, html_file)  # after each kernel: an interrupted bench keeps what it has
    _summary_table(document)
    for path in (json_file, html_file):
        if path is not None and document["reports"]:
            err.print(f"Wrote {escape(str(path))}.", style="dim", soft_wrap=True)
    if document["skipped"]:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _More:
    """What the pass's line is timed by as well: a policy, or none, and inputs that are constants."""

    policy: str = ""
    constants: tuple[str, ...] = ()


def _notes(file: Path) -> dict[tuple[str, str], list[str]]:
    """Remarks by kernel and shape; empty lines and those that begin with # are left out."""
    remarks: dict[tuple[str, str], list[str]] = {}
    for number, raw in enumerate(read_file(file).splitlines(), 1):
        if not raw.strip() or raw.startswith("#"):
            continue
        match = re.fullmatch(r"\s*(\w+) (\d+(?:x\d+)*): (.+)", raw)
        if match is None:
            raise Failure(f"{file}, line {number}: a remark reads: softmax 24576x512: words")
        remarks.setdefault((match[1], match[2]), []).append(match[3].strip())
    return remarks


def _remark(report: dict[str, Any], notes: Mapping[tuple[str, str], list[str]]) -> None:
    """Add what the notes have on a kernel, once."""
    new = notes.get((report["kernel"], report["shape"]), [])
    report["remarks"] = [*report["remarks"], *(n for n in new if n not in report["remarks"])]


def _jobs(names: list[str], everything: bool, shape: str | None) -> list[tuple[str, str | None]]:
    """Kernels and shapes; None: the line's own, or the kernel's first."""
    wanted = ["table3", *names] if everything else names
    if not wanted:
        raise Failure(
            f"Name a kernel, or --all for the paper's 16. The kernels: {', '.join(kernels.names())}."
        )
    return kernels_and_shapes(wanted, shape)


def _layers(names: list[str]) -> dict[tuple[str, str], str]:
    """The layer that a kernel and a shape stand for, where layers or networks were named: the first one."""
    named: dict[tuple[str, str], str] = {}
    for layer in kernels.named_layers().values():
        if layer.name in names or layer.network in names:
            named.setdefault((layer.kernel, layer.shape), layer.name)
    return named


def _contest(target: str | None) -> Contest:
    """What programs for a target are held against. Raises Failure."""
    from dojo_core.bench.contest import contest
    from dojo_core.targets.registry import backends

    backend(target or DEFAULT_TARGET)  # which says so where there is none
    held = contest(target or DEFAULT_TARGET)
    if held is None:
        known = " or ".join(each.name for each in backends() if each.rivals)
        raise Failure(f"Nothing here holds programs for {target} against others: take --target {known}.")
    fault = held.fault()
    if fault:
        raise Failure(fault)
    return held


def _baselines(given: list[str], held: Contest) -> list[str]:
    known = list(held.baselines)
    for baseline in given:
        if baseline not in known and baseline != "all":
            raise Failure(f"There is no baseline {baseline!r}. The baselines: {', '.join(known)}, or all.")
    return known if "all" in given else list(dict.fromkeys(given))


def _measured(
    held: Contest,
    name: str,
    shape: str | None,
    line: Path | None,
    settings: list[str] | None,
    target: str | None,
    against: list[str],
    rounds: int,
    start: bool,
    record: bool,
    heuristic: bool,
    cold: bool,
    ready_within: float | None,
    more: _More,
) -> dict[str, Any]:
    """One kernel's report; where no start program is timed, the heuristic's program stands in for a line."""
    from dojo_core.bench import BenchFailed
    from dojo_core.targets.guarded import TargetFailed

    game, remark = _game(name, shape, line, settings, target)
    if game.kernel is None and held.needs_kernel:
        raise Failure(
            f"For {target} the kernels of the library are compared: a text of one's own has no rival."
        )
    heuristic = heuristic or (len(game.line()) < 2 and not held.starts)
    unknown = next((each for each in more.constants if each not in game.start.inputs), None)
    if unknown is not None:
        raise Failure(f"{name} has no input {unknown}. Its inputs: {', '.join(game.start.inputs)}.")
    entries, remarks = _ours(game, remark, start, record, heuristic, more)
    try:
        with opened() as records, _watched(f"{name} {game.shape}", rounds) as (advance, step):
            report = held.run(game, entries, against, rounds, advance, step, cold, ready_within, records)
    except (BenchFailed, TargetFailed) as error:
        raise Failure(str(error)) from None
    report["remarks"] = remarks + report["remarks"]
    return report


def _ours(
    game: Game, remark: str, start: bool, record: bool, heuristic: bool, more: _More
) -> tuple[list[Entry], list[str]]:
    """Which programs of ours are timed, the one that ratios are against last but for the record; remarks."""
    from dojo_core.bench import Entry
    from dojo_core.bench.ours import heuristic_entries

    remarks = [remark] if remark else []
    lined = len(game.line()) > 1
    made, failed = heuristic_entries(game, more.policy, more.constants) if heuristic else ([], [])
    entries = [Entry("start", game.start)] if start or not (lined or made) else []
    entries += made
    remarks = [each.format(stand_in=made[-1].name if made else "start program") for each in remarks] + failed
    if lined:
        entries.append(Entry("line", game.current.program, f"{len(game.line()) - 1} moves"))
    if record:
        best = _best_record(game)
        if best is None:
            remarks.append("The records know no verified program of it on this machine.")
        elif any(best.program.hash == e.program.hash for e in entries):
            same = next(e.name for e in entries if e.program.hash == best.program.hash)
            remarks.append(f"The best record is the {same} itself.")
        else:
            entries.append(best)
    return entries, remarks


def _game(
    name: str, shape: str | None, line: Path | None, settings: list[str] | None, target: str | None = None
) -> tuple[Game, str]:
    """The kernel with its line played, or at its start with a remark why ({stand_in}: what is timed then)."""
    if line is not None:
        return played(name, shape, None, line, settings, target), ""
    lines = lines_for(name, shape, target or DEFAULT_TARGET)
    remarks = []
    for file in lines:
        try:
            return played(name, shape, None, Path(file), settings, target), ""
        except Failure as failure:
            message = str(failure).replace("{", "{{").replace("}", "}}")
            remarks.append(
                f"The line {file} does not apply to this shape: the {{stand_in}} stands in. {message}"
            )
    game = played(name, shape, None, None, settings if lines or is_file(name) else None, target)
    if len(game.line()) > 1:  # of a file that is a game or a line
        return game, ""
    return game, next(iter(remarks), "There is no recorded line: the {stand_in} stands in.")


def _best_record(game: Game) -> Any:
    from dojo_core.bench.ours import best_record

    with opened() as records:
        return best_record(records, game)


@contextmanager
def _watched(
    description: str, total: int
) -> Iterator[tuple[Callable[[int, int], None], Callable[[str], None]]]:
    """A bar, and the step that a long preparation is at."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*shown, console=err) as bar:
        task = bar.add_task(description, total=total)

        def step(words: str) -> None:
            bar.update(task, description=f"{description}: {words}" if words else description)

        yield lambda done, of: bar.update(task, completed=done, total=of), step


def _document(path: Path) -> dict[str, Any]:
    try:
        document = read_object(read_file(path, LARGEST_BENCH), LARGEST_BENCH, nonfinite=True)
    except NotJson:
        raise Failure(f"{path} is no JSON. Give a file that dojo bench --json wrote.") from None
    if document.get("format") != FORMAT:
        raise Failure(f"{path} is no bench of this version: measure it again with dojo bench --json.")
    return document


def _write(document: dict[str, Any], json_file: Path | None, html_file: Path | None) -> None:
    from dojo_core.bench.page import page

    if json_file is not None:
        write_file(json_file, json.dumps(document, indent=1) + "\n")
    if html_file is not None:
        write_file(html_file, page(document))


def _report_table(report: dict[str, Any]) -> None:
    compared = any(entry.get("ratio") for entry in report["entries"])
    limits = report["limits"]
    judged = any(e["kind"] == "ours" and e.get("error") is not None for e in report["entries"])
    numbers = [
        "min", "median", *(("ratio", "worst", "best") if compared else ()),
        *(("of limit",) if limits else ()), *(("error",) if judged else ()),
    ]  # fmt: skip
    from dojo_core.bench.summary import title

    table = columns("entry", *numbers, "", right=tuple(numbers), title=title(report), title_justify="left")
    table.columns[0].no_wrap = True  # a long message wraps, not the name beside it
    for entry in report["entries"]:
        if entry["status"] != "ok":
            message = f"{entry['status'].replace('_', ' ')}: {entry['message']}"
            style = "dim" if entry["status"] in ("missing", "unsupported") else "red"
            table.add_row(
                entry["name"], *["–", "–", *[""] * (len(numbers) - 2)], escape(message), style=style
            )
            continue
        ratio = entry.get("ratio")
        row = [seconds_text(entry["min"]), seconds_text(entry["median"])]
        if compared:
            known = ratio and ratio["median"] is not None
            row += [f"{ratio[w]:.2f}×" if known else "" for w in ("median", "min", "max")]
        if limits:
            row.append(f"{100 * entry['share']:.0f}%" if entry.get("share") else "")
        if judged:
            row.append(f"{entry['error']:.1e}" if entry.get("error") is not None else "")
        table.add_row(entry["name"], *row, "verified" if entry["verified"] else "")
    if limits:
        bound = "memory" if limits["bound"] == "memory" else "arithmetic"
        table.add_row(
            f"limit ({bound})", seconds_text(limits["seconds"]), *[""] * (len(numbers)), style="dim"
        )
    print_table(table)
    notes = [f"{entry['name']}: {entry['details']}." for entry in report["entries"] if entry["details"]]
    if limits:
        from dojo_core.bench.contest import contest

        held = contest(report.get("target", DEFAULT_TARGET))
        if held is not None:
            notes.append(held.limits(report))
        if limits.get("reached"):
            notes.append(f"The limit is what {limits['reached']} took: it beat what was measured without it.")
    notes += report["remarks"]
    legend = (
        f" Ratio: an entry's best run of a round over that of ours ({report['reference']}); the median, "
        "worst and best of the rounds."
    )
    counts = counted(report["rounds"], "round"), counted(report["samples"], "run")
    notes.append(f"{counts[0]} of {counts[1]}.{legend if compared else ''}")
    busy = Conditions(report.get("load"))
    state = f"; {busy}" if busy.busy or busy.quiet else ""
    notes.append(f"Machine: {report['machine_summary']}{state}")
    for note in notes:
        out.print(escape(note), style="dim", soft_wrap=True)


def _summary_table(document: dict[str, Any]) -> None:
    if len(document["reports"]) < 2:
        return
    summarised = document["summary"]
    baselines = summarised["against"]["reference"]
    rows = {name: each for name, each in baselines.items() if each["geometric_mean"]}
    out.print()
    if rows:
        numbers = ("geometric mean", "worst", "kernels")
        table = columns("ours against", *numbers, "", right=numbers)
        for name, each in rows.items():
            table.add_row(
                "the best of each kernel" if name == "best" else _name(document, name),
                f"{each['geometric_mean']:.2f}×", f"{each['worst']:.2f}×", str(each["kernels"]),
                each["worst_kernel"], style="bold" if name == "best" else "",
            )  # fmt: skip
        print_table(table)
    for bound, words in (("memory", "memory-bound"), ("arithmetic", "compute-bound")):
        share = summarised["share"][bound]
        if share["geometric_mean"]:
            out.print(
                f"Share of the limit, {counted(share['kernels'], f'{words} kernel')}: "
                f"{100 * share['geometric_mean']:.0f}% (geometric mean), "
                f"least {100 * share['worst']:.0f}% ({share['worst_kernel']}).",
                soft_wrap=True,
            )


def _name(document: dict[str, Any], entry: str) -> str:
    rows = (e for r in document["reports"] for e in r["entries"] if e["entry"] == entry)
    return str(next(rows)["name"])
