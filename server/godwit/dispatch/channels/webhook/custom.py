"""Webhooks for chat and push services: a JSON body in the service's form, instead of a signed event.

Pure. A preset has a service's form; a custom body is a Liquid template that is rendered elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Content = dict[str, Any]
NTFY_BYTES_MAX = 4_096
"""ntfy turns a longer message into a file that is attached, or refuses it."""
TEAMS_BYTES_MAX = 20_000
"""Teams refuses more than 28 KB with everything around the text."""


def _slack(title: str, text: str, url: str) -> dict[str, Any]:
    lines = [f"*{_escape_slack(title)}*"] if title else []
    lines += [_escape_slack(text)] if text and text != url else []
    lines += [f"<{_escape_slack(url)}>"] if url else []
    return {"text": "\n".join(lines)}


def _teams(title: str, text: str, url: str) -> dict[str, Any]:
    blocks = [{"type": "TextBlock", "text": title, "weight": "Bolder", "wrap": True}] if title else []
    blocks += [{"type": "TextBlock", "text": _cut(text, TEAMS_BYTES_MAX), "wrap": True}] if text else []
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
    }
    if url:
        card["actions"] = [{"type": "Action.OpenUrl", "title": title or url, "url": url}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _discord(title: str, text: str, url: str) -> dict[str, Any]:
    embed = {"title": title[:256], "description": text[:4_096]} | ({"url": url} if url else {})
    return {"embeds": [{name: value for name, value in embed.items() if value}], "allowed_mentions": {"parse": []}}


def _ntfy(title: str, text: str, url: str) -> dict[str, Any]:
    """ntfy: published at the server's root; the topic is in the address's `fields`."""
    message = _cut(text or title, NTFY_BYTES_MAX)
    return {"title": title, "message": message} | ({"click": url} if url else {})


def _gotify(title: str, text: str, url: str) -> dict[str, Any]:
    shown: dict[str, Any] = {"title": title, "message": text or title}
    return shown | ({"extras": {"client::notification": {"click": {"url": url}}}} if url else {})


PRESETS: dict[str, Callable[[str, str, str], dict[str, Any]]] = {
    "slack": _slack,
    "teams": _teams,
    "discord": _discord,
    "ntfy": _ntfy,
    "gotify": _gotify,
}


def make_preset(preset: str, content: Content, fields: dict[str, Any]) -> dict[str, Any]:
    """The body of a preset; the address's `fields` (a topic, a priority) override its own."""
    title, text, url = (str(content.get(name) or "") for name in ("title", "body", "url"))
    if not title and not text:  # services refuse a message without text
        text = url or "Notification"
    return {**PRESETS[preset](title, text, url), **fields}


def _cut(text: str, bytes_max: int) -> str:
    """The beginning of a text that is too long, and an ellipsis."""
    packed = text.encode()
    return text if len(packed) <= bytes_max else packed[: bytes_max - 3].decode(errors="ignore") + "…"


def _escape_slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
