"""A recorded line told move by move: a page with programs and times, and a plot, both made from the line."""

from __future__ import annotations

from dojo_core.story.page import page
from dojo_core.story.plot import plot
from dojo_core.story.steps import Group, Step, Story, story
from dojo_core.story.times import Times, read_times, take_times

__all__ = ["Group", "Step", "Story", "Times", "page", "plot", "read_times", "story", "take_times"]
