"""The table of a port's connections: whose place is taken at its limit."""

from __future__ import annotations

from godwit.http_port.connections import Connections


class Stub:
    def __init__(self) -> None:
        self.is_closed = False

    def force_close(self) -> None:
        self.is_closed = True


def enter(connections: Connections, count: int) -> list[Stub]:
    made = [Stub() for _ in range(count)]
    for one in made:
        connections.enter(one)
    return made


def test_at_the_limit_who_is_being_answered_stays() -> None:
    connections = Connections(2)
    busy, idle = enter(connections, 2)
    connections.begin(busy)
    [third] = enter(connections, 1)
    assert (busy.is_closed, idle.is_closed, third.is_closed) == (False, True, False)
    assert len(connections) == 2 and connections.evicted == 1


def test_who_was_answered_waits_behind_the_others() -> None:
    connections = Connections(2)
    first, second = enter(connections, 2)
    connections.begin(first)
    connections.wait_again(first)
    enter(connections, 1)
    assert (first.is_closed, second.is_closed) == (False, True)


def test_where_all_are_being_answered_the_first_goes() -> None:
    connections = Connections(2)
    first, second = enter(connections, 2)
    for one in (first, second):
        connections.begin(one)
    enter(connections, 1)
    assert (first.is_closed, second.is_closed) == (True, False)
    connections.wait_again(first)  # its answer ends after it was closed
    assert len(connections) == 2
