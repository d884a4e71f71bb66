"""The process that holds the GPU, ``python -m dojo_core.targets.cuda.worker``: a line of JSON each way.

A kernel that reads where it may not spoils the driver for its whole process, and one that never ends cannot
be stopped from within: so both end no more than this. The main thread only reads, and ends the process when
its parent is gone; a second one, in which the driver's context is current, does the work.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from dojo_core.measure.limits import STACK_BYTES
from dojo_core.targets.cuda.driver import CudaError, Device
from dojo_core.targets.cuda.session import Session


def serve(open_device: Callable[[], Any]) -> None:
    """Answer requests on a device until standard input closes."""
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    answers = os.dup(1)  # a stray print cannot disturb the answers
    os.dup2(2, 1)

    def tell(answer: dict[str, Any]) -> None:
        data = (json.dumps(answer) + "\n").encode()
        while data:
            data = data[os.write(answers, data) :]

    def work() -> None:
        missing, session = "", None
        try:
            session = Session(open_device())
        except CudaError as error:
            missing = str(error)
        while True:
            request = requests.get()
            if session is None:
                tell({"status": "missing", "message": missing})
                continue
            try:
                tell(session.answer(request))
            except Exception:
                tell({"status": "fault", "message": traceback.format_exc()})

    threading.stack_size(STACK_BYTES)  # the start program's small arrays lie on the stack
    threading.Thread(target=work, daemon=True).start()
    for line in sys.stdin:
        requests.put(json.loads(line))
    os._exit(0)


if __name__ == "__main__":
    serve(Device)
