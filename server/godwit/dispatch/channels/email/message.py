"""An e-mail as bytes: plain text and HTML from a notification's content.

Pure. Content is the application's, so it never becomes a header of its own: control characters in a title are blanks, and HTML is
escaped. The Message-ID is the delivery's, the same in every attempt, so that a mail server can drop what it has.
"""

from __future__ import annotations

import html
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

import msgspec

from ...model import Shipment
from ..letter import Letter

NO_TITLE = "Notification"


def make_message(shipment: Shipment, letter: Letter, sender: str, link: str = "") -> bytes:
    """The whole message with CRLF; raises ValueError where the content cannot be one."""
    content = msgspec.json.decode(letter.content, type=dict[str, object])
    title, text, url = (str(content.get(field) or "") for field in ("title", "body", "url"))
    own = msgspec.json.decode(letter.email, type=dict[str, str]) if letter.email else {}
    message = EmailMessage(SMTP)
    message["From"] = sender
    message["To"] = Address(addr_spec=shipment.target.value)
    message["Subject"] = make_header(own.get("subject") or title) or NO_TITLE
    message["Date"] = format_datetime(datetime.fromtimestamp(letter.accepted_ms / 1_000, UTC))
    message["Message-ID"] = make_message_id(shipment, sender)
    if link:
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message["Auto-Submitted"] = "auto-generated"
    plain = own.get("text") or "\n\n".join(part for part in (text, url) if part) or title
    message.set_content(plain, cte="quoted-printable")
    message.add_alternative(own.get("html") or _make_html(title, text, url), subtype="html", cte="quoted-printable")
    # On one line whatever its length: the library would encode a long word, which RFC 8058 does not allow.
    unsubscribe = f"List-Unsubscribe: <{link}>\r\n".encode("ascii") if link else b""
    return unsubscribe + message.as_bytes()


def make_header(text: str) -> str:
    """A text as the value of a header: control characters, line ends among them, are blanks."""
    return "".join(char if char.isprintable() else " " for char in text)


def make_message_id(shipment: Shipment, sender: str) -> str:
    """The delivery's Message-ID."""
    key = shipment.key
    return f"<dlv_{key.nid}_{key.rid}_{key.aid}@{sender.rpartition('@')[2]}>"


def _make_html(title: str, text: str, url: str) -> str:
    parts = [f"<h1>{html.escape(title)}</h1>"] if title else []
    parts += [f"<p>{html.escape(paragraph)}</p>" for paragraph in text.split("\n\n") if paragraph]
    if url.startswith(("https://", "http://")):
        parts.append(f'<p><a href="{html.escape(url)}">{html.escape(url)}</a></p>')
    return f"<!doctype html><html><body>{''.join(parts)}</body></html>\n"
