"""What the page Learn draws beside the board, as plain data (JSON): the list, a step, a review."""

from __future__ import annotations

from dataclasses import asdict

from dojo_core.school.daily import daily
from dojo_core.school.lesson import Lesson, Step
from dojo_core.school.practice import Place, following, standing, teaches
from dojo_core.school.ratings import Rating
from dojo_core.school.review import Finding
from dojo_core.school.tutoring import Tutor, TutoringSession
from dojo_core.service.analysis import words_for
from dojo_core.service.view import Json

STATES = {True: "reached", False: "open", None: "unknown"}


def panel(tutor: Tutor, session: TutoringSession) -> Json:
    """All that the panel shows."""
    common = {
        "view": session.view, "fault": session.fault, "learner": session.learner, "glossary": glossary(tutor),
        "acknowledged": dict(session.acknowledged),
    }  # fmt: skip
    if session.view == "step":
        place = tutor.place(session)
        if place is not None:
            return {**common, "step": step_words(tutor, session, *place)}
    if session.view == "review":
        return {**common, "review": review_words(session)}
    if session.view == "games":
        return {**common, "games": tutor.games(session)}
    return {**common, "view": "list", "list": lessons(tutor, session)}


def glossary(tutor: Tutor) -> list[Json]:
    return [
        {"slug": entry.slug, "title": entry.title, "also": list(entry.also), "words": entry.words}
        for entry in tutor.school.glossary.entries
    ]


def lessons(tutor: Tutor, session: TutoringSession) -> Json:
    done = tutor.progress.done(session.learner)
    place = tutor.progress.place(session.learner)

    def lesson_json(lesson: Lesson) -> Json:
        steps = [
            {
                "id": step.id,
                "title": step.title,
                "done": (lesson.id, step.id) in done,
                "helped": done.get((lesson.id, step.id), False),
            }
            for step in lesson.steps
        ]
        return {
            "id": lesson.id,
            "title": lesson.title,
            "about": lesson.about,
            "puzzles": lesson.puzzles,
            "steps": steps,
            "done": sum(bool(step["done"]) for step in steps),
        }

    resume = None
    if place is not None:
        lesson = tutor.school.lesson(place[0])
        step = lesson.step(place[1]) if lesson is not None else None
        if lesson is not None and step is not None:
            resume = {"lesson": lesson.id, "step": step.id, "title": f"{lesson.title}: {step.title}"}
    at = standing(tutor.school, tutor.progress, session.learner)
    puzzle, following_one = daily(), following(tutor.school, at)
    return {
        "puzzles": {
            "rating": rating_words(at.rating)
            if any(each is not None for each in at.tried.values())
            else None,
            "daily": asdict(puzzle) if puzzle is not None else None,
            "next": _place(following_one),
        },
        "lessons": [lesson_json(lesson) for lesson in tutor.school.lessons],
        "resume": resume,
        "faults": [{"file": name, "told": told_} for name, told_ in tutor.school.faults],
    }


def rating_words(rating: Rating) -> Json:
    """A rating as it is told: points, and whether they are sure."""
    return {"value": round(rating.value), "settled": rating.settled}


def _place(place: Place | None) -> Json | None:
    return None if place is None else {"lesson": place[0].id, "step": place[1].id, "title": place[1].title}


def one_move(tutor: Tutor, session: TutoringSession, step: Step) -> Json | None:
    """Of a puzzle of one move: its rating, what came of it, where it comes from and what to do after it."""
    if step.asked is None:
        return None
    at = standing(tutor.school, tutor.progress, session.learner)
    lesson, gains = teaches(tutor.school, step), step.gains
    return {
        "rating": rating_words(at.of(step)),
        "yours": rating_words(at.rating),
        "tried": step.key in at.tried,
        "solved": at.tried.get(step.key),
        "agents": tutor.school.ratings.tries.get(step.key, {}),
        "machine": gains.machine if gains is not None else "",
        "date": gains.date if gains is not None else "",
        "origin": step.origin.words if step.origin is not None else "",
        "next": _place(following(tutor.school, at, step)),
        "teaches": {**(_place(lesson) or {}), "title": f"{lesson[0].title}: {lesson[1].title}"}
        if lesson is not None
        else None,
    }


def _neighbour(tutor: Tutor, lesson: Lesson, step: Step, by: int) -> Json | None:
    """The step before or after, over the end of a lesson to the next one."""
    all_steps = [(each, s) for each in tutor.school.lessons for s in each.steps]
    at = next(i for i, (each, s) in enumerate(all_steps) if each.id == lesson.id and s.id == step.id) + by
    if not 0 <= at < len(all_steps):
        return None
    of_lesson, other = all_steps[at]
    title = other.title if of_lesson.id == lesson.id else f"{of_lesson.title}: {other.title}"
    return {"lesson": of_lesson.id, "step": other.id, "title": title, "same": of_lesson.id == lesson.id}


def step_words(tutor: Tutor, session: TutoringSession, lesson: Lesson, step: Step) -> Json:
    seen, reached = tutor.look(session)
    game = tutor.game(session)
    done = tutor.progress.done(session.learner)
    moves = len(game.line()) - 1 if game is not None else 0
    question = None
    if step.question is not None:
        right = next(i for i, answer in enumerate(step.question.answers) if answer.right)
        why = step.question.answers[session.chosen].why if session.chosen is not None else []
        question = {
            "words": step.question.words,
            "answers": [answer.words for answer in step.question.answers],
            "chosen": session.chosen,
            "right": right if session.answered or session.solution else None,
            "why": why,
        }
    note = [] if reached else tutor.note(session, step)
    return {
        "lesson": lesson.id,
        "lesson_title": lesson.title,
        "puzzles": lesson.puzzles,
        "id": step.id,
        "title": step.title,
        "number": lesson.steps.index(step) + 1,
        "steps": [
            {"id": each.id, "title": each.title, "done": (lesson.id, each.id) in done}
            for each in lesson.steps
        ],
        "text": step.text,
        "policy": step.begin.policy,
        "gain": step.gain,
        "goals": [
            {"text": goal.text, "state": STATES[each.reached], "now": each.now, "kept": goal.kept}
            for goal, each in zip(step.goals, seen, strict=False)
        ],
        "question": question,
        "hints": list(step.hints[: session.hints]),
        "more_hints": len(step.hints) - session.hints,
        "solution": tutor.solution_words(step) if session.solution else None,
        "can_show": bool(step.solution),
        "refusal": {"move": session.refusal[0], "why": session.refusal[1]}
        if session.refusal is not None
        else None,
        "note": note,
        "reached": reached,
        "done": (lesson.id, step.id) in done,
        "after": step.done if reached or (lesson.id, step.id) in done else [],
        "moves": moves,
        "puzzle": one_move(tutor, session, step),
        "previous": _neighbour(tutor, lesson, step, -1),
        "next": _neighbour(tutor, lesson, step, 1),
    }


def review_words(session: TutoringSession) -> Json:
    review = session.review
    assert review is not None

    def finding_json(number: int, finding: Finding) -> Json:
        opened = session.finding == number
        level = session.revealed if opened and finding.better else 0
        name, _, where = finding.better.partition(" ")
        return {
            "ply": finding.ply,
            "played": finding.played,
            "seconds": finding.seconds,
            "ratio": finding.ratio,
            "words": finding.words,
            "busy": finding.busy,
            "instead": bool(finding.better),
            "open": opened,
            "level": level,
            "kind": [name, words_for(name)] if level >= 1 and name else None,
            "place": where.split(" ")[0] if level >= 2 else None,
            "better": finding.better if level >= 3 else None,
            "better_seconds": finding.better_seconds if level >= 3 else None,
            "why": finding.why if level >= 3 else None,
        }

    verdicts = [
        {"ply": each.ply, "played": each.played, "kind": each.kind, "words": each.words, "busy": each.busy}
        for each in review.verdicts
    ]
    return {
        "title": review.game.title,
        "moves": review.moves,
        "looked": review.looked,
        "compared": review.compared,
        "counts": review.counts,
        "verdicts": verdicts,
        "unplayed": review.unplayed,
        "done": review.done,
        "fault": review.fault,
        "findings": [finding_json(number, found) for number, found in enumerate(list(review.findings))],
    }
