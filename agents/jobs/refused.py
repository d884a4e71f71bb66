"""What was asked of a run, or of a training, cannot be done: the sentences that the two have alike."""

from __future__ import annotations


class JobRefused(ValueError):
    """What was asked of a run cannot be done; ``str()`` is a sentence for the person who asked."""


def no_run(kind: str = "run") -> JobRefused:
    return JobRefused(f"There is no {kind} with this id here.")


def not_started(fault: OSError) -> JobRefused:
    return JobRefused(f"The run could not be started: {fault.strerror or fault}.")


def not_resumable() -> JobRefused:
    return JobRefused("This run is not one that was stopped or interrupted.")


def still_open() -> JobRefused:
    return JobRefused("Stop this run before deleting it.")


def not_going_on() -> JobRefused:
    return JobRefused("This run does not go on here: resume it first.")


def interrupted(where: str) -> str:
    """Why a run has ended that nobody ended, and from ``where`` it can go on."""
    return f"It ended with its app. Resume goes on from {where}."
