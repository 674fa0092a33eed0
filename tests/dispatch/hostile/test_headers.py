"""Heads of requests whose bytes are not text, and bodies that are not in the encoding that their head names."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from godwit.dispatch.api.answers import show_problem
from godwit.dispatch.codes import DispatchCode
from godwit.dispatch.errors import RequestRefused
from tests.dispatch.conftest import Running, running
from tests.dispatch.test_policies import ANN

DEADLINE_S = 60


async def ask(both: Running, method: str, path: str, headers: dict[str, bytes], body: bytes = b"") -> tuple[int, int]:
    """Status and code of the answer to a request whose head has any bytes."""
    host, _, port = both.url.removeprefix("http://").rpartition(":")
    fields = {"Authorization": b"Bearer " + both.key.encode(), "Content-Length": b"%d" % len(body), **headers}
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: x", b"Connection: close"]
    lines += [name.encode() + b": " + value for name, value in fields.items()]
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
    head, _, answered = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), json.loads(answered).get("code", 0)


@pytest.mark.parametrize(
    ("method", "path", "field", "value", "expected"),
    [
        ("POST", "/v1/notifications", "Idempotency-Key", b"\xff\xfe", (422, 4300)),
        ("POST", "/v1/notifications", "Authorization", b"Bearer \xff", (401, 4303)),
        ("GET", "/v1/inbox", "Authorization", b"Bearer \xff.\xff.\xff", (401, 4312)),
        ("POST", "/v1/notifications", "X-Forwarded-For", b"\xff", (202, 0)),
        ("POST", "/v1/notifications", "Content-Encoding", b"gzip", (422, 4300)),
        ("POST", "/v1/receivers/import", "Content-Encoding", b"gzip", (422, 4300)),
        ("PUT", "/v1/receivers/bob", "Content-Encoding", b"deflate", (422, 4300)),
    ],
)
async def test_a_head_that_cannot_be_read_is_refused_with_a_code(
    dispatch: Running, method: str, path: str, field: str, value: bytes, expected: tuple[int, int]
) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await dispatch.api("PUT", "/v1/receivers/ann", {})
        body = b"" if method == "GET" else json.dumps(ANN).encode()
        assert await ask(dispatch, method, path, {field: value}, body) == expected


async def test_a_number_that_json_cannot_write_is_refused(dispatch: Running) -> None:
    body = b'{"to": {"receiver": "ann"}, "content": {"title": "x", "data": {"a": 1e999}}}'
    status, answer = await dispatch.api("PUT", "/v1/notifications/n1", body)
    assert (status, answer["code"], answer["accepted"]) == (422, 4300, False)


def test_an_error_inside_does_not_claim_that_nothing_was_accepted() -> None:
    assert show_problem(RequestRefused(DispatchCode.REQUEST_FAILED))["accepted"] is None
    assert show_problem(RequestRefused(DispatchCode.REQUEST_INVALID))["accepted"] is False


async def test_the_id_of_a_batch_s_item_is_named_where_it_is_wrong(dispatch: Running) -> None:
    await dispatch.api("PUT", "/v1/receivers/ann", {})
    _, answer = await dispatch.api(
        "POST", "/v1/notifications/batch", [{**ANN, "id": wrong} for wrong in ("../x", 7, "")]
    )
    assert [(one["code"], one["pointer"]) for one in answer["results"]] == [(4300, "/id")] * 3


async def test_a_name_that_no_path_could_have_is_refused_in_a_body(tmp_path: Path, runtime: Path) -> None:
    limits = {"dispatch_limits": {"name_characters_max": 8}}
    async with running(tmp_path, limits) as both, asyncio.timeout(DEADLINE_S):
        long, fits = "r" * 9, "r" * 8
        assert (await both.api("PUT", f"/v1/receivers/{long}", {}))[1]["code"] == 4300
        for name, expected in ((long, 422), (fits, 202)):
            note = {"to": {"receiver": {"id": name}}, "content": {"title": "x"}}
            assert (await both.api("PUT", "/v1/notifications/n1", note))[0] == expected
        _, answer = await both.api("POST", "/v1/notifications/batch", [{**note, "id": long}, {**note, "id": fits}])
        assert answer["results"][0]["pointer"] == "/id" and answer["results"][1]["state"] == "accepted"
        lines = [{"id": long}, {"id": "a", "addresses": [{"id": long, "channel": "email", "value": "a@b.example"}]}]
        body = "\n".join(map(json.dumps, lines)).encode()
        _, answer = await both.api("POST", "/v1/receivers/import", body)
        assert [one["pointer"] for one in answer["rejected"]] == ["/id", "/addresses/0/id"]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"GET / HTTP/9.9\r\nHost: x\r\n", (400, 4300)),
        (b"no method\r\n", (400, 4300)),
        (b"GET /v1/inbox HTTP/1.1\r\nHost: x\r\nBad Name: 1\r\n", (400, 4300)),
        (b"GET /v1/inbox HTTP/1.1\r\nHost: x\r\nLong: " + b"x" * 20_000 + b"\r\n", (400, 4300)),
        (b"POST /v1/inbox/marks HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n", (400, 4300)),
        (b"POST /v1/inbox/marks HTTP/1.1\r\nHost: x\r\nExpect: much\r\nConnection: close\r\n", (417, 4300)),
        (b"GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", (404, 4308)),
        (b"PATCH /v1/inbox HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", (405, 4309)),
    ],
)
async def test_an_error_of_the_http_library_is_a_problem_with_a_code(
    dispatch: Running, head: bytes, expected: tuple[int, int]
) -> None:
    host, _, port = dispatch.url.removeprefix("http://").rpartition(":")
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head + b"\r\n")
        answered, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    problem = json.loads(body)
    assert b"content-type: application/problem+json" in answered.lower()
    assert (int(answered.split()[1]), problem["code"]) == expected and problem["status"] == expected[0]
