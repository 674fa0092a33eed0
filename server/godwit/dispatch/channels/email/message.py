"""An e-mail as bytes: plain text and HTML from a notification's content.

Pure. Content comes from the application and must not create headers: control characters in a title become blanks, and
HTML is escaped. The Message-ID is that of the delivery, the same in every attempt, so that a mail server can drop
duplicates.
"""

from __future__ import annotations

import base64
import html
import secrets
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ...model import Shipment
from ...pure.delivery_ids import DeliveryId
from ...pure.verp import COMPLAINT
from ..letter import Letter

NO_TITLE = "Notification"
DRAFTS_MAX = 16
"""How many letters' e-mails are cached; each may have a megabyte of attachments."""
SENDERS_MAX = 64


class OwnFile(msgspec.Struct, frozen=True):
    """An attachment; `content` is base64."""

    name: str
    content: str
    type: str = "application/octet-stream"


class Own(msgspec.Struct, frozen=True):
    """The e-mail parts of a letter: from its template, or from the request."""

    subject: str | None = None
    text: str | None = None
    html: str | None = None
    cc: tuple[str, ...] = ()
    reply_to: str | None = None
    sender: str | None = msgspec.field(name="from", default=None)
    headers: dict[str, str] = {}
    attachments: tuple[OwnFile, ...] = ()


def read_own(letter: Letter) -> Own:
    """The e-mail parts of a letter."""
    return msgspec.json.decode(letter.email, type=Own) if letter.email else Own()


@lru_cache(SENDERS_MAX)
def read_sender(letter: Letter) -> str:
    """The From address that a letter requests; empty: none. Cached, because attachments are long."""
    return read_own(letter).sender or ""


class Draft(NamedTuple):
    """The shared part of the e-mails of one letter: header lines and, after the empty line, the body."""

    head: bytes
    body: bytes


def make_message(shipment: Shipment, letter: Letter, sender: str, link: str = "", token: str = "") -> bytes:
    """The whole message with CRLF; raises ValueError if the content is not valid in a message."""
    draft = make_draft(letter, sender)
    to = Address(addr_spec=shipment.target.copy_of or shipment.target.value)
    lines = [f"To: {to}", f"Message-ID: {make_message_id(shipment, letter, sender, token)}"]
    if link:  # always on one line: the library would encode a long word, which RFC 8058 does not allow
        lines += [f"List-Unsubscribe: <{link}>", "List-Unsubscribe-Post: List-Unsubscribe=One-Click"]
    return b"".join(f"{line}\r\n".encode("ascii") for line in lines) + draft.head + b"\r\n\r\n" + draft.body


@lru_cache(DRAFTS_MAX)
def make_draft(letter: Letter, sender: str) -> Draft:
    """The shared part of a letter's e-mails. Cached, because the library needs ten times as long as the rest."""
    content = msgspec.json.decode(letter.content, type=dict[str, object])
    title, text, url = (str(content.get(field) or "") for field in ("title", "body", "url"))
    own = read_own(letter)
    message = EmailMessage(SMTP)
    message["From"] = sender
    message["Subject"] = make_header(own.subject or title) or NO_TITLE
    message["Date"] = format_datetime(datetime.fromtimestamp(letter.accepted_ms / 1_000, UTC))
    if own.cc:
        message["Cc"] = tuple(Address(addr_spec=value) for value in own.cc)
    if own.reply_to:
        message["Reply-To"] = Address(addr_spec=own.reply_to)
    for name, value in own.headers.items():
        message[name] = make_header(value)
    message["Auto-Submitted"] = "auto-generated"
    plain = own.text or "\n\n".join(part for part in (text, url) if part) or title
    message.set_content(plain, cte="quoted-printable")
    message.add_alternative(own.html or _make_html(title, text, url), subtype="html", cte="quoted-printable")
    for attached in own.attachments:
        kind, _, subtype = attached.type.partition("/")
        content_bytes = base64.b64decode(attached.content)
        message.add_attachment(content_bytes, maintype=kind, subtype=subtype, filename=attached.name)
    _set_boundaries(message)
    head, _, body = message.as_bytes().partition(b"\r\n\r\n")
    return Draft(head, body)


def _set_boundaries(message: EmailMessage) -> None:
    """Neither quoted-printable nor base64 contains `=_`, so the library need not search the parts for a boundary."""
    for number, part in enumerate(message.walk()):
        if part.is_multipart():
            part.set_boundary(f"=_{number}_{secrets.token_hex(8)}")


def make_header(text: str) -> str:
    """A text as a header value: control characters, including line ends, become blanks."""
    return "".join(char if char.isprintable() else " " for char in text)


def make_message_id(shipment: Shipment, letter: Letter, sender: str, token: str = "") -> str:
    """The delivery's Message-ID; its token authorizes complaints about the message."""
    key = shipment.key
    own = DeliveryId(key.nid, key.rid, key.aid, letter.accepted_ms)
    name = f"{COMPLAINT}{token}" if token else str(own)
    return f"<{name}@{sender.rpartition('@')[2]}>"


def _make_html(title: str, text: str, url: str) -> str:
    parts = [f"<h1>{html.escape(title)}</h1>"] if title else []
    parts += [f"<p>{html.escape(paragraph)}</p>" for paragraph in text.split("\n\n") if paragraph]
    if url.startswith(("https://", "http://")):
        parts.append(f'<p><a href="{html.escape(url)}">{html.escape(url)}</a></p>')
    return f"<!doctype html><html><body>{''.join(parts)}</body></html>\n"
