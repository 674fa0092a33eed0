"""Shared subscriptions over all shards: each member gets its share, and the others get the share of a member that is full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.mqtt.conftest import Served, serve
from tests.mqtt.packets import Peer, ack, connect, packet, publish

SHARDS = 3


@pytest.fixture(scope="module")
def node() -> Iterator[Served]:
    with serve(f"node.shards={SHARDS}") as served:
        yield served


@pytest.fixture
def peers(node: Served) -> Iterator[list[Peer]]:
    """Nine connections, over all shards."""
    made = [Peer(node.mqtt) for _ in range(9)]
    yield made
    for peer in made:
        peer.socket.close()


def publish_all(node: Served, topic: str, count: int) -> None:
    with Peer(node.mqtt) as sender:
        sender.join(connect(""))
        for number in range(1, count + 1):  # one by one: a burst is dealt in the turns of those who look first
            sender.send(publish(topic, number.to_bytes(2), 1, number))
            sender.expect(ack(4, number))


@pytest.mark.parametrize("qos", [0, 1])
def test_each_member_gets_its_share_wherever_it_lives(node: Served, peers: list[Peer], qos: int) -> None:
    for peer in peers:
        peer.join(connect(""))
        peer.granted((f"$share/g{qos}/fair{qos}/#", qos))
    publish_all(node, f"fair{qos}/a", 900)
    got: Counter[int] = Counter()
    shares = []
    for peer in peers:
        numbers = [int.from_bytes(message.payload) for message in peer.drain()]
        while more := [int.from_bytes(message.payload) for message in peer.drain()]:
            numbers += more
        shares.append(len(numbers))
        got.update(numbers)
    assert got == Counter(range(1, 901))
    assert max(shares) - min(shares) <= 20, shares


def test_members_that_take_no_more_leave_the_rest_to_the_others(node: Served, peers: list[Peer]) -> None:
    for peer in peers:
        peer.join(connect("", properties=b"\x21\0\x05"))  # five at a time
        peer.granted(("$share/stuck/stuck/#", 1))
    publish_all(node, "stuck/a", 300)
    working, numbers = peers[0], set()
    while len(numbers) < 300 - 8 * 5:  # the others hold their five, and settle nothing
        for message in working.drain():
            numbers.add(message.payload)
    for peer in peers[1:]:
        peer.send(packet(0xE0))
    while len(numbers) < 300:  # what those held comes back
        for message in working.drain():
            numbers.add(message.payload)
    assert numbers == {number.to_bytes(2) for number in range(1, 301)}
