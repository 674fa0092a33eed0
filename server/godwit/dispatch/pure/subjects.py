"""The subjects of dispatch on a node: the subject of a receiver's inbox, and the owner of a selector.

Pure. Bytes of names outside `[A-Za-z0-9._:@-]` are percent-encoded, so that a name is always one plain segment.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

_SAFE = "._:@-"


def inbox_subject(tenant: str, receiver: str) -> str:
    """The subject on which items and changes of an inbox are published."""
    return f"/$inbox/{_encode(tenant)}/{_encode(receiver)}"


def head_subject(tenant: str, receiver: str) -> str:
    """The subject on which an inbox's head is retained."""
    return f"{inbox_subject(tenant, receiver)}/head"


def live_subject(tenant: str) -> str:
    """The subject of a tenant's live counts; each notification's are at `notifications/ID` below it."""
    return f"/$dispatch/{_encode(tenant)}"


def read_owner(selector: str) -> tuple[str, str] | None:
    """Tenant and receiver in a selector; None if it names none or is a pattern over several."""
    parts = selector.split("/")
    if len(parts) < 4 or parts[1] != "$inbox" or "*" in parts[2:4] or "**" in parts[2:4]:
        return None
    return unquote(parts[2]), unquote(parts[3])


def _encode(name: str) -> str:
    return quote(name, safe=_SAFE).replace("~", "%7E")
