"""The section `dispatch_email`: the relay for e-mail, the sender, and the signing key."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .option import option

_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@((?!-)[A-Za-z0-9-]{1,63}(?<!-)\.)+(?!-)[A-Za-z0-9-]{2,63}(?<!-)"
)


def check_relay(text: str) -> None:
    """HOST:PORT, or empty; raises ValueError."""
    host, _, port = text.rpartition(":")
    if text and not (host and port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise ValueError("must be HOST:PORT, such as smtp.example.com:587, or empty")


def check_sender(text: str) -> None:
    """An e-mail address, or empty; raises ValueError."""
    if text and not is_email(text):
        raise ValueError("must be an e-mail address, such as news@example.com, or empty")


def check_domain(text: str) -> None:
    """A domain of at least two labels, or empty; raises ValueError."""
    if text and not is_domain(text):
        raise ValueError("must be a domain, such as bounces.shop.example, or empty")


def is_domain(text: str) -> bool:
    """Whether a text is a domain of at least two labels, none of which begins or ends with a hyphen."""
    return is_email(f"x@{text}")


def is_email(text: str) -> bool:
    """Whether a text is an address that e-mail can be sent to: ASCII, with a domain of at least two labels, none of which begins or
    ends with a hyphen.
    """
    return len(text) <= 254 and _ADDRESS.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class DispatchEmailConfig:
    """E-mail over one relay."""

    relay: str = option("", "The SMTP relay as HOST:PORT; empty: no e-mail is sent.", check=check_relay)
    security: str = option(
        "starttls",
        "starttls: upgrade before anything is sent; tls: from the first byte; none: for a relay on this machine.",
        choices=("starttls", "tls", "none"),
    )
    user: str = option("", "The user that logs in to the relay; empty: no login.")
    password_file: str = option("", "A file with the user's password.")
    sender: str = option("", "The From address of every e-mail.", check=check_sender)
    bounce_address: str = option(
        "",
        "Where bounces and complaints arrive by SMTP, as HOST:PORT; empty: no bounces are received.",
        check=check_relay,
    )
    bounce_domain: str = option(
        "",
        "The domain of the envelope sender, whose MX record leads to bounce_address: bounces.shop.example.",
        check=check_domain,
    )
    sends_max: int = option(16, "Most connections to the relay at once.", minimum=1, maximum=1_000)
    timeout_ms: int = option(30_000, "How long the relay may take for one step.", minimum=100, maximum=300_000)
    dkim_key_file: str = option("", "The private key (PEM, RSA or Ed25519) that signs e-mail; empty: it is not signed.")
    dkim_selector: str = option("godwit", "The DKIM selector: the key's name in the DNS of the sender's domain.")
