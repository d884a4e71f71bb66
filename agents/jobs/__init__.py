"""Agents that run beside the app: each a process of its own that writes what it does into a journal.

    spec.py       what a run is: a game, a position in it, an agent, a budget
    journal.py    the run as a file of JSON lines: written by one process, followed by others, replayed later
    child.py      the process that plays
    processes.py  child processes by name: a group of their own, a pipe, an end
    host.py       starts, pauses, steps, stops, resumes and finds runs
    trainings.py  PerfLLM's training runs in the same way; trainer.py is their process
    recording.py  journals that come with the Dojo, and games told as if they were runs

A run belongs to no page: whoever knows its id can follow it, and who does not finds it in the list. It ends
with the app that started it, having kept every measurement, and goes on from there when it is resumed.
"""

from agents.jobs.host import Jobs, JobView
from agents.jobs.journal import Entry, Journal
from agents.jobs.refused import JobRefused
from agents.jobs.spec import JobSpec

__all__ = ["Entry", "JobRefused", "JobSpec", "JobView", "Jobs", "Journal"]
