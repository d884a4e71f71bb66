"""What stands behind the door (app.py): the pages, for whoever may come in."""

import streamlit as st

from pages import shell
from pages.access import account

st.session_state.account = account()
shell.run()
