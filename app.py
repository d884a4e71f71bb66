"""The app's door: ``streamlit run app.py``. Pages are thin views of one service per process."""

import streamlit as st

st.set_page_config(page_title="The Dojo", page_icon="🥋", layout="wide", initial_sidebar_state="collapsed")
st.navigation([st.Page("pages/play.py", title="Play", default=True)], position="hidden").run()
