"""What the page Learn draws beside the board, as plain data (JSON): the list, a step, a review."""

from __future__ import annotations

from dojo_core.school.lesson import Lesson, Step
from dojo_core.school.review import Finding
from dojo_core.school.tutoring import Desk, Seat
from dojo_core.service.analysis import words_for
from dojo_core.service.view import Json

STATES = {True: "reached", False: "open", None: "unknown"}


def panel(desk: Desk, seat: Seat) -> Json:
    """All that the panel shows."""
    common = {
        "view": seat.view, "fault": seat.fault, "learner": seat.learner, "glossary": glossary(desk),
        "acknowledged": dict(seat.acknowledged),
    }  # fmt: skip
    if seat.view == "step":
        place = desk.place(seat)
        if place is not None:
            return {**common, "step": step_words(desk, seat, *place)}
    if seat.view == "review":
        return {**common, "review": review_words(seat)}
    if seat.view == "games":
        return {**common, "games": desk.games(seat)}
    return {**common, "view": "list", "list": lessons(desk, seat)}


def glossary(desk: Desk) -> list[Json]:
    return [
        {"slug": entry.slug, "title": entry.title, "also": list(entry.also), "words": entry.words}
        for entry in desk.school.glossary.entries
    ]


def lessons(desk: Desk, seat: Seat) -> Json:
    done = desk.progress.done(seat.learner)
    place = desk.progress.place(seat.learner)

    def told(lesson: Lesson) -> Json:
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
        lesson = desk.school.lesson(place[0])
        step = lesson.step(place[1]) if lesson is not None else None
        if lesson is not None and step is not None:
            resume = {"lesson": lesson.id, "step": step.id, "title": f"{lesson.title}: {step.title}"}
    return {
        "lessons": [told(lesson) for lesson in desk.school.lessons],
        "resume": resume,
        "faults": [{"file": name, "told": told_} for name, told_ in desk.school.faults],
    }


def _neighbour(desk: Desk, lesson: Lesson, step: Step, by: int) -> Json | None:
    """The step before or after, over the end of a lesson to the next one."""
    all_steps = [(each, s) for each in desk.school.lessons for s in each.steps]
    at = next(i for i, (each, s) in enumerate(all_steps) if each.id == lesson.id and s.id == step.id) + by
    if not 0 <= at < len(all_steps):
        return None
    there, other = all_steps[at]
    title = other.title if there.id == lesson.id else f"{there.title}: {other.title}"
    return {"lesson": there.id, "step": other.id, "title": title, "same": there.id == lesson.id}


def step_words(desk: Desk, seat: Seat, lesson: Lesson, step: Step) -> Json:
    seen, reached = desk.look(seat)
    game = desk.game(seat)
    done = desk.progress.done(seat.learner)
    moves = len(game.line()) - 1 if game is not None else 0
    question = None
    if step.question is not None:
        right = next(i for i, answer in enumerate(step.question.answers) if answer.right)
        why = step.question.answers[seat.chosen].why if seat.chosen is not None else []
        question = {
            "words": step.question.words,
            "answers": [answer.words for answer in step.question.answers],
            "chosen": seat.chosen,
            "right": right if seat.answered or seat.solution else None,
            "why": why,
        }
    note = [] if reached else desk.note(seat, step)
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
        "hints": list(step.hints[: seat.hints]),
        "more_hints": len(step.hints) - seat.hints,
        "solution": desk.solution_words(step) if seat.solution else None,
        "can_show": bool(step.solution),
        "refusal": {"move": seat.refusal[0], "why": seat.refusal[1]} if seat.refusal is not None else None,
        "note": note,
        "reached": reached,
        "done": (lesson.id, step.id) in done,
        "after": step.done if reached or (lesson.id, step.id) in done else [],
        "moves": moves,
        "previous": _neighbour(desk, lesson, step, -1),
        "next": _neighbour(desk, lesson, step, 1),
    }


def review_words(seat: Seat) -> Json:
    review = seat.review
    assert review is not None

    def told(number: int, found: Finding) -> Json:
        here = seat.finding == number
        level = seat.revealed if here and found.better else 0
        name, _, where = found.better.partition(" ")
        return {
            "ply": found.ply,
            "played": found.played,
            "seconds": found.seconds,
            "ratio": found.ratio,
            "words": found.words,
            "busy": found.busy,
            "instead": bool(found.better),
            "open": here,
            "level": level,
            "kind": [name, words_for(name)] if level >= 1 and name else None,
            "place": where.split(" ")[0] if level >= 2 else None,
            "better": found.better if level >= 3 else None,
            "better_seconds": found.better_seconds if level >= 3 else None,
            "why": found.why if level >= 3 else None,
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
        "findings": [told(number, found) for number, found in enumerate(list(review.findings))],
    }
