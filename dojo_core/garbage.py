"""How often Python looks for garbage that holds itself.

Programs are trees, made by the thousand and never circles: reference counts free them. Looking for circles as
often as Python does of itself (700 objects more) took a tenth of the time of random walks.
"""

import gc

MADE = 100_000  # objects that are there more, some 10 MB, before the youngest are looked through
YOUNGER = 20  # such looks before one at the next older generation


def look_seldom() -> None:
    """For a process of our own; a program that imports us decides for itself."""
    gc.set_threshold(MADE, YOUNGER, YOUNGER)
