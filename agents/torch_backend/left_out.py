"""Recurrent layers that TorchDynamo leaves out of its graphs. The backend never sees them: one line of the
log says so."""

from __future__ import annotations

import logging

from torch._dynamo.callback import CallbackArgs, callback_handler
from torch._dynamo.utils import counters

log = logging.getLogger(__name__)

_BREAK = "Attempted to wrap RNN, GRU, or LSTM"  # what TorchDynamo counts
_told = 0


def listen() -> None:
    """From now on, each time that TorchDynamo has compiled. Its reset ends it."""
    if _tell not in callback_handler.end_callbacks:
        callback_handler.register_end_callback(_tell)


def _tell(_: CallbackArgs) -> None:
    global _told
    count = sum(number for reason, number in counters["unimplemented"].items() if reason.startswith(_BREAK))
    if count > _told:
        log.warning(
            "nn.LSTM, nn.GRU or nn.RNN stays in PyTorch, with what is around it: TorchDynamo leaves it out. "
            "Set torch._dynamo.config.allow_rnn = True."
        )
    _told = count
