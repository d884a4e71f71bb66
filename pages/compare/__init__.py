"""Compare: two to six programs and other implementations, measured in turns."""

from __future__ import annotations

import streamlit as st

from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.service.comparing import MOST, Comparison, Spec
from dojo_core.targets.registry import backend
from pages import shell
from pages.compare.results import results
from pages.shared import the_library, the_player

POLL = 0.5  # seconds, while a comparison runs
BOARD = "the game on the board"


def page() -> None:
    with shell.content():
        shell.head(
            "Compare", "Programs and other implementations side by side, measured in turns on this machine."
        )
        comparisons = the_library().comparisons
        current = comparisons.get(st.session_state.get("comparison", ""))
        if current is not None and current.open:
            _progress(current)
            return
        game = _game(current)
        if game is not None:
            _choose(game)
        _earlier(current)
        if current is None:
            shell.facts(
                "Measure runs the entries in turns, each in a process of its own. What comes of it: times "
                "with their intervals, every sample, the roofline, and the programs side by side."
            )
            return
        if current.message:
            shell.notice(current.message, "error" if current.state == "failed" else "info")
        if current.document is not None:
            results(current.document)


def _game(current: Comparison | None) -> Game | None:
    """What is compared: the board's game, or a kernel's start; at first what was compared last."""
    table = the_player().table
    options = [BOARD] if table is not None and backend(table.game.target).native else []
    left, middle, _ = st.columns([2, 2, 3], vertical_alignment="bottom")
    names = [*options, *kernels.names()]
    last = current.spec if current is not None and current.spec.kernel in names else None
    first = 0 if options else names.index("softmax")
    if last is not None and last.kernel is not None:
        first = names.index(last.kernel)
    kernel = left.selectbox("Kernel", names, index=first, key="compare_kernel")
    if kernel == BOARD and table is not None:
        middle.text_input("Game", table.game.title[:60], disabled=True, key=f"compare_game-{table.game.id}")
        with table.lock:
            return table.game
    definition = kernels.get(kernel or "softmax")
    usual = "x".join(map(str, definition.shapes[0]))
    if last is not None and last.kernel == kernel:
        usual = last.shape
    words = f"Shape ({'x'.join(definition.parameters)})"
    shape = middle.text_input(words, usual, key=f"compare_shape-{kernel}", max_chars=80)
    try:
        sizes = definition.shape(shape.strip().lower())
        return Game.new(definition.program(sizes), kernel, "x".join(map(str, sizes)))
    except (ValueError, TypeError) as fault:
        shell.notice(str(fault), "error")
        return None


def line_for_shape(name: str, shape: str) -> bool:
    """Was a recorded line made for this shape? At others it may not apply."""
    return recorded_lines()[name].shape == shape


def _choose(game: Game) -> None:
    library = the_library()
    offered = {each.name: each for each in library.contenders(game, the_player().owner)}
    lines = [each.line for each in offered.values() if each.line and line_for_shape(each.line, game.shape)]
    first = [name for name in offered if name.startswith(("the board", "record 1"))]
    first = [*first, *(f"line {name}" for name in lines)][:2]
    first = ["start", *first, *(["heuristic"] if not first else [])]
    first += ["PyTorch eager"] if "PyTorch eager" in offered else []
    left, middle, right = st.columns([6, 1.4, 1], vertical_alignment="bottom")
    names = left.multiselect(
        f"Entries, two to {MOST}", list(offered), default=first, max_selections=MOST,
        key=f"compare_entries-{game.start.hash}",
    )  # fmt: skip
    rounds = middle.number_input(
        "Rounds", 3, 100, 10, key="compare_rounds", help="In each round every entry runs ten times."
    )
    if right.button("Measure", type="primary", width="stretch", disabled=len(names) < 2):
        contenders = tuple(offered[name] for name in names)
        spec = Spec(game.kernel, game.shape, game.start.text, game.policy, contenders, int(rounds))
        try:
            st.session_state["comparison"] = library.comparisons.start(spec).id
        except ValueError as fault:
            shell.notice(str(fault), "error")
        else:
            st.rerun()


def _earlier(current: Comparison | None) -> None:
    """Those that are kept, to look at again."""
    comparisons = the_library().comparisons
    identifiers = [path.stem for path in comparisons.files()]
    if not identifiers:
        return
    shown = current.id if current is not None and current.id in identifiers else None

    def words(identifier: str) -> str:
        comparison = comparisons.get(identifier)
        when = f"{identifier[:4]}-{identifier[4:6]}-{identifier[6:8]} {identifier[9:11]}:{identifier[11:13]}"
        return when if comparison is None else f"{when}  {comparison.spec.title[:50]}"

    chosen = st.selectbox(
        "Comparisons that were made", identifiers,
        index=None if shown is None else identifiers.index(shown), format_func=words, placeholder="Open one",
        key=f"compare_earlier-{shown}-{len(identifiers)}",
    )  # fmt: skip
    if chosen is not None and chosen != shown:
        st.session_state["comparison"] = chosen
        st.rerun()


def _progress(current: Comparison) -> None:
    comparisons = the_library().comparisons

    def draw() -> None:
        if not current.open:
            st.rerun()
        total = current.of or current.spec.rounds
        done, stop = st.columns([8, 1], vertical_alignment="center")
        step = current.step.replace("ours: ", "")
        words = "waiting for another comparison" if current.state == "waiting" else step
        with done:
            st.progress(min(1.0, current.rounds / total))
            status = f"{current.spec.title}: round {current.rounds} of {total}"
            shell.notice(f"{status}, {words}" if words else status)
            shell.tell_of_waiting("compare")
        if stop.button("At once" if current.stopping else "Stop", key="compare_stop", width="stretch"):
            comparisons.stop(current.id)
        if current.stopping:
            done.caption("It ends after the step under way, and keeps what was measured.")

    st.fragment(run_every=POLL)(draw)()
