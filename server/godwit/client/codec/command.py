"""The client's commands as values; each encoding writes them in its own form.

`id` comes from one counter of the client; the answer has the same `id`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ...model import Ack, Fields, Kind, Position, size_of_fields
from ..resume_point import ResumePoint


@dataclass(frozen=True, slots=True)
class Connect:
    id: int
    token: str | None
    client: str
    frame_bytes_max: int | None = None
    publisher: str | None = None
    number: int | None = None  # the first that this publisher has not used


@dataclass(frozen=True, slots=True)
class Choice:
    """How a subscription is to be served, apart from its position."""

    last: int | None = None  # begin with the last n kept messages of each subject
    snapshot: bool = True  # begin with the snapshot
    on_gap: Literal["snapshot", "oldest"] = "snapshot"  # where to continue when messages are gone
    conflate_ms: int | None = None  # one merged message a window


@dataclass(frozen=True, slots=True)
class Subscribe:
    id: int
    selector: str
    resume_point: ResumePoint
    choice: Choice

    @property
    def after_one(self) -> Position | None:
        """The position of a subscription to a single subject, or None."""
        return self.resume_point.after.get(self.selector)


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    id: int
    selector: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A message before it is published. Its content is encoded at once, so the program may change the value afterwards."""

    subject: str
    kind: Kind
    content: bytes  # json and text as UTF-8
    key: str | None = None
    reply_to: str | None = None
    retain: bool | None = None  # None: the server's default
    guaranteed: bool = True
    ack: Ack | None = None
    merge: bool | None = None  # None: as the subject's pattern says
    fields: Fields = field(default_factory=dict, hash=False)  # None removes one
    is_removal: bool = False  # it removes the subject's snapshot, and has no content

    @property
    def fields_bytes(self) -> int:
        """About how many bytes of memory its fields take."""
        return size_of_fields(self.fields)


@dataclass(frozen=True, slots=True)
class Publish:
    id: int
    draft: Draft
    is_alone: bool = False  # in a frame of its own, because the server refused one that held others too
    number: int | None = None  # among the publishes of this client
    floor: int = 0  # no number below it is sent again
    is_again: bool = False  # it was sent before, and has no answer


@dataclass(frozen=True, slots=True)
class Ping:
    id: int


@dataclass(frozen=True, slots=True)
class Watch:
    id: int
    selector: str


@dataclass(frozen=True, slots=True)
class Unwatch:
    id: int
    selector: str


Command: TypeAlias = Connect | Subscribe | Unsubscribe | Publish | Ping | Watch | Unwatch


_dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


check_json = json.JSONDecoder(parse_constant=_refuse, parse_int=str, parse_float=str).decode  # raises ValueError


class JsonText(str):
    """JSON that is already written. It is sent unchanged, whitespace and digits included. `publish` refuses text that is not
    JSON, because it would break or change other commands of the frame.
    """


def content_of(content: object) -> tuple[Kind, bytes]:
    """Content as it is sent: bytes unchanged, str as text, JsonText and anything else as JSON. Raises TypeError or
    ValueError for values that JSON cannot represent.
    """
    try:
        if isinstance(content, bytes | bytearray | memoryview):
            return Kind.BYTES, bytes(content)
        if isinstance(content, JsonText):
            written = content.encode()
            check_json(content)
            return Kind.JSON, written
        if isinstance(content, str):
            return Kind.TEXT, content.encode()
        return Kind.JSON, _dumps(content).encode()
    except UnicodeEncodeError:
        raise ValueError("content has a lone surrogate, which UTF-8 cannot hold") from None
    except RecursionError:
        raise ValueError("content is nested too deeply to be written as JSON") from None
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError  # one of the user's may take other arguments
        raise kind(f"content: {error}") from None
