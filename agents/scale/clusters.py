"""Schedulers and workers: served in this process, started on this machine, or by Slurm."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agents.scale import credentials
from agents.scale.worker import MeasuringWorker, attach
from dojo_core.extras import need
from dojo_core.package_data import document

if TYPE_CHECKING:
    from distributed.security import Security

LOOPBACK = "127.0.0.1"
PORT = 8786
HUNG = "60s"  # a worker that gives no sign for so long is taken for dead
PRELOAD = "agents.scale.worker"


class Refused(ValueError):
    """An address or a set-up that is not used; ``str()`` says what to do instead."""


def checked(address: str, insecure: bool) -> str:
    """A scheduler's address, with ``tls://`` before it where nothing is. Raises Refused."""
    if "://" not in address:
        address = f"tls://{address}"
    parts = urlsplit(address)
    try:
        whole = bool(parts.hostname and parts.port)
    except ValueError:
        whole = False
    if not whole:
        raise Refused(
            f"{address} is no address of a scheduler: dojo scheduler tells it, like tls://host:{PORT}."
        )
    if parts.scheme == "tls":
        return address
    if parts.scheme != "tcp":
        raise Refused(f"{address} is no address of a scheduler: it begins with tls://.")
    if not insecure:
        raise Refused(
            f"{address} is neither encrypted nor asks who you are: who reaches it runs code on all workers. "
            "Use a scheduler at tls://… (dojo scheduler is one), or say --insecure."
        )
    return address


def is_loopback(host: str) -> bool:
    """Only this machine reaches it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def settle() -> None:
    """dask's settings for all that is started here: no web pages, no hidden wait for the dead."""
    import dask

    dask.config.set(
        {
            "distributed.scheduler.http.routes": [],
            "distributed.worker.http.routes": [],
            "distributed.scheduler.worker-ttl": HUNG,
            "distributed.worker.daemon": False,  # a worker has a measuring process as its child
            "distributed.admin.tick.limit": "60s",
        }
    )
    for name in ("distributed", "distributed.worker", "distributed.scheduler", "distributed.nanny"):
        logging.getLogger(name).setLevel(logging.ERROR)


def serve_scheduler(host: str, port: int, security: Security, ready: Callable[[str], None]) -> None:
    """Be a scheduler until interrupted; ``ready`` hears its address. Raises OSError for a port in use."""
    from distributed import Scheduler

    settle()

    async def serve() -> None:
        async with Scheduler(
            host=host, port=port, protocol="tls", security=security, dashboard_address=f"{LOOPBACK}:0"
        ) as scheduler:
            ready(scheduler.address)
            await scheduler.finished()

    try:
        asyncio.run(serve())
    except RuntimeError as failed:  # dask's word for it; what happened is the cause
        if isinstance(failed.__cause__, OSError):
            raise failed.__cause__ from None
        raise


def serve_worker(
    address: str,
    security: Security | None,
    worker: MeasuringWorker,
    patience: float,
    notify: Callable[[str], None],
    host: str | None = None,
) -> None:
    """Be a worker until interrupted, or until there has been no scheduler for ``patience`` seconds.

    ``host``: where other workers may reach this one; loopback where the scheduler is there too.
    """
    from distributed import Worker

    settle()
    at = urlsplit(address).hostname or ""

    async def serve() -> None:
        until = time.monotonic() + patience
        while time.monotonic() < until:
            dask_worker: Any = Worker(
                address,
                nthreads=1,
                security=security,
                host=host or (LOOPBACK if is_loopback(at) else None),
                dashboard_address=f"{LOOPBACK}:0",
                memory_limit=0,
                death_timeout=max(1.0, until - time.monotonic()),
            )
            attach(dask_worker, worker)
            try:
                await dask_worker
            except (OSError, TimeoutError, RuntimeError):  # RuntimeError: how dask tells that a start failed
                await dask_worker.close(reason="no scheduler")
                continue
            notify(f"Measuring for {address} as machine {worker.fingerprint}.")
            await dask_worker.finished()
            notify(f"The scheduler at {address} is gone: waiting for it.")
            until = time.monotonic() + patience

    try:
        asyncio.run(serve())
    finally:
        worker.close()


@contextmanager
def local_cluster(workers: int) -> Iterator[tuple[str, Security]]:
    """Workers on this machine: they compile side by side, measure in turn. Their key is nowhere on disk."""
    from distributed import LocalCluster
    from distributed.security import Security

    settle()
    key = Security.temporary()
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host=LOOPBACK,
                protocol="tls",
                security=key,
                dashboard_address=f"{LOOPBACK}:0",
                worker_dashboard_address=f"{LOOPBACK}:0",
                memory_limit=0,
                preload=[PRELOAD],
                silence_logs=logging.CRITICAL,
            )
        )
        yield cluster.scheduler_address, key


@contextmanager
def slurm_cluster(workers: int) -> Iterator[tuple[str, Security]]:
    """Jobs of Slurm, as dask's configuration describes them (``jobqueue: slurm:``). Raises Refused."""
    need("slurm", "Measuring on jobs of Slurm")
    from dask_jobqueue import SLURMCluster

    settle()
    key = credentials.security(credentials.made(credentials.default_key()))
    try:
        cluster = SLURMCluster(
            security=key,
            protocol="tls://",
            worker_extra_args=["--preload", PRELOAD, "--no-dashboard"],
            scheduler_options={"dashboard_address": f"{LOOPBACK}:0"},
        )
    except (ValueError, TypeError) as error:
        raise Refused(
            f"dask's configuration of Slurm is not complete: {error} ({document('scale.md')})"
        ) from None
    with cluster:
        cluster.scale(jobs=workers)
        yield cluster.scheduler_address, key
