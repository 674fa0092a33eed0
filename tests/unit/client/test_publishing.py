"""The publish queue: order, limits, and each exactly once settled."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.client.codec.command import Draft, Publish
from godwit.client.errors import AnswerLost, ClientClosed, PublishQueueFull
from godwit.client.publishing import ENTRY_BYTES, Frame, Numbering, PublishQueue, SentFrames
from godwit.codes import Code
from godwit.errors import CommandRefused, GodwitError
from godwit.model import Kind, Published


def draft(content: bytes = b"1", key: str | None = "k") -> Draft:
    return Draft("/a", Kind.JSON, content, key)


def queue(count_max: int = 100, bytes_max: int = 1 << 20, in_flight_max: int = 10) -> PublishQueue:
    return PublishQueue(count_max, bytes_max, in_flight_max)


def test_no_more_than_the_window_is_on_the_encoding() -> None:
    publishes, ids, settled = queue(in_flight_max=2), count(1), []
    for _ in range(3):
        publishes.add(draft(), settled.append)
    assert [each.id for each in publishes.send(lambda: next(ids))] == [1, 2]
    assert publishes.send(lambda: next(ids)) == []
    assert publishes.answer(1, Published(None))
    assert [each.id for each in publishes.send(lambda: next(ids))] == [3]
    assert not publishes.answer(1, Published(None))
    assert settled == [Published(None)]


@pytest.mark.parametrize(
    ("publishes", "limit"),
    [(queue(count_max=2), "publish_queue_max"), (queue(bytes_max=2 * ENTRY_BYTES + 2), "publish_queue_bytes_max")],
)
def test_a_limit_refuses_and_keeps_nothing(publishes: PublishQueue, limit: str) -> None:
    for _ in range(2):
        publishes.add(draft(), lambda _: None)
    with pytest.raises(PublishQueueFull, match=limit):
        publishes.add(draft(), lambda _: None)
    assert len(publishes) == 2


def test_one_publish_larger_than_the_byte_limit_goes_alone() -> None:
    publishes = queue(bytes_max=300)
    publishes.add(draft(b"x" * 1_000), lambda _: None)
    with pytest.raises(PublishQueueFull):
        publishes.add(draft(), lambda _: None)


def test_after_a_loss_the_same_keys_go_first_and_in_order() -> None:
    publishes, ids = queue(in_flight_max=2), count(1)
    for key in "abc":
        publishes.add(draft(key=key), lambda _: None)
    publishes.send(lambda: next(ids))
    publishes.lost()
    assert [(each.id, each.draft.key) for each in publishes.send(lambda: next(ids))] == [(3, "a"), (4, "b")]


def test_without_a_key_a_lost_answer_is_an_error_and_nothing_is_sent_twice() -> None:
    publishes, ids, settled = queue(), count(1), []
    publishes.add(draft(key=None), settled.append)
    publishes.send(lambda: next(ids))
    publishes.lost()
    assert isinstance(settled[0], AnswerLost)
    assert len(publishes) == 0


def test_what_the_server_did_not_take_goes_back_to_its_place() -> None:
    publishes, ids = queue(in_flight_max=2), count(1)
    for key in "abc":
        publishes.add(draft(key=key), lambda _: None)
    publishes.send(lambda: next(ids))
    publishes.put_back(2)
    publishes.put_back(1)
    assert [each.draft.key for each in publishes.send(lambda: next(ids))] == ["a", "b"]


def test_too_big_a_message_is_not_tried_for_ever() -> None:
    publishes, ids, settled = queue(), count(1), []
    publishes.add(draft(b"small"), lambda _: None)
    publishes.add(draft(b"x" * 9_000), settled.append)
    publishes.send(lambda: next(ids))
    publishes.refuse_too_big(Frame(12_044, (2,)))
    publishes.lost()
    assert isinstance(settled[0], CommandRefused) and "12044 bytes as sent" in str(settled[0])
    assert len(publishes) == 1


def test_frame_of_several_that_is_too_big_is_sent_one_by_one() -> None:
    publishes, ids, settled = queue(), count(1), []
    for _ in range(3):
        publishes.add(draft(b"x" * 600), settled.append)
    publishes.send(lambda: next(ids))
    publishes.refuse_too_big(Frame(2_000, (1, 2, 3), is_mixed=True))
    publishes.lost()
    assert settled == [] and [each.is_alone for each in publishes.send(lambda: next(ids))] == [True] * 3


def test_given_up_before_it_was_sent_is_never_sent() -> None:
    publishes = queue()
    pending = publishes.add(draft(), lambda _: None)
    publishes.give_up(pending)
    assert publishes.send(lambda: 1) == []
    assert len(publishes) == 0


def test_given_up_frees_its_place_at_once() -> None:
    publishes = queue(count_max=2)
    for _ in range(1_000):
        publishes.give_up(publishes.add(draft(), lambda _: None))
    kept = publishes.add(draft(), lambda _: None)
    publishes.give_up(publishes.add(draft(), lambda _: None))
    assert len(publishes) == 1 and len(publishes._waiting) <= 2
    publishes.give_up(kept)
    assert len(publishes) == 0 and publishes._bytes == 0 and not publishes.can_send


def test_given_up_on_the_way_is_not_sent_again() -> None:
    publishes, ids = queue(), count(1)
    pending = publishes.add(draft(), lambda _: None)
    publishes.send(lambda: next(ids))
    publishes.give_up(pending)
    assert len(publishes) == 1
    publishes.lost()
    assert publishes.send(lambda: next(ids)) == [] and len(publishes) == 0


@given(st.lists(st.sampled_from(["add", "send", "answer", "lose", "back", "give up"]), max_size=60))
def test_everything_is_settled_once_and_the_bytes_return_to_nothing(steps: list[str]) -> None:
    publishes, ids, settled, added, live = queue(in_flight_max=3), count(1), [], 0, []
    sent: list[int] = []

    def settle(outcome: Published | GodwitError) -> None:
        settled.append(outcome)

    given_up = 0
    for step in steps:
        if step == "add":
            live.append(publishes.add(draft(key=str(added)), settle))
            added += 1
        elif step == "send":
            sent += [each.id for each in publishes.send(lambda: next(ids))]
        elif step == "answer" and sent:
            publishes.answer(sent.pop(0), Published(None))
        elif step == "back" and sent:
            publishes.put_back(sent.pop())
        elif step == "lose":
            publishes.lost()
            sent.clear()
        elif step == "give up" and live and not live[-1].is_given_up:
            before = len(settled)
            publishes.give_up(live.pop())
            given_up += 1
            assert len(settled) == before
    publishes.close(ClientClosed())
    assert len(publishes) == 0
    assert added - given_up <= len(settled) <= added
    assert publishes._bytes == 0


class Rig:
    def __init__(self, *, sends_unknown: bool = True, is_known: bool = True) -> None:
        self.numbering = Numbering("0123456789abcdef0123456789abcdef")
        self.numbering.is_known = is_known
        self.queue = PublishQueue(100, 1 << 20, 10, self.numbering, sends_unknown=sends_unknown)
        self.settled: list[Published | GodwitError] = []
        self._ids = count(1)

    def publish(self) -> None:
        self.queue.add(Draft("/a", Kind.JSON, b"1"), self.settled.append, is_numbered=True)

    def send(self) -> list[Publish]:
        return self.queue.send(lambda: next(self._ids))

    def sent(self) -> list[tuple[int | None, int, bool]]:
        return [(each.number, each.floor, each.is_again) for each in self.send()]


def refusal(code: Code) -> CommandRefused:
    return CommandRefused(code, code.name, "", retry=False)


def test_numbers_rise_and_the_floor_is_the_oldest_without_an_answer() -> None:
    rig = Rig()
    for _ in range(2):
        rig.publish()
    assert rig.sent() == [(1, 1, False), (2, 1, False)]
    rig.queue.answer(2, Published(None))
    rig.publish()
    assert rig.sent() == [(3, 1, False)]
    rig.queue.answer(1, Published(None))
    rig.publish()
    assert rig.sent() == [(4, 3, False)]


def test_after_a_loss_a_number_is_sent_again_and_one_that_was_not_sent_is_new() -> None:
    rig = Rig()
    for _ in range(2):
        rig.publish()
    rig.send()
    rig.queue.answer(1, Published(None))
    rig.queue.lost()
    rig.publish()
    assert rig.sent() == [(2, 2, True), (3, 2, False)]


@pytest.mark.parametrize("code", [Code.REPEAT_UNKNOWN, Code.NUMBER_TOO_OLD])
def test_what_the_server_cannot_know_is_sent_anew_under_a_new_number(code: Code) -> None:
    rig = Rig()
    rig.publish()
    rig.send()
    rig.queue.lost()
    assert rig.sent() == [(1, 1, True)]
    rig.queue.refuse(2, refusal(code))
    assert rig.settled == []
    assert rig.sent() == [(2, 2, False)]


def test_what_the_server_cannot_know_fails_where_that_is_wanted() -> None:
    rig = Rig(sends_unknown=False)
    rig.publish()
    rig.send()
    rig.queue.refuse(1, refusal(Code.REPEAT_UNKNOWN))
    assert isinstance(rig.settled[0], AnswerLost)


def test_one_refused_by_a_draining_server_is_new_to_the_next() -> None:
    rig = Rig()
    rig.publish()
    rig.send()
    rig.queue.put_back(1)
    assert rig.sent() == [(2, 2, False)]


@pytest.mark.parametrize("sends_unknown", [True, False])
def test_without_room_for_numbers_new_ones_have_keys_and_sent_ones_are_unknown(sends_unknown: bool) -> None:
    rig = Rig(sends_unknown=sends_unknown)
    rig.publish()
    rig.send()
    rig.queue.lost()
    rig.numbering.is_known = False
    rig.publish()
    keys = [(each.number, each.draft.key) for each in rig.send()]
    new = (None, "0123456789abcdef.1")
    assert keys == ([new, (None, "0123456789abcdef.2")] if sends_unknown else [new])
    assert [type(each) for each in rig.settled] == ([] if sends_unknown else [AnswerLost])


def test_nothing_else_is_sent_until_those_sent_alone_are_answered() -> None:
    publishes, ids = queue(), count(1)
    for _ in range(2):
        publishes.add(draft(), lambda _: None)
    publishes.send(lambda: next(ids))
    publishes.add(draft(b"later"), lambda _: None)
    assert publishes.send_alone()
    publishes.lost()
    again = publishes.send(lambda: next(ids))
    assert [each.is_alone for each in again] == [True, True]
    publishes.answer(again[0].id, Published(None))
    assert not publishes.can_send and publishes.send(lambda: next(ids)) == []
    publishes.answer(again[1].id, Published(None))
    assert publishes.can_send
    assert [each.draft.content for each in publishes.send(lambda: next(ids))] == [b"later"]


def test_size_that_was_refused_is_not_sent_again_for_a_minute_or_until_another_loss() -> None:
    frames, publishes = SentFrames(), queue()
    frames.sent([Publish(1, draft())], 500)
    assert frames.lost(Code.MESSAGE_TOO_BIG, publishes, 1_000) is None and frames.was_refused
    sizes = [(436, 1_000), (437, 1_000), (500, 60_999), (500, 61_000)]
    assert [frames.is_too_large(*each) for each in sizes] == [False, True, True, False]
    assert frames.lost(None, publishes, 2_000) is None and not frames.was_refused
    assert not frames.is_too_large(500, 2_000)


def test_publish_that_the_node_may_have_is_not_refused_before_it_is_sent() -> None:
    publishes, ids, settled = queue(), count(1), []
    publishes.add(draft(key="a"), settled.append)
    publishes.send(lambda: next(ids))
    publishes.lost()
    publishes.add(draft(key="b"), settled.append)
    publishes.send(lambda: next(ids))
    assert [publishes.refuse_unsent(id, 500) for id in (2, 3, 4)] == [False, True, False]
    assert [type(each) for each in settled] == [CommandRefused] and len(publishes) == 1
