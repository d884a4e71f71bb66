"""The app: ``streamlit run app.py``. Who may come in: pages/access.py; the pages: pages/site.py.

Where the Dojo is installed, this file and .streamlit lie in pages/entry, and ``dojo app`` runs them there.
"""

from starlette.middleware import Middleware
from streamlit.starlette import App

from dojo_core.package_data import data_path
from pages import class_door, door
from pages.access import AccessMiddleware, check_address
from pages.lost import LostMiddleware

check_address()
app = App(
    data_path("pages", "site.py"),
    routes=[*door.routes(), *class_door.routes()],
    middleware=[Middleware(AccessMiddleware), Middleware(LostMiddleware)],
)
