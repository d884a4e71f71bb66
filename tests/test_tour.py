"""The tour, station by station: what each tells from recordings; test_watch.py has its way in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pages.tour import NO_RECORDING, STATIONS

TOLD = (
    "Five loops go over the whole matrix",
    "Ten moves that a player made",
    "an agent goes on",
    "interleaved rounds",
    "dojo export",
)


def script() -> None:
    from pages import tour

    tour.page()


@pytest.mark.parametrize("station", range(len(STATIONS)))
def test_a_station_tells_what_was_recorded(
    station: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    st.cache_resource.clear()
    page = AppTest.from_function(script, default_timeout=500)
    page.query_params["station"] = str(station + 1)
    page.run()
    assert not page.exception
    words = " ".join(each.value for each in (*page.markdown, *page.caption))
    assert TOLD[station] in words and all(told not in words for told in TOLD if told != TOLD[station])
    assert NO_RECORDING not in [each.value for each in page.error]
    assert page.button(key="tour_next").disabled == (station == len(STATIONS) - 1)
    assert page.button(key="tour_back").disabled == (station == 0)
