"""Compare: two to six programs and other implementations, measured in turns."""

from __future__ import annotations

import streamlit as st

from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.program.text import parse
from dojo_core.service.comparing import MOST, Comparison, Contender, Spec
from dojo_core.targets.registry import backend
from pages import shell
from pages.compare.results import results
from pages.shared import the_library, the_player

POLL = 0.5  # seconds, while a comparison runs
BOARD, LAST = "the game on the board", "the text compared last"
CHOSEN = "compare_chosen"  # in the session: which of the kernels, or these, was measured last


def page() -> None:
    with shell.content():
        shell.head(
            "Compare", "Programs and other implementations side by side, measured in turns on this machine."
        )
        comparisons = the_library().comparisons
        current = comparisons.get(st.session_state.get("comparison", ""))
        game = _game(current)
        if game is not None:
            _choose(game, current)
        if current is not None and current.open:
            _progress(current)
            return
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


def _of(current: Comparison | None) -> str:
    """What the form's widgets are named by: each comparison has its own, which begin with its choices."""
    return "new" if current is None else current.id


def _game(current: Comparison | None) -> Game | None:
    """What is compared: the board's game, a kernel's start, or the text that was compared last."""
    table = the_player().table
    if table is not None and not backend(table.game.target).native:
        table = None
    last = None if current is None else current.spec
    options = [*([BOARD] if table is not None else []), *kernels.names()]
    first = "softmax" if table is None else BOARD
    if last is not None:
        on_board = table is not None and table.game.start.text == last.start
        if on_board and (last.kernel is None or st.session_state.get(CHOSEN) == BOARD):
            first = BOARD
        elif last.kernel in options:
            first = last.kernel
        else:
            options, first = [LAST, *options], LAST
    left, middle, _ = st.columns([2, 2, 3], vertical_alignment="bottom")
    key = _of(current)
    kernel = left.selectbox("Kernel", options, index=options.index(first), key=f"compare_kernel-{key}")
    if kernel == LAST and last is not None:
        return Game.new(parse(last.start), last.kernel, last.shape, policy=last.policy)
    if kernel == BOARD and table is not None:
        middle.text_input("Game", table.game.title[:60], disabled=True, key=f"compare_game-{table.game.id}")
        with table.lock:
            return table.game
    definition = kernels.get(kernel or "softmax")
    usual = "x".join(map(str, definition.shapes[0]))
    if last is not None and last.kernel == kernel:
        usual = last.shape
    words = f"Shape ({'x'.join(definition.parameters)})"
    shape = middle.text_input(words, usual, key=f"compare_shape-{key}-{kernel}", max_chars=80)
    try:
        sizes = definition.shape(shape.strip().lower())
        return Game.new(definition.program(sizes), kernel, "x".join(map(str, sizes)))
    except (ValueError, TypeError) as fault:
        shell.notice(str(fault), "error")
        return None


def line_for_shape(name: str, shape: str) -> bool:
    """Was a recorded line made for this shape? At others it may not apply."""
    return recorded_lines()[name].shape == shape


def _choose(game: Game, current: Comparison | None) -> None:
    """The entries and the rounds: at first those of the comparison that is shown, which one click repeats."""
    library = the_library()
    offered = {each.name: each for each in library.contenders(game, the_player().owner)}
    last = current.spec if current is not None and current.spec.start == game.start.text else None
    if last is not None:  # records and the board may have gone on since, and be named otherwise
        first = [each.name for each in last.contenders]
        offered = {each.name: each for each in last.contenders} | offered
    else:
        first = _first(game, offered)
    key = f"{_of(current)}-{game.start.hash}"
    left, middle, right = st.columns([6, 1.4, 1], vertical_alignment="bottom")
    names = left.multiselect(
        f"Entries, two to {MOST}", list(offered), default=first, max_selections=MOST,
        key=f"compare_entries-{key}",
    )  # fmt: skip
    rounds = middle.number_input(
        "Rounds", 3, 100, 10 if last is None else last.rounds, key=f"compare_rounds-{_of(current)}",
        help="In each round every entry runs ten times.",
    )  # fmt: skip
    busy = current is not None and current.open
    if right.button("Measure", type="primary", width="stretch", disabled=busy or len(names) < 2):
        contenders = tuple(offered[name] for name in names)
        spec = Spec(game.kernel, game.shape, game.start.text, game.policy, contenders, int(rounds))
        try:
            st.session_state["comparison"] = library.comparisons.start(spec).id
            st.session_state[CHOSEN] = st.session_state[f"compare_kernel-{_of(current)}"]
        except ValueError as fault:
            shell.notice(str(fault), "error")
        else:
            st.rerun()


def _first(game: Game, offered: dict[str, Contender]) -> list[str]:
    """What is proposed where nothing was chosen yet."""
    lines = [each.line for each in offered.values() if each.line and line_for_shape(each.line, game.shape)]
    first = [name for name in offered if name.startswith(("the board", "record 1"))]
    first = [*first, *(f"line {name}" for name in lines)][:2]
    first = ["start", *first, *(["heuristic"] if not first else [])]
    return first + ["PyTorch eager"] * ("PyTorch eager" in offered)


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
