"""Tries the HTTP interface with schemathesis, for minutes: ``python -m benchmarks.api_fuzz --minutes 15``.

The door is the real one, with records, measurer and queue, in a home of its own. Valid and invalid requests
come from its own description (``openapi.json``), sequences of calls from the links in it; api_hooks.py makes
the valid ones reach games. Every check of schemathesis is on: no answer that is not described, no status of
500 and more, nothing valid refused for its form, nothing invalid taken, no answer without the token. At the
end every game in which moves were played is read from the records, and the log has no fault.

Exits with 1 where something was found; schemathesis tells what, with a line of curl that shows it again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import uvicorn

# Of the home, written by benchmarks/api_hooks.py: games in which moves were played, a line each; how many
# answers came by call and status.
PLAYED, ANSWERS = "played", "answers.json"
ADDRESS = "DOJO_API"  # in its environment: where the door is
SETTINGS = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "404", "409", "422", "429"]
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "408", "409", "413", "415", "422", "429"]
"""
TOKEN = "a-token-of-the-benchmark"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--minutes", type=float, default=15)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--only", action="append", default=[], help="a call; may be repeated")
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="dojo-api-") as folder:
        home = Path(folder)
        os.environ |= {"DOJO_HOME": folder, "DOJO_LOCK_DIR": str(home / "lock")}
        sys.exit(tried(home, asked.minutes, asked.seed, asked.only))


def tried(home: Path, minutes: float, seed: int, only: list[str]) -> int:
    """How schemathesis ended; 1 where a game is lost or the log has a fault, too."""
    from agents.doors.commands import open_seats
    from agents.doors.http import api
    from agents.doors.seats import Allowance
    from dojo_core.game import Game
    from dojo_core.measure.records import Records

    generous = Allowance(pending=100, a_second=1e6, in_a_row=1_000_000)
    with open_seats("HTTP", generous) as seats, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(api(seats, TOKEN), log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        began = time.monotonic()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        settings = home / "schemathesis.toml"
        settings.write_text(SETTINGS)
        command = [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings), "run",
            f"{address}/openapi.json",
            "--header", f"Authorization: Bearer {TOKEN}",
            "--seed", str(seed), "--max-time", str(round(60 * minutes)),
            "--checks", "all", "--continue-on-failure", "--no-color", "--request-timeout", "400",
            "--max-response-time", "400",
            "--suppress-health-check", "all", "--generation-database", "none",
            *(word for call in only for word in ("--include-operation-id", call)),
        ]  # fmt: skip
        here = os.pathsep.join([str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH")])])
        hooked = {ADDRESS: address, "SCHEMATHESIS_HOOKS": "benchmarks.api_hooks", "PYTHONPATH": here}
        environment = {**os.environ, **hooked}
        # where it keeps what it found, so that nothing stays here
        ended = subprocess.run(command, env=environment, cwd=home, check=False).returncode
        server.should_exit = True
        thread.join()
    kept = {each.id: each.text for each in Records(home / "records.sqlite").games(None, 1_000_000)}
    for text in kept.values():
        Game.from_text(text)
    played = home / PLAYED
    lost = (set(played.read_text().split()) if played.exists() else set()) - set(kept)
    log = home / "dojo.log"
    text = log.read_text() if log.exists() else ""
    faults = re.findall(r"^\S+ \S+ ERROR .*\n(?:(?!\d{4}-).*\n)*", text, re.MULTILINE)  # with tracebacks
    took = time.monotonic() - began
    print(f"{took:.0f} s; {len(kept)} games kept and read, {len(lost)} lost; {len(faults)} faults in the log")
    print("\n".join(faults[:10]))
    print(shares(home / ANSWERS))
    return 1 if ended or lost or faults else 0


def shares(file: Path) -> str:
    """How many of the valid requests of each call were answered by 200."""
    if not file.exists():
        return "schemathesis told no answers"
    of_all: Counter[str] = Counter()
    done: Counter[str] = Counter()
    for key, count in json.loads(file.read_text()).items():
        call, drawn, status = key.rsplit(" ", 2)
        if drawn == "valid":
            of_all[call] += count
            done[call] += count * (status == "200")
    told = (f"{call} {done[call]} of {n}" for call, n in sorted(of_all.items()))
    return f"answered by 200, of valid ones: {', '.join(told)}"


if __name__ == "__main__":
    main()
