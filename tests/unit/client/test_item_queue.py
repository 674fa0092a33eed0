"""The queue between wire and reader: bounded, folding resume tokens and statuses, and knowing what has been handled."""

from __future__ import annotations

from godwit.client.codec.push import Marked
from godwit.client.item_queue import Budget, ItemQueue
from godwit.client.items import Status
from godwit.client.position_tracker import PositionTracker
from godwit.client.resume_point import ResumePoint
from godwit.model import Gap, GapReason, Message, Outcome, Position


def queue(selector: str = "/a", items_max: int = 4) -> ItemQueue:
    return ItemQueue(items_max, PositionTracker(selector, selector.endswith("*"), 10))


def message(sequence: int, subject: str = "/a") -> Message:
    return Message(subject, b"1", position=Position(7, sequence))


def test_it_is_full_at_its_limit_and_has_room_again_at_half() -> None:
    items = queue()
    for number in range(1, 5):
        assert not items.is_full
        items.put(message(number))
    assert items.is_full and not items.has_room
    items.take()
    assert not items.is_full and not items.has_room
    items.take()
    assert items.has_room


def test_an_item_is_handled_when_the_next_is_asked_for() -> None:
    items = queue()
    items.put(message(1))
    items.put(message(2))
    items.take()
    assert not items.handled.resume_point
    items.take()
    assert items.handled.resume_point == ResumePoint({"/a": Position(7, 1)})
    items.finish()
    assert items.handled.resume_point == ResumePoint({"/a": Position(7, 2)})
    assert items.take() is None


def test_resume_tokens_are_not_shown_and_do_not_pile_up() -> None:
    items = queue("/a/*")
    items.put(message(1, "/a/1"))
    for number in range(9):
        items.put(Marked(f"1.{number}.0", "/a/*"))
    assert len(items) == 2
    assert items.take() == message(1, "/a/1")
    assert items.handled.resume_point.since is None
    assert items.take() is None
    assert items.handled.resume_point == ResumePoint({"/a/1": Position(7, 1)}, "1.8.0")


def test_gap_moves_the_reader_and_a_live_join_places_it() -> None:
    items = queue()
    items.put(Status("/a", "subscribed", position=Position(7, 3)))
    items.put(Status("/a", "disconnected"))
    assert items.take() == Status("/a", "disconnected", position=Position(7, 3))
    items.put(Gap("/a", Position(7, 9), Position(7, 3), missed=6))
    assert items.take() is not None
    assert items.handled.resume_point == ResumePoint({"/a": Position(7, 3)})
    items.take()
    assert items.handled.resume_point == ResumePoint({"/a": Position(7, 9)})


def test_a_join_that_a_resync_ends_does_not_take_the_reader_back_to_where_it_was_to_end() -> None:
    """It was cut with a message to come; the node that it finds then is another run's, which a gap says."""
    items = queue(items_max=9)
    items.put(Status("/a", "subscribed", Outcome.RECOVERED, Position(7, 2), 2))
    items.put(message(1))
    items.put(Status("/a", "disconnected"))
    items.put(Status("/a", "subscribed", Outcome.RESYNC, Position(8, 3)))
    items.put(Gap("/a", Position(8, 3), Position(7, 1), GapReason.EPOCH))
    items.put(Message("/a", b"1", position=Position(8, 3), is_snapshot=True))
    while items.take() is not None:
        pass
    assert items.handled.resume_point == ResumePoint({"/a": Position(8, 3)})


def test_who_was_cut_between_a_resync_and_its_gap_does_not_stand_behind_the_gap() -> None:
    items = queue()
    items.put(Status("/a", "subscribed", Outcome.RESYNC, Position(8, 3)))
    items.put(Status("/a", "disconnected"))
    while items.take() is not None:
        pass
    assert not items.handled.resume_point


def test_fields_count_toward_the_limit_in_bytes() -> None:
    budget = Budget(1 << 40)
    items = ItemQueue(100, PositionTracker("/a", False, 10), 1_000, budget)
    items.put(Message("/a", b"1", position=Position(7, 1), fields={"map": b"x" * 2_000}))
    assert items.is_full and budget.bytes == 2_004
    assert items.take() is not None
    assert not items.is_full and budget.bytes == 0
