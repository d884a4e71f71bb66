"""The Compare page without a browser or a clock: what one chose stays while and after it is measured."""

from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dojo_core import kernels
from dojo_core.service.comparing import Comparisons, Contender, Spec
from pages.shared import the_library
from tests.test_comparing import comparisons, until


def app() -> None:
    from pages.compare import page

    page()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Comparisons:
    """Comparisons that go on until they are stopped."""
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    st.cache_resource.clear()
    made: Comparisons = comparisons(tmp_path / "comparisons", hold=True)
    monkeypatch.setattr(the_library(), "comparisons", made)
    return made


def form(page: Any) -> tuple[str, str, list[str], float]:
    assert not page.exception
    shape = next(field for field in page.text_input if field.label.startswith("Shape"))
    kernel = next(choice for choice in page.selectbox if choice.label == "Kernel")
    return kernel.value, shape.value, page.multiselect[0].value, page.number_input[0].value


def measure(page: Any) -> Any:
    return next(button for button in page.button if button.label == "Measure")


@pytest.mark.thorough  # measured again: below; the form: test_comparing.py
def test_the_form_keeps_what_one_chose_and_one_click_measures_it_again(host: Comparisons) -> None:
    page = AppTest.from_function(app, default_timeout=500).run()
    next(choice for choice in page.selectbox if choice.label == "Kernel").set_value("relu").run()
    page.text_input[0].set_value("8x32").run()
    page.multiselect[0].set_value(["heuristic", "start"]).run()
    page.number_input[0].set_value(7).run()
    chosen = form(page)
    assert chosen == ("relu", "8x32", ["heuristic", "start"], 7)
    measure(page).click().run()
    under_way = host.get(page.session_state["comparison"])
    assert under_way is not None and under_way.open
    assert form(page) == chosen and measure(page).disabled  # in sight, while it is measured
    until(under_way, lambda each: each.rounds == 1)
    host.stop(under_way.id)
    until(under_way, lambda each: not each.open)
    page.run()
    assert form(page) == chosen and not measure(page).disabled
    page.number_input[0].set_value(4).run()  # changed, and measured again
    measure(page).click().run()
    again = host.get(page.session_state["comparison"])
    assert again is not None and again.spec.rounds == 4 and again.spec.contenders == under_way.spec.contenders
    host.close()


def test_what_is_offered_no_more_and_a_text_of_ones_own_can_be_measured_again(host: Comparisons) -> None:
    text = kernels.get("relu").program((8, 32)).text
    gone = Contender("program", "the board, move 3", text, moves=3)
    made = host.start(Spec(None, "", text, "reassoc", (Contender("start", "start"), gone), 5))
    page = AppTest.from_function(app, default_timeout=500)
    page.session_state["comparison"] = made.id
    page.run()
    assert page.selectbox[0].value == "the text compared last"
    assert page.multiselect[0].value == ["start", "the board, move 3"] and page.number_input[0].value == 5
    host.close()
