"""The page's address: what a page asks for holds, whatever a timer's late message says of the one before."""

from streamlit.testing.v1 import AppTest


def shown() -> None:
    import streamlit as st

    from pages import shell

    shell._keep_to_the_address()
    if st.button("Start"):
        shell.readdress(r="7", demo=None)
    st.text(f"watching {st.query_params.get('r', 'nothing')}")


def test_what_is_asked_of_the_address_holds_for_the_next_drawing_alone():
    page = AppTest.from_function(shown)
    page.query_params["demo"] = "softmax"
    page.run()
    assert page.text[0].value == "watching nothing"
    page.button[0].click().run()
    assert page.text[0].value == "watching 7" and "demo" not in page.query_params
    page.session_state["address_meant"] = {
        "r": "8"
    }  # asked for, and then a message with the address of before
    page.run()
    assert page.text[0].value == "watching 8"
    page.query_params["r"] = "9"  # somebody goes elsewhere later
    page.run()
    assert page.text[0].value == "watching 9"
