"""From the tutor to the class: how a student fares at the steps that their classes were given."""

from __future__ import annotations

import logging
from collections.abc import Callable

from dojo_core.classes.store import Classes
from dojo_core.measure.database import DatabaseFault
from dojo_core.school.attempts import Attempt

log = logging.getLogger(__name__)

Witness = Callable[[str, Attempt], None]


def witness(classes: Classes, elsewhere: Witness = lambda owner, attempt: None) -> Witness:
    """What the tutor calls with a learner's owner and attempt; ``elsewhere`` tells other Dojos of it.

    A report that fails is in the log: it keeps nobody from learning.
    """

    def saw(owner: str, attempt: Attempt) -> None:
        try:
            for student in classes.memberships(owner):
                classes.report(student, attempt)
            elsewhere(owner, attempt)
        except DatabaseFault as fault:
            log.warning("no report of %s: %s", attempt.step, fault)

    return saw
