"""The app's door: ``streamlit run app.py``. Who may come in: pages/door.py; what is behind: pages/site.py."""

from pathlib import Path

from starlette.middleware import Middleware
from streamlit.starlette import App

from pages.door import Door, check_address

check_address()
app = App(Path(__file__).parent / "pages" / "site.py", middleware=[Middleware(Door)])
