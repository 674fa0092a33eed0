"""Positions are two plain numbers and nothing else; only those of one epoch are compared."""

import copy
import dataclasses
import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.errors import PositionInvalid
from godwit.model import NUMBER_MAX, Fields, Message, Position

numbers = st.integers(min_value=0, max_value=NUMBER_MAX)


@given(numbers, numbers)
def test_position_text_round_trips(epoch: int, sequence: int) -> None:
    position = Position(epoch, sequence)
    assert Position.parse(str(position)) == position


@pytest.mark.parametrize(
    "text",
    ["", "7", "7.", ".42", "7.42.1", "+7.42", "7.-1", "07.1", "7. 1", "18446744073709551616.1", "٧.42", "7.42\n"],
)
def test_text_that_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(PositionInvalid):
        Position.parse(text)


def test_positions_of_different_epochs_never_cover_each_other() -> None:
    assert Position(7, 41).is_at_or_before(Position(7, 42))
    assert Position(7, 42).is_at_or_before(Position(7, 42))
    assert not Position(7, 43).is_at_or_before(Position(7, 42))
    assert not Position(6, 1).is_at_or_before(Position(7, 42))
    assert not Position(8, 1).is_at_or_before(Position(7, 42))


def test_content_is_read_as_asked() -> None:
    message = Message("/a", '{"é":1}'.encode())
    assert message.json() == {"é": 1}
    assert message.text() == '{"é":1}'


@pytest.mark.parametrize("fields", [None, {"a": "x", "b": b"y", "c": None}])
def test_a_message_can_be_pickled_copied_and_encoded(fields: Fields | None) -> None:
    message = Message("/a", b"1") if fields is None else Message("/a", b"1", fields=fields)
    assert pickle.loads(pickle.dumps(message)) == message
    assert copy.deepcopy(message) == message
    assert dataclasses.asdict(message)["fields"] == (fields or {})
    assert msgspec.convert(msgspec.msgpack.decode(msgspec.msgpack.encode(message)), dict)["fields"] == (fields or {})


def test_received_messages_without_fields_do_not_share_them() -> None:
    one, other = Message("/a", b"1"), Message("/a", b"1")
    assert one.fields == other.fields == {} and one.fields is not other.fields


def test_the_size_of_a_message_has_its_fields() -> None:
    assert Message("/a", b"123").size == 3
    assert Message("/a", b"123", fields={"ab": "cde", "f": b"gh", "i": None}).size == 12
