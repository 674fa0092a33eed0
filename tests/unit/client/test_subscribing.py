"""A subscription without a reader is paused: bounded, at most once a second, resumed once, and never after its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from godwit.client.codec.command import Subscribe
from godwit.client.codec.push import Ended, Notice
from godwit.client.codec.reply import Reply
from godwit.client.item_queue import Budget, ItemQueue
from godwit.client.items import Dropped
from godwit.client.position_tracker import PositionTracker
from godwit.client.session import Session
from godwit.client.settings import Settings
from godwit.client.subscribing import State, Subscribing
from godwit.model import Message, Position
from tests.unit.client.test_session import connected, subscribing


def test_one_that_stays_unread_is_paused_once_a_second_and_says_on_resuming_what_may_be_missing() -> None:
    session, core = Session(Settings()), subscribing("/a")
    session.subscribe(core)
    session.subscribe(subscribing("/b"))
    [ask, _] = connected(session)
    session.receive([Reply(ask.id, "subscribed")], 1)
    session.pause(core, 100)
    session.take_up(core, 100)
    session.commands()
    session.pause(core, 400)
    session.take_up(core, 400)
    session.tick(1_099)
    assert core.is_paused
    session.commands()
    session.tick(1_100)
    [again] = session.commands()
    session.receive([Reply(again.id, "subscribed")], 1_101)
    items = []
    while (item := core.queue.take()) is not None:
        items.append(item)
    assert items[-1] == Dropped("/a", None) and len([each for each in items if isinstance(each, Dropped)]) == 1


def test_one_that_is_read_resumes_at_once_where_nothing_else_of_the_client_waits() -> None:
    """As in a loop that publishes for each message, and has its answers."""
    session, core = Session(Settings()), subscribing("/a")
    session.subscribe(core)
    [ask] = connected(session)
    for now in (100, 200, 300):
        session.receive([Reply(ask.id, "subscribed")], now)
        session.pause(core, now)
        session.commands()
        session.take_up(core, now)
        [ask] = session.commands()


CROSSINGS: dict[str, Callable[[Session, Subscribing, int], object]] = {
    "its answer": lambda session, core, id: session.receive([Reply(id, "subscribed")], 3),
    "its end": lambda session, core, id: session.receive([Ended("/a", 4113, "")], 3),
    "a drain": lambda session, core, id: session.receive([Notice("draining", reconnect_after_ms=60_000)], 3),
    "a renewal": lambda session, core, id: session.renew("token"),
    "a loss": lambda session, core, id: (session.lost(3), connected(session, 4)),
    "its close": lambda session, core, id: session.unsubscribe(core),
}


@pytest.mark.parametrize("crossing", CROSSINGS)
def test_pause_that_is_crossed_resumes_once_or_never(crossing: str) -> None:
    session, core = Session(Settings()), subscribing("/a")
    session.subscribe(core)
    [ask] = connected(session)
    session.pause(core, 2)
    CROSSINGS[crossing](session, core, ask.id)
    session.commands()
    is_ended = core.state is State.ENDED
    for _ in range(3):
        session.take_up(core, 5_000)
    session.tick(5_000)
    asked = [each for each in session.commands() if isinstance(each, Subscribe)]
    assert len(asked) == (0 if is_ended else 1)


def test_bytes_fill_a_queue_and_what_all_queues_hold_is_bounded_too() -> None:
    budget = Budget(1_000)
    first, second = (ItemQueue(100, PositionTracker(name, False, 10), 600, budget) for name in ("/a", "/b"))
    first.put(Message("/a", b"x" * 5_000, position=Position(7, 1)))  # one is always taken
    assert first.is_full and budget.is_used_up and not second.is_full
    second.put(Message("/b", b"x", position=Position(7, 1)))
    assert second.is_full
    first.take()
    assert not second.is_full and budget.bytes == 1
    second.let_go()
    assert budget.bytes == 0
