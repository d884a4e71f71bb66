"""The game as calls: what MCP, HTTP, notebooks, the command line and the app ask of it, in the same words."""

from dojo_core.calls import keeping, looking, measuring, opening, playing  # noqa: F401, which register what they define
from dojo_core.calls.call import Answer, Call, CallFault, Parameter
from dojo_core.calls.desk import Desk, Limits
from dojo_core.calls.registry import CALLS, call

__all__ = ["CALLS", "Answer", "Call", "CallFault", "Desk", "Limits", "Parameter", "call"]
