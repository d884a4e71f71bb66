"""Pages that need no server: a study that was built, and what a notebook draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dojo_core import notebook
from dojo_core.study.page import study_page
from dojo_core.study.sheets import study_data
from dojo_core.study.study import read_study
from dojo_core.study.times import Times
from tests.test_studies import STUDY


def a_study(folder: Path) -> Path:
    """With questions, a variation and times of two machines."""
    study = read_study(STUDY, Path("two.md"))
    (game,) = study.games
    hashes = [position.program.hash for position in game.positions.values()]
    times = {h: [8e-6 / (n + 1), 9e-6] for n, h in enumerate(hashes)}
    fast = Times("a" * 16, "Fast machine, 8 cores with AVX-512", "2026-11-27", times)
    slow = Times("b" * 16, "Slow machine", "2026-11-26", {hashes[0]: [4e-5, 4e-5]})
    return _kept(folder / "study.html", study_page(study_data(study, [fast, slow])))


def a_notebook(folder: Path) -> Path:
    """A position, its moves, a move that is legal and one that is not, its C; under a notebook's width."""
    game = notebook.play(notebook.start("softmax:64x512"), "join_scopes m@0", "join_scopes m@0")
    drawn: tuple[Any, ...] = (
        game,
        game.current.program,
        notebook.moves(game),
        notebook.why(game, "vectorize m#1@1"),
        notebook.why(game, "parallelize m@0"),
        notebook.show(game, "code"),
    )
    cells = "\n".join(f"<div class='cell'>{each._repr_html_()}</div>" for each in drawn)
    head = "<meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>Notebook</title>"
    dark = "@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd } }"
    style = (
        f"<style>body {{ font: 14px sans-serif; margin: 8px }} .cell {{ overflow-x: auto }} {dark}</style>"
    )
    return _kept(folder / "notebook.html", f"<!doctype html><html lang='en'>{head}{style}<body>{cells}")


def _kept(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file
