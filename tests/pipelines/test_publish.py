"""Publishing: rows become commands, requests are tried again, and permanent refusals are reported.

Against a node that is scripted here, and by the same rows against a real one in node/test_node.py.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from godwit_pipelines.errors import ConfigInvalid, PublishFailed
from godwit_pipelines.publish.commands import Command, bodies_of, command_of, key_of
from godwit_pipelines.publish.rest import Node

Answer = Callable[[list[dict[str, Any]]], tuple[int, Any]]


@contextmanager
def scripted(answers: list[Answer]) -> Iterator[tuple[str, list[list[dict[str, Any]]]]]:
    """A node that gives these answers, one after the other; the last one for good. None closes the connection unanswered."""
    asked: list[list[dict[str, Any]]] = []

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = answers[min(len(asked), len(answers) - 1)]
            asked.append(body)
            status, answered = answer(body)
            if status == 0:
                self.close_connection = True
                return
            content = json.dumps(answered).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


def commands(count: int) -> list[Command]:
    return [
        command_of({"subject": f"/s/{index}", "content": str(index)}, key_of("q", 0, 0, index), "")
        for index in range(count)
    ]


def take(body: list[dict[str, Any]]) -> tuple[int, Any]:
    return 200, [{"ok": "published", "at": "1.1"} for _ in body]


def lose(body: list[dict[str, Any]]) -> tuple[int, Any]:
    return 0, None


def node(url: str, timeout_s: float = 30.0) -> Node:
    return Node(url, timeout_s=timeout_s, sleep=lambda seconds: None)


def test_rows_become_commands_as_they_stand() -> None:
    row = {
        "subject": "/a",
        "content": b'{"x": 1.50}',
        "kind": "json",
        "retain": False,
        "reply_to": "/b",
        "guaranteed": None,
        "key": None,
    }
    text = '{"publish":"/a","content":{"x": 1.50},"key":"godwit-pipelines/q/1/2/3","reply_to":"/b","retain":false,"ack":"disk"}'
    assert command_of(row, key_of("q", 1, 2, 3), "disk").text == text
    assert (
        json.loads(command_of({"subject": "/a", "content": b"\0\xff", "kind": "bytes"}, "k", "").text)["bytes"]
        == "AP8="
    )
    assert json.loads(command_of({"subject": "/a", "content": 'é"', "kind": "text", "key": b"mine"}, "k", "").text) == {
        "publish": "/a",
        "text": 'é"',
        "key": "mine",
    }
    none: list[dict[str, object]] = [{"content": "{"}, {"content": "1", "kind": "xml"}]
    none += [{"content": b"\xff", "kind": "text"}, {"content": b"\xff"}, {"content": "1", "key": b"\xff"}]
    for row in none:
        with pytest.raises(PublishFailed, match="/a: "):
            command_of({"subject": "/a", **row}, "k", "")


def test_what_is_too_large_as_a_text_is_a_body_of_its_own() -> None:
    rows: list[dict[str, Any]] = [{"content": b"\xff" * 800_000, "kind": "bytes", "retain": False, "reply_to": "/b c"}]
    rows += [{"content": "é" * 400_000, "kind": "text"}, {"content": '"' + "é" * 500_000 + '"'}]
    large = [command_of({"subject": "/a b", **row}, "one-two-three-four", "disk") for row in rows]
    assert [each.alone and (each.alone.query, each.alone.media.split(";")[0]) for each in large] == [
        ("subject=%2Fa+b&reply_to=%2Fb+c&retain=false&ack=disk", "application/octet-stream"),
        ("subject=%2Fa+b&ack=disk", "text/plain"),
        ("subject=%2Fa+b&ack=disk", "application/json"),
    ]
    small = commands(2)
    assert [len(each) for each in bodies_of([small[0], *large, small[1]], 10)] == [1] * 5


def test_requests_are_bounded_by_messages_and_by_bytes() -> None:
    assert [len(each) for each in bodies_of(commands(25), 10)] == [10, 10, 5]
    big = [Command("x" * 400_000, "/a")] * 5
    assert [len(each) for each in bodies_of(big, 100)] == [2, 2, 1]


def test_a_lost_answer_is_asked_for_again_with_the_same_keys() -> None:
    with scripted([lose, take]) as (url, asked):
        node(url).send(commands(3))
    assert len(asked) == 2 and asked[0] == asked[1]


def test_from_the_first_that_is_to_be_sent_again_all_are() -> None:
    def busy(body: list[dict[str, Any]]) -> tuple[int, Any]:
        error = {"error": 4123, "name": "NodeBusy", "reason": "full", "retry": True}
        return 200, [{"ok": "published"}, error, *({"ok": "published"} for _ in body[2:])]

    with scripted([busy, lambda body: (503, {"title": "Draining", "code": 4200, "retry": True}), take]) as (url, asked):
        node(url).send(commands(4))
    assert [[each["publish"] for each in body] for body in asked] == [
        ["/s/0", "/s/1", "/s/2", "/s/3"],
        *[["/s/1", "/s/2", "/s/3"]] * 2,
    ]


def test_what_is_refused_for_good_names_the_message() -> None:
    def refuse(body: list[dict[str, Any]]) -> tuple[int, Any]:
        return 200, [{"error": 4114, "name": "PublishForbidden", "reason": "not yours", "retry": False} for _ in body]

    with (
        scripted([refuse]) as (url, _),
        pytest.raises(PublishFailed, match=r"/s/0: PublishForbidden \(4114\): not yours"),
    ):
        node(url).send(commands(2))
    refusal = {"title": "TokenMissing", "detail": "A token is needed.", "retry": False}
    with scripted([lambda body: (401, refusal)]) as (url, _), pytest.raises(PublishFailed, match="401 TokenMissing"):
        node(url).send(commands(1))


def test_patience_ends() -> None:
    busy: Answer = lambda body: (503, {"title": "NodeBusy", "retry": True})  # noqa: E731  # a script in one line
    with (
        scripted([busy]) as (url, asked),
        pytest.raises(PublishFailed, match=r"2 messages \(/s/0 and 1 other\) in 0"),
    ):
        node(url, timeout_s=0.01).send(commands(2))
    assert len(asked) == 1


def test_a_pace_is_kept() -> None:
    slept: list[float] = []
    with scripted([take]) as (url, _):
        paced = Node(url, per_second=100, sleep=slept.append)
        for _ in range(3):
            paced.send(commands(50))
        paced.close()
    assert 0.5 < slept[-1] <= 1.0


@pytest.mark.parametrize("rate, sizes", [(20.0, {2}), (0.5, {1}), (1000.0, {30})])
def test_no_request_holds_more_than_its_time_allows(rate: float, sizes: set[int]) -> None:
    slept = [0.0]
    with scripted([take]) as (url, asked):
        began = time.monotonic()
        paced = Node(url, per_second=rate, sleep=slept.append)
        paced.send(commands(30))
        took = time.monotonic() - began
        paced.close()
    assert {len(body) for body in asked} == sizes and sum(map(len, asked)) == 30
    assert slept[-1] + took == pytest.approx((30 - max(sizes)) / rate, abs=0.4), "all before the last had their time"


@pytest.mark.parametrize("url", ["", "127.0.0.1:8800", "ftp://x", "http://"])
def test_an_address_that_is_none_is_told(url: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"http://HOST:PORT"):
        Node(url)
