"""Another token for a client, without a server: when the function is called, and the result of an earlier call."""

from __future__ import annotations

from typing import cast

import pytest

from godwit.client import ClientError
from godwit.client.publishing import PublishQueue
from godwit.client.tokens.handover import HANDOVER_MS, Handover
from godwit.errors import GodwitError


class Publishes:
    """What a handover asks of the queue of publishes."""

    def __init__(self) -> None:
        self.has_earlier = False
        self.calls: list[str] = []

    def hold_later(self) -> None:
        self.calls.append("hold")

    def release_later(self) -> None:
        self.calls.append("release")

    def fail_earlier(self) -> None:
        self.calls.append("fail")


class Scene:
    def __init__(self) -> None:
        self.publishes = Publishes()
        self.handover = Handover(cast(PublishQueue, self.publishes))
        self.settled: list[tuple[str, str]] = []

    def begin(self, token: str) -> None:
        def settle(error: GodwitError | None) -> None:
            self.settled.append((token, "taken" if error is None else str(error)))

        self.handover.begin(token, 0, settle)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_it_waits_for_what_was_published_before_for_ten_seconds_at_most(scene: Scene) -> None:
    handover, publishes = scene.handover, scene.publishes
    publishes.has_earlier = True
    scene.begin("a")
    assert [handover.is_due(now) for now in (0, HANDOVER_MS - 1, HANDOVER_MS)] == [False, False, True]
    publishes.has_earlier = False
    assert handover.is_due(1)
    assert handover.asked() == "a"
    assert publishes.calls[-1] == "fail"  # what has no answer by now
    assert not handover.is_due(HANDOVER_MS)  # the node is asked once
    handover.taken("a")
    assert (scene.settled, handover.is_under_way, publishes.calls[-1]) == ([("a", "taken")], False, "release")


def test_last_of_two_calls_wins_whenever_the_answer_to_the_first_one_comes(scene: Scene) -> None:
    handover = scene.handover
    scene.begin("a")
    handover.asked()
    scene.begin("b")
    assert "another token" in scene.settled[0][1]
    handover.taken("a")  # the answer to the first one: the second was not asked for yet
    assert len(scene.settled) == 1
    assert handover.asked() == "b"
    handover.taken("a")
    assert len(scene.settled) == 1
    assert handover.is_any_asked  # a close for another identity is still of one of the two
    handover.taken("b")
    assert scene.settled[1] == ("b", "taken")
    assert not handover.is_any_asked


def test_connection_that_begins_with_the_token_has_asked_for_it_and_one_with_another_has_not(scene: Scene) -> None:
    handover = scene.handover
    scene.begin("a")
    handover.opened("old")
    assert (handover.is_asked, handover.is_due(0)) == (False, True)
    handover.opened("a")
    assert handover.is_asked
    handover.taken("a")
    assert scene.settled == [("a", "taken")]
    handover.opened("a")
    assert not handover.is_any_asked  # it is over


def test_connection_that_was_lost_fails_what_was_published_before_and_the_next_one_asks_again(scene: Scene) -> None:
    handover, publishes = scene.handover, scene.publishes
    handover.lost()
    assert publishes.calls == []  # there is none under way
    scene.begin("a")
    handover.asked()
    handover.lost()
    assert publishes.calls[-1] == "fail"
    assert (handover.is_under_way, handover.is_asked) == (True, False)
    handover.opened("a")
    handover.taken("a")
    assert scene.settled == [("a", "taken")]


def test_server_that_will_not_take_it_ends_it_with_the_reason(scene: Scene) -> None:
    scene.begin("a")
    scene.handover.end(ClientError("refused"))
    scene.handover.end(ClientError("again"))
    assert scene.settled == [("a", "refused")]  # once


def test_what_was_never_sent_waits_for_the_first_connection(scene: Scene) -> None:
    handover, publishes = scene.handover, scene.publishes
    scene.begin("a")
    handover.lost()  # it could not connect
    assert "fail" not in publishes.calls
    handover.opened("a")
    handover.taken("a")
    scene.begin("b")
    handover.lost()
    assert publishes.calls[-1] == "fail"  # a node may have had it, under another identity
