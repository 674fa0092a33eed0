"""The binary encoding, `godwit.v1.binary` (protocol/binary.md): commands to frames, and frames to pushes and replies.

For one connection it keeps the subject of each number that the node announced. Frames of unknown types are ignored. A
frame that is cut short, or a message with a number that was not announced, raises FrameInvalid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...model import Ack, Fields, Gap, GapReason, Interest, Kind, Message, Outcome, Position
from ...subject import is_pattern
from ..errors import FrameInvalid
from ..items import Dropped
from .command import Command, Connect, Ping, Publish, Subscribe, Unsubscribe, Unwatch, Watch
from .push import Ended, Epochs, InterestState, Marked, Notice, Received
from .reply import Refusal, Reply
from .values import Reader, Writer

KINDS = (Kind.JSON, Kind.TEXT, Kind.BYTES)
OUTCOMES = (Outcome.SNAPSHOT, Outcome.RECOVERED, Outcome.HISTORY, Outcome.LIVE, Outcome.RESYNC)
REASONS = (
    GapReason.EXPIRED,
    GapReason.OVERRUN,
    GapReason.EPOCH,
    GapReason.AHEAD,
    GapReason.UNKNOWN,
    GapReason.TOO_LARGE,
)
MERGE = {None: 0, True: 0x04, False: 0x20}
RETAIN = {None: 0, True: 1, False: 2}
ACKS = {None: 0, Ack.CACHED: 0, Ack.REPLICATED: 4, Ack.DISK: 8}

BATCH, ANNOUNCEMENT = 0x00, 0x01


class _Announced(NamedTuple):
    epoch: int
    base_time: int
    subject: str
    pattern: str | None


class BinaryEncoding:
    """The encoding of one connection; announced numbers are valid on that connection only."""

    subprotocol = "godwit.v1.binary"

    def __init__(self) -> None:
        self._announced: dict[int, _Announced] = {}

    def encode(self, commands: Iterable[Command]) -> bytes:
        """Several commands as one frame, handled in order."""
        frames = [_written(command) for command in commands]
        if len(frames) == 1:
            return frames[0]
        batch = Writer(BATCH)
        for frame in frames:
            batch.sized(frame)
        return batch.done()

    def decode(self, frame: str | bytes) -> list[Received]:
        if isinstance(frame, str):
            raise FrameInvalid("a text frame on a binary connection")
        try:
            first = frame[0]
            if first >= 0x80:
                return [self._message(first, Reader(frame))]
            if first == ANNOUNCEMENT:
                self._announce(Reader(frame))
                return []
            read = _READ.get(first)
            return [] if read is None else [read(_after_type(frame))]
        except (ValueError, LookupError) as error:
            raise FrameInvalid(f"cannot read {frame[:60].hex(' ')}: {error!r}") from error

    def _announce(self, reader: Reader) -> None:
        reader.byte()
        number, epoch, base_time = reader.varint(), reader.varint(), reader.varint()
        subject = reader.string()
        self._announced[number] = _Announced(epoch, base_time, subject, reader.string() or None)

    def _message(self, flags: int, reader: Reader) -> Message:
        reader.byte()
        epoch, base_time, subject, pattern = self._announced[reader.varint()]
        position = None if flags & 0x08 else Position(epoch, reader.varint())
        time_ms = base_time + reader.signed()
        after = _after(reader, position) if flags & 0x10 else None
        conflated = reader.varint() if flags & 0x20 else 0
        reply_to = reader.string() if flags & 0x40 else None
        more = reader.byte() if flags & 0x03 == 0x03 else flags & 0x03
        kind = KINDS[more & 0x03]
        fields = _read_fields(reader) if more & 0x10 else {}
        content = reader.rest()
        facts = (flags & 0x04 != 0, more & 0x04 != 0, more & 0x08 != 0)
        return Message(subject, content, kind, position, after, time_ms, reply_to, pattern, conflated, *facts, fields)


def _read_fields(reader: Reader) -> Fields:
    fields: dict[str, str | bytes | None] = {}
    for _ in range(reader.varint()):
        name, type = reader.string(), reader.byte()
        if type > 2:
            raise ValueError("a field of an unknown type")
        fields[name] = reader.string() if type == 0 else reader.sized() if type == 1 else None
    return fields


def _put_fields(writer: Writer, fields: Fields) -> None:
    writer.varint(len(fields))
    for name, value in fields.items():
        writer.string(name)
        if value is None:
            writer.byte(2)
        elif isinstance(value, bytes):
            writer.byte(1)
            writer.sized(value)
        else:
            writer.byte(0)
            writer.string(value)


def _after(reader: Reader, position: Position | None) -> Position:
    distance = reader.varint()
    if distance == 0:
        return reader.position()
    if position is None or distance > position.sequence:
        raise ValueError("after lies before every position")
    return Position(position.epoch, position.sequence - distance)


def _after_type(frame: bytes) -> Reader:
    reader = Reader(frame)
    reader.byte()
    return reader


def _written(command: Command) -> bytes:
    match command:
        case Connect():
            writer = _connect(command)
        case Subscribe():
            writer = _subscribe(command)
        case Unsubscribe(id, selector):
            writer = _begun(0x42, id)
            writer.string(selector)
        case Publish():
            writer = _publish(command)
        case Ping(id):
            writer = _begun(0x44, id)
        case Watch(id, selector):
            writer = _begun(0x45, id)
            writer.string(selector)
        case Unwatch(id, selector):
            writer = _begun(0x46, id)
            writer.string(selector)
    return writer.done()


def _begun(type: int, id: int) -> Writer:
    writer = Writer(type)
    writer.varint(id)
    return writer


def _connect(command: Connect) -> Writer:
    writer = _begun(0x40, command.id)
    writer.byte(
        0x02
        | (0 if command.token is None else 0x01)
        | (0 if command.frame_bytes_max is None else 0x04)
        | (0 if command.publisher is None else 0x08)
        | (0 if command.number is None else 0x10)
    )
    if command.token is not None:
        writer.string(command.token)
    writer.string(command.client)
    if command.frame_bytes_max is not None:
        writer.varint(command.frame_bytes_max)
    if command.publisher is not None:
        writer.string(command.publisher)
    if command.number is not None:
        writer.varint(command.number)
    return writer


def _subscribe(command: Subscribe) -> Writer:
    resume_point, choice = command.resume_point, command.choice
    one = None if is_pattern(command.selector) else command.after_one
    each = resume_point.after if is_pattern(command.selector) else {}
    last = choice.last if not resume_point else None
    flags = (
        (0x01 if one else 0)
        | (0x02 if each else 0)
        | (0x04 if resume_point.since is not None else 0)
        | (0x08 if last is not None else 0)
        | (0 if choice.snapshot else 0x10)
        | (0x20 if choice.on_gap == "oldest" else 0)
        | (0x40 if choice.conflate_ms is not None else 0)
    )
    writer = _begun(0x41, command.id)
    writer.byte(flags)
    writer.string(command.selector)
    if one:
        writer.position(one)
    if each:
        writer.varint(len(each))
        for subject, position in each.items():
            writer.string(subject)
            writer.position(position)
    if resume_point.since is not None:
        writer.string(resume_point.since)
    if last is not None:
        writer.varint(last)
    if choice.conflate_ms is not None:
        writer.varint(choice.conflate_ms)
    return writer


def _publish(command: Publish) -> Writer:
    draft = command.draft
    writer = _begun(0x43, command.id)
    kind = KINDS.index(draft.kind)
    more = MERGE[draft.merge] | (0x08 if draft.is_removal else 0) | (0x10 if draft.fields else 0)
    writer.byte(
        (0x03 if more else kind)
        | (0x04 if draft.key is not None else 0)
        | (0x08 if draft.reply_to is not None else 0)
        | (0 if draft.guaranteed else 0x10)
        | (0 if command.number is None else 0x20)
        | (0x40 if command.is_again else 0)
    )
    writer.byte(RETAIN[draft.retain] | ACKS[draft.ack])
    writer.string(draft.subject)
    if draft.key is not None:
        writer.string(draft.key)
    if draft.reply_to is not None:
        writer.string(draft.reply_to)
    if command.number is not None:
        writer.varint(command.number)
        writer.varint(command.floor)
    if more:
        writer.byte(kind | more)
    if draft.fields:
        _put_fields(writer, draft.fields)
    writer.rest(draft.content)
    return writer


def _connected(reader: Reader) -> Received:
    id, session, node, _time = reader.varint(), reader.string(), reader.string(), reader.varint()
    beats, flags = reader.varint(), reader.rest()
    has_publisher = not (flags and flags[0] & 0x01)
    return Reply(id, "connected", session=session, node=node, ping_interval_ms=beats, has_publisher=has_publisher)


def _subscribed(reader: Reader) -> Received:
    id, flags, outcome, _selector = reader.varint(), reader.byte(), reader.byte(), reader.string()
    at = reader.position() if flags & 0x01 else None
    count = reader.varint() if flags & 0x02 else None
    return Reply(id, "subscribed", at, OUTCOMES[outcome] if outcome < len(OUTCOMES) else None, count)


def _published(reader: Reader) -> Received:
    id, flags = reader.varint(), reader.byte()
    return Reply(id, "published", reader.position() if flags & 0x01 else None, is_duplicate=flags & 0x02 != 0)


def _done(ok: str) -> Callable[[Reader], Received]:
    return lambda reader: Reply(reader.varint(), ok)


def _refusal(reader: Reader) -> Received:
    id, flags, code = reader.varint(), reader.byte(), reader.varint()
    return Refusal(id or None, code, reader.string(), reader.string(), flags & 0x01 != 0)


def _gap(reader: Reader) -> Received:
    flags, reason, subject = reader.byte(), reader.byte(), reader.string()
    after = reader.position() if flags & 0x01 else None
    at = reader.position() if flags & 0x02 else None
    missed = reader.varint() if flags & 0x04 else None
    pattern = reader.string() if flags & 0x08 else None
    return Gap(subject, at, after, REASONS[reason] if reason < len(REASONS) else GapReason.UNKNOWN, missed, pattern)


def _dropped(reader: Reader) -> Received:
    count = reader.varint()
    return Dropped(reader.string(), count)


def _interest(reader: Reader) -> Received:
    has_subscribers = reader.byte() != 0
    return Interest(reader.string(), has_subscribers)


def _interest_state(reader: Reader) -> Received:
    is_complete = reader.byte() != 0
    return InterestState(reader.string(), is_complete)


def _ended(reader: Reader) -> Received:
    code = reader.varint()
    return Ended(reader.string(), code, reader.string())


def _epochs(reader: Reader) -> Received:
    subject, count = reader.string(), reader.varint()
    order = tuple(reader.varint() for _ in range(count))
    return Epochs(subject, order, reader.string() or None)


_READ: dict[int, Callable[[Reader], Received]] = {
    0x02: _gap,
    0x03: _dropped,
    0x04: lambda reader: Marked(reader.string(), reader.string()),
    0x05: _interest,
    0x06: lambda reader: Notice("token_expiring", in_ms=reader.varint()),
    0x07: lambda reader: Notice("draining", reconnect_after_ms=reader.varint()),
    0x08: _ended,
    0x09: _epochs,
    0x0A: _interest_state,
    0x20: _connected,
    0x21: _subscribed,
    0x22: _done("unsubscribed"),
    0x23: _published,
    0x24: _done("pong"),
    0x25: _done("watching"),
    0x26: _done("unwatched"),
    0x2F: _refusal,
}
