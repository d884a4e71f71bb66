"""The game as calls: what MCP, HTTP, notebooks, the command line and the app ask of it, in the same words."""

from dojo_core.calls import keeping, looking, measuring, opening, playing  # which register what they define
from dojo_core.calls.call import Answer, Call, CallFault, Parameter
from dojo_core.calls.desk import Desk, Limits
from dojo_core.calls.registry import CALLS, call

_FILES = [file.__name__ for file in (opening, looking, playing, measuring, keeping)]
_SORTED = sorted(CALLS.items(), key=lambda item: _FILES.index(item[1].run.__module__))
CALLS.clear()  # told in the order in which a game is played, not in that of imports
CALLS.update(_SORTED)

__all__ = ["CALLS", "Answer", "Call", "CallFault", "Desk", "Limits", "Parameter", "call"]
