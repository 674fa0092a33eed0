"""PUBLISH both ways, subscriptions and their options, retained messages, aliases, limits [MQTT-3.3 to 3.11, 4.3, 4.6 to 4.9]."""

from __future__ import annotations

import time

import pytest

from tests.mqtt.conftest import Open
from tests.mqtt.packets import V3, V5, ack, packet, publish, subscribe, text, unsubscribe

VERSIONS = pytest.mark.parametrize("version", [V3, V5])


@VERSIONS
def test_mqtt_3_8_4_8_a_message_comes_at_the_lesser_qos(opened: Open, version: int) -> None:
    for granted in range(3):
        peer = opened("", version)
        peer.granted((f"qos/{granted}", granted))
        sender = opened("", version)
        for sent in range(3):
            sender.send(publish(f"qos/{granted}", b"m", sent, 1 + sent, version))
            assert peer.message().qos == min(granted, sent)


@VERSIONS
def test_mqtt_4_3_3_qos_2_is_accepted_once(opened: Open, version: int) -> None:
    watcher = opened("", version)
    watcher.granted(("once", 0))
    peer = opened("", version)
    again = publish("once", b"m", 2, 5, version, dup=True)
    peer.send(publish("once", b"m", 2, 5, version), again)
    peer.expect(ack(5, 5))
    peer.expect(ack(5, 5))
    peer.send(ack(6, 5))
    peer.expect(ack(7, 5))
    assert watcher.message().payload == b"m"
    watcher.quiet()
    peer.send(publish("once", b"next", 2, 5, version))
    peer.expect(ack(5, 5))
    assert watcher.message().payload == b"next"


@VERSIONS
def test_mqtt_4_3_3_qos_2_to_a_client_is_settled_in_four_steps(opened: Open, version: int) -> None:
    peer = opened("", version)
    peer.granted(("four", 2))
    peer.send(publish("four", b"m", 2, 1, version))
    got = {peer.receive()[0] >> 4: 0, peer.receive()[0] >> 4: 0}
    assert set(got) == {3, 5}
    peer.send(ack(6, 1), ack(5, 1))
    assert {peer.receive(), peer.receive()} == {ack(7, 1), ack(6, 1)}
    peer.send(ack(7, 1))
    peer.quiet()


def test_mqtt_4_3_3_5_0_names_identifiers_that_mean_nothing(opened: Open) -> None:
    peer = opened()
    peer.send(ack(6, 99), ack(5, 98), ack(4, 97), ack(7, 96))
    peer.expect(packet(0x70, b"\0\x63\x92"))
    peer.expect(packet(0x62, b"\0\x62\x92"))
    peer.quiet()


@VERSIONS
@pytest.mark.parametrize("qos", [1, 2])
def test_an_answer_of_the_wrong_kind_ends_it(opened: Open, version: int, qos: int) -> None:
    for kind in {1: (5, 7), 2: (4, 7)}[qos]:
        peer = opened("", version)
        peer.granted((f"kind/{version}", qos))
        opened("", version).send(publish(f"kind/{version}", b"m", 2, 1, version))
        peer.send(ack(kind, peer.message().packet_id))
        peer.ended(0x82)


def test_mqtt_3_3_4_9_no_more_than_receive_maximum_is_in_flight(opened: Open) -> None:
    peer = opened("", properties=b"\x21\0\2")
    peer.granted(("flow", 1))
    opened().send(*(publish("flow", bytes([n]), 1, n, V5) for n in range(1, 6)))
    first, second = peer.message(), peer.message()
    peer.quiet()
    peer.send(ack(4, second.packet_id))
    assert peer.message().payload == b"\3"
    peer.send(ack(4, first.packet_id))
    assert peer.message().payload == b"\4"
    peer.quiet()


def test_mqtt_3_3_4_7_past_our_receive_maximum_it_ends_and_says_so(opened: Open) -> None:
    peer = opened()
    peer.send(*(publish("much", b"", 2, n) for n in range(1, 22)))
    for n in range(1, 21):
        peer.expect(ack(5, n))
    peer.send(ack(6, 1))
    peer.ended(0x93)


@VERSIONS
def test_mqtt_3_3_1_5_a_retained_message_meets_who_subscribes_later(opened: Open, version: int) -> None:
    sender = opened("", version)
    sender.send(
        publish("kept/a", b"old", 1, 1, version, retain=True), publish("kept/a", b"new", 1, 2, version, retain=True)
    )
    sender.expect(ack(4, 1))
    sender.expect(ack(4, 2))
    peer = opened("", version)
    peer.granted(("kept/+", 1))
    got = peer.message()
    assert (got.payload, got.retain, got.qos) == (b"new", True, 1)
    peer.send(ack(4, got.packet_id))
    sender.send(publish("kept/a", b"live", 1, 3, version, retain=True))
    sender.expect(ack(4, 3))
    assert not peer.message().retain  # [MQTT-3.3.1-9], [MQTT-3.3.1-12]
    sender.send(publish("kept/a", b"", 1, 4, version, retain=True))  # [MQTT-3.3.1-6]
    sender.expect(ack(4, 4))
    late = opened("", version)
    late.granted(("kept/+", 1))
    late.quiet()


def test_mqtt_3_3_1_8_an_unretained_message_replaces_nothing(opened: Open) -> None:
    sender = opened()
    sender.send(publish("stay", b"kept", 1, 1, retain=True), publish("stay", b"passing", 1, 2))
    sender.expect(ack(4, 1))
    sender.expect(ack(4, 2))
    peer = opened()
    peer.granted(("stay", 0))
    assert peer.message().payload == b"kept"
    peer.quiet()


def test_mqtt_3_3_1_10_retain_handling_says_when_retained_messages_come(opened: Open) -> None:
    sender = opened()
    sender.send(publish("handling", b"r", 1, 1, retain=True))
    sender.expect(ack(4, 1))
    for handling, first, again in ((0, True, True), (1, True, False), (2, False, False)):
        peer = opened()
        for comes in (first, again):
            peer.granted(("handling", handling << 4))
            if comes:
                assert peer.message().retain
            peer.quiet()


def test_options_no_local_and_retain_as_published(opened: Open) -> None:
    peer, other = opened("local-1"), opened()
    peer.granted(("mine", 0x04 | 1), ("asis", 0x08))
    peer.send(publish("mine", b"own"))
    other.send(publish("mine", b"theirs"), publish("asis", b"flag", retain=True), publish("asis", b"", retain=True))
    assert peer.message().payload == b"theirs"  # [MQTT-3.8.3-3]
    assert peer.message().retain  # [MQTT-3.3.1-13]
    assert peer.message().retain


def test_mqtt_3_3_4_3_a_subscription_identifier_comes_back(opened: Open) -> None:
    peer = opened()
    peer.granted(("ids/#", 0), properties=b"\x0b\xff\x01")
    opened().send(publish("ids/a", b"m"))
    assert peer.message().properties == b"\x0b\xff\x01"


def test_what_a_publisher_says_of_its_message_is_carried_through(opened: Open) -> None:
    peer = opened()
    peer.granted(("carried", 0))
    said = b"\1\1" + b"\3" + text("text/x") + b"\x09" + text(b"\0\xff") + (b"\x26" + text("k") + text("v")) * 2
    opened().send(publish("carried", b"m", properties=b"\x08" + text("answers/1") + said))
    got = peer.message().properties
    assert said in got and b"\x08" + text("answers/1") in got  # [MQTT-3.3.2-15, -16, -17, -18, -20]


def test_message_expiry_counts_down_and_ends(opened: Open) -> None:
    sender = opened()
    sender.send(publish("soon", b"m", 1, 1, retain=True, properties=b"\2\0\0\0\1"))
    sender.send(publish("later", b"m", 1, 2, retain=True, properties=b"\2\0\0\0\x64"))
    sender.expect(ack(4, 1))
    sender.expect(ack(4, 2))
    _wait_for_a_second()
    peer = opened()
    peer.granted(("soon", 0), ("later", 0))
    got = peer.message()
    assert got.topic == "later" and got.properties[:4] == b"\2\0\0\0" and 90 < got.properties[4] < 100  # [MQTT-3.3.2-6]
    peer.quiet()  # [MQTT-3.3.2-5]


def _wait_for_a_second() -> None:
    """The passing of time is what is tested here."""
    end = time.monotonic() + 1.3
    while time.monotonic() < end:
        pass


def test_mqtt_3_3_2_12_an_alias_stands_for_a_topic(opened: Open) -> None:
    peer, sender = opened(), opened()
    peer.granted(("al/#", 0))
    sender.send(publish("al/a", b"1", properties=b"\x23\0\1"), publish("", b"2", properties=b"\x23\0\1"))
    sender.send(publish("al/b", b"3", properties=b"\x23\0\1"), publish("", b"4", properties=b"\x23\0\1"))
    assert [peer.message().topic for _ in range(4)] == ["al/a", "al/a", "al/b", "al/b"]


def test_topics_towards_a_client_get_aliases_as_many_as_it_takes(opened: Open) -> None:
    peer = opened("", properties=b"\x22\0\1")
    peer.granted(("to/#", 0))
    opened().send(*(publish(topic, b"m") for topic in ("to/a", "to/a", "to/b")))
    first, second, third = (peer.message() for _ in range(3))
    assert (first.topic, first.properties) == ("to/a", b"\x23\0\1")
    assert (second.topic, second.properties) == ("", b"\x23\0\1")
    assert (third.topic, third.properties) == ("to/b", b"")  # [MQTT-3.1.2-26]


def test_mqtt_3_1_2_25_what_is_too_large_for_a_client_is_left_out(opened: Open) -> None:
    peer = opened("small-packets", properties=b"\x27\0\0\0\x20")
    peer.granted(("size", 1))
    opened().send(publish("size", b"x" * 100), publish("size", b"small"))
    assert peer.message().payload == b"small"


FILTERS = {
    "sport/tennis/#": ("sport/tennis", "sport/tennis/player1/score"),
    "sport/+": ("sport/", "sport/x"),
    "+/+": ("/finance", "a/b"),
    "/+": ("/finance", "/"),
    "a//b": ("a//b",),
}


@VERSIONS
def test_mqtt_4_7_filters_match_as_the_standard_shows(opened: Open, version: int) -> None:
    for pattern, topics in FILTERS.items():
        peer, sender = opened("", version), opened("", version)
        peer.granted((pattern, 0))
        peer.drain()  # what other tests have left retained
        sender.send(*(publish(topic, b"m", version=version) for topic in (*topics, "none/of/these/x")))
        assert [peer.message().topic for _ in topics] == list(topics)
        peer.quiet()


@VERSIONS
def test_mqtt_4_7_2_1_a_leading_wildcard_holds_no_topic_of_the_server(opened: Open, version: int) -> None:
    peer = opened("", version)
    peer.granted(("+/own", 0))
    sender = opened("", version)
    sender.send(publish("$own/own", b"m", 1, 1, version))
    got = sender.receive()
    assert got == (ack(4, 1) if version == V3 else packet(0x40, b"\0\1\x87"))  # [MQTT-3.3.5-2]
    assert peer.granted(("$SYS/#", 1)) == (b"\x80" if version == V3 else b"\x87")
    peer.quiet()


@VERSIONS
def test_mqtt_3_10_4_an_unsubscribe_ends_it(opened: Open, version: int) -> None:
    peer, sender = opened("", version), opened("", version)
    peer.granted(("un/a", 0), ("un/b", 0))
    peer.send(unsubscribe("un/a", "un/none", packet_id=3, version=version))
    peer.expect(packet(0xB0, b"\0\3" + (b"" if version == V3 else b"\0\0\x11")))
    sender.send(publish("un/a", b"m", version=version), publish("un/b", b"m", version=version))
    assert peer.message().topic == "un/b"


@VERSIONS
def test_mqtt_4_6_0_5_messages_of_a_topic_come_in_order(opened: Open, version: int) -> None:
    peer, sender = opened("", version), opened("", V3)
    peer.granted(("order", 1))
    count = 500
    sender.send(*(publish("order", str(n).encode(), n % 2, n + 1, V3) for n in range(count)))
    for n in range(count):
        got = peer.message()
        assert got.payload == str(n).encode()
        if got.qos:
            peer.send(ack(4, got.packet_id))


def test_a_shared_subscription_deals_each_message_to_one(opened: Open) -> None:
    members = [opened() for _ in range(3)]
    for member in members:
        member.granted(("$share/g/deal/#", 1))
    whole = opened()
    whole.granted(("deal/#", 0))
    opened("", V3).send(*(publish(f"deal/{n}", bytes([n]), 1, n + 1, V3) for n in range(30)))
    dealt: list[list[int]] = [[], [], []]
    deadline = time.monotonic() + 60
    while sum(map(len, dealt)) < 30 and time.monotonic() < deadline:
        for member, got in zip(members, dealt, strict=True):
            got += [message.payload[0] for message in member.drain()]
    assert sorted(number for got in dealt for number in got) == list(range(30))
    assert [whole.message().payload[0] for _ in range(30)] == list(range(30))


def test_what_a_lost_member_had_not_settled_is_dealt_again(opened: Open) -> None:
    lost = opened()
    lost.granted(("$share/back/again", 1))
    sender = opened()
    sender.send(publish("again", b"1", 1, 1), publish("again", b"2", 1, 2))
    sender.expect(ack(4, 1))
    sender.expect(ack(4, 2))
    assert [lost.message().payload, lost.message().payload] == [b"1", b"2"]
    other = opened()
    other.granted(("$share/back/again", 1))
    lost.socket.close()
    assert [other.message().payload, other.message().payload] == [b"1", b"2"]


def test_mqtt_3_8_4_3_a_subscription_is_replaced_without_a_loss(opened: Open) -> None:
    peer, sender = opened(), opened()
    peer.granted(("again/a", 0))
    for n in range(20):
        sender.send(publish("again/a", bytes([n]), 1, n + 1))
        peer.send(subscribe(("again/a", 0x20 | n % 2), packet_id=50))
    got = []
    while len(got) < 20:
        raw = peer.receive()
        if raw[0] >> 4 == 3:
            got.append(raw[-1])
    assert got == list(range(20))


def test_ten_thousand_user_properties_are_taken_in_linear_time(opened: Open) -> None:
    peer = opened()
    peer.send(publish("t", properties=(b"\x26" + text("k") + text("v")) * 10_000))
    peer.quiet()


def test_a_packet_may_come_byte_by_byte_and_several_at_once(opened: Open) -> None:
    peer = opened()
    for byte in publish("t", b"x" * 200, qos=1, packet_id=9):
        peer.send(bytes([byte]))
    peer.expect(packet(0x40, b"\0\x09"))
    peer.send(publish("t", qos=1, packet_id=1) + publish("t", qos=1, packet_id=2))
    peer.expect(packet(0x40, b"\0\1"))
    peer.expect(packet(0x40, b"\0\2"))
