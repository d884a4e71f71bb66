"""A model that is open, and what is measured of it: step by step, as long as somebody looks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from dojo_core.bench import eager, roofline
from dojo_core.export import Choice, NotExported
from dojo_core.export.choice import of_heuristic
from dojo_core.graph.choices import kernel_game
from dojo_core.graph.graph import Graph
from dojo_core.kernels.kernel import executed_flops
from dojo_core.measure.measurement import Workload
from dojo_core.measure.records import Records
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.service.attention import SELF, START
from dojo_core.service.games import workload_key
from dojo_core.service.lanes import Lanes
from dojo_core.service.queue import Task

log = logging.getLogger(__name__)

POLICY = "reassoc"
TOGETHER = 4  # kernels that PyTorch computes in one go, while other players wait


class OpenModel:
    """A graph, and for each of its kernels a game at its start (``starts``). Thread-safe.

    Its measurements are asked for in the name of a player of the queue's, ``player``.
    """

    def __init__(self, graph: Graph, player: str, records: Records, queues: Lanes) -> None:
        self.graph = graph
        called = dict.fromkeys(call.kernel for call in graph.calls)
        self.starts = {name: kernel_game(graph.kernels[name], POLICY) for name in called}
        self.measuring = False
        self._player = player
        self._records = records
        self._queues = queues
        first = next((workload_key(game) for game in self.starts.values()), DEFAULT_TARGET)
        self._queue = queues.of(first)  # of one target, whatever the kernel
        self._again = False  # all was measured, and what was taken on a busy machine is taken again
        self._passed: dict[str, Choice | None] = {}  # what the pass made of a kernel; None: it could not play
        self._limited: set[str] = set()  # kernels whose limit was asked for
        self._rivalled: set[str] = set()  # those that PyTorch was asked to compute
        self._errand = False  # a pass, a limit or PyTorch is under way
        self._lock = threading.Lock()

    @property
    def down(self) -> str:
        """Why nothing can be measured, or an empty string."""
        return self._queue.down

    def question(self, name: str) -> roofline.Question:
        """Whose limit is asked for."""
        start = self.starts[name].start
        return roofline.Question(start, None, "", executed_flops(start))

    def state(self, name: str) -> tuple[str, str]:
        """What the queue does about a kernel: ``waiting``, ``measuring``, ``failed`` and why, or nothing."""
        tasks, key = self._tasks(name), workload_key(self.starts[name])
        hashes = [task.hash for _, task in tasks]
        outcomes = self._queue.results(key, hashes)
        if self._queue.running(key) & set(hashes):
            return "measuring", ""
        if self.measuring and (not tasks or None in outcomes):
            return "waiting", ""
        failed = next((each for each in outcomes if each is not None and not each.ok), None)
        return ("", "") if failed is None else ("failed", failed.message or failed.status)

    # ------------------------------------------------------------------ measuring

    def measure(self) -> None:
        """Begin: the pass plays each kernel, its program and the start are verified and timed, then the
        machine's limits, and PyTorch where it is installed. Where all that is known, what was taken on a
        busy machine is taken again.

        ``go_on`` must be asked now and then, or it pauses.
        """
        if self._queue.down:
            self._queue.restart()
        with self._lock:
            self.measuring, self._again = True, self._rivalled == self.starts.keys()
            self._limited.clear()
            self._rivalled.clear()
        self.go_on()

    def stop(self) -> None:
        """No more than what is under way; what is known stays."""
        self.measuring = False
        self._queues.drop(self._player)

    def go_on(self) -> bool:
        """Is there more to measure? Somebody still looks, and the next thing is asked for.

        Kernels with most operations come first. The passes are played between measurements, one at a time,
        so that the first times are there soon.
        """
        with self._lock:
            self.measuring = self.measuring and not self._queue.down
            if not self.measuring:
                return False
            tasks = [each for name in self.starts for each in self._tasks(name)]
            self._queue.want(self._player, sorted(tasks, key=lambda each: each[0]))
            if self._errand:
                return True
            ahead = sorted(self.starts, key=self._operations, reverse=True)
            unplayed = [name for name in ahead if name not in self._passed]
            if unplayed:
                self._send(f"pass/{self._player}/{unplayed[0]}", lambda: self._pass(unplayed[0]))
                return True
            open_ = self._queue.open_tasks if self._again else self._queue.wanted
            if open_(self._player):
                return True
            for asked, ask in ((self._limited, self._limit), (self._rivalled, self._rival)):
                left = [name for name in ahead if name not in asked]
                if left:
                    ask(left)
                    return True
            self.measuring = False
            return False

    def _tasks(self, name: str) -> list[tuple[int, Task]]:
        """What is measured of a kernel once the pass has played, each with its rank."""
        if name not in self._passed:
            return []
        game, passed = self.starts[name], self._passed[name]
        workload, key = Workload(game.start, None, POLICY, DEFAULT_TARGET), workload_key(game)
        tasks = [(START, Task(key, workload, game.start, game.start.hash))]
        if passed is not None:
            line = "\n".join(passed.moves or ())
            tasks.insert(0, (SELF, Task(key, workload, passed.program, passed.program.hash, line)))
        return tasks

    def _operations(self, name: str) -> int:
        """Of all calls."""
        calls = sum(call.kernel == name for call in self.graph.calls)
        return calls * executed_flops(self.starts[name].start)

    def _pass(self, name: str) -> None:
        passed: Choice | None = None
        try:
            passed = of_heuristic(self.starts[name])
        except NotExported as refusal:
            log.warning("%s", refusal)
        finally:  # whatever happened, it is not asked again
            self._passed[name] = passed

    def _limit(self, left: Sequence[str]) -> None:
        """Ask for the first kernel's limit where nothing is known of it."""
        name = left[0]
        self._limited.add(name)
        question = self.question(name)
        unknown = roofline.known(self._records, question) is None
        if unknown or (self._again and roofline.doubtful(self._records, question)):
            key = workload_key(self.starts[name])
            self._send(f"roofline/{key}", lambda: roofline.roofline(self._records, question))

    def _rival(self, left: Sequence[str]) -> None:
        """Ask for PyTorch's times of the first kernels where nothing is known of them."""
        names = left[:TOGETHER]
        self._rivalled.update(names)
        unknown = [
            question
            for question in map(self.question, names)
            if (self._again or eager.known(self._records, question.start) is None)
            and eager.doubtful(self._records, question.start)
        ]
        if unknown:
            key = workload_key(self.starts[names[0]])
            self._send(f"eager/{key}", lambda: eager.timed(self._records, unknown))

    def _send(self, name: str, work: Callable[[], object]) -> None:
        """Have something done between measurements."""

        def errand() -> None:
            try:
                work()
            finally:
                self._errand = False

        self._errand = True
        if not self._queue.errand(name, errand):
            self._errand = False  # the same is under way for somebody else
