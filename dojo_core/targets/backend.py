"""What a target is to the rest of the Dojo: everything that is asked of one stands here.

Nobody asks which target it is. One is found by name in ``registry``, where packages add theirs by the entry
point ``dojo.targets`` (docs/packages.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dojo_core.bounded_json import read_object
from dojo_core.codegen.assembly import Assembly
from dojo_core.codegen.code import Generated
from dojo_core.measure.clock import Clock, TargetMeasurer
from dojo_core.program.target import Target
from dojo_core.program.tree import Program

if TYPE_CHECKING:
    from dojo_core.game import Game
    from dojo_core.measure.records import Records
    from dojo_core.targets.cpu.instruction_set import InstructionSet


@dataclass(frozen=True)
class Words:
    """What people are told of a target.

    ``title``: in lists; ``about``: a sentence on how positions are judged there. ``code``: what its generated
    text is called on a tab, ``language`` what it is to a colourer of syntax (a lexer of Pygments). ``play``:
    what a player is told below the table of moves, after what holds for all.
    """

    title: str
    about: str
    code: str = "C"
    language: str = "c"
    play: str = ""


@dataclass(frozen=True)
class Report:
    """What a target tells of a position, and of its moves where asked, in place of a table of times.

    ``columns`` and ``rows`` are for people, the first column a name, the others figures; ``failed`` are the
    numbers of rows that are no result. ``remarks`` are sentences below. ``data`` is for programs (JSON).
    ``fault``: why the position itself is not right, or an empty text.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    data: Any
    fault: str = ""
    failed: frozenset[int] = frozenset()
    remarks: tuple[str, ...] = ()
    verified: str = ""


class Backend(ABC):
    """One target. What has a default here may be left to it."""

    name: str
    words: Words
    native = False  # is its code C for this computer? Then it is exported, and timed in lessons
    told = ""  # of another machine: what a game for it keeps, so that it is played where none knows that one
    rivals: str = ""  # "module:object", a bench.contest.Contest that holds its programs against others'
    exported: InstructionSet | None = None  # for which C libraries can have kernels, beside those for x86

    @property
    @abstractmethod
    def limits(self) -> Target:
        """What legality, moves and passes read: data that can be hashed, and a ``fault``. Its name is the
        target's; its marks and locations are among those of the text form (docs/text.md)."""

    @abstractmethod
    def generate(self, program: Program, policy: str) -> Generated:
        """The code of a program, for each line of its text a node or None. Raises NotGeneratable with a
        sentence."""

    @abstractmethod
    def clock(self) -> Clock:
        """What gives its programs a number here. The first answer may take as long as its start."""

    def measurer(self, records: Records | None = None) -> TargetMeasurer:
        """Made anew, to be closed: of its own wherever its clock is measured, modelled or emulated. Raises
        ValueError with a sentence where nothing runs programs here."""
        missing = self.clock().missing
        raise ValueError(missing) if missing else NotImplementedError("it has a clock, and no measurer")

    def assembly(self, program: Program, policy: str) -> Assembly:
        """What a compiler makes of a program. Raises NotGeneratable, and ValueError with a sentence: what the
        compiler said, what is missing, or that there is nothing to list."""
        raise ValueError(f"Nothing here lists the assembly of programs for {self.words.title}.")

    def on(self, machine: str) -> Backend:
        """What it is on another machine, named as its ``machines`` are, or in part: itself where that makes
        no difference. Raises ValueError with a sentence."""
        return self

    def bring(self, machine: str, told: str) -> None:  # noqa: B027 (most need not know)
        """Hear from a game what a machine is (``told``). Raises ValueError with a sentence."""

    def machines(self) -> tuple[str, ...]:
        """The names of other machines that are known here."""
        return ()

    def learn(self, records: Records) -> Mapping[str, str]:
        """Get to know the machines of records; of those that cannot be known, why, by fingerprint."""
        return {}

    @property
    def lines(self) -> Path | None:
        """The folder of the recorded lines that are for it, None where there are none."""
        return None

    def report(self, game: Game, all_moves: bool) -> Report | None:
        """What it tells of a position where that is more than a time, or other. None: the times alone.

        Raises ValueError with a sentence where moves cannot be compared.
        """
        return None

    def machine(self, details: str) -> str:
        """A line about what timed a program, from the JSON of its origin. Raises ValueError or TypeError
        where it is of another form."""
        return str(read_object(details)["name"])

    @property
    def passes(self) -> Mapping[str, Any]:
        """By a pass's name, what plays it on this target: a function of a sketch, or "module:function"."""
        return self.limits.passes
