"""What all pages share: the one service of the process."""

import atexit
import os
import secrets
from contextlib import suppress

import streamlit as st

from agents.passes import play_heuristic
from agents.perfllm.across.asked import shipped_says
from agents.players import is_agent
from dojo_core.classes.elsewhere import Elsewhere
from dojo_core.classes.store import Classes
from dojo_core.classes.throttle import Throttle
from dojo_core.faults import text_fault
from dojo_core.line import LINES_FOLDER
from dojo_core.measure.catalogue import Catalogue
from dojo_core.measure.database import DatabaseFault
from dojo_core.measure.places import data_directory
from dojo_core.ownership import of_browser, of_login, of_visitor
from dojo_core.program.expressions import TextError
from dojo_core.service import Player, Refused, Service
from dojo_core.service.authored import of_link
from dojo_core.service.comparing import Comparisons
from dojo_core.service.library import Library
from dojo_core.service.memory import settle
from dojo_core.service.models import Models
from dojo_core.service.wiring import open_service
from dojo_core.sharing import BadLink, is_link, link, open_link
from pages.access import is_private, secret_in

MEASURE = "DOJO_MEASURE"  # 0 by ``dojo app --no-measure``


@st.cache_resource(show_spinner=False)
def the_service() -> Service:
    """Made at the first visit."""
    measure = os.environ.get(MEASURE) != "0"
    service = open_service(LINES_FOLDER, play_heuristic, is_private(), measure, shipped_says)
    settle()
    with suppress(DatabaseFault, OSError):  # told on the pages that need them
        the_classes()  # those that are over are deleted now
    return service


@st.cache_resource(show_spinner=False)
def the_library() -> Library:
    """The library, over a connection of its own: a long list does not hold up who measures."""
    return Library(Catalogue(), the_service(), Comparisons(data_directory() / "comparisons"), is_agent)


@st.cache_resource(show_spinner=False)
def the_models() -> Models:
    """Models of one's own, kept beside the records."""
    return Models(the_library().catalogue, the_service(), data_directory() / "models")


@st.cache_resource(show_spinner=False)
def the_classes() -> Classes:
    """Classes, kept beside the records; those that are over are deleted as it opens."""
    classes = Classes()
    atexit.register(classes.close)
    return classes


@st.cache_resource(show_spinner=False)
def the_classes_elsewhere() -> Elsewhere:
    """Classes at other Dojos that are told how students fare who work here."""

    def as_link(game: str) -> str:
        with suppress(Refused, ValueError):  # deleted meanwhile
            return link(the_service().copied(game)[0]) or ""
        return ""

    elsewhere = Elsewhere(as_link)
    atexit.register(elsewhere.close)
    return elsewhere


@st.cache_resource(show_spinner=False)
def wrong_codes() -> Throttle:
    """Counts the codes and keys that were none, of all who come."""
    return Throttle()


def the_owner() -> str:
    """Whose games this tab may change: the account's that is logged in, else the browser's."""
    state = st.session_state
    if "owner" not in state:
        account, secret = state.get("account"), secret_in(st.context.cookies)
        if account:
            state.owner = of_login(account)
        else:
            state.owner = of_browser(secret) if secret else of_visitor(secrets.token_hex(16))
    owner: str = state.owner
    return owner


def the_player() -> Player:
    """Who plays in this tab, the same on all pages. The address names the game, for a reload or another tab;
    whose it is, it does not say."""
    service, state = the_service(), st.session_state
    if "player" not in state:
        asked = st.query_params.get("g")
        shared = asked if asked is not None and is_link(asked) else None
        state.player = service.player(None, None if shared else asked, the_owner()).id
        if shared is not None:
            _open(shared, service.player(state.player))
    player = service.player(state.player, state.get("game"), the_owner())
    state.game = player.table.game.id if player.table is not None else None
    return player


def _open(shared: str, player: Player) -> None:
    """The game of a link on a player's board; what is wrong with it, or no longer applies, is told there."""
    service = the_service()
    try:
        opened = open_link(shared)
        line = [position.program.hash for position in opened.game.line()]
        service.sit_down(player, service.take_in(opened.game, player.owner, once=True))
        authored = of_link(st.query_params.get("times", ""), line)
        if authored is not None:
            service.came_with(player, authored)
        service.say(player, f"From a link. {opened.words}", "error" if opened.gone else "info")
    except TextError as fault:
        service.say(player, f"The link's game cannot be read: {text_fault(fault)}", "error")
    except (BadLink, Refused) as refusal:
        service.say(player, str(refusal), "error")
