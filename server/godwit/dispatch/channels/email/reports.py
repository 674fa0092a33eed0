"""A mail server's reports about a message: delivery status notifications (RFC 3464) and complaints (ARF, RFC 5965).

Pure. The delivery is not taken from the report's text, but from the address the report was sent to, or for a complaint
from a token in the Message-ID of the quoted message.
"""

from __future__ import annotations

import email
import email.policy
import re
from dataclasses import dataclass
from email.message import Message
from enum import StrEnum
from itertools import islice

from ...pure.verp import BOUNCE, COMPLAINT
from .classes import hide_addresses

PARTS_MAX = 50
TEXT_MAX = 200
TEXT_SEARCHED = 10_000
PARSED_BYTES_MAX = 262_144
"""How many bytes are parsed: the report comes before the quoted message, which may be long."""
BOUNDARIES_MAX = 10
MESSAGES_MAX = 20
"""Nested parts and messages: each line is compared with the boundaries of all parts around it, and each part is a call of its own."""
TOKENS_MAX = 20
_TOKEN = re.compile(rf"(?:{BOUNCE}|{COMPLAINT})([a-z2-7]{{16,64}})@", re.IGNORECASE)
_TOKEN_BYTES = re.compile(_TOKEN.pattern.encode(), re.IGNORECASE)
_COMPLAINTS = frozenset({"abuse", "fraud", "opt-out", "opt-out-list"})
"""Types of feedback that mean "no more mail"; `not-spam`, `virus` and `auth-failure` do not."""
_ANSWER = re.compile(r"\b[245]\d\d[ -][245]\.\d{1,3}\.\d{1,3}\b[^\r\n]*")
_STATUS = re.compile(r"\b([245])\.\d{1,3}\.\d{1,3}\b")


class Action(StrEnum):
    """A parsed report. A delay has no effect, because the mail server keeps trying."""

    FAILED = "failed"
    DELIVERED = "delivered"
    DELAYED = "delayed"
    COMPLAINED = "complained"


_ACTIONS: dict[str, Action | None] = {
    "failed": Action.FAILED,
    "delayed": Action.DELAYED,
    "delivered": Action.DELIVERED,
    "expanded": Action.DELIVERED,
    "relayed": None,  # to a server that makes no reports: nothing is known
}


@dataclass(frozen=True, slots=True)
class Report:
    """One report. `status` is the enhanced code (5.1.1), `text` the mail server's answer, `token` that of a quoted message."""

    action: Action
    status: str = ""
    text: str = ""
    token: str = ""


def read_report(raw: bytes, *, has_sender: bool = True) -> Report | None:
    """The report of a message; None for any other message, such as an automatic reply.

    Some mail servers bounce with plain text. It is accepted if the message has no sender (`<>`), as bounces have, and
    quotes a refusal.
    """
    raw = raw[:PARSED_BYTES_MAX]
    low = raw.lower()
    if low.count(b"boundary") > BOUNDARIES_MAX or low.count(b"message/") > MESSAGES_MAX:
        return None
    message = email.message_from_bytes(raw, policy=email.policy.compat32)
    parts = [part for part, _ in zip(message.walk(), range(PARTS_MAX), strict=False)]
    for part in parts:  # OpenSMTPD says multipart/mixed, so the parts decide
        kind = part.get_content_type()
        if kind == "message/delivery-status":
            return _read_status(part, _find_text(parts))
        if kind == "message/feedback-report":
            feedback = _read_fields(part).get("feedback-type", "").strip().lower()
            return (
                Report(Action.COMPLAINED, text=feedback, token=_find_token(parts)) if feedback in _COMPLAINTS else None
            )
    said = _find_text(parts)
    if has_sender or not said.startswith("5") or "auto-replied" in str(message.get("Auto-Submitted", "")).lower():
        return None
    status = _STATUS.search(said)
    return Report(Action.FAILED, "" if status is None else status[0], hide_addresses(said)[:TEXT_MAX])


def find_tokens(raw: bytes) -> list[str]:
    """Texts that may be tokens of our messages, without parsing."""
    found = (match[1].decode().lower() for match in _TOKEN_BYTES.finditer(raw))
    return list(dict.fromkeys(islice(found, TOKENS_MAX)))


def _read_status(part: Message, said: str) -> Report | None:
    """The first recipient's fields: an e-mail of ours has one recipient."""
    blocks = part.get_payload()
    for block in blocks if isinstance(blocks, list) else []:
        if not isinstance(block, Message):
            continue
        fields = _read_fields(block)
        action = fields.get("action", "").partition(" ")[0].strip().lower()
        if action not in _ACTIONS:
            continue
        diagnostic = fields.get("diagnostic-code") or said
        status = fields.get("status", "").strip().partition(" ")[0]
        precise = _STATUS.search(diagnostic)
        if precise is not None and status in ("", "5.0.0", "4.0.0"):
            status = precise[0]
        known = _ACTIONS[action]
        return None if known is None else Report(known, status, hide_addresses(diagnostic)[:TEXT_MAX])
    return None


def _find_text(parts: list[Message]) -> str:
    """The remote server's answer, from the text for people: some reports have it nowhere else."""
    for part in parts:
        payload = part.get_payload()
        if part.get_content_type() == "text/plain" and isinstance(payload, str):
            found = _ANSWER.search(payload[:TEXT_SEARCHED])
            return found[0] if found is not None else ""
    return ""


def _read_fields(part: Message) -> dict[str, str]:
    """The fields of a part. They are in its headers, or in its text if it was parsed as text."""
    fields = {name.lower(): str(value) for name, value in part.items()}
    payload = part.get_payload()
    inner = payload[0] if isinstance(payload, list) and payload else None
    if isinstance(inner, Message):
        fields |= {name.lower(): str(value) for name, value in inner.items()}
    elif isinstance(payload, str):
        parsed = email.message_from_string(payload)
        fields |= {name.lower(): str(value) for name, value in parsed.items()}
    return fields


def _find_token(parts: list[Message]) -> str:
    """The token of the message that a complaint quotes, whole or its headers only."""
    for part in parts:
        for name, value in part.items():
            if name.lower() in ("message-id", "return-path", "original-mail-from") and (
                found := _TOKEN.search(str(value))
            ):
                return found[1].lower()
        payload = part.get_payload()
        if part.get_content_type() in ("text/rfc822-headers", "message/feedback-report") and isinstance(payload, str):
            if found := _TOKEN.search(payload):
                return found[1].lower()
    return ""
