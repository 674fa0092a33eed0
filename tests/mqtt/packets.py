"""MQTT packets as bytes, written by hand from the standards, so that nothing of the node's own codec checks itself."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from types import TracebackType

V3, V5 = 4, 5


def varint(value: int) -> bytes:
    out = bytearray()
    while True:
        value, byte = value >> 7, value & 127
        out.append(byte | (128 if value else 0))
        if not value:
            return bytes(out)


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return len(raw).to_bytes(2) + raw


def packet(first: int, body: bytes = b"") -> bytes:
    return bytes([first]) + varint(len(body)) + body


def props(version: int, raw: bytes = b"") -> bytes:
    return varint(len(raw)) + raw if version == V5 else b""


def connect(
    client_id: str = "",
    version: int = V5,
    *,
    clean: bool = True,
    keep_alive: int = 60,
    properties: bytes = b"",
    will: tuple[str, bytes] | None = None,
    will_flags: int = 0,
    will_properties: bytes = b"",
    username: str | None = None,
    password: bytes | None = None,
) -> bytes:
    flags = (2 if clean else 0) | (4 | will_flags if will else 0)
    flags |= (0x80 if username is not None else 0) | (0x40 if password is not None else 0)
    body = (
        text("MQTT") + bytes([version, flags]) + keep_alive.to_bytes(2) + props(version, properties) + text(client_id)
    )
    if will:
        body += props(version, will_properties) + text(will[0]) + text(will[1])
    body += text(username) if username is not None else b""
    body += text(password) if password is not None else b""
    return packet(0x10, body)


def publish(
    topic: str, payload: bytes = b"", qos: int = 0, packet_id: int = 1, version: int = V5, *,
    retain: bool = False, dup: bool = False, properties: bytes = b"",
) -> bytes:  # fmt: skip
    body = text(topic) + (packet_id.to_bytes(2) if qos else b"") + props(version, properties) + payload
    return packet(0x30 | dup << 3 | qos << 1 | retain, body)


def subscribe(*filters: tuple[str, int], packet_id: int = 1, version: int = V5, properties: bytes = b"") -> bytes:
    body = packet_id.to_bytes(2) + props(version, properties)
    return packet(0x82, body + b"".join(text(name) + bytes([options]) for name, options in filters))


def unsubscribe(*filters: str, packet_id: int = 1, version: int = V5) -> bytes:
    return packet(0xA2, packet_id.to_bytes(2) + props(version) + b"".join(map(text, filters)))


def ack(kind: int, packet_id: int) -> bytes:
    """PUBACK 4, PUBREC 5, PUBREL 6, PUBCOMP 7."""
    return packet(kind << 4 | (2 if kind == 6 else 0), packet_id.to_bytes(2))


PINGREQ, DISCONNECT = packet(0xC0), packet(0xE0)


@dataclass(frozen=True)
class Message:
    """A PUBLISH that a client received."""

    topic: str
    payload: bytes
    qos: int
    packet_id: int
    retain: bool
    dup: bool
    properties: bytes


class Peer:
    """One raw connection."""

    def __init__(self, address: tuple[str, int], version: int = V5) -> None:
        self.version = version
        self.socket = socket.create_connection(address, timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.held = b""

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, *packets: bytes) -> None:
        self.socket.sendall(b"".join(packets))

    def receive(self) -> bytes:
        """The next whole packet; empty at the end of the connection."""
        while True:
            whole = self._take()
            if whole:
                return whole
            try:
                more = self.socket.recv(65_536)
            except ConnectionResetError:
                more = b""
            if not more:
                assert not self.held, self.held
                return b""
            self.held += more

    def _take(self) -> bytes:
        length, shift = 0, 0
        for at, byte in enumerate(self.held[1:5], 2):
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                whole, self.held = (
                    (self.held[: at + length], self.held[at + length :])
                    if len(self.held) >= at + length
                    else (b"", self.held)
                )
                return whole
        return b""

    def expect(self, expected: bytes) -> None:
        got = self.receive()
        assert got == expected, f"{got.hex(' ')} instead of {expected.hex(' ')}"

    def join(self, connecting: bytes) -> bytes:
        """Connects; returns the CONNACK, which says yes."""
        self.send(connecting)
        connack = self.receive()
        assert connack[:1] == b"\x20" and connack[3] == 0, connack.hex(" ")
        return connack

    def granted(self, *filters: tuple[str, int], properties: bytes = b"") -> bytes:
        """Subscribes; returns the codes."""
        self.send(subscribe(*filters, packet_id=77, version=self.version, properties=properties))
        suback = self.receive()
        assert suback[0] == 0x90 and suback[2:4] == b"\0M", suback.hex(" ")
        return suback[-len(filters) :]

    def message(self) -> Message:
        raw = self.receive()
        assert raw[:1] and raw[0] >> 4 == 3, raw.hex(" ")
        at = 2
        while raw[at - 1] > 127:
            at += 1
        size = int.from_bytes(raw[at : at + 2])
        topic, at = raw[at + 2 : at + 2 + size].decode(), at + 2 + size
        qos, packet_id = raw[0] >> 1 & 3, 0
        if qos:
            packet_id, at = int.from_bytes(raw[at : at + 2]), at + 2
        properties = b""
        if self.version == V5:
            size = raw[at]
            assert size < 128
            properties, at = raw[at + 1 : at + 1 + size], at + 1 + size
        return Message(topic, raw[at:], qos, packet_id, bool(raw[0] & 1), bool(raw[0] & 8), properties)

    def drain(self) -> list[Message]:
        """Acknowledges and returns the messages of QoS 0 and 1 that come before the answer to a ping."""
        self.send(PINGREQ)
        messages = []
        while (raw := self.receive()) != packet(0xD0):
            self.held = raw + self.held
            messages.append(self.message())
            if messages[-1].qos:
                self.send(ack(4, messages[-1].packet_id))
        return messages

    def quiet(self) -> None:
        """Nothing comes before the answer to a ping: what was to be sent has been sent."""
        self.send(PINGREQ)
        self.expect(packet(0xD0))

    def up_to_date(self, topic: str) -> None:
        """The next message is one published now: what the subscription that selects `topic` still owed would come before it.

        An answer to a ping proves that only for a connection whose subscriptions have caught up, not right after a resume.
        """
        self.send(publish(topic, b"fence", version=self.version))
        fence = self.message()
        assert (fence.topic, fence.payload) == (topic, b"fence"), fence

    def ended(self, reason: int | None = None) -> None:
        """The server closes: with this reason where it may say one."""
        last = self.receive()
        if reason is not None and self.version == V5:
            assert last[:1] == b"\xe0" and last[2] == reason, last.hex(" ")
            last = self.receive()
        assert last == b"", last.hex(" ")
