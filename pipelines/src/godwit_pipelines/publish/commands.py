"""Rows as `publish` commands of the protocol (chapter 4), joined to bodies of requests. Pure.

Owns the texts and the keys. Invariant: the same row at the same place of the same batch becomes the same command.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from ..errors import PublishFailed

BODY_BYTES_MAX = 900_000
"""Below the node's default for a body, 1 MiB."""
COLUMNS = ("subject", "content", "kind", "key", "reply_to", "retain", "guaranteed")
"""The keys of a frame; the first two are required."""
_MEDIA = {"json": "application/json", "text": "text/plain; charset=utf-8", "bytes": "application/octet-stream"}


class Alone(NamedTuple):
    """A message with a request of its own: the unchanged content, and its options outside of the body."""

    query: str
    media: str
    key: str
    content: bytes


class Command(NamedTuple):
    """One message, and its name in errors. If it is too large with others, or as text, it has `alone`."""

    text: str
    subject: str
    alone: Alone | None = None


def command_of(row: Mapping[str, Any], key: str, ack: str) -> Command:
    """One row: `subject`, `content` (text or bytes), and if it has them `kind` (json, text or bytes), `key`, `reply_to`, `retain`,
    `guaranteed`.
    """
    subject, content, kind = row["subject"], row["content"], row.get("kind") or "json"
    key = text_of("key", subject, row.get("key")) or key
    flags = {name: row[name] for name in ("reply_to", "retain", "guaranteed") if row.get(name) is not None}
    if ack:
        flags["ack"] = ack
    parts = [f'"publish":{json.dumps(subject)}', content_of(subject, kind, content), f'"key":{json.dumps(key)}']
    parts += [f'"{name}":{json.dumps(value)}' for name, value in flags.items()]
    text = "{" + ",".join(parts) + "}"
    if size_of(text) <= BODY_BYTES_MAX:
        return Command(text, subject)
    if not key.isprintable():
        raise PublishFailed(f"{subject}: a message of this size cannot have a key with a control character: {key!r}")
    query = {"subject": subject} | {
        name: value if isinstance(value, str) else json.dumps(value) for name, value in flags.items()
    }
    raw = content.encode() if isinstance(content, str) else bytes(content or b"")
    return Command(text, subject, Alone(urlencode(query), _MEDIA[kind], key, raw))


def content_of(subject: str, kind: str, content: Any) -> str:
    """JSON is sent unchanged, because parsing and writing it again would change numbers."""
    if kind == "bytes":
        raw = content.encode() if isinstance(content, str) else bytes(content or b"")
        return f'"bytes":"{base64.b64encode(raw).decode()}"'
    text = text_of("content", subject, content) or ""
    if kind == "text":
        return f'"text":{json.dumps(text)}'
    if kind != "json":
        raise PublishFailed(f"{subject}: {kind!r} is not a valid kind: expected json, text or bytes")
    try:
        json.loads(text)
    except ValueError as error:
        raise PublishFailed(f"{subject}: the content is not valid JSON: {error}") from error
    return f'"content":{text}'


def size_of(text: str) -> int:
    """Its size in a body, in bytes."""
    return len(text) if text.isascii() else len(text.encode())


def text_of(what: str, subject: str, value: Any) -> str | None:
    try:
        return value.decode("utf-8") if isinstance(value, bytes | bytearray) else value
    except UnicodeDecodeError as error:
        raise PublishFailed(f"{subject}: the {what} is not valid UTF-8: {error}") from error


def key_of(query: str, batch: int, partition: int, row: int) -> str:
    """The key of a row: by row and not by request, so that another request size after a restart changes nothing. At least 16
    bytes, because a node refuses shorter keys, which could be guessed, from anonymous clients.
    """
    return f"godwit-pipelines/{query}/{batch}/{partition}/{row}"


def bodies_of(commands: Iterable[Command], count_max: int) -> Iterator[list[Command]]:
    """The commands of each request, in order."""
    held: list[Command] = []
    size = 0
    for command in commands:
        taken = size_of(command.text)
        if held and (len(held) >= count_max or size + taken > BODY_BYTES_MAX):
            yield held
            held, size = [], 0
        held.append(command)
        size += taken + 1
    if held:
        yield held
