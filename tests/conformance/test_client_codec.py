"""The client reads and writes what protocol/vectors/codec.json says, on both wires alike."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from godwit.client.codec.binary import BinaryEncoding
from godwit.client.codec.command import (
    Choice,
    Command,
    Connect,
    Draft,
    Ping,
    Publish,
    Subscribe,
    Unsubscribe,
    Unwatch,
    Watch,
)
from godwit.client.codec.json import JsonEncoding
from godwit.client.codec.push import Ended, Received
from godwit.client.codec.reply import Reply
from godwit.client.codec.values import Writer
from godwit.client.resume_point import ResumePoint
from godwit.model import Ack, Kind, Position

CASES = json.loads((Path(__file__).parents[2] / "protocol/vectors/codec.json").read_text())["cases"]
BEYOND_THIS_CLIENT = {  # it gives each command a number, and always says its name
    *("a large id is returned", "a text id is returned", "a text id", "connect without anything"),
    *("subscribe without an id", "publish a retained message without an id"),
}


def of(*ways: str) -> list[Any]:
    chosen = [case for case in CASES if case["way"] in ways and case["name"] not in BEYOND_THIS_CLIENT]
    return [pytest.param(case, id=case["name"]) for case in chosen]


@pytest.mark.parametrize("case", of("push", "reply"))
def test_both_encodings_say_the_same(case: dict[str, Any]) -> None:
    [by_json] = JsonEncoding().decode(case["json"])
    assert isinstance(by_json, Received)
    if case["binary"] is not None:
        encoding = BinaryEncoding()
        if "number" in case:
            encoding.decode(announcement(case))
        [by_binary] = encoding.decode(bytes.fromhex(case["binary"]))
        if isinstance(by_json, Reply) and by_json.id is None:
            by_json = Reply(0, *[getattr(by_json, name) for name in Reply.__slots__[1:]])  # 0 is no id
        assert by_binary == by_json or isinstance(by_json, Ended)
        if isinstance(by_json, Ended):
            assert isinstance(by_binary, Ended) and by_binary.code == by_json.code


def announcement(case: dict[str, Any]) -> bytes:
    """What the node had said of the number before."""
    read = json.loads(case["json"])
    writer = Writer(0x01)
    writer.varint(case["number"])
    writer.varint(Position.parse(read["at"]).epoch if "at" in read else 7)
    writer.varint(case["base_time"])
    writer.string(read["message"])
    writer.string(read.get("pattern", ""))
    return writer.done()


@pytest.mark.parametrize("case", of("announcement"))
def test_announcement_is_no_message(case: dict[str, Any]) -> None:
    assert BinaryEncoding().decode(bytes.fromhex(case["binary"])) == []


@pytest.mark.parametrize("case", of("command"))
def test_command_is_written_so(case: dict[str, Any]) -> None:
    read = json.loads(case["json"])
    command = command_of(read)
    assert command is not None
    assert json.loads(JsonEncoding().encode([command])) == read
    assert BinaryEncoding().encode([command]).hex() == case["binary"]


def test_batch_is_written_so() -> None:
    for case in (case for case in CASES if case["way"] == "batch"):
        commands = [command for read in json.loads(case["json"]) if (command := command_of(read)) is not None]
        assert json.loads(JsonEncoding().encode(commands)) == json.loads(case["json"])
        assert BinaryEncoding().encode(commands).hex() == case["binary"]


def command_of(read: dict[str, Any]) -> Command | None:
    id = read["id"]
    match read:
        case {"connect": {"client": client, **rest}}:
            fields = ("frame_bytes_max", "publisher", "number")
            return Connect(id, rest.get("token"), client, *map(rest.get, fields))
        case {"subscribe": selector}:
            after = read.get("after")
            positions = {selector: after} if isinstance(after, str) else after or {}
            stand = ResumePoint({subject: Position.parse(at) for subject, at in positions.items()}, read.get("since"))
            choice = Choice(
                read.get("last"), read.get("snapshot", True), read.get("on_gap", "snapshot"), read.get("conflate_ms")
            )
            return Subscribe(id, selector, stand, choice)
        case {"unsubscribe": selector}:
            return Unsubscribe(id, selector)
        case {"publish": subject}:
            is_removal = read.get("removed", False)
            kind, content = (Kind.TEXT, b"") if is_removal else content_of(read)
            ack = Ack(read["ack"]) if "ack" in read else None
            options = (read.get("key"), read.get("reply_to"), read.get("retain"), read.get("guaranteed", True), ack)
            numbered = (read.get("number"), read.get("floor", 0), read.get("again", False))
            draft = Draft(subject, kind, content, *options, read.get("merge"), fields_of(read), is_removal)
            return Publish(id, draft, False, *numbered)
        case {"ping": True}:
            return Ping(id)
        case {"watch": selector}:
            return Watch(id, selector)
        case {"unwatch": selector}:
            return Unwatch(id, selector)
    return None


def fields_of(read: dict[str, Any]) -> dict[str, str | bytes | None]:
    decoded = {name: base64.b64decode(value) for name, value in read.get("fields_bytes", {}).items()}
    return {**read.get("fields", {}), **decoded}


def content_of(read: dict[str, Any]) -> tuple[Kind, bytes]:
    if "text" in read:
        return Kind.TEXT, read["text"].encode()
    if "bytes" in read:
        return Kind.BYTES, base64.b64decode(read["bytes"])
    written = json.dumps(read["content"])  # with the blanks that the case shows
    return Kind.JSON, written.encode()
