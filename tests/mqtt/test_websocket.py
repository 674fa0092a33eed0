"""MQTT over WebSocket at /mqtt (6 of both standards), and over TLS: the same packets behind other doors. Case 64 by number."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as open_websocket
from websockets.typing import Subprotocol

from tests.authority import Authority
from tests.mqtt.conftest import Served, serve
from tests.mqtt.corpus import acknowledging, connecting, framing, publishing, subscribing
from tests.mqtt.corpus.case import Case
from tests.mqtt.packets import V3, V5, Peer, ack, connect, packet, publish, subscribe

MQTT = Subprotocol("mqtt")
SAMPLE = 29
"""One case of the corpus in so many."""


@dataclass(frozen=True)
class Doors:
    node: Served
    ca_file: Path

    def websocket(self, path: str = "/mqtt", subprotocols: list[Subprotocol] | None = None) -> ClientConnection:
        host, port = self.node["client"]
        offered = [MQTT] if subprotocols is None else subprotocols
        return open_websocket(
            f"ws://{host}:{port}{path}", subprotocols=offered, compression=None, proxy=None, open_timeout=20
        )

    def trust(self) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.load_verify_locations(self.ca_file)
        return made


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    chain, key = authority.issue("localhost", "127.0.0.1")
    files = f"tls.certificate_files={chain}", f"tls.key_files={key}"
    with serve(*files, "mqtt.tls_address=127.0.0.1:0", "client.tls_address=127.0.0.1:0") as node:
        yield Doors(node, authority.file)


class Frames:
    """Packets out of binary frames, whose bounds mean nothing [MQTT-6.0.0-2]."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket, self.held, self.code = socket, b"", 0

    def send(self, raw: bytes, step: int = 0) -> None:
        for at in range(0, len(raw), step or max(len(raw), 1)):
            self.socket.send(raw[at : at + (step or len(raw))])

    def receive(self) -> bytes:
        """The next whole packet; empty at the end, whose code is then known."""
        while len(self.held) < 2 or len(self.held) < 2 + self.held[1]:
            try:
                frame = self.socket.recv(timeout=20)
            except ConnectionClosed as closed:
                self.code = closed.rcvd.code if closed.rcvd else 0
                return b""
            assert isinstance(frame, bytes)  # [MQTT-6.0.0-1]
            self.held += frame
        end = 2 + self.held[1]
        whole, self.held = self.held[:end], self.held[end:]
        return whole


def test_mqtt_6_0_0_4_the_subprotocol_is_mqtt(doors: Doors) -> None:
    with doors.websocket() as socket:
        assert socket.subprotocol == MQTT
        frames = Frames(socket)
        frames.send(connect("ws"))
        assert frames.receive()[:4] == b"\x20\x0e\0\0"


@pytest.mark.parametrize("offered", [[], ["godwit.v1.json"], ["MQTT"], ["mqttv3.1"]], ids=str)
def test_case_64_without_the_subprotocol_there_is_no_websocket(doors: Doors, offered: list[str]) -> None:
    with pytest.raises(InvalidStatus) as refused:
        doors.websocket(subprotocols=[Subprotocol(name) for name in offered])
    assert refused.value.response.status_code == 400


def test_case_64_a_text_frame_ends_it(doors: Doors) -> None:
    with doors.websocket() as socket:
        frames = Frames(socket)
        frames.send(connect("text"))
        frames.receive()
        socket.send("text")
        while frames.receive():
            pass
        assert frames.code == 1003  # [MQTT-6.0.0-1]


def test_case_64_plain_http_at_the_path_is_no_crash(doors: Doors) -> None:
    plain = http.client.HTTPConnection(*doors.node["client"], timeout=20)
    for method in ("GET", "POST", "DELETE"):
        plain.request(method, "/mqtt", body=b"" if method == "GET" else b"x")
        assert plain.getresponse().read() is not None
    with doors.websocket() as socket:
        assert socket.subprotocol == MQTT


@pytest.mark.parametrize("version", [V3, V5])
@pytest.mark.parametrize("step", [1, 3, 0])
def test_mqtt_6_0_0_2_packets_are_cut_over_frames_and_several_stand_in_one(
    doors: Doors, version: int, step: int
) -> None:
    with doors.websocket() as socket:
        frames = Frames(socket)
        place = f"cut/{version}/{step}"
        frames.send(
            connect(f"cut-{version}-{step}", version)
            + subscribe((place, 2), packet_id=5, version=version)
            + publish(place, b"m" * 100, 1, 7, version)
            + packet(0xC0),
            step,
        )
        got = [frames.receive() for _ in range(5)]
        assert [one[0] for one in got[:2]] == [0x20, 0x90]
        assert sorted(one[0] for one in got[2:]) == [0x32, 0x40, 0xD0]
        frames.send(ack(4, 1), step)


def test_a_fragmented_message_is_one_run_of_bytes(doors: Doors) -> None:
    with doors.websocket() as socket:
        frames = Frames(socket)
        raw = connect("fragments") + packet(0xC0)
        socket.send(iter([raw[:1], raw[1:7], b"", raw[7:]]))
        assert [frames.receive()[0], frames.receive()[0]] == [0x20, 0xD0]


def test_what_many_are_sent_comes_whole_in_binary_frames(doors: Doors) -> None:
    with ExitStack() as stack:
        every = [Frames(stack.enter_context(doors.websocket())) for _ in range(5)]
        for number, frames in enumerate(every):
            frames.send(connect(f"many-{number}") + subscribe(("many/#", 0)))
            assert [frames.receive()[0], frames.receive()[0]] == [0x20, 0x90]
        sender = stack.enter_context(Peer(doors.node["mqtt"]))
        sender.join(connect("sender"))
        sender.send(*(publish(f"many/{n % 3}", bytes([n]) * 50) for n in range(100)))
        for frames in every:
            assert [frames.receive()[-1] for _ in range(100)] == list(range(100))


def sample() -> list[Case]:
    families = (framing, connecting, publishing, acknowledging, subscribing)
    every = [case for family in families for case in family.list_cases() if len(case.sent) < 120]
    return every[::SAMPLE]


def test_a_sample_of_the_corpus_is_answered_alike(doors: Doors) -> None:
    wrong = []
    for case in sample():
        with doors.websocket() as socket:
            frames = Frames(socket)
            if not case.is_first:
                frames.send(connect("", case.version))
                frames.receive()
            frames.send(case.sent)
            last = frames.receive() if case.is_refused or case.answer else b""
            if case.is_refused and case.reason is not None and case.version == V5:
                is_as_said = last[:1] == (b"\x20" if case.is_first else b"\xe0")
                is_as_said &= last[3 if case.is_first else 2] == case.reason and not frames.receive()
            elif case.is_refused:
                is_as_said = last[:1] in (b"", b"\x20") and not frames.receive()
            else:
                frames.send(packet(0xC0))
                is_as_said = True
                while last and last != packet(0xD0):
                    last = frames.receive()
            if not is_as_said:
                wrong.append(f"{case.name}: {last.hex(' ')}, {frames.code}")
    assert not wrong, "\n".join(wrong)


def test_mqtt_over_tls_is_mqtt(doors: Doors) -> None:
    for version in (V3, V5):
        with Peer(doors.node["mqtt_tls"], version) as peer:
            peer.socket = doors.trust().wrap_socket(peer.socket, server_hostname="localhost")
            peer.join(connect(f"tls-{version}", version))
            peer.granted(("tls/#", 1))
            peer.send(publish("tls/a", b"x" * 50_000, 1, 3, version))
            got = {peer.receive()[0], peer.receive()[0]}
            assert got == {0x32, 0x40}
            peer.send(packet(0xC1))
            got_last = peer.receive()
            assert got_last[:1] == (b"" if version == V3 else b"\xe0")


def test_what_is_no_tls_gets_no_word_of_mqtt(doors: Doors) -> None:
    with Peer(doors.node["mqtt_tls"]) as peer:
        peer.send(connect("plain"))
        assert b"\x20" not in peer.socket.recv(64)[:1]
