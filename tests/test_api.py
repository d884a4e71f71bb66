"""The calls over HTTP, as a program meets them: every answer is one that the description tells of."""

from __future__ import annotations

import copy
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import hypothesis
import jsonschema
import pytest
import schemathesis
from starlette.testclient import TestClient
from typer.testing import CliRunner

from agents.cli import app
from agents.doors import faults, gate, http
from agents.doors.gate import BadToken, the_token
from agents.doors.http import api
from agents.doors.seats import Allowance, Seats
from dojo_core.calls import CALLS
from dojo_core.package_data import document_path
from tests.doors import seated
from tests.stand_ins import Bench

TOKEN = "a-token-for-the-tests"
OPEN = {"kernel": "softmax", "shape": "4x8"}
HERE = "http://127.0.0.1:8600"


class Api:
    """A client that holds every answer against the description."""

    def __init__(self, seats: Seats) -> None:
        self.seats = seats
        self.wire = TestClient(api(seats, TOKEN), HERE, headers={"Authorization": f"Bearer {TOKEN}"})
        self.description = self.wire.get("/openapi.json").json()

    def ask(self, method: str, path: str, **more: Any) -> Any:
        answer = self.wire.request(method, path, **more)
        known = self.description["paths"].get(path)
        if known is not None:
            [operation] = known.values()
            told = operation["responses"][str(answer.status_code)]
            for name, header in told.get("headers", {}).items():
                assert not header["required"] or name in answer.headers
            [(kind, content)] = told["content"].items()
            assert answer.headers["content-type"].partition(";")[0] == kind
            if kind == "application/json":
                jsonschema.validate(answer.json(), self._whole(content["schema"]))
        return answer

    def _whole(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        return {**schema, "components": self.description["components"]}

    def call(self, name: str, arguments: object, **headers: str) -> Any:
        return self.ask("POST", f"/v1/calls/{name}", json=arguments, headers=headers)

    def said(self, name: str, arguments: object) -> Any:
        answer = self.call(name, arguments)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with seated(tmp_path_factory.mktemp("api"), "HTTP", Bench(), Allowance(a_second=1e6)) as seats:
        yield Api(seats)


def test_a_program_plays(program: Api) -> None:
    begun = program.said("open", OPEN)
    game = begun["data"]["game"]
    assert "softmax" in begun["text"]
    [listed] = [each for each in begun["next"] if each.startswith("moves(")] or [f'moves(game="{game}")']
    assert game in listed
    played = program.said("play", {"game": game, "moves": ["join_scopes m@0"]})
    assert played["data"]["game"] == game


def test_pages_for_people_and_programs_need_no_token(program: Api) -> None:
    for path in http.OPEN:
        assert program.ask("GET", path, headers={"Authorization": ""}).status_code == 200
    assert "curl" in program.ask("GET", "/").text


def test_every_call_is_described_with_all_that_can_go_wrong(program: Api) -> None:
    paths = program.description["paths"]
    assert set(paths) == {*http.OPEN, *(f"/v1/calls/{name}" for name in CALLS)}
    statuses = {str(fault.status) for fault in faults.FAULTS.values()}
    for name in CALLS:
        operation = paths[f"/v1/calls/{name}"]["post"]
        assert set(operation["responses"]) == {"200", *statuses}
        body = operation["requestBody"]["content"]["application/json"]["schema"]
        jsonschema.Draft202012Validator.check_schema(body)
        jsonschema.Draft202012Validator.check_schema(
            operation["responses"]["200"]["content"]["application/json"]["schema"]
        )


def test_the_page_tells_every_fault() -> None:
    rows = re.findall(
        r"^\| (\d+) \| `(\w+)` \|", document_path("api.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {code: int(status) for status, code in rows} == {c: f.status for c, f in faults.FAULTS.items()}


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (("POST", "/v1/calls/open", {"headers": {"Authorization": "Bearer another-token"}}), "no_token"),
        (("POST", "/v1/calls/open", {"headers": {"Authorization": f"Basic {TOKEN}"}}), "no_token"),
        (("POST", "/v1/calls/open", {"json": OPEN, "headers": {"Host": "evil.example"}}), "forbidden"),
        (("GET", "/", {"headers": {"Host": "127.0.0.1.evil.example"}}), "forbidden"),
        (("GET", "/openapi.json", {"headers": {"Host": "[::1"}}), "forbidden"),
        (
            ("POST", "/v1/calls/open", {"json": OPEN, "headers": {"Origin": "http://127.0.0.1:8501"}}),
            "forbidden",
        ),
        (("POST", "/v1/calls/open", {"json": OPEN, "headers": {"Origin": "null"}}), "forbidden"),
        (("POST", "/v1/calls/no", {"json": {}}), "not_found"),
        (("POST", "/v1/calls/open/", {"json": {}}), "not_found"),
        (("GET", "/docs", {}), "not_found"),
        (("POST", "/v1/calls/play", {"json": {"game": "nope", "moves": ["x"]}}), "not_found"),
        (("GET", "/v1/calls/open", {}), "wrong_method"),
        (("POST", "/", {}), "wrong_method"),
        (("POST", "/v1/calls/open", {"data": {"kernel": "relu"}}), "not_json"),
        (("POST", "/v1/calls/open", {}), "not_json"),
        (("POST", "/v1/calls/open", {"json": {"text": "x" * http.MOST_BYTES}}), "too_large"),
        (("POST", "/v1/calls/open", {"json": {"kernel": 3}}), "bad_request"),
        (("POST", "/v1/calls/open", {"json": {"kern": "relu"}}), "bad_request"),
        (("POST", "/v1/calls/open", {"json": ["relu"]}), "bad_request"),
        (("POST", "/v1/calls/open", {"json": {"text": "kernel k\nin x\n"}}), "unreadable"),
        (("POST", "/v1/calls/open", {"json": {"kernel": "relu:1000000x1000000"}}), "unreadable"),
        (("POST", "/v1/calls/open", {"json": {"kernel": "relu", "shape": "4"}}), "unreadable"),
    ],
)
def test_what_is_wrong_is_told_by_a_code_and_a_sentence(
    program: Api, request_: tuple[str, str, dict[str, Any]], code: str
) -> None:
    method, path, more = request_
    answer = program.ask(method, path, **more)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (faults.FAULTS[code].status, code), error
    assert error["message"].endswith(".") or code == "unreadable"  # which ends with an example of a line


def test_a_body_that_is_no_json_is_told_where(program: Api) -> None:
    for body in (
        "{",
        '{"kernel": "\\ud800"}',
        '{"kernel": NaN}',
        '{"kernel": "a", "kernel": "b"}',
        "[" * 1000,
        b"\xff",
    ):
        answer = program.ask(
            "POST", "/v1/calls/open", content=body, headers={"Content-Type": "application/json"}
        )
        assert answer.json()["error"]["code"] == "bad_request", answer.text


def test_a_name_of_any_length_says_how_the_program_came(program: Api) -> None:
    seats = program.seats
    assert seats.seat("").desk.client == "a program via HTTP"
    assert seats.seat(" two\tlines\n ").desk.client == "two lines via HTTP"
    long = seats.seat("x" * 500)
    assert long.desk.client.endswith("x via HTTP") and seats.seat("x" * 400) is long


def test_an_illegal_move_and_a_game_of_another_program_are_refused(program: Api) -> None:
    game = program.said("open", OPEN)["data"]["game"]
    illegal = program.call("play", {"game": game, "moves": ["join_scopes y@0"]})
    assert illegal.status_code == 409 and illegal.json()["error"]["code"] == "refused"
    other = program.call("play", {"game": game, "moves": ["join_scopes m@0"]}, **{"Dojo-Client": "another"})
    assert other.status_code == 409 and "not yours" in other.json()["error"]["message"]


def test_a_game_that_was_deleted_elsewhere_is_kept_again_once_it_gets_a_title(program: Api) -> None:
    game = program.said("open", OPEN)["data"]["game"]
    desk = program.seats.seat("").desk
    table = desk.table(game)  # as whoever looks at it holds it
    desk.service.games.forget(game, desk.owner)
    assert program.said("save", {"game": game, "title": "mine"})["data"]["title"] == table.game.title
    assert "mine" in program.said("games", {})["text"]


def test_a_client_that_asks_too_often_is_told_when_to_ask_again(tmp_path: Path) -> None:
    with seated(tmp_path, "HTTP", Bench(), Allowance(in_a_row=2, a_second=0.01)) as seats:
        program = Api(seats)
        answers = [program.call("kernels", {}) for _ in range(3)]
        assert [each.status_code for each in answers] == [200, 200, 429]
        assert 1 <= int(answers[2].headers["Retry-After"]) <= 100
        assert program.call("kernels", {}, **{"Dojo-Client": "patient"}).status_code == 200
        # another name does not help for long
        named = [program.call("kernels", {}, **{"Dojo-Client": f"name {number}"}) for number in range(5)]
        assert named[-1].status_code == 429 and "of all clients" in named[-1].json()["error"]["message"]


def test_what_takes_too_long_is_told_and_goes_on(tmp_path: Path) -> None:
    with seated(tmp_path, "HTTP", Bench(), Allowance(seconds=0)) as seats:
        program = Api(seats)
        answer = program.call("open", OPEN)
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "late")


def test_a_fault_of_ours_is_one_sentence(program: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("dojo_core.calls.desk.Desk.table", broken)
    answer = program.call("moves", {"game": "any"})
    assert answer.status_code == 500 and "secret" not in answer.text


# ---------------------------------------------------------------------- the token


def test_a_token_is_made_once_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    monkeypatch.delenv(gate.TOKEN, raising=False)
    token, told = the_token()
    file = tmp_path / "token"
    assert token in told and stat.S_IMODE(file.stat().st_mode) == 0o600
    again, told = the_token()
    assert again == token and token not in told
    file.chmod(0o644)
    with pytest.raises(BadToken, match="Others may read"):
        the_token()
    monkeypatch.setenv(gate.TOKEN, "short")
    with pytest.raises(BadToken, match="16 to 200"):
        the_token()
    monkeypatch.setenv(gate.TOKEN, TOKEN)
    assert the_token()[0] == TOKEN


def test_serve_says_what_it_serves() -> None:
    told = CliRunner().invoke(app, ["serve"])
    assert told.exit_code == 1 and "dojo serve --api serves programs" in told.output


# ---------------------------------------------------------------------- drawn requests


@pytest.mark.thorough  # benchmarks/api_fuzz.py; the faults one by one: above
def test_drawn_requests_get_answers_that_are_described(program: Api) -> None:
    """A few of schemathesis for each operation; benchmarks/api_fuzz.py goes on for as long as one likes."""
    described = copy.deepcopy(program.description)
    begun = described["paths"]["/v1/calls/open"]["post"]["requestBody"]["content"]["application/json"]
    begun["schema"]["properties"]["text"]["maxLength"] = 200  # long ones take long to draw
    for result in schemathesis.openapi.from_dict(described).get_all_operations():
        operation = result.ok()

        @hypothesis.settings(
            max_examples=2, database=None, derandomize=True, deadline=None, phases=[hypothesis.Phase.generate]
        )
        @hypothesis.given(operation.as_strategy())
        def drawn(case: Any) -> None:
            more = {"json": case.body} if isinstance(case.body, dict) else {}
            assert program.ask(case.method, case.path, **more).status_code != 500

        drawn()
