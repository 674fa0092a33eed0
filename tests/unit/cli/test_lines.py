"""`godwit tail` prints one line for each message, whatever its content; as JSON it is the protocol's object."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.cli.lines import make_line, make_object, show_content, write_json, write_pretty
from godwit.client import Dropped, Gap, GapReason, Kind, Message, Outcome, Position, Status
from godwit.words import printable

MESSAGE = Message(
    "/a", b'{"n":1}', Kind.JSON, Position(7, 2), Position(7, 1), 1_795_250_000_123, pattern="/*", conflated=3
)
VALUES = st.recursive(
    st.text(max_size=9) | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def test_a_message_is_the_protocols_object() -> None:
    assert make_object(MESSAGE) == {
        "message": "/a", "after": "7.1", "at": "7.2", "pattern": "/*", "time": 1_795_250_000_123, "content": '{"n":1}', "conflated": 3,
    }  # fmt: skip
    assert make_object(Message("/a", b"\x00", Kind.BYTES))["bytes"] == "AA=="
    assert make_object(Message("/a", b"x", Kind.TEXT, is_snapshot=True)) == {
        "message": "/a",
        "time": 0,
        "text": "x",
        "snapshot": True,
    }
    gap = Gap("/a", Position(7, 9), None, GapReason.EXPIRED, None)
    assert make_object(gap) == {"gap": "/a", "at": "7.9", "reason": "expired", "missed": None}
    assert make_object(Dropped("/a", 2)) == {"dropped": "/a", "count": 2}


def test_fields_are_shown_to_programs_and_people(capsys: pytest.CaptureFixture[str]) -> None:
    message = Message("/a", b"x", Kind.TEXT, fields={"unit": "C", "raw": b"\xff", "old": None, "\x1b[2J": "e"})
    made = make_object(message)
    assert made["fields"] == {"unit": "C", "old": None, "\x1b[2J": "e"} and made["fields_bytes"] == {"raw": "/w=="}
    write_pretty(message)
    assert "x {unit=C, raw=1 bytes, old, \\u001b[2J=e}" in capsys.readouterr().out


@given(VALUES, st.booleans())
def test_json_content_is_one_line_of_ascii_that_says_the_same(value: object, is_wide: bool) -> None:
    written = json.dumps(value, ensure_ascii=False, indent=2 if is_wide else None).encode(errors="surrogatepass")
    line = make_line(Message("/a", written.decode(errors="replace").encode()))
    assert line.isascii() and line.isprintable()
    assert json.loads(line)["content"] == json.loads(written.decode(errors="replace"))


def test_numbers_stay_as_they_were_published() -> None:
    assert make_line(Message("/a", b'{"price":1.10,"big":1e400}')).endswith('"content":{"price":1.10,"big":1e400}}')


@given(st.text(st.characters(codec="utf-8")))
def test_no_content_moves_the_terminal(text: str) -> None:
    assert printable(text).isprintable()


def test_a_person_sees_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    for item in (
        MESSAGE,
        Message("/a", b"\x1b[31mred\n", Kind.TEXT),
        Gap("/a", Position(7, 9), None, GapReason.EXPIRED, 4),
        Gap("/**", None, None, GapReason.EPOCH, None),
        Dropped("/a", 2),
        Status("/a", "subscribed", Outcome.SNAPSHOT),
        Status("/a", "disconnected", reason="cut"),
    ):
        write_pretty(item)
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 5
    assert '7.2 3 in one {"n":1}' in output.out and "\\u001b[31mred\\u000a" in output.out
    assert "an unknown number missed (epoch)\n" in output.out
    assert "4 missed (expired), now at 7.9" in output.out and "dropped 2" in output.out
    assert "subscribed to /a (snapshot)" in output.err and "disconnected: cut" in output.err


def test_a_program_gets_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    write_json(Message("/é", "\u2028".encode(), Kind.TEXT))
    write_json(Status("/a", "subscribed"))
    [line] = capsys.readouterr().out.splitlines()
    assert line.isascii() and json.loads(line)["text"] == "\u2028"


def test_long_and_binary_content_is_cut() -> None:
    assert len(show_content(Message("/a", b"x" * 100_000, Kind.TEXT))) < 5_000
    assert show_content(Message("/a", bytes(100), Kind.BYTES)).startswith("100 bytes: 00 00")
