"""The app's door: ``streamlit run app.py``. Pages are thin views of one service per process."""

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from pages import shell

if PagesManager.uses_pages_directory:
    # Streamlit takes a folder named pages for its older kind of app until st.navigation has run once in the
    # process: a tab that was open while the server started again would be drawn by that kind.
    PagesManager.uses_pages_directory = False
    st.rerun()

# Views are packages, not files in pages/: the older kind of app would find those and run them by themselves.
shell.run()
