"""The binary encoding: the example of its page, both directions of every frame, and no input that does worse than FrameInvalid."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.client.codec.binary import BinaryEncoding
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
)
from godwit.client.codec.push import Ended, Marked, Notice, Received
from godwit.client.codec.reply import Refusal, Reply
from godwit.client.codec.values import Reader, Writer
from godwit.client.errors import FrameInvalid
from godwit.client.items import Dropped
from godwit.client.resume_point import ResumePoint
from godwit.model import Ack, Gap, GapReason, Interest, Kind, Message, Outcome, Position

ANNOUNCED = "01 05 07 80 a1 f4 e9 9f 34 04 2f 61 2f 62 00"
BASE_TIME = 1795250000000


def announced() -> BinaryEncoding:
    encoding = BinaryEncoding()
    assert encoding.decode(bytes.fromhex(ANNOUNCED)) == []
    return encoding


def test_the_example_of_the_page_is_read() -> None:
    frame = bytes.fromhex("80 05 3b f6 01 7b 22 78 22 3a 31 7d")
    assert announced().decode(frame) == [
        Message("/a/b", b'{"x":1}', Kind.JSON, Position(7, 59), time_ms=BASE_TIME + 123)
    ]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ("85 05 3b 00 68 69", Message("/a/b", b"hi", Kind.TEXT, Position(7, 59), None, BASE_TIME, is_snapshot=True)),
        ("8a 05 01 ff", Message("/a/b", b"\xff", Kind.BYTES, time_ms=BASE_TIME - 1)),
        ("90 05 3b 00 04 31", Message("/a/b", b"1", Kind.JSON, Position(7, 59), Position(7, 55), BASE_TIME)),
        ("90 05 3b 00 00 06 09 31", Message("/a/b", b"1", Kind.JSON, Position(7, 59), Position(6, 9), BASE_TIME)),
        (
            "f0 05 3b 00 04 03 02 2f 72 31",
            Message("/a/b", b"1", Kind.JSON, Position(7, 59), Position(7, 55), BASE_TIME, "/r", None, 3),
        ),
    ],
)
def test_message_is_read(frame: str, message: Message) -> None:
    assert announced().decode(bytes.fromhex(frame)) == [message]


def test_announcement_can_change_and_names_the_pattern() -> None:
    encoding = announced()
    encoding.decode(bytes.fromhex("01 05 08 00 02 2f 61 02 2f 2a"))
    assert encoding.decode(bytes.fromhex("80 05 01 00 31")) == [
        Message("/a", b"1", position=Position(8, 1), pattern="/*")
    ]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("20 01 01 73 01 6e 05 a8 c3 01", Reply(1, "connected", session="s", node="n", ping_interval_ms=25_000)),
        ("21 02 03 00 02 2f 61 07 2a 01", Reply(2, "subscribed", Position(7, 42), Outcome.SNAPSHOT, 1)),
        ("21 02 00 03 02 2f 2a", Reply(2, "subscribed", None, Outcome.LIVE)),
        ("22 03 02 2f 61", Reply(3, "unsubscribed")),
        ("23 04 03 07 2a", Reply(4, "published", Position(7, 42), is_duplicate=True)),
        ("23 04 00", Reply(4, "published")),
        ("24 05 05", Reply(5, "pong")),
        ("25 06 02 2f 2a", Reply(6, "watching")),
        ("26 06 02 2f 2a", Reply(6, "unwatched")),
        ("2f 02 01 9b 20 04 4e 6f 64 65 03 77 68 79", Refusal(2, 4123, "Node", "why", True)),
        ("2f 00 00 84 20 01 4e 00", Refusal(None, 4100, "N", "", False)),
        ("02 07 00 02 2f 61 07 2a 07 32 08", Gap("/a", Position(7, 50), Position(7, 42), GapReason.EXPIRED, 8)),
        ("02 08 02 02 2f 2a 02 2f 2a", Gap("/*", None, None, GapReason.EPOCH, None, "/*")),
        ("03 03 02 2f 61", Dropped("/a", 3)),
        ("04 05 61 2e 31 2e 32 02 2f 2a", Marked("a.1.2", "/*")),
        ("05 01 02 2f 61", Interest("/a", True)),
        ("06 e0 d4 03", Notice("token_expiring", in_ms=60_000)),
        ("07 b0 09", Notice("draining", reconnect_after_ms=1_200)),
        ("08 91 20 02 2f 61 03 77 68 79", Ended("/a", 4113, "why")),
    ],
)
def test_what_the_server_says_is_read(frame: str, expected: Received) -> None:
    assert BinaryEncoding().decode(bytes.fromhex(frame)) == [expected]


@pytest.mark.parametrize(
    ("command", "written"),
    [
        (Connect(1, "t", "n"), "40 01 03 01 74 01 6e"),
        (Connect(1, None, "n"), "40 01 02 01 6e"),
        (Subscribe(2, "/a", ResumePoint(), Choice()), "41 02 00 02 2f 61"),
        (Subscribe(2, "/a", ResumePoint({"/a": Position(7, 42)}), Choice(9)), "41 02 01 02 2f 61 07 2a"),
        (
            Subscribe(2, "/*", ResumePoint({"/a": Position(7, 42)}, "a.1"), Choice()),
            "41 02 06 02 2f 2a 01 02 2f 61 07 2a 03 61 2e 31",
        ),
        (Subscribe(2, "/a", ResumePoint(), Choice(10, False, "oldest", 500)), "41 02 78 02 2f 61 0a f4 03"),
        (Unsubscribe(3, "/a"), "42 03 02 2f 61"),
        (Publish(4, Draft("/a", Kind.JSON, b"1")), "43 04 00 00 02 2f 61 31"),
        (
            Publish(300, Draft("/a", Kind.BYTES, b"\xff", "k", "/r", False, False, Ack.DISK)),
            "43 ac 02 1e 0a 02 2f 61 01 6b 02 2f 72 ff",
        ),
        (Ping(5), "44 05"),
        (Watch(6, "/*"), "45 06 02 2f 2a"),
        (Unwatch(6, "/*"), "46 06 02 2f 2a"),
    ],
)
def test_command_is_written_as_the_page_says(command: Command, written: str) -> None:
    frame = bytes.fromhex(written)
    assert BinaryEncoding().encode([command]) == frame
    sized = bytes([len(frame)]) + frame
    assert BinaryEncoding().encode([command, command]) == b"\x00" + sized + sized


@pytest.mark.parametrize("frame", ["", "80", "80 05", "80 06 01 00 31", "01 05", "21 02", "02 07 00 05 2f", "20 80 00"])
def test_broken_frame_is_named(frame: str) -> None:
    with pytest.raises(FrameInvalid):
        announced().decode(bytes.fromhex(frame))


def test_text_is_not_spoken_here() -> None:
    with pytest.raises(FrameInvalid):
        BinaryEncoding().decode("{}")


def test_unknown_push_is_passed_over() -> None:
    assert BinaryEncoding().decode(b"\x1f\x01\x02") == []


@given(st.binary())
def test_no_frame_does_worse_than_that(frame: bytes) -> None:
    with contextlib.suppress(FrameInvalid):
        announced().decode(frame)


@given(st.integers(min_value=0, max_value=2**64 - 1))
def test_varint_comes_back(value: int) -> None:
    writer = Writer(0)
    writer.varint(value)
    reader = Reader(writer.done())
    reader.byte()
    assert reader.varint() == value
    assert reader.rest() == b""
