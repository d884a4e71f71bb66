"""What all pages share: the one service of the process."""

import gc
from pathlib import Path

import streamlit as st

from dojo_core.service import Service
from dojo_core.service.wiring import open_service

LINES = Path(__file__).parent.parent / "lines"


@st.cache_resource(show_spinner=False)
def the_service() -> Service:
    """Made at the first visit."""
    service = open_service(LINES)
    # What start-up made stays for good: collections need not look at it again.
    gc.collect()
    gc.freeze()
    return service
