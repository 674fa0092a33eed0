"""The session against a node of values: every interleaving that hypothesis can think of, and the rules one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from godwit.client.codec.command import Choice, Connect, Draft, Ping, Publish, Subscribe, Unsubscribe
from godwit.client.codec.push import Ended, Notice
from godwit.client.codec.reply import Refusal, Reply
from godwit.client.errors import ClientClosed
from godwit.client.item_queue import ItemQueue
from godwit.client.items import Status
from godwit.client.position_tracker import PositionTracker
from godwit.client.session import Phase, Session
from godwit.client.settings import Settings
from godwit.client.subscribing import State, Subscribing
from godwit.client.watching import Watching
from godwit.codes import Code
from godwit.errors import CommandRefused, GodwitError, SessionClosed
from godwit.model import Gap, GapReason, Kind, Message, Outcome, Position, Published
from godwit.subject import is_pattern
from tests.unit.client.model_node import ModelNode


def subscribing(selector: str, items_max: int = 1_000) -> Subscribing:
    many = is_pattern(selector)
    queue = ItemQueue(items_max, PositionTracker(selector, many, 100))
    return Subscribing(selector, Choice(), PositionTracker(selector, many, 100), queue)


def draft(subject: str = "/a/1", key: str | None = "k", content: bytes = b"1") -> Draft:
    return Draft(subject, Kind.JSON, content, key)


def connected(session: Session, now: int = 0) -> list[Any]:
    """Open and be welcomed; returns what the session then sends."""
    session.opened(now, None)
    [connect] = session.commands()
    assert isinstance(connect, Connect)
    session.receive([Reply(connect.id, "connected", ping_interval_ms=25_000)], now)
    return session.commands()


def taken(core: Subscribing) -> list[Message]:
    items = []
    while (item := core.queue.take()) is not None:
        if isinstance(item, Message):
            items.append(item)
    return items


STEPS = ["publish", "foreign", "send", "one", "all", "resume_token", "cut", "aside", "read"]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(STEPS), max_size=120), st.sampled_from(["/a/1", "/a/*", "/**"]))
def test_wherever_the_connection_breaks_each_message_comes_once_and_each_publish_counts_once(
    steps: list[str], selector: str
) -> None:
    node, session, core = ModelNode(), Session(Settings(items_max=4)), subscribing(selector, items_max=4)
    session.subscribe(core)
    acknowledged: list[Published | GodwitError] = []
    published, seen, now = 0, [], 0

    def pump(everything: bool) -> None:
        for command in session.commands():
            node.take(command)
        while node.outbox and not session.subscriptions.behind():
            session.receive([node.outbox.pop(0)], now)
            if not everything:
                return

    def cut() -> None:
        node.disconnect()
        session.lost(now)
        session.opened(now, None)

    session.opened(0, None)
    for step in [*steps, "cut", *["read", "send", "all"] * 200]:
        now += 1
        if step == "publish":
            session.publish(draft(f"/a/{published % 2 + 1}", f"k{published}", b"%d" % published), acknowledged.append)
            published += 1
        elif step == "foreign":
            node.append("/a/1", b"x")
        elif step in ("send", "one", "all"):
            pump(everything=step == "all")
        elif step == "resume_token":
            node.deliver(resume_token=True)
        elif step == "cut":
            cut()
        elif step == "aside":
            session.pause(core, now)
        elif step == "read":
            seen += taken(core)
            if core.is_paused:
                now += 1_000
                session.take_up(core, now)
    assert [each.content for each in seen] == [
        each.content for each in node.feed if selector != "/a/1" or each.subject == selector
    ]
    assert core.missing == 0
    assert len(acknowledged) == published == len(node.keys)
    assert all(isinstance(each, Published) for each in acknowledged)


def test_nothing_is_asked_before_the_server_welcomed_us() -> None:
    session = Session(Settings())
    session.subscribe(subscribing("/a"))
    session.publish(draft(), lambda _: None)
    assert session.commands() == []
    assert [type(each) for each in connected(session)] == [Subscribe, Publish]


def test_refused_subscription_ends_with_the_servers_words() -> None:
    session, core = Session(Settings()), subscribing("/a")
    session.subscribe(core)
    [ask] = connected(session)
    session.receive([Refusal(ask.id, 4113, "SubscribeForbidden", "no", False)], 1)
    assert isinstance(core.error, CommandRefused)
    assert core.error.code == 4113
    assert core.state is State.ENDED
    session.lost(2)
    assert connected(session, 3) == []


def test_subscription_that_the_server_ends_says_why() -> None:
    session, core = Session(Settings()), subscribing("/a")
    session.subscribe(core)
    connected(session)
    session.receive([Ended("/a", 4113, "rights changed")], 1)
    assert isinstance(core.error, CommandRefused)
    assert core.error.name == "SubscribeForbidden"


def test_subscription_that_was_served_is_only_put_off_by_what_may_pass() -> None:
    session, core = Session(Settings()), subscribing("/a")
    session.subscribe(core)
    [ask] = connected(session)
    session.receive([Reply(ask.id, "subscribed"), Ended("/a", Code.STREAMS_TOO_MANY, "full")], 1)
    assert session.tick(5_000) is None and session.commands() == []
    assert session.tick(5_001) is None
    [again] = session.commands()
    session.receive([Refusal(again.id, Code.NODE_BUSY, "NodeBusy", "busy", True)], 5_002)
    session.tick(15_001)
    assert session.commands() == []  # each refusal doubles the time
    session.tick(15_002)
    assert [type(each) for each in session.commands()] == [Subscribe]


def test_subscription_refused_by_a_draining_node_is_asked_of_the_next() -> None:
    session, core = Session(Settings()), subscribing("/a")
    session.subscribe(core)
    [ask] = connected(session)
    session.receive([Refusal(ask.id, Code.NODE_DRAINING, "NodeDraining", "", True)], 1)
    session.tick(9_000)
    assert session.commands() == [] and core.error is None
    session.lost(9_001)
    assert [type(each) for each in connected(session, 9_002)] == [Subscribe]


def test_a_join_that_was_cut_is_over_when_the_next_node_cannot_serve_its_place() -> None:
    """Messages that the first node still owed are not expected from the next node: the client stays in the run that was reported to it."""
    session, core = Session(Settings()), subscribing("/a/1")
    session.subscribe(core)
    [ask] = connected(session)
    session.receive([Reply(ask.id, "subscribed", Position(7, 2), Outcome.HISTORY, 2)], 0)
    session.receive([Message("/a/1", b"1", position=Position(7, 1))], 0)
    session.lost(1)
    [ask] = connected(session)
    session.receive([Reply(ask.id, "subscribed", Position(8, 3), Outcome.RESYNC)], 1)
    session.receive([Gap("/a/1", Position(8, 3), Position(7, 1), GapReason.EPOCH)], 1)
    session.receive([Message("/a/1", b"1", position=Position(8, 3), is_snapshot=True)], 1)
    assert core.tracker.resume_point.after == {"/a/1": Position(8, 3)}


def test_messages_before_the_answer_belong_to_an_earlier_asking() -> None:
    session, core, node = Session(Settings()), subscribing("/a"), ModelNode()
    session.subscribe(core)
    [ask] = connected(session)
    session.receive([Message("/a", b"old", position=None), Reply(ask.id, "subscribed"), Message("/a", b"new")], 1)
    assert [each.content for each in taken(core)] == [b"new"]
    assert node.outbox == []


@pytest.mark.parametrize("code", [4000, 4002, 4099])
def test_codes_from_4000_to_4099_end_it_for_good(code: int) -> None:
    session, core, settled = Session(Settings()), subscribing("/a"), []
    session.subscribe(core)
    session.publish(draft(), settled.append)
    connected(session)
    session.lost(1, code, "go away")
    assert session.phase is Phase.OVER
    assert isinstance(core.error, SessionClosed) and core.error.code == code and not core.error.reconnect
    assert settled == [core.error]
    with pytest.raises(SessionClosed):
        session.publish(draft(), settled.append)


@pytest.mark.parametrize("code", [None, 1001, 1006, 1011, 4200, 4206])
def test_other_codes_do_not(code: int | None) -> None:
    session = Session(Settings())
    connected(session)
    session.lost(1, code, "")
    assert session.phase is Phase.AWAY


def test_who_slept_past_its_tokens_end_comes_back_with_a_fresh_one_but_not_twice_with_the_same() -> None:
    session = Session(Settings(), can_renew=True)
    connected(session)
    session.lost(1, Code.TOKEN_EXPIRED, "")
    assert session.phase is Phase.AWAY
    session.opened(2, "stale")
    session.lost(3, Code.TOKEN_EXPIRED, "")
    assert session.phase is Phase.OVER


def test_server_says_when_to_come_back() -> None:
    session = Session(Settings())
    connected(session)
    session.lost(9, 4200, '{"name":"Draining","reconnect_after_ms":1234}')
    assert session.backoff.wait_ms(0.5) == 1234


def test_refused_connect_ends_it_unless_it_may_be_tried_again() -> None:
    for retry, phase in ((False, Phase.OVER), (True, Phase.CONNECTING)):
        session = Session(Settings())
        session.opened(0, "token")
        [connect] = session.commands()
        session.receive([Refusal(connect.id, 4002, "TokenInvalid", "no", retry)], 1)
        assert session.phase is phase
    assert session.tick(10_000) == "the server did not answer connect"


def test_draining_server_gets_no_new_publish_and_is_left_when_it_said() -> None:
    session, settled = Session(Settings()), []
    session.publish(draft(key="a"), settled.append)
    [first] = connected(session)
    session.receive([Notice("draining", reconnect_after_ms=500)], 100)
    session.publish(draft(key="b"), settled.append)
    assert session.commands() == []
    assert session.tick(700) is None  # an answer is still owed
    session.receive([Reply(first.id, "published")], 700)
    assert session.tick(700) == "the server is draining"
    session.lost(700)
    assert session.backoff.wait_ms(0.9) == 0
    assert [each.draft.key for each in connected(session, 800)] == ["b"]


def test_server_that_closes_while_draining_is_given_the_rest_of_its_time() -> None:
    session = Session(Settings())
    connected(session)
    session.receive([Notice("draining", reconnect_after_ms=500)], 100)
    session.lost(200, 1001, "")
    assert session.backoff.wait_ms(0.9) == 400


def test_publish_refused_because_of_draining_is_kept_for_the_next_server() -> None:
    session, settled = Session(Settings()), []
    session.publish(draft(), settled.append)
    [first] = connected(session)
    session.receive([Refusal(first.id, Code.NODE_DRAINING, "NodeDraining", "", True)], 1)
    assert settled == [] and session.commands() == []
    session.lost(2, 1001)
    assert len(connected(session, 3)) == 1


def test_silence_is_answered_with_a_ping_and_no_answer_with_the_end() -> None:
    session = Session(Settings())
    connected(session)
    assert session.tick(24_999) is None and session.commands() == []
    assert session.tick(25_000) is None
    assert [type(each) for each in session.commands()] == [Ping]
    assert session.tick(34_999) is None
    assert session.tick(35_000) == "the server does not answer"


def test_silence_of_our_own_making_says_nothing_about_the_server() -> None:
    session = Session(Settings())
    connected(session)
    session.liveness.hold(1, True)
    assert session.tick(99_000) is None and session.commands() == []
    session.liveness.hold(99_000, False)
    assert session.tick(99_001) is None and session.commands() == []


def test_full_reader_is_set_aside_and_taken_up_where_it_stood() -> None:
    session, core, node = Session(Settings()), subscribing("/a/1", items_max=2), ModelNode()
    session.subscribe(core)
    for command in connected(session):
        node.take(command)
    for _ in range(3):
        node.append("/a/1", b"1")
    session.receive(node.outbox[:3], 1)
    assert session.subscriptions.behind() == {core}
    session.pause(core, 1)
    assert [type(each) for each in session.commands()] == [Unsubscribe]
    assert session.subscriptions.behind() == set()
    session.receive(node.outbox[3:], 1)
    assert len(taken(core)) == 2
    session.take_up(core, 1)
    [ask] = session.commands()
    assert str(ask.after_one) == "7.2"


def test_pattern_cut_in_a_first_join_too_large_to_go_on_from_begins_anew_and_says_so() -> None:
    session, core = Session(Settings()), subscribing("/a/*", items_max=10_000)
    session.subscribe(core)
    [ask] = connected(session)
    first = [Message(f"/a/{n}", b"1", position=Position(7, 1), pattern="/a/*") for n in range(4_001)]
    session.receive([Reply(ask.id, "subscribed"), *first], 1)
    session.lost(2)
    [again] = connected(session, 3)
    assert not again.resume_point
    items = []
    while (item := core.queue.take()) is not None:
        items.append(item)
    assert isinstance(items[-1], Gap) and items[-1].subject == "/a/*" and items[-1].missed is None


def test_statuses_tell_of_the_connection_and_do_not_pile_up() -> None:
    session, core = Session(Settings()), subscribing("/a")
    session.subscribe(core)
    for now in range(3):
        [ask] = connected(session, now)
        session.receive([Reply(ask.id, "subscribed")], now)
        session.lost(now, None, "gone")
    items = [core.queue.take(), core.queue.take()]
    assert items[1] is None
    assert isinstance(items[0], Status) and items[0].state == "disconnected"


def test_token_is_renewed_on_the_same_connection() -> None:
    session = Session(Settings())
    connected(session)
    session.receive([Notice("token_expiring", in_ms=60_000)], 1)
    assert session.wants_token
    session.renew("new")
    [connect] = session.commands()
    assert isinstance(connect, Connect) and connect.token == "new"
    session.receive([Refusal(connect.id, 4002, "TokenInvalid", "no", False)], 2)
    assert session.phase is Phase.OVER


def test_closing_settles_everything_once() -> None:
    session, core, settled = Session(Settings()), subscribing("/a"), []
    session.subscribe(core)
    session.publish(draft(), settled.append)
    connected(session)
    session.close()
    session.close()
    assert [type(each) for each in settled] == [ClientClosed]
    assert core.state is State.ENDED and core.error is None
    for ask in (lambda: session.subscribe(subscribing("/b")), lambda: session.watch(Watching("/b"))):
        with pytest.raises(ClientClosed):
            ask()


def test_only_the_first_frame_that_the_server_cannot_read_is_followed_by_a_reconnect_at_once() -> None:
    session, waits = Session(Settings(reconnect_first_ms=1_000)), []
    for now in range(4):
        connected(session, now)
        session.receive([Refusal(None, Code.COMMAND_MALFORMED, "CommandMalformed", "no", False)], now)
        session.lost(now)
        waits.append(session.backoff.wait_ms(0.999))
    assert waits[0] == 0
    assert 0 < waits[1] < waits[2] < waits[3]
    connected(session, 100_000)
    session.lost(100_001)
    connected(session, 200_000)
    session.receive([Refusal(None, Code.COMMAND_MALFORMED, "CommandMalformed", "no", False)], 200_000)
    session.lost(200_001)
    assert session.backoff.wait_ms(0.999) == 0
