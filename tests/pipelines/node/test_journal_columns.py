"""The columns of `access`, `deliveries`, `latency` and `stats` against what really happened: the test's own sockets know their addresses,
what they were sent, byte for byte, and how they left; the rows are those of a real node.
"""

from __future__ import annotations

import json
import socket
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.mqtt.packets import DISCONNECT, V5, Peer, connect, unsubscribe
from tests.pipelines.conftest import ROOT
from tests.pipelines.node.serving import START_S, node_at
from tests.pipelines.node.test_journal_visible import publish as post
from tests.pipelines.node.test_journal_visible import read_now

TOKEN = "t" * 32
SETTINGS = f"""
[access]
mode = "basic"
publish_tokens = ["{TOKEN}"]
[journal]
statistics_interval_ms = 1000
segment_age_ms_max = 3_600_000
{{journal}}
[limits]
resume_token_interval_ms = 60_000
{{limits}}
[monitoring]
push = false
[drain]
spread_ms = 0
grace_ms = 200
"""
CODES = tomllib.loads((ROOT / "protocol/codes.toml").read_text("utf-8"))
Row = dict[str, Any]


@contextmanager
def node(folder: Path, journal: str = "", limits: str = "") -> Iterator[dict[str, str]]:
    """Its addresses; only who shows the token may publish."""
    (folder / "node.toml").write_text(SETTINGS.format(journal=journal, limits=limits))
    with node_at(folder, "--mqtt", "127.0.0.1:0", "--config", str(folder / "node.toml")) as (addresses, _):
        yield addresses


def read(folder: Path, stream: str) -> list[Row]:
    """A stream's rows, once the node has ended in order."""
    files = sorted((folder / "data/journal" / stream).glob("*.arrow"))
    return [row for file in files for row in pa.ipc.open_file(str(file)).read_all().to_pylist()]


def publish(addresses: dict[str, str], subject: str, *contents: int) -> list[str]:
    """Returns the positions."""
    return post(f"http://{addresses['client']}", *((subject, content) for content in contents), token=TOKEN)


class Connection:
    """To the node, with where it comes from, as the node sees it."""

    def __init__(self, address: str, head: str) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), START_S)
        self.address = "{}:{}".format(*self.socket.getsockname())
        self.file = self.socket.makefile("rb")
        self.socket.sendall(head.encode())
        while head and self.file.readline().strip():
            pass

    def close(self) -> None:
        self.file.close()
        self.socket.close()


class WebSocket(Connection):
    """Counts the bytes of what it is sent."""

    def __init__(self, address: str, query: str = "") -> None:
        lines = [f"GET /v1/live{query} HTTP/1.1", f"Host: {address}", "Upgrade: websocket", "Connection: Upgrade"]
        lines += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"]
        super().__init__(address, "\r\n".join([*lines, "Sec-WebSocket-Protocol: godwit.v1.json", "", ""]))

    def send(self, kind: int, body: bytes) -> None:
        assert len(body) < 126
        self.socket.sendall(bytes([0x80 | kind, 0x80 | len(body), 0, 0, 0, 0]) + body)  # a mask of zeros

    def receive(self) -> tuple[bytes, int]:
        """What a frame holds, and how long it is with its head."""
        head, length = self.file.read(2), 2
        size = head[1]
        if size == 126:
            size, length = int.from_bytes(self.file.read(2)), 4
        return self.file.read(size), length + size

    def ask(self, **command: object) -> Row:
        self.send(1, json.dumps({"id": 1, **command}).encode())
        answer: Row = json.loads(self.receive()[0])
        assert answer["id"] == 1, answer
        return answer

    def messages(self, count: int) -> tuple[list[int], int]:
        """The contents of the next ones, and the bytes of their frames."""
        frames = [self.receive() for _ in range(count)]
        return [json.loads(body)["content"] for body, _ in frames], sum(length for _, length in frames)

    def leave(self, code: int, reason: bytes = b"") -> None:
        self.send(8, code.to_bytes(2) + reason)
        self.receive()
        self.close()


class EventStream(Connection):
    """An answer that goes on; counts the bytes of its messages."""

    def __init__(self, address: str, subject: str, after: str = "") -> None:
        resuming = f"Last-Event-ID: {after}\r\n" if after else ""
        super().__init__(address, f"GET /v1/stream?subject={subject} HTTP/1.1\r\nHost: {address}\r\n{resuming}\r\n")
        assert b"event: subscribed\n" in self.event()

    def event(self) -> list[bytes]:
        """Its lines, up to the empty one that ends it."""
        lines = [self.file.readline()]
        while lines[-1] != b"\n":
            assert lines[-1], "the stream ended"
            lines.append(self.file.readline())
        return lines

    def messages(self, count: int) -> tuple[list[int], int]:
        events = [self.event() for _ in range(count)]
        contents = [json.loads(lines[1].removeprefix(b"data: "))["content"] for lines in events]
        return contents, sum(len(line) for lines in events for line in lines)


def open_peer(addresses: dict[str, str]) -> tuple[Peer, str]:
    host, port = addresses["mqtt"].rsplit(":", 1)
    peer = Peer((host, int(port)), V5)
    return peer, "{}:{}".format(*peer.socket.getsockname())


def of(rows: list[Row], address: str) -> list[Row]:
    """Those of one connection, which all have its number."""
    found = [row for row in rows if row["address"] == address]
    assert len({row["connection"] for row in found}) <= 1
    return found


def described(rows: list[Row]) -> list[tuple[object, ...]]:
    """What happened, without who it was and when."""
    return [(row["kind"], row["selector"], row["outcome"], row["resumed_from"], row["code"]) for row in rows]


def test_rows_of_access_say_what_a_websocket_did(tmp_path: Path) -> None:
    with node(tmp_path) as addresses:
        places = publish(addresses, "/a/b", *range(5))
        came, came_us = time.monotonic(), time.time() * 1e6
        client = WebSocket(addresses["client"])
        client.ask(connect={"client": "the test's"})
        is_in = time.monotonic()
        client.ask(subscribe="/a/fresh")
        client.ask(subscribe="/a/b", after=places[1])
        assert client.messages(3)[0] == [2, 3, 4]
        client.ask(unsubscribe="/a/b")
        client.ask(subscribe="/a/b", last=2)
        assert client.messages(2)[0] == [3, 4]
        client.ask(unsubscribe="/a/b")
        client.ask(subscribe="/a/b")
        assert client.messages(1)[0] == [4]
        while time.monotonic() < is_in + 0.3:  # duration_ms counts in tenths of a second
            client.send(9, b"")
            assert client.receive()[0] == b""
        leaves = time.monotonic()
        client.leave(3001, b"enough")
        gone, gone_us = time.monotonic(), time.time() * 1e6
    rows = of(read(tmp_path, "access"), client.address)
    assert described(rows) == [
        ("connected", None, None, None, None),
        ("subscribed", "/a/fresh", "live", None, None),
        ("subscribed", "/a/b", "recovered", places[1], None),
        ("unsubscribed", "/a/b", None, None, None),
        ("subscribed", "/a/b", "history", None, None),
        ("unsubscribed", "/a/b", None, None, None),
        ("subscribed", "/a/b", "snapshot", None, None),
        ("disconnected", None, None, None, 3001),
    ]
    assert {(row["client"], row["identity"], row["protocol"]) for row in rows} == {("the test's", "", "json")}
    assert rows[0]["connection"] > 0
    times_us = [row["time"].timestamp() * 1e6 for row in rows]
    assert times_us == sorted(times_us) and came_us - 2_000_000 < times_us[0] and times_us[-1] < gone_us + 2_000_000
    *others, duration_ms = [row["duration_ms"] for row in rows]
    assert others == [None] * len(others)
    assert (leaves - is_in) * 1000 - 200 <= duration_ms <= (gone - came) * 1000 + 200, (
        "it is recorded in tenths of a second"
    )


def test_rows_of_access_say_what_event_streams_and_mqtt_did(tmp_path: Path) -> None:
    with node(tmp_path) as addresses:
        places = publish(addresses, "/a/b", *range(5))
        stream = EventStream(addresses["client"], "/a/b", places[2])
        assert stream.messages(2)[0] == [3, 4]
        stream.close()
        fresh = EventStream(addresses["client"], "/a/fresh")
        fresh.close()
        peer, came_from = open_peer(addresses)
        with peer:
            peer.join(connect("device", V5))
            peer.granted(("a/+", 0))
            peer.message()
            peer.send(unsubscribe("a/+"))
            assert peer.receive()[0] == 0xB0
            peer.send(DISCONNECT)
            peer.ended()
    rows = read(tmp_path, "access")
    of_stream, of_fresh, of_peer = (of(rows, address) for address in (stream.address, fresh.address, came_from))
    assert described(of_stream)[1:2] == [("subscribed", "/a/b", "recovered", places[2], None)]
    assert described(of_fresh)[1:2] == [("subscribed", "/a/fresh", "live", None, None)]
    for each in (of_stream, of_fresh):
        assert [row["kind"] for row in each] == ["connected", "subscribed", "disconnected"]
        assert [row["protocol"] for row in each] == ["sse", "sse", "sse"]
        assert each[-1]["code"] is not None and 0 <= each[-1]["duration_ms"] < START_S * 1000
    assert [row["kind"] for row in of_peer] == ["connected", "subscribed", "unsubscribed", "disconnected"]
    assert [row["selector"] for row in of_peer] == [None, "/a/*", "/a/*", None]
    assert {(row["client"], row["protocol"]) for row in of_peer} == {("device", "mqtt5")}
    assert of_peer[-1]["code"] is not None and of_peer[-1]["duration_ms"] >= 0


def refuse(addresses: dict[str, str]) -> tuple[list[str], str]:
    """An invalid token, over WebSocket and MQTT: the rows have the addresses, and the reason that both clients received."""
    client = WebSocket(addresses["client"], f"?token={'x' * 32}")
    closed, _ = client.receive()
    assert int.from_bytes(closed[:2]) == CODES["TokenInvalid"]["number"]
    client.close()
    reason = json.loads(closed[2:])["reason"]
    peer, came_from = open_peer(addresses)
    with peer:
        peer.send(connect("device", V5, username="x", password=b"x" * 32))
        connack = peer.receive()
        assert connack[0] == 0x20 and connack.endswith(reason.encode())
    return [client.address, came_from], reason


def test_who_is_refused_has_a_row_with_the_code_and_no_other(tmp_path: Path) -> None:
    with node(tmp_path) as addresses:
        froms, _ = refuse(addresses)
    rows = [row for row in read(tmp_path, "access") if row["address"] in froms]
    assert [(row["kind"], row["address"], row["protocol"], row["client"], row["code"]) for row in rows] == [
        ("refused", froms[0], "json", "", CODES["TokenInvalid"]["number"]),
        ("refused", froms[1], "mqtt5", "device", CODES["TokenInvalid"]["number"]),
    ]
    assert all(row["connection"] > 0 and 0 <= row["duration_ms"] < START_S * 1000 for row in rows)


def test_who_finds_no_room_has_a_row_with_code_and_reason_and_never_was_a_connection(tmp_path: Path) -> None:
    with node(tmp_path, limits="connections_max = 1") as addresses:
        first = WebSocket(addresses["client"])
        second = Connection(addresses["client"], "")
        assert second.file.read(1) == b"", "closed at once"
        second.close()
        first.leave(1000)
    (row,) = of(read(tmp_path, "access"), second.address)
    full = CODES["ConnectionsTooMany"]
    assert (row["kind"], row["code"], row["reason"]) == ("refused", full["number"], full["sentence"])
    assert (row["connection"], row["protocol"], row["client"], row["duration_ms"]) == (0, "", "", None)


def test_the_reason_that_a_client_was_told_stands_beside_the_code(tmp_path: Path) -> None:
    with node(tmp_path) as addresses:
        froms, reason = refuse(addresses)
    assert [row["reason"] for row in read(tmp_path, "access") if row["address"] in froms] == [reason] * 2


def test_a_websocket_that_says_no_connect_comes_and_leaves_all_the_same(tmp_path: Path) -> None:
    with node(tmp_path) as addresses:
        client = WebSocket(addresses["client"])
        client.ask(subscribe="/a/fresh")
        client.leave(1000)
    kinds = [row["kind"] for row in of(read(tmp_path, "access"), client.address)]
    assert kinds == ["connected", "subscribed", "disconnected"]


def test_a_request_has_the_protocol_that_it_came_by(tmp_path: Path) -> None:
    with node(tmp_path) as addresses:
        publish(addresses, "/a/b", 1)
        stream = EventStream(addresses["client"], "/a/b")
        stream.close()
    rows = read(tmp_path, "access")
    assert {row["protocol"] for row in rows if row["address"] != stream.address} == {"http"}
    assert {row["protocol"] for row in of(rows, stream.address)} == {"sse"}


def test_bytes_of_deliveries_are_those_of_the_frames_that_came(tmp_path: Path) -> None:
    with node(tmp_path) as addresses:
        places = publish(addresses, "/a/b", *range(3))
        client = WebSocket(addresses["client"])
        client.ask(subscribe="/a/b", after=places[0])
        stream = EventStream(addresses["client"], "/a/b", places[0])
        peer, came_from = open_peer(addresses)
        with peer:
            peer.join(connect("device", V5))
            peer.granted(("a/b", 0))
            peer.message()  # retained: it is no delivery of the range
            publish(addresses, "/a/b", *range(100, 120))
            wanted = [1, 2, *range(100, 120)]
            came = [client.messages(22), stream.messages(22)]
            assert [contents for contents, _ in came] == [wanted, wanted]
            packets = [peer.receive() for _ in range(20)]
            assert [int(each[-3:]) for each in packets] == wanted[2:]
            peer.send(DISCONNECT)
            peer.ended()
        client.leave(1000)
        stream.close()
    access, rows = read(tmp_path, "access"), read(tmp_path, "deliveries")
    lengths = {client.address: came[0][1], stream.address: came[1][1], came_from: sum(map(len, packets))}
    for address, length in lengths.items():
        mine = [row for row in rows if row["connection"] == of(access, address)[0]["connection"]]
        sent = [row for row in mine if not row["confirmed"]]
        assert sum(row["bytes"] for row in sent) == length
        assert sum(row["count"] for row in sent) == (20 if address == came_from else 22)
        assert sent[-1]["to_sequence"] == 23 and all(
            row["bytes"] == row["count"] == 0 for row in mine if row["confirmed"]
        )


def test_periods_of_latency_follow_one_another_and_hold_every_live_delivery(tmp_path: Path) -> None:
    began, sent = time.time(), 0
    with node(tmp_path, journal="flush_interval_ms = 300") as addresses:
        client = WebSocket(addresses["client"])
        client.ask(subscribe="/a/b")
        rows: list[Row] = []
        while len(rows) < 4:
            publish(addresses, "/a/b", sent)
            assert client.messages(1)[0] == [sent]
            sent += 1
            rows = [row for row in read_now(tmp_path / "data/journal/latency") if row["selector"] == "/a/b"]
        client.leave(1000)
    rows = [row for row in read(tmp_path, "latency") if row["selector"] == "/a/b"]
    assert sum(row["count"] for row in rows) == sent
    assert all(row["count"] == sum(row["buckets"]) and len(row["buckets"]) <= 40 for row in rows)
    ends = [row["time"].timestamp() * 1000 for row in rows]
    begins = [end - row["period_ms"] for end, row in zip(ends, rows, strict=True)]
    assert begins[0] >= began * 1000 - 5 and all(row["period_ms"] >= 300 for row in rows[:4])
    assert all(abs(begin - end) <= 5 for begin, end in zip(begins[1:4], ends[:3], strict=True)), (begins, ends)


@pytest.mark.parametrize("off", ["access", "deliveries"])
def test_what_is_turned_off_is_not_written_and_messages_are(tmp_path: Path, off: str) -> None:
    with node(tmp_path, journal=f"{off} = false") as addresses:
        client = WebSocket(addresses["client"])
        client.ask(connect={"client": "the test's"})
        client.ask(subscribe="/a/b")
        publish(addresses, "/a/b", 1, 2)
        assert client.messages(2)[0] == [1, 2]
        client.leave(1000)
    written = {stream: len(read(tmp_path, stream)) for stream in ("messages", "access", "deliveries", "latency")}
    silent = {"access"} if off == "access" else {"deliveries", "latency"}
    assert {stream for stream, count in written.items() if count == 0} == silent
    assert written["messages"] == 2


@pytest.mark.long
def test_figures_of_a_window_are_those_of_its_seconds(tmp_path: Path) -> None:
    count, windows = 0, []
    with node(tmp_path) as addresses:
        while not windows:  # written when a minute of the clock ends
            publish(addresses, "/a/b", *range(count % 7 + 1))
            count += count % 7 + 1
            time.sleep(0.1)  # the journal has no way to tell a reader
            windows = [row for row in read_now(tmp_path / "data/journal/stats") if row["window_name"] == "1min"]
    rows = [row for row in read(tmp_path, "stats") if (row["scope"], row["label"]) == ("node", "")]
    windows = [row for row in rows if row["window_name"] == "1min"]
    for row in rows:
        if row["window_name"] == "now":
            assert row["covered_s"] == 0 and row["value"] is not None
            assert row["max"] is row["mean"] is row["deviation"] is None
    for row in windows:
        seconds = [each for each in rows if (each["window_name"], each["metric"]) == ("now", row["metric"])]
        values = [each["value"] for each in seconds if each["time"] <= row["time"]]
        assert row["value"] is None and 0 < row["covered_s"] <= 61
        assert 0 <= row["mean"] <= row["max"] * 1.001 and row["max"] >= max(values)
        spread = row["mean"] * (row["max"] - row["mean"])  # no values from 0 to max deviate more from such a mean
        assert 0 <= row["deviation"] ** 2 <= spread * 1.001 + 1e-9 * row["max"] ** 2
        assert row["deviation"] > 0 or max(values) == min(values)
        if len(values) > row["covered_s"] - 0.5:  # of two seconds that end in one of the clock one is not written
            assert row["max"] == max(values) and row["mean"] >= min(values) * 0.999
    (accepted,) = [row for row in windows if row["metric"] == "messages_accepted_per_second"]
    times = [row["time"] for row in read(tmp_path, "messages")]
    at_least = sum(each < accepted["time"] - timedelta(seconds=2) for each in times)
    assert len(times) == count and at_least <= round(accepted["mean"] * accepted["covered_s"]) <= count
