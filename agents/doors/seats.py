"""Who sits at the game through a door: a desk for each client's name, and how much it may ask at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dojo_core.calls import Answer, Desk
from dojo_core.calls.call import LONGEST_NAME
from dojo_core.calls.desk import cleaned
from dojo_core.service import Service

T = TypeVar("T")

MOST_CLIENTS = 32  # desks kept; of another one's client nothing is lost but its place in the queue


@dataclass(frozen=True)
class Allowance:
    """What a client may ask: ``pending``, calls that have begun and are not answered, calls ``a_second`` on
    average and ``in_a_row``, ``seconds`` that it waits for an answer.

    A client is known by the name that it gives itself. ``of_all``, ``in_all`` and ``at_once`` (calls that are
    worked on) are of all together who come in by one token or one pipe, whatever names they give: as many
    times of the first two as one client has, and calls that wait or are worked on.
    """

    pending: int = 16
    a_second: float = 20.0
    in_a_row: int = 60
    seconds: float = 360.0
    of_all: float = 4.0
    at_once: int = 4
    in_all: int = 64


USUAL = Allowance()


class Busy(Exception):
    """A client asks for more than it may; ``seconds``: when to ask again."""

    def __init__(self, sentence: str, seconds: float) -> None:
        super().__init__(sentence)
        self.seconds = seconds


class Late(Exception):
    """A call has not come to its end in time. It goes on, and what it changes is kept."""


class Bucket:
    """How fast calls may come: so many a second on average, so many in a row (a token bucket). ``whose``: the
    end of the sentence that says so."""

    def __init__(
        self, a_second: float, in_a_row: float, whose: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._a_second, self._in_a_row, self._whose, self._clock = a_second, in_a_row, whose, clock
        self._left, self._at = in_a_row, clock()

    def take(self) -> None:
        """One call more. Raises Busy."""
        now = self._clock()
        self._left = min(self._in_a_row, self._left + (now - self._at) * self._a_second)
        self._at = now
        if self._left < 1:
            sentence = f"More than {self._a_second:g} calls a second{self._whose}: slow down."
            raise Busy(sentence, (1 - self._left) / self._a_second)
        self._left -= 1


class Seat:
    """A client's desk, how many of its calls are under way, and how fast they may come."""

    def __init__(self, desk: Desk, allowance: Allowance, clock: Callable[[], float] = time.monotonic) -> None:
        self.desk = desk
        self._most, self._pending = allowance.pending, 0
        self._bucket = Bucket(allowance.a_second, allowance.in_a_row, clock=clock)
        self._lock = threading.Lock()

    def take(self) -> None:
        """Begin a call; ``give_back`` ends it. Raises Busy."""
        with self._lock:
            if self._pending >= self._most:
                raise Busy(f"{self._pending} calls wait for their answers, as many as may: await one.", 1.0)
            self._bucket.take()
            self._pending += 1

    def give_back(self, _: object = None) -> None:
        with self._lock:
            self._pending -= 1


class Seats:
    """The clients of a door. ``by``: how they came, which their names say ("Ada's script via HTTP");
    ``exports``: the folder that they may write libraries to."""

    def __init__(
        self, service: Service, by: str, allowance: Allowance = USUAL, exports: Path | None = None
    ) -> None:
        self._service, self._by, self._allowance, self._exports = service, by, allowance, exports
        self._seats: OrderedDict[str, Seat] = OrderedDict()
        self._in_all = 0
        most = allowance.of_all
        self._bucket = Bucket(most * allowance.a_second, most * allowance.in_a_row, " of all clients")
        self._counting = threading.Lock()
        self._workers = ThreadPoolExecutor(allowance.at_once, thread_name_prefix="call")

    def seat(self, client: str) -> Seat:
        """Of the client of that name, at a new desk if need be."""
        by = f" via {self._by}"
        name = cleaned(client)[: LONGEST_NAME - len(by)].strip() + by
        desk = Desk(self._service, name, exports=self._exports)
        seat = self._seats.setdefault(desk.client, Seat(desk, self._allowance))
        self._seats.move_to_end(desk.client)
        while len(self._seats) > MOST_CLIENTS:
            self._seats.popitem(last=False)
        return seat

    async def call(self, client: str, name: str, arguments: Mapping[str, object]) -> Answer:
        """Raises CallFault, Busy or Late."""
        return await self.at_desk(client, lambda desk: desk.call(name, arguments))

    async def at_desk(self, client: str, do: Callable[[Desk], T]) -> T:
        """What ``do`` makes at the client's desk, in a thread. Raises Busy, Late, and what ``do`` raises."""
        with self._counting:
            if self._in_all >= self._allowance.in_all:
                raise Busy(f"{self._in_all} calls of all clients wait: ask again in a moment.", 1.0)
            self._bucket.take()
            seat = self.seat(client)
            seat.take()
            self._in_all += 1
        work: Future[T] = self._workers.submit(do, seat.desk)
        # When it is done, not when the client stops waiting: it is worked on until then.
        work.add_done_callback(seat.give_back)
        work.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(work), self._allowance.seconds)
        except TimeoutError:
            raise Late(
                f"This takes longer than {self._allowance.seconds:g} seconds. It goes on: look again later."
            ) from None

    def _done(self, _: object) -> None:
        with self._counting:
            self._in_all -= 1

    def close(self) -> None:
        self._workers.shutdown(wait=False, cancel_futures=True)
