"""The JSON encoding, `godwit.v1.json`: commands to text frames, and text frames to pushes and replies.

A frame is one object or an array of them. Unknown keys and objects are ignored, so that an older client works with a
newer server. A known key with a wrong type raises FrameInvalid. JSON content is kept as the bytes received.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

import msgspec

from ...errors import PositionInvalid
from ...model import Ack, Fields, Gap, GapReason, Interest, Kind, Message, Outcome, Position
from ...subject import is_pattern
from ..errors import FrameInvalid
from ..items import Dropped
from .command import Command, Connect, Ping, Publish, Subscribe, Unsubscribe, Unwatch, Watch
from .push import Ended, Epochs, InterestState, Marked, Notice, Received
from .reply import Refusal, Reply

NO_CONTENT = msgspec.Raw()

_to_json = msgspec.json.Encoder().encode


class _Read(msgspec.Struct, omit_defaults=True):
    """Every key that an object of the server may have; the verb decides which object it is."""

    message: str | None = None
    at: str | None = None
    time: int = 0
    content: msgspec.Raw = NO_CONTENT
    text: str | None = None
    bytes: str | None = None
    reply_to: str | None = None
    pattern: str | None = None
    snapshot: bool = False
    merge: bool = False
    removed: bool = False
    fields: dict[str, str | None] | None = None
    fields_bytes: dict[str, str] | None = None
    conflated: int = 0
    after: str | None = None
    id: int | str | None = None
    ok: str | None = None
    outcome: str | None = None
    count: int | None = None
    duplicate: bool = False
    publisher: bool = True
    ack: str | None = None
    session: str | None = None
    node: str | None = None
    ping_interval_ms: int | None = None
    error: int | None = None
    name: str = ""
    reason: str = ""
    retry: bool = False
    resume_token: str | None = None
    gap: str | None = None
    missed: int | None = None
    epochs: str | None = None
    order: tuple[str, ...] = ()
    dropped: str | None = None
    interest: str | None = None
    subscribers: bool = False
    interest_state: str | None = None
    complete: bool = False
    ended: str | None = None
    notice: str | None = None
    in_ms: int | None = None
    reconnect_after_ms: int | None = None


class JsonEncoding:
    """Without state: every frame is decoded by itself."""

    subprotocol = "godwit.v1.json"

    def __init__(self) -> None:
        self._read = msgspec.json.Decoder(_Read | list[_Read]).decode

    def encode(self, commands: Iterable[Command]) -> str:
        """Several commands as one frame, handled in order."""
        written = [_publish(command) if isinstance(command, Publish) else _written(command) for command in commands]
        return (written[0] if len(written) == 1 else b"[" + b",".join(written) + b"]").decode()

    def decode(self, frame: str | bytes) -> list[Received]:
        try:
            read = self._read(frame)
            if isinstance(read, _Read):
                return [parsed] if (parsed := _parse(read)) is not None else []
            return [parsed for entry in read if (parsed := _parse(entry)) is not None]
        except (ValueError, PositionInvalid, RecursionError) as error:
            raise FrameInvalid(f"cannot read {frame[:120]!r}: {error}") from error


def _written(command: Connect | Subscribe | Unsubscribe | Ping | Watch | Unwatch) -> bytes:
    match command:
        case Connect(id):
            names = ("client", "token", "frame_bytes_max", "publisher", "number")
            fields = {name: getattr(command, name) for name in names}
            return _to_json({"id": id, "connect": {name: value for name, value in fields.items() if value is not None}})
        case Subscribe():
            return _to_json(_subscribe(command))
        case Unsubscribe(id, selector):
            return _to_json({"id": id, "unsubscribe": selector})
        case Ping(id):
            return _to_json({"id": id, "ping": True})
        case Watch(id, selector):
            return _to_json({"id": id, "watch": selector})
        case Unwatch(id, selector):
            return _to_json({"id": id, "unwatch": selector})


def _subscribe(command: Subscribe) -> dict[str, object]:
    written: dict[str, object] = {"id": command.id, "subscribe": command.selector}
    resume_point, choice = command.resume_point, command.choice
    if is_pattern(command.selector):
        if resume_point.after:
            written["after"] = {subject: str(position) for subject, position in resume_point.after.items()}
        if resume_point.since is not None:
            written["since"] = resume_point.since
    elif command.after_one is not None:
        written["after"] = str(command.after_one)
    if choice.last is not None and not resume_point:
        written["last"] = choice.last
    if not choice.snapshot:
        written["snapshot"] = False
    if choice.on_gap != "snapshot":
        written["on_gap"] = choice.on_gap
    if choice.conflate_ms is not None:
        written["conflate_ms"] = choice.conflate_ms
    return written


def _publish(command: Publish) -> bytes:
    draft = command.draft
    written: dict[str, object] = {"id": command.id, "publish": draft.subject}
    if draft.is_removal:
        written["removed"] = True
    elif draft.kind is Kind.JSON:
        written["content"] = msgspec.Raw(draft.content)  # it is JSON already
    elif draft.kind is Kind.TEXT:
        written["text"] = draft.content.decode()
    else:
        written["bytes"] = base64.b64encode(draft.content).decode()
    if draft.retain is not None:
        written["retain"] = draft.retain
    if draft.merge is not None:
        written["merge"] = draft.merge
    if draft.fields:
        _put_fields(written, draft.fields)
    if not draft.guaranteed:
        written["guaranteed"] = False
    if command.number is not None:
        written["number"] = command.number
        if command.floor:
            written["floor"] = command.floor
        if command.is_again:
            written["again"] = True
    for name, value in (("key", draft.key), ("reply_to", draft.reply_to), ("ack", draft.ack)):
        if value is not None:
            written[name] = value
    return _to_json(written)


def _put_fields(written: dict[str, object], fields: Fields) -> None:
    texts = {name: value for name, value in fields.items() if not isinstance(value, bytes)}
    encoded = {name: base64.b64encode(value).decode() for name, value in fields.items() if isinstance(value, bytes)}
    if texts:
        written["fields"] = texts
    if encoded:
        written["fields_bytes"] = encoded


def _parse(read: _Read) -> Received | None:
    """Decode one object. The most frequent verbs are checked first."""
    if read.message is not None:
        return _message(read, read.message)
    if read.ok is not None:
        id = read.id if isinstance(read.id, int) else None
        at, beats = _position(read.at), read.ping_interval_ms
        return Reply(
            id,
            read.ok,
            at,
            _outcome(read.outcome),
            read.count,
            read.duplicate,
            _ack(read.ack),
            read.session,
            read.node,
            beats,
            read.publisher,
        )
    if read.resume_token is not None:
        return Marked(read.resume_token, read.pattern or "")
    if read.error is not None:
        if read.ended is not None:
            return Ended(read.ended, read.error, read.reason)
        return Refusal(read.id if isinstance(read.id, int) else None, read.error, read.name, read.reason, read.retry)
    if read.gap is not None:
        at, after = _position(read.at), _position(read.after)
        return Gap(read.gap, at, after, _reason(read.reason), read.missed, read.pattern)
    if read.epochs is not None:
        return Epochs(read.epochs, tuple(Position.parse(f"{epoch}.0").epoch for epoch in read.order), read.pattern)
    if read.dropped is not None:
        return Dropped(read.dropped, read.count or 0)
    if read.interest is not None:
        return Interest(read.interest, read.subscribers)
    if read.interest_state is not None:
        return InterestState(read.interest_state, read.complete)
    if read.notice is not None:
        return Notice(read.notice, read.in_ms, read.reconnect_after_ms)
    return None


def _message(read: _Read, subject: str) -> Message:
    if read.content is not NO_CONTENT:
        kind, content = Kind.JSON, bytes(read.content)
    elif read.text is not None:
        kind, content = Kind.TEXT, read.text.encode()
    elif read.bytes is not None:
        kind, content = Kind.BYTES, base64.b64decode(read.bytes, validate=True)
    else:
        raise ValueError("a message without content")
    return Message(
        subject,
        content,
        kind,
        _position(read.at),
        _position(read.after),
        read.time,
        read.reply_to,
        read.pattern,
        read.conflated,
        read.snapshot,
        read.merge,
        read.removed,
        {} if read.fields is None and read.fields_bytes is None else _fields(read),
    )


def _fields(read: _Read) -> Fields:
    decoded = {name: base64.b64decode(value, validate=True) for name, value in (read.fields_bytes or {}).items()}
    return {**(read.fields or {}), **decoded}


def _position(text: str | None) -> Position | None:
    return None if text is None else Position.parse(text)


def _outcome(text: str | None) -> Outcome | None:
    try:
        return None if text is None else Outcome(text)
    except ValueError:
        return None


def _ack(text: str | None) -> Ack | None:
    try:
        return None if text is None else Ack(text)
    except ValueError:
        return None


def _reason(text: str) -> GapReason:
    """A reason that this client does not know becomes UNKNOWN."""
    try:
        return GapReason(text)
    except ValueError:
        return GapReason.UNKNOWN
