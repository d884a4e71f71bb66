"""Puzzles of one move as somebody who learns meets them: how hard they are, and what to do after one."""

from __future__ import annotations

from dataclasses import dataclass

from dojo_core.school.lesson import TRY, Lesson, Step
from dojo_core.school.progress import Progress
from dojo_core.school.ratings import UNKNOWN, Rating, replayed
from dojo_core.school.school import School

Place = tuple[Lesson, Step]


@dataclass(frozen=True)
class Standing:
    """A learner's rating, the puzzles' as they are here, and what came of each puzzle that was tried (None:
    with a hint, not rated), by key."""

    rating: Rating
    puzzles: dict[str, Rating]
    tried: dict[str, bool | None]

    def of(self, step: Step) -> Rating:
        return self.puzzles.get(step.key, UNKNOWN)


def standing(school: School, progress: Progress, learner: str) -> Standing:
    """Where a learner stands after all attempts of this home, which move the puzzles' ratings, too."""
    learners, puzzles = replayed(progress.attempts(), school.ratings.puzzles)
    return Standing(learners.get(learner, UNKNOWN), puzzles, progress.tried(learner))


def rated(school: School) -> list[Place]:
    """All puzzles of one move."""
    return [(lesson, step) for lesson in school.lessons for step in lesson.steps if step.asked is not None]


def following(school: School, at: Standing, besides: Step | None = None) -> Place | None:
    """The puzzle to try next: of those that the learner has not tried, the one rated nearest."""
    left = [
        (lesson, step)
        for lesson, step in rated(school)
        if step.key not in at.tried and (besides is None or step.key != besides.key)
    ]
    return min(left, key=lambda place: abs(at.of(place[1]).value - at.rating.value), default=None)


def teaches(school: School, step: Step) -> Place | None:
    """The first step of a lesson whose solution plays a move of the kind that solves a puzzle."""
    kinds = {move.split()[0] for move in step.solution}
    for lesson in school.lessons:
        for other in lesson.steps:
            moves = {move.removeprefix(TRY).split()[0] for move in other.solution}
            if not lesson.puzzles and moves & kinds:
                return lesson, other
    return None
