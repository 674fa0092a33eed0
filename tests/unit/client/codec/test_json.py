"""The JSON encoding writes and reads what the protocol shows."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.client.codec.command import (
    Choice,
    Command,
    Connect,
    Draft,
    Ping,
    Publish,
    Subscribe,
    Unsubscribe,
    Unwatch,
    Watch,
    content_of,
)
from godwit.client.codec.json import JsonEncoding
from godwit.client.codec.push import Ended, Marked, Notice, Received
from godwit.client.codec.reply import Refusal, Reply
from godwit.client.errors import FrameInvalid
from godwit.client.items import Dropped
from godwit.client.resume_point import ResumePoint
from godwit.model import Ack, Gap, GapReason, Interest, Kind, Message, Outcome, Position

AT = Position(7, 42)


@pytest.mark.parametrize(
    ("command", "written"),
    [
        (Connect(1, "t", "name/1"), {"id": 1, "connect": {"client": "name/1", "token": "t"}}),
        (Connect(1, None, "name/1"), {"id": 1, "connect": {"client": "name/1"}}),
        (Subscribe(2, "/a/b", ResumePoint(), Choice()), {"id": 2, "subscribe": "/a/b"}),
        (Subscribe(2, "/a/b", ResumePoint({"/a/b": AT}), Choice()), {"id": 2, "subscribe": "/a/b", "after": "7.42"}),
        (
            Subscribe(2, "/a/*", ResumePoint({"/a/b": AT}, "1.2.3"), Choice()),
            {"id": 2, "subscribe": "/a/*", "after": {"/a/b": "7.42"}, "since": "1.2.3"},
        ),
        (
            Subscribe(2, "/a", ResumePoint(), Choice(10, False, "oldest", 500)),
            {"id": 2, "subscribe": "/a", "last": 10, "snapshot": False, "on_gap": "oldest", "conflate_ms": 500},
        ),
        (Subscribe(2, "/a", ResumePoint({"/a": AT}), Choice(10)), {"id": 2, "subscribe": "/a", "after": "7.42"}),
        (Unsubscribe(3, "/a"), {"id": 3, "unsubscribe": "/a"}),
        (Publish(4, Draft("/a", Kind.JSON, b'{"x":1}')), {"id": 4, "publish": "/a", "content": {"x": 1}}),
        (Publish(4, Draft("/a", Kind.TEXT, "ä".encode())), {"id": 4, "publish": "/a", "text": "ä"}),
        (Publish(4, Draft("/a", Kind.BYTES, b"\x00\xff")), {"id": 4, "publish": "/a", "bytes": "AP8="}),
        (
            Publish(4, Draft("/a", Kind.TEXT, b"", "k" * 16, "/r", False, False, Ack.DISK)),
            {
                "id": 4,
                "publish": "/a",
                "text": "",
                "key": "k" * 16,
                "reply_to": "/r",
                "retain": False,
                "guaranteed": False,
                "ack": "disk",
            },
        ),
        (Ping(5), {"id": 5, "ping": True}),
        (Watch(6, "/a/**"), {"id": 6, "watch": "/a/**"}),
        (Unwatch(6, "/a/**"), {"id": 6, "unwatch": "/a/**"}),
    ],
)
def test_command_is_written_as_the_contract_shows(command: Command, written: dict[str, object]) -> None:
    encoding = JsonEncoding()
    assert json.loads(encoding.encode([command])) == written
    assert json.loads(encoding.encode([command, command])) == [written, written]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (
            '{"message":"/a/b","at":"7.59","time":5,"content":{"x": 1.50}}',
            Message("/a/b", b'{"x": 1.50}', Kind.JSON, Position(7, 59), time_ms=5),
        ),
        ('{"message":"/a","at":"7.1","content":null}', Message("/a", b"null", Kind.JSON, Position(7, 1))),
        ('{"message":"/a","text":"hi"}', Message("/a", b"hi", Kind.TEXT)),
        (
            '{"message":"/a","at":"7.9","after":"7.5","conflated":4,"bytes":"AP8=","reply_to":"/r","pattern":"/*",'
            '"snapshot":true}',
            Message("/a", b"\x00\xff", Kind.BYTES, Position(7, 9), Position(7, 5), 0, "/r", "/*", 4, True),
        ),
        (
            '{"id":1,"ok":"connected","session":"s","node":"n","time":1,"ping_interval_ms":25000}',
            Reply(1, "connected", session="s", node="n", ping_interval_ms=25000),
        ),
        (
            '{"id":2,"ok":"subscribed","subject":"/a/b","at":"7.42","outcome":"snapshot","count":1}',
            Reply(2, "subscribed", AT, Outcome.SNAPSHOT, 1),
        ),
        ('{"id":4,"ok":"published","at":"7.42","duplicate":true}', Reply(4, "published", AT, is_duplicate=True)),
        (
            '{"gap":"/a","after":"7.42","at":"7.50","reason":"expired","missed":8}',
            Gap("/a", Position(7, 50), AT, GapReason.EXPIRED, 8),
        ),
        (
            '{"gap":"/a/**","reason":"epoch","missed":null,"pattern":"/a/**"}',
            Gap("/a/**", None, None, GapReason.EPOCH, None, "/a/**"),
        ),
        ('{"gap":"/a","reason":"of the future"}', Gap("/a", None, None, GapReason.UNKNOWN)),
        ('{"dropped":"/a","count":3}', Dropped("/a", 3)),
        ('{"resume_token":"a1f3.8812.5","pattern":"/a/**"}', Marked("a1f3.8812.5", "/a/**")),
        ('{"interest":"/a","subscribers":true}', Interest("/a", True)),
        ('{"notice":"draining","reconnect_after_ms":1200}', Notice("draining", reconnect_after_ms=1200)),
        ('{"notice":"token_expiring","in_ms":60000}', Notice("token_expiring", in_ms=60000)),
        (
            '{"id":2,"error":4101,"name":"SubjectInvalid","reason":"why","retry":false}',
            Refusal(2, 4101, "SubjectInvalid", "why", False),
        ),
        ('{"ended":"/a","error":4113,"name":"SubscribeForbidden","reason":"why"}', Ended("/a", 4113, "why")),
    ],
)
def test_what_the_server_says_is_read(frame: str, expected: Received) -> None:
    encoding = JsonEncoding()
    assert encoding.decode(frame) == [expected]
    assert encoding.decode(f"[{frame},{frame}]") == [expected, expected]


def test_what_is_not_known_is_passed_over() -> None:
    assert JsonEncoding().decode('[{"news":1},{"message":"/a","content":1,"colour":"red"}]') == [Message("/a", b"1")]


@pytest.mark.parametrize(
    "frame",
    [
        *(
            "",
            "{",
            "7",
            "[[]]",
            '{"message":"/a"}',
            '{"message":7,"content":1}',
            '{"message":"/a","at":"7","content":1}',
        ),
        *('{"message":"/a","bytes":"*"}', b"\xff", "[" * 100_000),
    ],
)
def test_broken_frame_is_named(frame: str | bytes) -> None:
    with pytest.raises(FrameInvalid):
        JsonEncoding().decode(frame)


@given(st.text() | st.binary())
def test_no_frame_does_worse_than_that(frame: str | bytes) -> None:
    with contextlib.suppress(FrameInvalid):
        JsonEncoding().decode(frame)


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), st.lists, max_leaves=9))
def test_content_comes_back_as_it_went(content: object) -> None:
    kind, written = content_of(content)
    read = json.loads(JsonEncoding().encode([Publish(1, Draft("/a", kind, written))]))
    assert (read["text"] if isinstance(content, str) else read["content"]) == content


@pytest.mark.parametrize("content", [{1, 2}, object(), float("nan"), "\ud800"])
def test_content_that_no_encoding_can_carry_is_the_callers_error(content: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        content_of(content)
