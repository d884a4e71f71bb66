"""``dojo scheduler`` and ``dojo worker``; where ``dojo tune`` finds its machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from agents.scale import clusters, credentials
from agents.scale.clusters import LOOPBACK, PORT
from agents.scale.pool import PoolLost, WorkerPool
from agents.scale.wire import OtherVersion
from agents.scale.worker import MeasuringWorker
from dojo_core.cli.positions import JsonFlag
from dojo_core.cli.records import opened
from dojo_core.cli.terminal import Failure, columns, err, out, print_table
from dojo_core.extras import need
from dojo_core.measure.machine import this_machine
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.targets.cpu import machines as known
from dojo_core.targets.cpu.elsewhere import in_words
from dojo_core.targets.cpu.processor import host

if TYPE_CHECKING:
    from distributed.security import Security

KeyOption = Annotated[
    Path | None,
    typer.Option("--key", help="The cluster's key file; default: cluster.pem beside the records."),
]
InsecureFlag = Annotated[
    bool, typer.Option("--insecure", help="Accept a scheduler at tcp://…, where anybody may run code.")
]
SchedulerOption = Annotated[
    str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Measure on the workers of a scheduler.")
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", min=1, max=64, help="Measure with so many workers on this machine.")
]
SlurmOption = Annotated[
    int | None, typer.Option("--slurm", min=1, metavar="JOBS", help="Measure on so many jobs of Slurm.")
]
MachineOption = Annotated[
    str | None,
    typer.Option(
        "--machine", help="Only on these machines: a fingerprint's beginning, or a processor's name."
    ),
]
LANES = 2  # one measures while the other thinks
LanesOption = Annotated[
    int | None,
    typer.Option("--lanes", min=1, max=64, help=f"Searches that take turns; default {LANES}, for 8 workers."),
]


def scheduler(
    host: Annotated[str, typer.Option("--host", help="Where it listens: this machine's address.")] = LOOPBACK,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any.")] = PORT,
    key: KeyOption = None,
) -> None:
    """Be the scheduler that workers and tunings meet at. Only who has its key file takes part.

    It listens on this machine alone, unless --host names another address.
    Example: [bold]dojo scheduler --host 192.168.1.5[/bold]
    """
    need("scale", "A scheduler")
    file = credentials.made(key or credentials.default_key())
    with _plain():
        known = credentials.security(file)

        def ready(address: str) -> None:
            err.print(f"Scheduler at [bold]{address}[/bold]; key file {escape(str(file))}", soft_wrap=True)
            err.print(f"Next: dojo worker {address}, and dojo tune KERNEL --scheduler {address}", style="dim")

        try:
            clusters.serve_scheduler(host, port, known, ready)
        except OSError as error:
            raise Failure(f"No scheduler can listen at {host}:{port}: {error.strerror or error}.") from None


def worker(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The scheduler's, like tls://host:8786.")],
    key: KeyOption = None,
    insecure: InsecureFlag = False,
    host: Annotated[
        str | None, typer.Option("--host", help="This machine's address, if it has many.")
    ] = None,
    patience: Annotated[float, typer.Option("--patience", min=1, help="Seconds without a scheduler.")] = 600,
) -> None:
    """Measure for a scheduler on this machine, one program at a time, until stopped.

    Example: [bold]dojo worker tls://192.168.1.5:8786[/bold]
    """
    need("scale", "A worker")
    with _plain():
        address = clusters.checked(address, insecure)
        known = _security(address, key)

        def notify(text: str) -> None:
            err.print(escape(text), style="dim", soft_wrap=True)

        clusters.serve_worker(address, known, MeasuringWorker(), patience, notify, host)
    raise Failure(f"There has been no scheduler at {address} for {patience:.0f} seconds.")


def machines(
    scheduler: SchedulerOption = None,
    key: KeyOption = None,
    insecure: InsecureFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """List the machines to play for: this one, and those that workers or records told of.

    With a scheduler its workers are asked, and remembered. Each is a --machine of pass, play, moves, why and
    show (and with workers of tune), by its fingerprint's beginning or by its processor's name.
    Example: [bold]dojo machines --scheduler tls://192.168.1.5:8786[/bold]
    """
    this = this_machine().fingerprint
    workers: dict[str, int] = {}
    untold: dict[str, str] = {}
    with (
        opened() as records,
        worker_pool(scheduler, None, None, key, insecure, notify=lambda _: None) as pool,
    ):
        counts = records.counts(DEFAULT_TARGET)
        untold |= known.learn(records)
        if pool is not None:
            workers = pool.machines()
            for each in workers:
                try:
                    pool.processor(each)
                    untold.pop(each, None)
                except OtherVersion as fault:
                    untold[each] = str(fault)
    processors = {this: host(), **{f: p for f, p in known.all_remembered().items() if f != this}}
    untold = {f: why for f, why in untold.items() if f not in processors}
    if as_json:
        rows = [
            {"machine": f, "here": f == this, "processor": json.loads(p.json),
             "measurements": counts.get(f, 0), "workers": workers.get(f, 0)}
            for f, p in processors.items()
        ]  # fmt: skip
        out.print_json(data=rows + [{"machine": f, "unknown": why} for f, why in untold.items()])
        return
    table = columns("machine", "processor", "measurements", "workers", right=("measurements", "workers"))
    for each, processor in processors.items():
        words = in_words(processor) + (", this one" if each == this else "")
        table.add_row(each, escape(words), str(counts.get(each, 0)), str(workers.get(each, "")))
    for each, why in untold.items():
        table.add_row(each, escape(why), str(counts.get(each, 0)), str(workers.get(each, "")), style="yellow")
    print_table(table)


@contextmanager
def worker_pool(
    address: str | None,
    workers: int | None,
    slurm: int | None,
    key: Path | None,
    insecure: bool,
    notify: Callable[[str], None],
) -> Iterator[WorkerPool | None]:
    """The machines that a command's options ask for; None where it is this one alone."""
    if sum(each is not None for each in (address, workers, slurm)) > 1:
        raise Failure("Give one of --scheduler, --workers and --slurm.")
    if (address, workers, slurm) == (None, None, None):
        yield None
        return
    need("scale", "Measuring on other machines")
    with ExitStack() as stack, _plain():
        if address is not None:
            address = clusters.checked(address, insecure)
            security = _security(address, key)
            clusters.settle()
        elif workers is not None:
            address, security = stack.enter_context(clusters.local_cluster(workers))
        else:
            address, security = stack.enter_context(clusters.slurm_cluster(slurm or 1))
        yield stack.enter_context(WorkerPool(address, security, notify=notify))


def _security(address: str, key: Path | None) -> Security | None:
    return credentials.security(key or credentials.default_key()) if address.startswith("tls:") else None


@contextmanager
def _plain() -> Iterator[None]:
    """What went wrong, as a sentence."""
    try:
        yield
    except (clusters.Refused, credentials.NoCredentials, PoolLost, OtherVersion) as error:
        raise Failure(str(error)) from None
