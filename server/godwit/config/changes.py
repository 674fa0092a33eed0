"""What differs between two configurations, and which of it a running node can take over.

Pure. Whatever is not live (ports, limits, shards, the authorizer) is named as waiting for a restart, never half applied.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from ..errors import ConfigInvalid
from .tree import OPTIONS, SECTIONS, Config, read_value

_LIVE_SECTIONS = ("logging.", "drain.", "limits.", "tls.")
_OF_THE_START = {
    *("logging.format", "limits.connections_max", "limits.feed_entries_max", "limits.feed_bytes_max"),
    *(
        "limits.idempotency_keys_max",
        "limits.idempotency_keys_age_ms_max",
        "limits.interest_debounce_ms",
        "tls.client_identity",
    ),
}
LIVE_KEYS = frozenset(
    {"access.publish_tokens", "access.publish_tokens_file", "access.publisher_addresses", "access.anonymous_subscribe"}
    | {
        "access.certificate_subscribe",
        "access.certificate_publish",
        "client.compression",
        "mqtt.refused",
        "access.reply_to",
    }
    | {
        "client.origins",
        "client.hosts",
        "client.trusted_proxies",
        "admin.token",
        "admin.token_file",
        "admin.token_for_reads",
    }
    | {f"journal.{kept}_{bound}_max" for kept in ("messages", "events") for bound in ("age_ms", "bytes")}
    | {key for key in OPTIONS if key.startswith(_LIVE_SECTIONS)} - _OF_THE_START
)
"""Keys that a running node takes over."""


class Changes(NamedTuple):
    """Keys that differ: those a running node takes over, and those that wait for its next start."""

    live: list[str]
    waiting: list[str]


def read_nothing() -> Config:
    """The sources of a configuration that was given as values; raises ConfigInvalid."""
    raise ConfigInvalid("configuration", "", "was given as values: there is nothing to read again")


def compare_configs(before: Config, after: Config) -> Changes:
    """The changes from one to the other, by key; patterns as one."""
    changed = [key for key in OPTIONS if read_value(before, key) != read_value(after, key)]
    waiting = [key for key in changed if key not in LIVE_KEYS]
    live = [key for key in changed if key in LIVE_KEYS]
    live += [name for name in ("patterns", "issuers") if getattr(before, name) != getattr(after, name)]
    if before.access.mode != after.access.mode:  # the new setting depends on it
        waiting += [name for name in live if name.startswith(("access.", "issuers"))]
        live = [name for name in live if name not in waiting]
    return Changes(live, waiting)


def take_over(before: Config, after: Config, live: list[str]) -> Config:
    """The configuration in force once the live changes are taken over."""
    sections: dict[str, Any] = {}
    for name in SECTIONS:
        keys = [key for key in live if key.startswith(name + ".")]
        values = {key.split(".")[1]: read_value(after, key) for key in keys}
        section = getattr(before, name)
        sections[name] = type(section)({**section, **values}) if name == "limits" else replace(section, **values)
    sources = {key: (after if key in live else before).sources.get(key, "") for key in OPTIONS}
    patterns = after.patterns if "patterns" in live else before.patterns
    issuers = after.issuers if "issuers" in live else before.issuers
    return Config(**sections, patterns=patterns, issuers=issuers, sources=sources)
