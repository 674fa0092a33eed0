"""The output of `godwit tail`: each message as one line, for a person or for a program.

Control characters in content, subjects and names are escaped, so that no message can change colours, move the cursor or
end a line.
"""

from __future__ import annotations

import base64
import json
import re
from datetime import datetime
from typing import Any

import click

from ..client import Dropped, Gap, Item, Message, Status
from ..model import Kind
from ..words import printable

CONTENT_CHARACTERS_MAX = 4_000
_NOT_PLAIN = re.compile(r"[^\x20-\x7e]")


def write_json(item: Item) -> None:
    """One JSON object in the form of the JSON encoding; a status goes to standard error."""
    if isinstance(item, Status):
        return _write_status(item)
    click.echo(make_line(item))


def write_pretty(item: Item) -> None:
    """Time, subject, position and content, in colours on a terminal."""
    if isinstance(item, Status):
        return _write_status(item)
    if isinstance(item, Message):
        moment = datetime.fromtimestamp(item.time_ms / 1000).strftime("%H:%M:%S.%f")[:-3]
        place = str(item.position) if item.position else "standard"
        facts = [
            name
            for name, is_so in (
                ("snapshot", item.is_snapshot),
                (f"{item.conflated} in one", item.conflated),
                ("patch", item.is_patch),
                ("removed", item.is_removal),
            )
            if is_so
        ]
        click.echo(
            f"{click.style(moment, dim=True)} {click.style(printable(item.subject), fg='cyan')} "
            f"{click.style(' '.join([place, *facts]), dim=True)} {printable(show_content(item))}"
            f"{click.style(printable(show_fields(item)), dim=True)}"
        )
    elif isinstance(item, Gap):
        missed = "an unknown number" if item.missed is None else item.missed
        place = f", now at {item.position}" if item.position else ""  # for a pattern each subject has its own
        click.secho(f"gap on {printable(item.subject)}: {missed} missed ({item.reason}){place}", fg="yellow")
    else:
        count = "an unknown number of" if item.count is None else item.count
        click.secho(f"dropped {count} standard messages on {printable(item.selector)}", fg="yellow")


def make_line(item: Message | Gap | Dropped) -> str:
    """The object of the JSON encoding on one line of ASCII; numbers in JSON content stay as published."""
    members = make_object(item)
    content = members.pop("content", None)
    line = json.dumps(members, separators=(",", ":"))
    if content is None:
        return line
    # outside its strings JSON holds no such character but as a blank, inside them only those beyond ASCII
    written = _NOT_PLAIN.sub(lambda found: " " if found[0] in "\t\r\n" else json.dumps(found[0])[1:-1], content)
    return f'{line[:-1]},"content":{written}}}'


def make_object(item: Message | Gap | Dropped) -> dict[str, Any]:
    """The object of the JSON encoding for an item; JSON content is the published text."""
    if isinstance(item, Dropped):
        return {"dropped": item.selector, "count": item.count}
    places = {"after": item.after and str(item.after), "at": item.position and str(item.position)}
    members: dict[str, Any] = {key: place for key, place in places.items() if place}
    if item.pattern:
        members["pattern"] = item.pattern
    if isinstance(item, Gap):
        return {"gap": item.subject, **members, "reason": str(item.reason), "missed": item.missed}
    members |= {"time": item.time_ms, **_make_content(item)}
    extras = {"reply_to": item.reply_to, "conflated": item.conflated, "snapshot": item.is_snapshot}
    extras |= {"merge": item.is_patch, "removed": item.is_removal, **_make_fields(item)}
    return {"message": item.subject, **members, **{key: value for key, value in extras.items() if value}}


def show_content(message: Message) -> str:
    """Content for a person; long content is cut."""
    if message.kind is Kind.BYTES:
        shown = f"{len(message.content)} bytes: {message.content[:32].hex(' ')}"
    else:
        shown = message.content.decode(errors="replace")
    return shown if len(shown) <= CONTENT_CHARACTERS_MAX else shown[:CONTENT_CHARACTERS_MAX] + "…"


def show_fields(message: Message) -> str:
    """Fields for a person: NAME=VALUE, and NAME alone for a removed field."""
    words = []
    for name, value in message.fields.items():
        shown = f"{len(value)} bytes" if isinstance(value, bytes) else value
        words.append(name if shown is None else f"{name}={shown}")
    return f" {{{', '.join(words)}}}" if words else ""


def _make_fields(message: Message) -> dict[str, Any]:
    """`fields` and `fields_bytes` of clause 4.17, if there are any."""
    texts = {name: value for name, value in message.fields.items() if not isinstance(value, bytes)}
    others = {name: value for name, value in message.fields.items() if isinstance(value, bytes)}
    return {"fields": texts, "fields_bytes": {name: base64.b64encode(value).decode() for name, value in others.items()}}


def _make_content(message: Message) -> dict[str, Any]:
    if message.kind is Kind.JSON:
        return {"content": message.text()}
    if message.kind is Kind.TEXT:
        return {"text": message.text()}
    return {"bytes": base64.b64encode(message.content).decode()}


def _write_status(status: Status) -> None:
    if status.state == "subscribed":
        said = f"subscribed to {printable(status.selector)} ({status.outcome})"
    else:
        said = f"disconnected: {printable(status.reason)}"
    click.secho(f"godwit: {said}", err=True, dim=True)
