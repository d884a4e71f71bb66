"""Components of our own: Streamlit hands on what they are given, and looks for no tables in it."""

import json
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.components.v2.bidi_component import serialization
from streamlit.proto.BidiComponent_pb2 import BidiComponent

from pages.components import made

PAGES = Path(__file__).parent.parent / "pages"


def test_what_a_component_is_given_is_searched_for_no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """For these Streamlit imports pandas, which no first page needs."""
    given: list[Any] = []
    searched: list[Any] = []

    def mount(*, data: Any, **options: Any) -> None:
        given.append(data)

    monkeypatch.setattr(st.components.v2, "component", lambda *_, **__: mount)
    monkeypatch.setattr(serialization, "is_dataframe_like", searched.append)
    made("told", None, "export default () => {};")(data={"rows": [1, 2.5], "of": {"a": ["b"]}}, key="told")
    message = BidiComponent()
    serialization.serialize_mixed_data(given[0], message)
    assert json.loads(message.json) == [{"rows": [1, 2.5], "of": {"a": ["b"]}}]
    assert not searched


def test_all_components_are_made_in_that_way() -> None:
    made = [path.name for path in PAGES.rglob("*.py") if "v2.component(" in path.read_text(encoding="utf-8")]
    assert made == ["components.py"]
