"""The JSON wire, `godwit.v1.json`: commands to text frames, text frames to what the server says.

A frame is one object or an array of them.  Unknown keys and unknown objects are passed over, so that an older client can talk
to a newer server; a known one with a wrong type raises FrameInvalid.
"""

import base64
import binascii
import json
from collections.abc import Iterable
from typing import Any

from godwit.client.commands import Command, Connect, Ping, Publish, Subscribe, Unsubscribe, Watch
from godwit.client.errors import FrameInvalid, PositionInvalid
from godwit.client.items import Dropped, Gap, Interest, Message
from godwit.client.positions import Position
from godwit.client.pushes import Answer, Mark, Notice, Push, Refusal
from godwit.client.selectors import is_pattern

SUBPROTOCOL = "godwit.v1.json"

_dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_loads = json.JSONDecoder().decode


class JsonWire:
    """Stateless: every frame stands alone."""

    subprotocol = SUBPROTOCOL

    def encode(self, command: Command) -> str:
        if isinstance(command, Publish):
            return _publish(command)
        return _dumps(_written(command))

    def join(self, frames: Iterable[str]) -> str:
        """Several commands as one frame, handled in order."""
        together = list(frames)
        return together[0] if len(together) == 1 else "[" + ",".join(together) + "]"

    def decode(self, frame: str | bytes) -> list[Push]:
        try:
            # UnicodeDecodeError, JSONDecodeError and PositionInvalid are all the peer's mistake
            read = _loads(frame if isinstance(frame, str) else frame.decode())
            objects = read if isinstance(read, list) else [read]
            return [push for entry in objects if (push := _push(entry)) is not None]
        except (ValueError, KeyError, TypeError, AttributeError, PositionInvalid, RecursionError) as error:
            raise FrameInvalid(f"cannot read {frame[:120]!r}: {error}") from error


def _written(command: Connect | Subscribe | Unsubscribe | Ping | Watch) -> dict[str, object]:
    match command:
        case Connect(id, token, client):
            return {"id": id, "connect": {"client": client} if token is None else {"token": token, "client": client}}
        case Subscribe():
            return _subscribe(command)
        case Unsubscribe(id, selector):
            return {"id": id, "unsubscribe": selector}
        case Ping(id):
            return {"id": id, "ping": True}
        case Watch(id, selector):
            return {"id": id, "watch": selector}


def _subscribe(command: Subscribe) -> dict[str, object]:
    written: dict[str, object] = {"id": command.id, "subscribe": command.selector}
    stand, choice = command.stand, command.choice
    if is_pattern(command.selector):
        written |= stand.to_json()
    elif command.after_one is not None:
        written["after"] = str(command.after_one)
    if choice.last is not None and not stand:
        written["last"] = choice.last
    if not choice.snapshot:
        written["snapshot"] = False
    if choice.on_gap != "snapshot":
        written["on_gap"] = choice.on_gap
    if choice.conflate_ms is not None:
        written["conflate_ms"] = choice.conflate_ms
    return written


def _publish(command: Publish) -> str:
    """The content is JSON already, so the object is put together as text."""
    draft = command.draft
    if draft.kind == "json":
        content = '"content":' + draft.content.decode()
    elif draft.kind == "text":
        content = '"text":' + _dumps(draft.content.decode())
    else:
        content = f'"bytes":"{base64.b64encode(draft.content).decode()}"'
    written: dict[str, object] = {"id": command.id, "publish": draft.subject}
    if draft.retain is not None:
        written["retain"] = draft.retain
    if not draft.guaranteed:
        written["guaranteed"] = False
    if draft.key is not None:
        written["key"] = draft.key
    if draft.reply_to is not None:
        written["reply_to"] = draft.reply_to
    if draft.ack is not None:
        written["ack"] = draft.ack
    return f"{_dumps(written)[:-1]},{content}}}"


def _push(read: dict[str, Any]) -> Push | None:
    get = read.get
    if "message" in read:
        return _message(read)
    if "mark" in read:
        return Mark(_text(read["mark"]), _text(read["pattern"]))
    if "ok" in read:
        return Answer(
            get("id"),
            _text(read["ok"]),
            _position(get("at")),
            get("outcome"),
            int(get("count", 0)),
            bool(get("repeat", False)),
            get("ack"),
            get("session"),
            get("node"),
            get("ping_interval_ms"),
        )
    if "error" in read:
        return Refusal(get("id"), int(read["error"]), str(get("name", "")), str(get("reason", "")), bool(get("retry")))
    if "gap" in read:
        subject, reason = _text(read["gap"]), str(get("reason", "unknown"))
        return Gap(subject, _position(get("after")), _position(get("at")), reason, get("missed"), get("pattern"))
    if "dropped" in read:
        return Dropped(_text(read["dropped"]), int(read["count"]), get("pattern"))
    if "interest" in read:
        return Interest(_text(read["interest"]), bool(read["subscribers"]))
    if "notice" in read:
        return Notice(_text(read["notice"]), get("in_ms"), get("reconnect_after_ms"))
    return None


def _message(read: dict[str, Any]) -> Message:
    get = read.get
    kind, content = "json", get("content")
    if content is None and "content" not in read:
        if "text" in read:
            kind, content = "text", _text(read["text"])
        elif "bytes" in read:
            kind, content = "bytes", _bytes(read["bytes"])
        else:
            raise KeyError("content")
    at, after = get("at"), get("after")
    return Message(
        _text(read["message"]),
        None if at is None else Position.parse(at),
        get("time", 0),
        kind,  # type: ignore[arg-type]  # one of the three words above
        content,
        get("pattern"),
        get("snapshot", False),
        get("conflated", 1),
        None if after is None else Position.parse(after),
        get("reply_to"),
    )


def _position(text: object) -> Position | None:
    return None if text is None else Position.parse(text)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} should be text")
    return value


def _bytes(value: object) -> bytes:
    try:
        return base64.b64decode(_text(value), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
