"""Normative statements that no other file of this folder holds; which test holds which statement says statements.toml."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import pytest

from tests.mqtt.conftest import Open
from tests.mqtt.packets import (
    DISCONNECT,
    PINGREQ,
    V3,
    V5,
    Peer,
    ack,
    connect,
    packet,
    publish,
    subscribe,
    text,
    unsubscribe,
)  # fmt: skip
from tests.mqtt.test_sessions import come, leave

VERSIONS = pytest.mark.parametrize("version", [V3, V5])
SIZES = {0x01: 1, 0x24: 1, 0x25: 1, 0x28: 1, 0x29: 1, 0x2A: 1, 0x13: 2, 0x21: 2, 0x22: 2, 0x23: 2, 0x11: 4, 0x27: 4}
RESPONSE_INFORMATION, AUTHENTICATION_METHOD, KEEP_ALIVE, REASON_STRING, USER = 0x1A, 0x15, 0x13, 0x1F, 0x26


def properties_of(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """What a list of properties holds, of those that a server sends in CONNACK and acknowledgements."""
    at = 0
    while at < len(raw):
        kind, at = raw[at], at + 1
        size = SIZES.get(kind) or 2 + int.from_bytes(raw[at : at + 2])
        if kind == USER:
            size += 2 + int.from_bytes(raw[at + size : at + size + 2])
        yield kind, raw[at : at + size]
        at += size


def connack_of(opened: Open, connecting: bytes, version: int = V5) -> tuple[bytes, dict[int, bytes]]:
    """Flags and reason, and the properties."""
    raw = opened(None, version).join(connecting)
    return raw[2:4], dict(properties_of(raw[5:])) if version == V5 else {}


@VERSIONS
def test_a_byte_order_sign_in_a_topic_is_a_character_as_any_other(opened: Open, version: int) -> None:
    peer = opened("", version)
    peer.granted(("\ufeffmark/+", 0))
    peer.send(publish("resume_token/a", b"1", version=version), publish("\ufeffmark/a", b"2", version=version))
    assert peer.message().topic == "\ufeffmark/a"
    peer.quiet()


@VERSIONS
def test_names_are_not_normalized(opened: Open, version: int) -> None:
    peer = opened("", version)
    composed, taken_apart = (unicodedata.normalize(form, "norm/é") for form in ("NFC", "NFD"))
    peer.granted((composed, 0))
    for other in (taken_apart, "NORM/é", "norm//é", "norm/é/", "/norm/é"):
        peer.send(publish(other, b"no", version=version))
    peer.send(publish(composed, b"yes", version=version))
    assert peer.message().payload == b"yes"
    peer.quiet()


@VERSIONS
def test_packet_identifiers_of_the_server_are_none_in_use_and_never_0(opened: Open, version: int) -> None:
    peer, sender = opened("", version), opened("", version)
    peer.granted(("numbers", 2))
    sender.send(*(publish("numbers", b"m", 1 + n % 2, n + 1, version) for n in range(20)))
    got = [peer.message() for _ in range(20)]
    assert len({message.packet_id for message in got}) == 20 and all(message.packet_id for message in got)
    assert not any(message.dup for message in got)
    for message in got:
        peer.send(ack(3 + message.qos, message.packet_id))
    for message in got:
        if message.qos == 2:
            peer.expect(ack(6, message.packet_id))
    peer.quiet()


@VERSIONS
@pytest.mark.parametrize("retain", [False, True])
def test_a_will_is_retained_where_its_flag_says_so(opened: Open, version: int, retain: bool) -> None:
    topic = f"will/{version}/{retain}"
    watcher = opened("", version)
    watcher.granted((topic, 1))
    lost = opened(None, version)
    lost.join(connect("", version, will=(topic, b"gone"), will_flags=0x08 | (0x20 if retain else 0)))
    lost.socket.close()
    got = watcher.message()
    assert (got.payload, got.qos) == (b"gone", 1)
    late = opened("", version)
    late.granted((topic, 0))
    if retain:
        assert late.message().payload == b"gone"
    late.quiet()


def test_a_wills_user_properties_keep_their_order(opened: Open) -> None:
    watcher = opened()
    watcher.granted(("will/order", 0))
    users = b"".join(b"\x26" + text(name) + text(value) for name, value in ("ba", "ab", "ba", "aa"))
    lost = opened(None)
    lost.join(connect("", will=("will/order", b"m"), will_properties=users))
    lost.socket.close()
    assert watcher.message().properties == users


def test_connack_says_what_was_asked_for_and_nothing_else(opened: Open) -> None:
    flags, said = connack_of(opened, connect("plain", properties=b"\x19\0"))
    assert flags == b"\0\0" and RESPONSE_INFORMATION not in said and AUTHENTICATION_METHOD not in said
    assert KEEP_ALIVE not in said, "then the client's own counts"
    names = [connack_of(opened, connect(""))[1][0x12] for _ in range(5)]
    assert len(set(names)) == 5


def test_without_an_alias_maximum_no_alias_is_sent(opened: Open) -> None:
    peer = opened()
    peer.granted(("plain/alias", 0))
    opened().send(*(publish("plain/alias", b"m") for _ in range(3)))
    assert [(got.topic, got.properties) for got in (peer.message() for _ in range(3))] == [("plain/alias", b"")] * 3


def test_who_wants_no_problem_information_gets_codes_alone(opened: Open) -> None:
    peer = opened("", properties=b"\x17\0")
    peer.send(publish("$own/a", b"m", 1, 4), publish("$own/a", b"m", 2, 5))
    peer.expect(packet(0x40, b"\0\4\x87"))
    peer.expect(packet(0x50, b"\0\5\x87"))
    peer.send(subscribe(("$SYS/a", 0), packet_id=6), unsubscribe("none", packet_id=7))
    peer.expect(packet(0x90, b"\0\6\0\x87"))
    peer.expect(packet(0xB0, b"\0\7\0\x11"))


def test_no_answer_is_larger_than_the_client_takes(opened: Open) -> None:
    peer = opened("tight", properties=b"\x27\0\0\0\x18")
    peer.send(publish("$own/a", b"m", 1, 4))
    peer.expect(packet(0x40, b"\0\4\x87"))
    peer.send(publish("a/#"))
    got = peer.receive()
    assert got[0] == 0xE0 and got[2] == 0x90 and len(got) <= 24
    peer.ended()


@VERSIONS
@pytest.mark.parametrize("length", [1, 23])
def test_names_that_every_server_takes_are_taken(opened: Open, version: int, length: int) -> None:
    alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    for start in range(0, len(alphabet), length):
        leave(opened((alphabet * 2)[start : start + length], version))


@VERSIONS
def test_what_follows_a_refused_connect_is_not_looked_at(opened: Open, version: int) -> None:
    watcher = opened("", version)
    watcher.granted(("behind", 0))
    peer = opened(None, version)
    peer.send(connect("a+b", version) + publish("behind", b"m", version=version))
    connack = peer.receive()
    assert connack[:1] == b"\x20" and connack[2] == 0 and connack[3] in (2, 0x85)
    peer.ended()
    watcher.quiet()


@VERSIONS
def test_connack_comes_first_and_once(opened: Open, version: int) -> None:
    sender = opened("", version)
    sender.send(publish("first/a", b"kept", 1, 1, version, retain=True))
    sender.expect(ack(4, 1))
    peer = opened(None, version)
    peer.send(connect("", version) + subscribe(("first/a", 0), version=version) + PINGREQ * 2)
    kinds = [peer.receive()[0] >> 4 for _ in range(5)]
    assert kinds[0] == 2 and sorted(kinds[1:]) == [3, 9, 13, 13]


def test_nothing_is_said_before_connack_but_the_end(opened: Open) -> None:
    for first in (PINGREQ, DISCONNECT, publish("a"), packet(0xF0, b"\x18\0")):
        peer = opened(None)
        peer.send(first)
        peer.ended()


def test_aliases_end_with_their_connection(opened: Open) -> None:
    peer, _ = come(opened, "aliases", V5)
    peer.send(publish("alias/a", b"m", 1, 1, properties=b"\x23\0\1"))
    peer.expect(ack(4, 1))
    leave(peer)
    peer, present = come(opened, "aliases", V5)
    assert present
    peer.send(publish("", b"m", properties=b"\x23\0\1"))
    peer.ended(0x82)


def test_who_takes_no_more_messages_is_answered_all_else(opened: Open) -> None:
    peer = opened("", properties=b"\x21\0\1")
    peer.granted(("quota", 1))
    opened().send(*(publish("quota", bytes([n]), 1, n) for n in (1, 2, 3)))
    first = peer.message()
    peer.quiet()
    assert peer.granted(("quota/other", 2)) == b"\2"
    peer.send(publish("quota/else", b"m", 2, 9))
    peer.expect(ack(5, 9))
    peer.send(ack(4, first.packet_id))
    assert peer.message().payload == b"\2"


@VERSIONS
def test_suback_answers_each_filter_in_its_place(opened: Open, version: int) -> None:
    refused = b"\x80" if version == V3 else b"\x87"
    peer = opened("", version)
    filters = (("each/a", 2), ("$SYS/x", 1), ("each/b", 0), ("each/c", 1))
    assert peer.granted(*filters) == b"\2" + refused + b"\0\1"
    peer.send(
        publish("each/a", version=version), publish("each/b", version=version), publish("each/c", version=version)
    )
    assert [peer.message().topic for _ in range(3)] == ["each/a", "each/b", "each/c"]


@VERSIONS
def test_what_is_in_flight_is_settled_after_an_unsubscribe(opened: Open, version: int) -> None:
    peer, sender = opened("", version), opened("", version)
    peer.granted(("ending", 2))
    sender.send(publish("ending", b"m", 2, 1, version))
    got = peer.message()
    peer.send(unsubscribe("ending", packet_id=3, version=version))
    assert peer.receive()[0] == 0xB0
    sender.send(publish("ending", b"late", 2, 2, version))
    peer.send(ack(5, got.packet_id))
    peer.expect(ack(6, got.packet_id))
    peer.send(ack(7, got.packet_id))
    peer.quiet()


@VERSIONS
def test_after_a_disconnect_nothing_is_answered(opened: Open, version: int) -> None:
    peer = opened("", version)
    peer.send(DISCONNECT + PINGREQ + subscribe(("a", 0), version=version))
    peer.ended()


@VERSIONS
def test_an_identifier_that_was_acknowledged_is_free(opened: Open, version: int) -> None:
    watcher, peer = opened("", version), opened("", version)
    watcher.granted(("acknowledged", 0))
    for payload, dup in ((b"one", False), (b"two", True), (b"three", False)):
        peer.send(publish("acknowledged", payload, 1, 5, version, dup=dup))
        peer.expect(ack(4, 5))
        assert watcher.message().payload == payload, "also where it says that it comes again"


def test_an_identifier_whose_message_was_refused_is_free(opened: Open) -> None:
    watcher, peer = opened(), opened()
    watcher.granted(("free", 0))
    peer.send(publish("$own/a", b"no", 2, 5))
    peer.expect(packet(0x50, b"\0\5\x87"))
    peer.send(publish("free", b"yes", 2, 5), ack(6, 5))
    peer.expect(ack(5, 5))
    peer.expect(ack(7, 5))
    assert watcher.message().payload == b"yes"
    peer.send(publish("free", b"more", 1, 5))
    peer.expect(ack(4, 5))
    assert watcher.message().payload == b"more"


@pytest.mark.parametrize("qos", [1, 2])
def test_what_a_client_refused_is_not_sent_again(opened: Open, qos: int) -> None:
    peer, _ = come(opened, f"refuses-{qos}", V5)
    peer.granted((f"refused/{qos}", qos))
    opened().send(publish(f"refused/{qos}", b"m", qos, 1))
    got = peer.message()
    peer.send(packet((3 + qos) << 4, got.packet_id.to_bytes(2) + b"\x97"))
    peer.quiet()
    peer.socket.close()
    peer, present = come(opened, f"refuses-{qos}", V5)
    assert present
    peer.up_to_date(f"refused/{qos}")


def test_a_message_of_qos_2_that_was_sent_is_settled_though_its_time_is_over(opened: Open) -> None:
    peer, _ = come(opened, "expiring", V5)
    peer.granted(("expiring", 2))
    opened().send(publish("expiring", b"m", 2, 1, properties=b"\2\0\0\0\1"))
    got = peer.message()
    watch = opened(None)
    watch.join(connect("", keep_alive=1))
    watch.ended(0x8D)  # a second and a half later
    peer.send(ack(5, got.packet_id))
    peer.expect(ack(6, got.packet_id))
    peer.socket.close()
    peer, present = come(opened, "expiring", V5)
    assert present
    peer.expect(ack(6, got.packet_id))
    peer.send(ack(7, got.packet_id))
    peer.up_to_date("expiring")


@VERSIONS
def test_a_topic_is_one_that_the_subscription_selects(opened: Open, version: int) -> None:
    peer = opened("", version)
    peer.granted(("select/+/b", 0))
    sent = ("select/a/b", "select/a", "select/a/b/c", "other/a/b", "select//b")
    peer.send(*(publish(topic, b"m", version=version) for topic in sent))
    assert [peer.message().topic, peer.message().topic] == ["select/a/b", "select//b"]
    peer.quiet()


def test_a_shared_subscription_keeps_to_the_qos_it_granted_and_what_is_refused_is_gone(opened: Open) -> None:
    member = opened()
    member.granted(("$share/kept/shared/qos", 1))
    sender = opened()
    for sent in range(3):
        sender.send(publish("shared/qos", bytes([sent]), sent, 1 + sent))
        got = member.message()
        assert got.qos == min(sent, 1)
        if got.qos:
            member.send(packet(0x40, got.packet_id.to_bytes(2) + b"\x80"))
    member.quiet()
    other: Peer = opened()
    other.granted(("$share/kept/shared/qos", 1))
    member.socket.close()
    other.quiet()


@VERSIONS
@pytest.mark.parametrize("expiry", [b"\x11\0\0\0\0", b"\x11\0\0\0\x64"])
def test_a_clean_start_forgets_what_was_kept(opened: Open, version: int, expiry: bytes) -> None:
    name = f"clean-{version}-{expiry[-1]}"
    peer, _ = come(opened, name, version)
    peer.granted((f"{name}/a", 1))
    leave(peer)
    peer = opened(None, version)
    assert peer.join(connect(name, version, properties=expiry if version == V5 else b""))[2] == 0
    opened("", version).send(publish(f"{name}/a", b"m", version=version))
    peer.quiet()


@pytest.mark.parametrize("returns", [True, False])
def test_mqtt_4_8_2_4_what_a_lost_member_holds_at_qos_2_is_its_alone(opened: Open, returns: bool) -> None:
    name = f"member-{returns}"
    lost, _ = come(opened, name, V5)
    lost.granted((f"$share/g/two/{returns}", 2))
    opened().send(publish(f"two/{returns}", b"m", 2, 1))
    held = lost.message()
    other = opened()
    other.granted((f"$share/g/two/{returns}", 2))
    lost.socket.close()
    back, present = come(opened, name, V5, clean=not returns)
    assert present == returns
    if returns:
        again = back.message()
        assert (again.payload, again.packet_id, again.dup) == (b"m", held.packet_id, True)
    back.quiet()
    other.quiet()
