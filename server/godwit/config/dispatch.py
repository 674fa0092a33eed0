"""The section `dispatch`: notifications over every channel, and the keys by which a node verifies tokens of dispatch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from .dispatch_email import DispatchEmailConfig as DispatchEmailConfig
from .dispatch_limits import DispatchLimits as DispatchLimits
from .forms import check_networks, check_origins
from .option import Address, option
from .tls import check_address

DISPATCH_ISSUER = "godwit-dispatch"
"""The issuer of dispatch's own tokens. No table of [issuers] has this name."""
DISPATCH_PREFIX = f"{DISPATCH_ISSUER}:"
"""The prefix of the identities of its tokens; no other identity has it."""

DISPATCH_PATTERNS: tuple[Mapping[str, Any], ...] = (
    {"pattern": "/$inbox/**", "log_age_ms_max": 180_000, "snapshot_age_ms_max": 600_000, "journal": False},
    {"pattern": "/$dispatch/**", "log_age_ms_max": 180_000, "snapshot_age_ms_max": 600_000, "journal": False},
)
"""The node's settings for the subjects of dispatch, unless the configuration sets the same pattern."""


def check_targets(texts: tuple[str, ...]) -> None:
    """Networks, each with an optional port; raises ValueError."""
    for text in texts:
        host, port = text, ""
        if text.startswith("["):
            host, _, rest = text[1:].partition("]")
            port = rest.removeprefix(":")
        elif text.count(":") == 1:
            host, port = text.split(":")
        try:
            ip_network(host, strict=False)
            is_port = not port or 0 < int(port) < 65_536
        except ValueError as error:
            raise ValueError(f"contains {text!r}: expected a network such as 10.0.0.0/8") from error
        if not is_port:
            raise ValueError(f"contains {text!r}: expected a port from 1 to 65535")


def check_public_url(text: str) -> None:
    """An http or https URL without a query, or empty; raises ValueError."""
    if text and not (text.startswith(("https://", "http://")) and not set(text) & set(' ?#<>"')):
        raise ValueError("must be a URL such as https://notify.example.com, or empty")


@dataclass(frozen=True, slots=True)
class DispatchConfig:
    """Dispatch: one API for notifications over inbox, webhook, e-mail and push."""

    enabled: bool = option(False, "Run dispatch in the node's process.")
    address: Address = option(Address("127.0.0.1", 8802), "Where the API of dispatch listens.")
    public_address: str = option(
        "",
        "A second port, for receivers only: inboxes, links to unsubscribe, public keys, health. Empty: none.",
        check=check_address,
    )
    tls: bool = option(False, "The API speaks TLS, with the certificates of [tls].")
    origins: tuple[str, ...] = option(
        (), "Origins whose pages may call the API, such as https://example.com.", check=check_origins
    )
    trusted_proxies: tuple[str, ...] = option(
        (),
        "Addresses and networks of proxies that are trusted to name a client's address (X-Forwarded-For): wrong keys are counted for it.",
        check=check_networks,
    )
    public_url: str = option(
        "",
        "Where receivers reach the API: https://notify.example.com. Links to unsubscribe need it.",
        check=check_public_url,
    )
    node_url: str = option(
        "ws://127.0.0.1:8800",
        "The node whose clients read inboxes, for `godwit dispatch run`; it must trust dispatch's keys.",
    )
    private_targets: tuple[str, ...] = option(
        (),
        "Private networks that webhooks may reach, each with an optional port: 10.0.0.0/8, 127.0.0.1:9000, [::1]:9000.",
        check=check_targets,
    )
    feedback_journal: bool = option(
        False,
        "Write what becomes of each delivery to the journal DIR/dispatch/journal, for the pipelines. It names receivers.",
    )
    secrets_key_file: str = option(
        "",
        "The key that encrypts stored secrets of webhooks (32 bytes in base64); empty: DIR/dispatch/secrets.key, made at the first start.",
    )
    token_keys_file: str = option(
        "", "The public keys (JWK Set or PEM) of dispatch, whose tokens may publish on /$inbox/** and /$dispatch/**."
    )
    token_keys_url: str = option("", "URL of its JWK Set: https, or http on this machine.")
