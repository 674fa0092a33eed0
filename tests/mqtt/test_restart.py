"""Persistent sessions are restored from the journal's notes: after a kill a client finds its session, and the messages it missed."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from godwit.access.revocation import Revocation, Revocations
from tests.mqtt.conftest import Served, serve
from tests.mqtt.packets import DISCONNECT, V3, V5, Peer, ack, connect, publish

VERSIONS = pytest.mark.parametrize("version", [pytest.param(V3, marks=pytest.mark.long), V5])
DEADLINE_S = 30.0
TOKEN = "the-token-of-this-admin-port"


@contextmanager
def node(folder: Path, *more: str) -> Iterator[Served]:
    config = folder / "node.toml"
    config.write_text('[patterns."/r/**"]\nmqtt_ack = "disk"\n')
    settings = (f"node.data_directory={folder}", "drain.grace_ms=200", f"admin.token={TOKEN}")
    with serve(*settings, *more, flags=("--config", str(config))) as served:
        yield served


def kill(served: Served) -> None:
    served.process.kill()
    served.process.wait()


def await_note(folder: Path, name: str, *, says: str = "", not_yet: str = "", is_over: bool = False) -> None:
    """Wait until the last note of this name contains this and no longer that, or has ended. The node does not report notes."""
    end = time.monotonic() + DEADLINE_S
    path = folder / "journal" / "notes"
    last = None
    while time.monotonic() < end:
        text = path.read_text() if path.exists() else ""
        lines = text.split("\n")[:-1]  # behind the last end of line may be half of one
        notes = [line.split("\t")[2:] for line in lines if line.split("\t")[1] == name]
        last = notes[-1] if notes else None
        if last == [] if is_over else last and says in last[0] and not (not_yet and not_yet in last[0]):
            return
        time.sleep(0.02)  # until the interval of the notes has passed
    raise AssertionError(f"the last note of {name!r} is {last}")


def come(peer: Peer, name: str, *, clean: bool = False, expiry_s: int = 100) -> bool:
    properties = b"\x11" + expiry_s.to_bytes(4) if peer.version == V5 else b""
    return bool(peer.join(connect(name, peer.version, clean=clean, properties=properties))[2] & 1)


def send(address: tuple[str, int], topic: str, numbers: range, password: bytes | None = None) -> None:
    with Peer(address) as sender:
        sender.join(connect("", password=password))
        for number in numbers:
            sender.send(publish(topic, b"%d" % number, 1, 1 + number))
            assert sender.receive()[0] >> 4 == 4


@VERSIONS
@pytest.mark.parametrize("selector", [pytest.param("r/a", marks=pytest.mark.long), "r/#"])
def test_a_client_that_was_away_when_the_node_was_killed_gets_what_it_missed(
    tmp_path: Path, version: int, selector: str
) -> None:
    with node(tmp_path) as first:
        with Peer(first.mqtt, version) as peer:
            assert not come(peer, "device")
            peer.granted((selector, 1))
            send(first.mqtt, "r/a", range(3))
            assert [message.payload for message in peer.drain()] == [b"0", b"1", b"2"]
            peer.send(DISCONNECT)
            peer.ended()
        await_note(tmp_path, "session device", says='"expires_ms":1')
        send(first.mqtt, "r/a", range(3, 20))
        kill(first)
    with node(tmp_path) as second, Peer(second.mqtt, version) as peer:
        assert come(peer, "device")
        send(second.mqtt, "r/a", range(20, 25))
        assert [message.payload for message in peer.drain()] == [b"%d" % number for number in range(3, 25)]


@VERSIONS
def test_a_connected_client_of_a_killed_node_finds_its_session_and_what_it_had_not_settled(
    tmp_path: Path, version: int
) -> None:
    with node(tmp_path) as first, Peer(first.mqtt, version) as peer:
        assert not come(peer, "device")
        peer.granted(("r/a", 1))
        send(first.mqtt, "r/a", range(5))
        got = [peer.message() for _ in range(5)]
        peer.send(ack(4, got[0].packet_id), ack(4, got[1].packet_id))
        peer.quiet()
        unsettled, settled = (f'"packet_id":{got[number].packet_id},' for number in (2, 1))
        await_note(tmp_path, "session device", says=unsettled, not_yet=settled)
        kill(first)
    with node(tmp_path) as second, Peer(second.mqtt, version) as peer:
        assert come(peer, "device")
        send(second.mqtt, "r/a", range(5, 8))
        again = peer.drain()
        assert [message.payload for message in again] == [b"%d" % number for number in range(2, 8)]
        assert [message.packet_id for message in again[:3]] == [message.packet_id for message in got[2:]]
        assert [message.dup for message in again] == [True] * 3 + [False] * 3


def test_what_a_client_sent_at_qos_2_and_did_not_release_is_no_message_twice(tmp_path: Path) -> None:
    with node(tmp_path) as first, Peer(first.mqtt) as peer:
        come(peer, "sender")
        peer.send(publish("r/b", b"once", 2, 9))
        assert peer.receive()[0] >> 4 == 5
        await_note(tmp_path, "session sender", says='"received_at":[[9,')
        kill(first)
    with node(tmp_path) as second, Peer(second.mqtt) as peer, Peer(second.mqtt) as listener:
        listener.join(connect("listener"))
        listener.granted(("r/b", 0))
        assert come(peer, "sender")
        peer.send(publish("r/b", b"once", 2, 9, dup=True))
        assert peer.receive()[0] >> 4 == 5
        assert listener.drain() == []


@VERSIONS
@pytest.mark.parametrize("expiry_s", [pytest.param(0, marks=pytest.mark.long), 100])
def test_the_will_of_a_client_that_was_lost_with_the_node_is_published_once(
    tmp_path: Path, version: int, expiry_s: int
) -> None:
    will = {"will": ("r/will/\u00e9", b"\0gone\xff"), "will_flags": 0x28}  # QoS 1, retained
    with node(tmp_path) as first, Peer(first.mqtt, version) as peer, Peer(first.mqtt, version) as left:
        properties = b"\x11" + expiry_s.to_bytes(4) if version == V5 else b""
        peer.join(connect("lost", version, clean=not expiry_s, properties=properties, **will))
        left.join(connect("left", version, will=("r/will/left", b"never")))
        await_note(tmp_path, "will lost", says='"due_ms":0')
        await_note(tmp_path, "will left")
        left.send(DISCONNECT)
        left.ended()
        await_note(tmp_path, "will left", is_over=True)
        kill(first)
    with node(tmp_path) as second, Peer(second.mqtt, version) as watcher:
        watcher.join(connect("watcher", version))
        watcher.granted(("r/will/#", 1))
        got = watcher.message()
        assert (got.topic, got.payload, got.qos) == ("r/will/\u00e9", b"\0gone\xff", 1)
        watcher.send(ack(4, got.packet_id))
        await_note(tmp_path, "will lost", is_over=True)
        send(second.mqtt, "r/other", range(1))  # what was accepted before its answer is on the disk
        kill(second)
    with node(tmp_path) as third, Peer(third.mqtt, version) as watcher:
        watcher.join(connect("watcher", version))
        watcher.granted(("r/will/#", 1))
        assert watcher.message().retain, "what was published stays retained, and is not published again"
        watcher.up_to_date("r/will/fence")


@pytest.mark.parametrize("returns", [pytest.param(True, marks=pytest.mark.long), False])
def test_a_delayed_will_of_a_killed_node_waits_for_its_client(tmp_path: Path, returns: bool) -> None:
    wait_s = 60 if returns else 2
    delayed = {"will_properties": b"\x18" + wait_s.to_bytes(4), "properties": b"\x11\0\0\0\x64"}
    with node(tmp_path) as first, Peer(first.mqtt) as peer:
        # Retained: it reaches a watcher who comes after it, too.
        peer.join(connect("delayed", clean=False, will=("r/delayed", b"late"), will_flags=0x20, **delayed))
        await_note(tmp_path, "will delayed", says='"due_ms":0')
        await_note(tmp_path, "session delayed")
        kill(first)
    with node(tmp_path) as second, Peer(second.mqtt) as watcher, Peer(second.mqtt) as peer:
        watcher.join(connect("watcher"))
        watcher.granted(("r/delayed", 0))
        if returns:
            assert peer.join(connect("delayed", clean=False, properties=b"\x11\0\0\0\x64"))[2] & 1
            await_note(tmp_path, "will delayed", is_over=True)
            watcher.up_to_date("r/delayed")
        else:
            assert watcher.message().payload == b"late"


def test_a_session_that_was_ended_or_ran_out_does_not_come_back(tmp_path: Path) -> None:
    with node(tmp_path) as first:
        for name in ("ended", "short"):
            with Peer(first.mqtt) as peer:
                come(peer, name, expiry_s=1 if name == "short" else 100)
                peer.granted(("r/c", 1))
                peer.send(DISCONNECT)
                peer.ended()
        for name in ("ended", "short"):
            await_note(tmp_path, f"session {name}", not_yet='"expires_ms":0')
        with Peer(first.mqtt) as peer:
            assert come(peer, "ended")
            await_note(tmp_path, "session ended", says='"expires_ms":0')
            assert not come_again_clean(first, "ended")
            await_note(tmp_path, "session ended", is_over=True)
        kill(first)
    with node(tmp_path) as second:
        for name in ("ended", "short"):
            with Peer(second.mqtt) as peer:
                if name == "short":
                    time.sleep(1.1)  # its expiry passes
                assert not come(peer, name), name


def come_again_clean(served: Served, name: str) -> bool:
    with Peer(served.mqtt) as peer:
        present = come(peer, name, clean=True, expiry_s=0)
        peer.send(DISCONNECT)
        peer.ended()
        return present


def test_a_purge_outlives_the_node(tmp_path: Path) -> None:
    with node(tmp_path) as first:
        send(first.mqtt, "r/d", range(3))
        url = f"http://{first.addresses['admin']}/v1/purge?subject=/r/d"
        asked = Request(url, method="POST", headers={"Authorization": f"Bearer {TOKEN}"})
        with urlopen(asked) as answer:
            assert answer.status == 200
        await_note(tmp_path, "purge /r/d")
        kill(first)
    with node(tmp_path) as second, Peer(second.mqtt) as peer:
        peer.join(connect("late"))
        peer.granted(("r/d", 1))
        assert peer.drain() == []


def test_the_will_of_whoever_was_revoked_while_the_node_was_down_is_withheld(tmp_path: Path) -> None:
    tokens = ("token-of-a-thief-0123456789abcdef", "token-of-a-sensor-0123456789abcd")
    access = ("access.mode=basic", f"access.publish_tokens={','.join(tokens)}")
    with node(tmp_path, *access) as first, Peer(first.mqtt, V5) as thief, Peer(first.mqtt, V5) as sensor:
        for peer, token in ((thief, tokens[0]), (sensor, tokens[1])):
            name = token.split("-")[3]
            peer.join(connect(name, will=(f"r/will/{name}", b"gone"), will_flags=0x28, password=token.encode()))
            await_note(tmp_path, f"will {name}", says='"due_ms":0')
        kill(first)
    name = f"publisher-{hashlib.sha256(tokens[0].encode()).hexdigest()[:16]}"
    revoked = Revocations(tmp_path)
    revoked.add(Revocation(identity=name))
    assert asyncio.run(revoked.keep())
    with node(tmp_path, *access) as second, Peer(second.mqtt, V5) as watcher:
        watcher.join(connect("watcher", password=tokens[1].encode()))
        watcher.granted(("r/will/#", 1))
        topics = {watcher.message().topic}
        send(second.mqtt, "r/will/last", range(1), tokens[1].encode())
        while "r/will/last" not in topics:
            topics.add(watcher.message().topic)
    assert topics == {"r/will/sensor", "r/will/last"}
