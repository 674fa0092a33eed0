"""Hostile input over MQTT, cases 46 to 63 by number: what each gets, and that another client notices nothing.

Case 64 is in test_websocket.py; every single malformed packet of cases 48 to 53 is in the corpus (test_corpus.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.mqtt.conftest import Served, serve
from tests.mqtt.packets import DISCONNECT, PINGREQ, V3, V5, Peer, ack, connect, packet, publish, subscribe, text

VERSIONS = pytest.mark.parametrize("version", [V3, V5])
GROWTH_BYTES_MAX = 48 << 20
"""What a node may grow by in one of these tests, connections and allocator included."""


@pytest.fixture(scope="module")
def node() -> Iterator[Served]:
    with serve("limits.mqtt_receive_max=20", "limits.handshake_ms_max=1500", "limits.message_ms_max=1500") as served:
        yield served


@pytest.fixture
def bystander(node: Served) -> Iterator[Peer]:
    """Somebody else, who is served as before when the test is over."""
    with Peer(node.mqtt) as peer:
        peer.join(connect(""))
        peer.granted(("bystander", 1))
        yield peer
        peer.send(publish("bystander", b"still here", 1, 9))
        assert {peer.receive()[:1], peer.receive()[:1]} == {b"\x32", b"\x40"}


@pytest.fixture
def steady(node: Served) -> Iterator[None]:
    """The node's memory stays within bounds."""
    process = psutil.Process(node.process.pid)
    before = process.memory_info().rss
    yield
    assert process.memory_info().rss - before < GROWTH_BYTES_MAX


PEERS: list[Peer] = []
"""What a test has opened; closed when it is over."""


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    yield
    while PEERS:
        PEERS.pop().socket.close()


def join(node: Served, name: str = "", version: int = V5, **said: object) -> Peer:
    peer = Peer(node.mqtt, version)
    PEERS.append(peer)
    peer.join(connect(name, version, **said))  # type: ignore[arg-type]  # passed on as it is
    return peer


@pytest.mark.parametrize(
    "raw", [b"\x30\0", b"\x10\xff\xff\xff\x7f", b"\x10\xff\xff\xff\xff\x7f", b"GET / HTTP/1.1\r\n\r\n"]
)
def test_case_46_what_is_no_connect_is_closed_and_256_mb_are_not_allocated(
    node: Served, bystander: Peer, steady: None, raw: bytes
) -> None:
    for _ in range(50):
        with Peer(node.mqtt) as peer:
            peer.send(raw)
            peer.ended()


def test_case_47_half_a_connect_held_open_is_bounded_and_ends_by_a_deadline(
    node: Served, bystander: Peer, steady: None
) -> None:
    whole = connect("half" * 50)
    peers = [Peer(node.mqtt) for _ in range(500)]
    for peer in peers:
        peer.send(whole[:-1])
    for peer in peers:
        peer.socket.settimeout(30)
        peer.ended()
        peer.socket.close()


@VERSIONS
def test_case_48_a_remaining_length_of_five_bytes_ends_it(node: Served, bystander: Peer, version: int) -> None:
    peer = join(node, version=version)
    peer.send(b"\x30\xff\xff\xff\xff\x01")
    peer.ended(0x81)
    with Peer(node.mqtt, version) as peer:
        peer.send(b"\x10\xff\xff\xff\xff\x01")
        peer.ended()


def test_case_49_another_protocol_is_told_so_and_a_reserved_flag_is_not_answered_in_3_1_1(
    node: Served, bystander: Peer
) -> None:
    for raw, answer in (
        (packet(0x10, text("MQTT") + b"\3\2\0\0" + text("a")), b"\x20\2\0\1"),
        (packet(0x10, text("MQTX") + b"\4\2\0\0" + text("a")), b"\x20\2\0\1"),
        (packet(0x10, text("MQTT") + b"\4\3\0\0" + text("a")), b""),
        (packet(0x10, text("MQTT") + b"\6\2\0\0\0" + text("a")), b"\x84"),
        (packet(0x10, text("MQTT") + b"\5\3\0\0\0" + text("a")), b"\x81"),
    ):
        with Peer(node.mqtt) as peer:
            peer.send(raw)
            got = peer.receive()
            assert got == answer or got[3:4] == answer[:1], got.hex(" ")
            if got:
                peer.ended()


@VERSIONS
def test_case_50_a_second_connect_ends_it(node: Served, bystander: Peer, version: int) -> None:
    peer = join(node, "twice", version)
    peer.send(connect("twice", version))
    peer.ended(0x82)


CASE_51 = {
    "flags of SUBSCRIBE": (b"\x80\7\0\1\0\0\1a\0", 0x81),
    "QoS 3": (b"\x36\6\0\1a\0\1\0", 0x81),
    "DUP at QoS 0": (b"\x38\4\0\1a\0", 0x81),
    "packet identifier 0": (b"\x32\6\0\1a\0\0\0", 0x82),
}


@pytest.mark.parametrize("name", CASE_51)
def test_case_51_reserved_bits_and_identifier_0_end_it(node: Served, bystander: Peer, name: str) -> None:
    raw, reason = CASE_51[name]
    for version in (V3, V5):
        peer = join(node, version=version)
        peer.send(raw)
        peer.ended(reason)


CASE_52 = {"a/+": 0x90, "#": 0x90, "a\0b": 0x81, "": 0x82, "\ud800": 0x81}


@pytest.mark.parametrize(("topic", "reason"), CASE_52.items(), ids=[repr(topic) for topic in CASE_52])
def test_case_52_a_topic_that_is_none_ends_it(node: Served, bystander: Peer, topic: str, reason: int) -> None:
    raw = text(topic.encode("utf-8", "surrogatepass"))
    for version, tail in ((V3, b"m"), (V5, b"\0m")):
        peer = join(node, version=version)
        peer.send(packet(0x30, raw + tail))
        peer.ended(reason)


@pytest.mark.parametrize(("alias", "reason"), [(0, 0x94), (65, 0x94), (0xFFFF, 0x94), (7, 0x82)])
def test_case_53_an_alias_of_0_too_high_or_unknown_ends_it(
    node: Served, bystander: Peer, alias: int, reason: int
) -> None:
    peer = join(node)
    peer.send(publish("", b"m", properties=b"\x23" + alias.to_bytes(2)))
    peer.ended(reason)


def test_case_54_over_the_packet_size_and_over_receive_maximum_it_is_told_before_the_end(
    node: Served, bystander: Peer, steady: None
) -> None:
    peer = join(node)
    peer.send(b"\x30\xff\xff\xff\x7f" + b"x" * 100_000)
    peer.ended(0x95)
    peer = join(node)
    peer.send(*(publish("a", b"", 2, n) for n in range(1, 22)))
    for n in range(1, 21):
        peer.expect(ack(5, n))
    peer.ended(0x93)


def test_case_54_nothing_larger_than_a_client_takes_is_sent_to_it(node: Served, bystander: Peer) -> None:
    with Peer(node.mqtt) as peer:
        peer.send(connect("", properties=b"\x27\0\0\0\2"))
        peer.ended()  # not even CONNACK [MQTT-3.1.2-24]
    peer = join(node, "small", properties=b"\x27\0\0\0\x12")
    peer.send(subscribe(*((f"f/{n}", 0) for n in range(20))))
    peer.ended(0x95)
    peer = join(node, "small", properties=b"\x27\0\0\0\x12")
    peer.send(packet(0xC1))
    peer.expect(b"\xe0\1\x81")  # without the reason string, which would be too long [MQTT-3.14.2-3]


def test_case_55_identifiers_of_qos_2_that_are_never_released_are_bounded(
    node: Served, bystander: Peer, steady: None
) -> None:
    peer = join(node, version=V3)
    sent = publish("a", b"m", 2, 7, V3, dup=True)
    for _ in range(100):  # the same one, again and again: each time the same answer
        peer.send(sent * 1000)
        for _ in range(1000):
            peer.expect(ack(5, 7))
    peer.send(*(publish("a", b"", 2, n, V3) for n in range(10, 400)))
    got = 0
    while peer.receive():
        got += 1
    assert got < 200
    peer = join(node)
    peer.send(ack(6, 99))
    peer.expect(packet(0x70, b"\0\x63\x92"))


def test_case_56_properties_by_the_thousand_take_linear_time(node: Served, bystander: Peer) -> None:
    peer = join(node)
    one = b"\x26" + text("k") + text("v")

    def measure(count: int) -> float:
        raw = publish("a", b"m", properties=one * count)
        began = time.process_time(), psutil.Process(node.process.pid).cpu_times()
        for _ in range(10):
            peer.send(raw)
        peer.quiet()
        spent = psutil.Process(node.process.pid).cpu_times()
        return spent.user + spent.system - began[1].user - began[1].system

    measure(10_000)
    # Quadratic time would be a hundred times as much, seconds of it.
    assert measure(100_000) < 2.0
    for raw, reason in ((b"\1\0\1\0", 0x82), (b"\x04\0", 0x81)):
        peer = join(node)
        peer.send(publish("a", b"m", properties=raw))
        peer.ended(reason)


def test_case_57_a_will_that_may_not_be_is_refused_and_none_is_published(node: Served, bystander: Peer) -> None:
    watcher = join(node)
    watcher.granted(("will/#", 1))
    for properties, topic, reason in ((b"\1\2", "will/a", 0x82), (b"\x23\0\1", "will/a", 0x81), (b"", "$SYS/a", 0x87)):
        with Peer(node.mqtt) as peer:
            peer.send(connect("", will=(topic, b"never"), will_properties=properties))
            got = peer.receive()
            assert got[3] == reason
            peer.ended()
    # A delay past the session's end is cut to it: published once, at the end of the session.
    keeping = join(node, will=("will/late", b"once"), will_properties=b"\x18\0\1\0\0", properties=b"\x11\0\0\0\0")
    keeping.socket.close()
    assert watcher.message().payload == b"once"
    watcher.send(PINGREQ)
    watcher.expect(packet(0xD0))


def test_case_60_a_filter_of_slashes_or_64_kb_is_refused_and_subscriptions_are_counted(
    node: Served, bystander: Peer, steady: None
) -> None:
    peer = join(node)
    for name in ("/" * 65_400, "a" * 65_535, "a/" * 30_000, "+/" * 600 + "#"):
        assert peer.granted((name, 0)) == b"\x8f"
    for first in range(0, 1000, 100):
        assert peer.granted(*((f"many/{n}", 0) for n in range(first, first + 100))) == bytes(100)
    assert peer.granted(("one/more", 0)) == b"\x97"
    assert peer.granted(("many/1", 1)) == b"\1"  # one that it has may be changed


@pytest.mark.parametrize("name", ["+", "#", "%c", "x" * 65_535, "a\nb", "a\x7fb"], ids=lambda name: repr(name[:4]))
def test_case_62_a_name_that_could_be_a_pattern_or_a_line_is_refused(node: Served, bystander: Peer, name: str) -> None:
    with Peer(node.mqtt) as peer:
        peer.send(connect(name))
        assert peer.receive()[3] == 0x85
        peer.ended()
    with Peer(node.mqtt, V3) as peer:
        peer.send(connect(name, V3))
        peer.expect(b"\x20\2\0\2")
        peer.ended()
    if any(character < " " or character == "\x7f" for character in name):
        with Peer(node.mqtt) as peer:
            peer.send(connect("ok", username=name))
            assert peer.receive()[3] == 0x86
            peer.ended()


def test_case_63_who_promises_no_sign_of_life_is_given_a_keep_alive_and_a_lost_one_its_will(
    node: Served, bystander: Peer
) -> None:
    with Peer(node.mqtt) as peer:
        assert b"\x13\x0e\x10" in peer.join(connect("", keep_alive=0))
    watcher = join(node)
    watcher.granted(("lost/#", 0))
    lost = [join(node, version=version, keep_alive=1, will=("lost/a", b"gone")) for version in (V3, V5)]
    for peer in lost:
        peer.ended(0x8D)
        assert watcher.message().payload == b"gone"


SECRET = "a secret of thirty-two bytes or more"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Path]]:
    """A node whose clients may what their tokens say."""
    jwt = pytest.importorskip("jwt", reason="PyJWT is a dependency of Godwit: it is there")
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "keys").write_text(SECRET)
    (folder / "node.toml").write_text(
        f'[access]\nmode = "jwt"\n[issuers.test]\nkeys_file = "{folder}/keys"\nalgorithms = ["HS256"]\n'
    )
    rules = {
        "reader": {"allow": {"both": ["/open/**"], "subscribe": ["/some/**"]}, "deny": {"both": ["/some/secret/**"]}},
        "other": {"allow": {"both": ["/**"]}},
    }
    for name, permissions in rules.items():
        claims = {"iss": "test", "sub": name, "exp": int(time.time()) + 3600, "permissions": permissions}
        (folder / f"{name}.token").write_text(jwt.encode(claims, SECRET, "HS256"))
    with serve(flags=["--config", str(folder / "node.toml")]) as served:
        yield served, folder


def come(guarded: tuple[Served, Path], who: str, name: str = "", version: int = V5, **said: object) -> Peer:
    node, folder = guarded
    token = (folder / f"{who}.token").read_bytes()
    return join(node, name, version, username=who, password=token, **said)


@VERSIONS
def test_case_58_a_filter_that_touches_what_is_denied_is_refused_whole(
    guarded: tuple[Served, Path], version: int
) -> None:
    peer = come(guarded, "reader", version=version)
    refused = [
        "#",
        "+/#",
        "$SYS/#",
        "$share/g/some/secret/a",
        "$share/g/#",
        "some/#",
        "some/+/a",
        "some/secret/a",
        "else",
    ]
    codes = peer.granted(*((name, 1) for name in [*refused, "some/open", "open/#", "$share/g/open/#"]))
    no = b"\x80" if version == V3 else b"\x87"
    assert codes == no * len(refused) + b"\1\1\1"
    other = come(guarded, "other")
    other.send(*(publish(f"some/secret/{n}", b"x", 1, n + 1) for n in range(5)))
    for n in range(5):
        other.expect(ack(4, n + 1))
    peer.quiet()


@VERSIONS
def test_case_59_the_same_judgement_holds_for_retained_replayed_shared_and_wills(
    guarded: tuple[Served, Path], version: int
) -> None:
    other = come(guarded, "other")
    other.send(publish("some/secret/kept", b"x", 1, 1, retain=True))
    other.expect(ack(4, 1))
    peer = come(guarded, "reader", f"judged-{version}", version, clean=False)
    no = b"\x80" if version == V3 else b"\x87"
    assert peer.granted(("some/secret/kept", 1), ("$share/g/some/secret/kept", 1)) == no + no
    peer.send(publish("some/secret/a", b"x", 1, 3, version, retain=True))
    peer.expect(ack(4, 3) if version == V3 else packet(0x40, b"\0\3\x87"))
    peer.send(DISCONNECT)
    peer.ended()
    other.send(publish("some/secret/kept", b"y", 1, 2))
    other.expect(ack(4, 2))
    again = come(guarded, "reader", f"judged-{version}", version, clean=False)
    again.quiet()
    node, folder = guarded
    with Peer(node.mqtt, version) as willing:
        token = (folder / "reader.token").read_bytes()
        willing.send(connect("", version, username="r", password=token, will=("some/secret/will", b"x")))
        got = willing.receive()
        assert got == b"\x20\2\0\5" if version == V3 else got[3] == 0x87
        willing.ended()


def test_case_61_another_users_name_is_refused_and_ones_own_is_taken_over(guarded: tuple[Served, Path]) -> None:
    first = come(guarded, "reader", "mine")
    node, folder = guarded
    with Peer(node.mqtt) as thief:
        thief.send(connect("mine", username="other", password=(folder / "other.token").read_bytes()))
        assert thief.receive()[3] == 0x85
        thief.ended()
    first.quiet()
    come(guarded, "reader", "mine")
    first.ended(0x8E)
