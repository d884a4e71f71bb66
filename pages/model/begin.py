"""Where models are begun and found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from dojo_core.graph.examples import EXAMPLES
from dojo_core.service import Refused
from dojo_core.service.library import when_words
from dojo_core.service.model_files import Card
from dojo_core.service.refused import Unsized
from pages import shell
from pages.runs import plain
from pages.shared import the_models, the_owner

LARGEST = 200  # megabytes of a file
BELOW = "Below stand sizes to begin with: change them to yours, then press Open."


def page() -> None:
    shell.head(
        "Model",
        "Drop a model, and see which kernels it is made of, what each takes, how far that is from what the "
        "machine can do, and what to play next.",
    )
    said = st.session_state.pop("model_said", None)
    if said is not None:
        shell.notice(said, "error")
    left, right = st.columns([1, 1], gap="large")
    with left:
        _drop()
        st.subheader("Examples")
        for example in EXAMPLES:
            text, button = st.columns([4, 1.3], vertical_alignment="center")
            text.markdown(f"**{example.title}**  \n{example.about}")
            if button.button("Open", key=f"model_example_{example.name}", width="stretch"):
                _open(partial(the_models().example, example.name, the_owner()))
    with right:
        st.subheader("Your models")
        _deleted()
        cards = the_models().cards(the_owner())
        if not cards:
            st.caption("None yet. What you open is kept, with its games and times.")
        for card in cards:
            _row(card)


def _drop() -> None:
    state = st.session_state
    if (offered := state.pop("model_offered", None)) is not None:  # the field is to be drawn yet
        state["model_shapes"] = offered
    place = st.container()
    shapes = st.text_input(
        "Shapes of inputs whose sizes are open", key="model_shapes", max_chars=400,
        placeholder="x=1x3x224x224", help="Several with spaces between them; empty where the file says all.",
    )  # fmt: skip
    turn = state.setdefault("model_turn", 0)
    file = place.file_uploader(
        "Drop an ONNX file", type=["onnx"], key=f"model_file-{turn}", max_upload_size=LARGEST,
        help="With its weights in it. dojo import takes larger ones, and weights beside the file.",
    )  # fmt: skip
    waiting = state.get("model_waiting")
    if file is not None:
        state["model_turn"] = turn + 1  # another uploader, an empty one
        _take_in(file.name, file.getvalue(), shapes)
    elif waiting is not None and st.button(f"Open {waiting[0]}", type="primary", key="model_again"):
        _take_in(*waiting, shapes)


def _take_in(name: str, content: bytes, shapes: str) -> None:
    """Where sizes are open the file waits for them: it need not be dropped again."""
    state = st.session_state
    state.pop("model_waiting", None)

    def take_in() -> str:
        try:
            return the_models().take_in(name, content, the_owner(), shapes)
        except Unsized as unsized:
            state["model_waiting"] = name, content
            state["model_offered"] = f"{shapes} {unsized.offered}".strip()
            raise Refused(f"{unsized}\n{BELOW}") from None

    with st.spinner("Its operators become kernels …"):
        _open(take_in)


def _open(make: Callable[[], str]) -> None:
    try:
        model = make()
    except Refused as refusal:
        st.session_state["model_said"] = str(refusal)
        st.rerun()
    shell.readdress(m=model)


def _row(card: Card) -> None:
    about = card.about
    text, open_it, delete = st.columns([4, 1.3, 1.3], vertical_alignment="center")
    facts = f"{about.kernels} kernels, {about.calls} calls · {when_words(about.created)}"
    text.markdown(f"**{plain(about.title)}**  \n{facts}")
    if open_it.button("Open", key=f"model_open_{card.id}", width="stretch"):
        shell.readdress(m=card.id)
    if delete.button("Delete", key=f"model_delete_{card.id}", width="stretch"):
        try:
            the_models().delete(card.id, the_owner())
            st.session_state["model_deleted"] = card
        except Refused as refusal:  # gone already, in another tab
            st.session_state["model_said"] = str(refusal)
        st.rerun()


def _deleted() -> None:
    """What was deleted last, and the way back."""
    card: Card | None = st.session_state.get("model_deleted")
    if card is None:
        return
    message, undo = st.columns([5, 1.3], vertical_alignment="center")
    with message:
        shell.notice(f"Deleted {card.about.title}; its games stay.")

    def bring_back() -> None:
        st.session_state.pop("model_deleted")
        try:
            the_models().restore(card.id, the_owner())
        except Refused as refusal:
            st.session_state["model_said"] = str(refusal)

    undo.button("Undo", on_click=bring_back, key="model_undo", width="stretch")
