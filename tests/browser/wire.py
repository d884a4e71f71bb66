"""The app's WebSocket without a browser: what a page, or somebody who means no good, can send and gets."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

LOCAL = "127.0.0.1"


class Wire:
    """One session. ``board`` and ``feed`` hold what the two components were last given."""

    def __init__(self, port: int, query: str = "", page: str = "", token: str = "", **headers: str) -> None:
        """``page``: as in the address; "" is Play. ``token``: against forgery, as a cookie has it."""
        named = headers.pop("Host", f"{LOCAL}:{port}")
        self.socket = connect(  # type: ignore[misc]
            f"ws://{named}/_stcore/stream",
            sock=socket.create_connection((LOCAL, port)),
            proxy=None,
            legacy=True,
            subprotocols=["streamlit", *([token] if token else [])],  # type: ignore[list-item]
            additional_headers=headers,
            max_size=None,
        )
        self.components: dict[str, str] = {}  # names to ids
        self.data: dict[str, Any] = {}  # by names
        self.words: list[str] = []  # what Streamlit's own elements say
        self.buttons: dict[str, str] = {}  # their labels to their ids
        self.leads_to = ""  # where the browser would be sent
        self._client, self._sequence = "wire", 0
        self._query = query
        self._page, self._page_name = "", page
        self._rerun({})

    @property
    def board(self) -> dict[str, Any]:
        return dict(self.data["dojo_board"])

    @property
    def feed(self) -> dict[str, Any]:
        return dict(self.data["dojo_feed"])

    def event(self, kind: str, **fields: Any) -> None:
        """One event as the board sends it, made on the position that was drawn last."""
        board = self.data.get("dojo_board", {})
        at = {}
        if board.get("view") == "play":
            at = {"game": board["game"]["id"], "position": board["position"]["id"]}
        self._sequence += 1
        event = {"seq": self._sequence, "kind": kind, **at, **fields}
        self.send({"client": self._client, "events": [event]})

    def send(self, value: Any) -> None:
        """Whatever it is, where a page sends its events."""
        self.raw(json.dumps([{"event": "events", "value": value}]))

    def raw(self, text: str) -> None:
        """The text that the component's events come as."""
        self._rerun({f"$$STREAMLIT_INTERNAL_KEY_{self.components['dojo_board']}__events": text})

    def press(self, label: str) -> None:
        """A button of Streamlit's own."""
        self._rerun({}, self.buttons[label])

    def look(self) -> None:
        """Have the page drawn again, as its polling does."""
        self._rerun({})

    def frame(self, data: bytes) -> None:
        """Bytes that may be no message at all."""
        self.socket.send(data)

    def _rerun(self, triggers: Mapping[str, str], pressed: str = "") -> None:
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.page_script_hash = self._page
        if not self._page:
            message.rerun_script.page_name = self._page_name
        for widget, text in triggers.items():
            state = message.rerun_script.widget_states.widgets.add()
            state.id, state.json_trigger_value = widget, text
        for component in self.components.values():
            state = message.rerun_script.widget_states.widgets.add()
            state.id, state.json_value = component, "{}"
        if pressed:
            state = message.rerun_script.widget_states.widgets.add()
            state.id, state.trigger_value = pressed, True
        self.socket.send(message.SerializeToString())
        self.until_drawn()

    def until_drawn(self, seconds: float = 60) -> None:
        """Read until the script has run to its end."""
        while True:
            message = ForwardMsg.FromString(self.socket.recv(seconds))  # type: ignore[arg-type]
            kind = message.WhichOneof("type")
            if kind == "new_session":
                self._page = message.new_session.page_script_hash
                self.words = []
            if kind == "auth_redirect":
                self.leads_to = message.auth_redirect.url
            if kind == "delta" and message.delta.WhichOneof("type") == "new_element":
                self._element(message.delta.new_element)
            if kind == "script_finished" and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                return

    def _element(self, element: Any) -> None:
        kind = element.WhichOneof("type")
        if kind == "bidi_component":
            name = element.bidi_component.component_name
            self.components[name] = element.bidi_component.id
            [self.data[name]] = json.loads(element.bidi_component.json)
        elif kind is not None:
            if kind == "button":
                self.buttons[element.button.label] = element.button.id
            self.words.append(str(getattr(element, kind)))

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
