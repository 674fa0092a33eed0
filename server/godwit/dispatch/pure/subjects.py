"""The subjects of dispatch on a node: where a receiver's inbox is, and whose a selector is.

Pure. Bytes of names outside `[A-Za-z0-9._:@-]` are percent-encoded, so that a name is always one plain segment.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

_SAFE = "._:@-"


def inbox_subject(tenant: str, receiver: str) -> str:
    """Where items and changes of an inbox are published."""
    return f"/$inbox/{_encode(tenant)}/{_encode(receiver)}"


def head_subject(tenant: str, receiver: str) -> str:
    """Where an inbox's head is retained."""
    return f"{inbox_subject(tenant, receiver)}/head"


def live_subject(tenant: str) -> str:
    """Where the live counts of a tenant are, each notification's at `notifications/ID` below it."""
    return f"/$dispatch/{_encode(tenant)}"


def read_owner(selector: str) -> tuple[str, str] | None:
    """Tenant and receiver that a selector names; None where it names none or is a pattern over several."""
    parts = selector.split("/")
    if len(parts) < 4 or parts[1] != "$inbox" or "*" in parts[2:4] or "**" in parts[2:4]:
        return None
    return unquote(parts[2]), unquote(parts[3])


def _encode(name: str) -> str:
    return quote(name, safe=_SAFE).replace("~", "%7E")
