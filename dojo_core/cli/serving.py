"""``dojo app``: the app on this machine; for others too, where that is asked for."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from contextlib import suppress
from typing import Annotated

import typer

from dojo_core.cli.terminal import Failure, out
from dojo_core.launch import module_command
from dojo_core.measure.compiler import the_compiler
from dojo_core.package_data import entry

LOCAL = ("localhost", "127.0.0.1", "::1")
PLACES = (
    "DOJO_HOME",
    "DOJO_LESSONS",
    "DOJO_LOCK_DIR",
)  # from where the command is given, if they are relative


def run_app(
    port: Annotated[int, typer.Option("--port", min=1, max=65535)] = 8501,
    address: Annotated[
        str,
        typer.Option("--address", help="Where to listen: 127.0.0.1 for this machine, 0.0.0.0 for all."),
    ] = "127.0.0.1",
    host: Annotated[
        list[str] | None,
        typer.Option("--host", help="A further name that the app is reached under; may be repeated."),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let everybody in who reaches the address, without a login.")
    ] = False,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure", help="Time the moves of a new game at once, or once M is pressed."
        ),
    ] = True,
) -> None:
    """Open the app in a browser.

    It listens to this machine alone. Another address needs a login (an auth section in
    ~/.streamlit/secrets.toml), or --insecure: whoever reaches the app then has programs run here.

    Example: [bold]dojo app --port 8600[/bold]
    """
    script = entry()
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(script)]
    command += ["--server.port", str(port), "--server.address", address]
    command += ["--server.headless", str(not browser).lower()]
    for name in hosts(address, host or []):
        command += ["--server.allowedHosts", name]
    places = {name: os.environ[name] for name in PLACES if os.environ.get(name)}
    environment = {
        **os.environ,
        **{name: os.path.abspath(os.path.expanduser(place)) for name, place in places.items()},
        "DOJO_INSECURE": "1" if insecure else "0",
        "DOJO_MEASURE": "1" if measure else "0",
        # Each tab has threads of its own: with a pool of memory each, none gives back what it had.
        "MALLOC_ARENA_MAX": "2",
    }
    the_compiler()  # nothing of the app works without one: said here, not on a page
    check_port(address, port)
    out.print(f"The Dojo is at http://{address}:{port} (Ctrl-C ends it)")
    sys.stdout.flush()
    os.chdir(script.parent)  # no settings of Streamlit's that lie in the user's folder
    os.execve(command[0], command, environment)  # in place of this process: whoever ends it ends the app


def demo(
    port: Annotated[int, typer.Option("--port", min=1, max=65535)] = 8501,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
) -> None:
    """Open the app on a tour: softmax from the naive program to an operator in a model.

    Ten moves by hand, an agent's finish, PyTorch beside it. It replays recordings: no network, no measuring.

    Example: [bold]dojo demo[/bold]
    """
    check_port("127.0.0.1", port, "dojo demo --port")
    url = f"http://127.0.0.1:{port}/tour"
    out.print(f"The tour is at {url}")
    if browser:  # Streamlit opens its first page alone
        subprocess.Popen(module_command("dojo_core.cli.opening", url), start_new_session=True)
    run_app(port, "127.0.0.1", None, False, False)


def check_port(address: str, port: int, again: str = "dojo app --port") -> None:
    """Raise Failure where nothing could listen, with the next port where it could, behind ``again``."""
    fault = _port_fault(address, port)
    if fault is None:
        return
    if fault.errno != errno.EADDRINUSE:
        raise Failure(f"The Dojo cannot listen at {address}:{port}: {fault.strerror}.")
    free = (p for p in range(port + 1, 1 << 16) if _port_fault(address, p) is None)
    other = next(free, None)
    offered = f" Another one: {again} {other}" if other is not None else ""
    raise Failure(f"Port {port} is occupied, perhaps by the Dojo itself: http://{address}:{port}.{offered}")


def _port_fault(address: str, port: int) -> OSError | None:
    """Why nobody could listen there now."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
            listener.bind(place)
            listener.listen(1)
    except OSError as fault:
        return fault
    return None


def hosts(address: str, named: list[str]) -> list[str]:
    """The host names that the app answers to: this machine's own, or also those that others know it by."""
    names = [*LOCAL, *named]
    if address not in LOCAL:
        names += [address, socket.gethostname(), socket.getfqdn()]
        with suppress(OSError):  # its own name need not resolve
            names += [str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)]
    return list(dict.fromkeys(name.lower() for name in names if name not in ("0.0.0.0", "::")))
