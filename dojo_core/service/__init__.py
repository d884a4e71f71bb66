"""One per app process: players, their games, the measuring queue, and what a page is told.

A page hands over *events* (dicts with a kind, the game and the position they were made on) and asks for
the *board* (what stands on it; changes with the position) and the *feed* (times; changes all the time).
A move made on a position that is no longer current is dropped, so a double click plays one; steps through
the line mean the same wherever the cursor is meanwhile, so each quick key press counts. Every
change of a game is stored before the page hears of it.

Knows no Streamlit: tests, and later agents, use it as the app does.
"""

from dojo_core.service.players import Player, Refused
from dojo_core.service.service import Service
from dojo_core.service.sources import KernelCard, Kernels, Store

__all__ = ["KernelCard", "Kernels", "Player", "Refused", "Service", "Store"]
