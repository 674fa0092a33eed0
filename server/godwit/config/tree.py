"""The configuration tree: every setting of a node, declared once with default, bounds and description.

Limits come from the contract's table; load.py reads the values. Invariant: a Config is complete and consistent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ..limits import LIMITS
from ..subject import check_pattern
from .admin import AdminConfig
from .audit import AuditConfig
from .demo import DemoConfig
from .dispatch import DispatchConfig, DispatchEmailConfig, DispatchLimits
from .forms import (
    check_algorithms,
    check_anonymous_patterns,
    check_authorities,
    check_hosts,
    check_issuer_templates,
    check_networks,
    check_origins,
    check_templates,
)
from .journal import JournalConfig
from .option import Address, Option, list_options, option
from .tls import TlsConfig, check_address

HOUR_MS = 3_600_000


class LimitsConfig(dict[str, int]):
    """Every queue and buffer has a limit, by name; what happens at each, and the code it answers with, is in protocol.md."""


def limit_option(name: str) -> Any:
    """The option of a pattern that overrides a limit of the node: same bounds and description, no default."""
    row = next(row for row in LIMITS if row.name == name)
    return option(None, row.sentence, minimum=row.minimum, maximum=row.maximum)


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The node itself."""

    name: str = option("", "The node's name, sent to clients and in every log line; empty: the host's name.")
    data_directory: str = option(
        "", "Directory for everything that must survive a restart: journal and epoch. Empty: a stop loses all messages."
    )
    shards: int = option(0, "Number of threads with connections; 0: one per core.", minimum=0, maximum=64)
    driver: str = option(
        "auto",
        "Socket driver; auto tries io_uring, else uses readiness (epoll, kqueue) and logs the reason.",
        choices=("auto", "io_uring", "readiness"),
    )


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """The client port: WebSocket and HTTP, for publishers and subscribers."""

    address: Address = option(
        Address("127.0.0.1", 8800), "Address of the client port; 0.0.0.0:8800 serves other machines too."
    )
    origins: tuple[str, ...] = option(
        (),
        "Origins whose pages may connect, such as https://a.example (and the admin port's own); empty: any. Programs have no origin.",
        check=check_origins,
    )
    hosts: tuple[str, ...] = option(
        (),
        "With origins: host names, in addition to addresses and localhost, that a GET without TLS, Origin and token may use.",
        check=check_hosts,
    )
    compression: bool = option(
        False,
        "Compress messages for WebSocket clients that offer permessage-deflate. Each message is compressed once.",
    )
    trusted_proxies: tuple[str, ...] = option(
        (),
        "Addresses and networks of proxies that are trusted to name a client's address: X-Forwarded-For, PROXY protocol.",
        check=check_networks,
    )
    role: str = option("both", "What clients of this port can do at most.", choices=("both", "subscribe", "publish"))
    proxy_protocol: bool = option(False, "Trusted proxies begin each connection with a PROXY header (version 1 or 2).")
    tls_address: str = option("", "An additional port for TLS clients, such as 0.0.0.0:8443.", check=check_address)


@dataclass(frozen=True, slots=True)
class MqttConfig:
    """The MQTT port: 3.1.1 and 5.0 over TCP. MQTT over WebSocket is on the client port, at /mqtt."""

    enabled: bool = option(True, "Open an MQTT port.")
    address: Address = option(
        Address("127.0.0.1", 1883),
        "Address of the MQTT port. If it is not set and the port is in use, the node starts without MQTT.",
    )
    role: str = option("both", "What clients of this port can do at most.", choices=("both", "subscribe", "publish"))
    proxy_protocol: bool = option(False, "Trusted proxies begin each connection with a PROXY header (version 1 or 2).")
    tls_address: str = option("", "An additional port for TLS clients, such as 0.0.0.0:8883.", check=check_address)
    refused: str = option(
        "close",
        "What happens to a publish of MQTT 3.1.1 that cannot be kept: close the connection, or acknowledge and drop it.",
        choices=("close", "drop"),
    )


@dataclass(frozen=True, slots=True)
class AccessConfig:
    """Authentication and authorization."""

    mode: str = option(
        "none",
        "none: everybody may publish and subscribe; basic: publishing needs a token; jwt: a signed token has the "
        "permissions; custom: the authorizer decides.",
        choices=("none", "basic", "jwt", "custom"),
    )
    publish_tokens: tuple[str, ...] = option((), "With basic: the tokens that may publish.", is_secret=True)
    publish_tokens_file: str = option("", "With basic: file with one publishing token per line; # starts a comment.")
    anonymous_subscribe: tuple[str, ...] = option(
        (),
        "With jwt: patterns that clients without a token may subscribe to; empty: they are refused.",
        check=check_anonymous_patterns,
    )
    verified_tokens_max: int = option(
        100_000, "With jwt: number of verified tokens that are cached.", minimum=1, maximum=10_000_000
    )
    verified_tokens_bytes_max: int = option(
        268_435_456, "With jwt: memory of the verified tokens that are cached.", minimum=1_000_000, maximum=2**40
    )
    verified_tokens_ms_max: int = option(
        600_000, "With jwt: how long a verified token is cached.", minimum=0, maximum=24 * HOUR_MS
    )
    certificate_subscribe: tuple[str, ...] = option(
        (),
        "With basic and jwt: patterns that the holder of a certificate may subscribe to; {identity} stands for its identity.",
        check=check_templates,
    )
    certificate_publish: tuple[str, ...] = option(
        (), "The same for publishing, such as /devices/{identity}/**.", check=check_templates
    )
    reply_to: str = option(
        "either",
        "Permission that a client needs on a `reply_to` subject: either to subscribe or to publish, or to publish only.",
        choices=("either", "publish"),
    )
    same_holder: tuple[str, ...] = option(
        (),
        "Authorities whose identities are the same people, such as certificate and jwt:ISSUER; lists and logs show the first.",
        check=check_authorities,
    )
    publisher_addresses: tuple[str, ...] = option(
        (),
        "Addresses and networks, such as 10.0.0.0/8, from which publishing is allowed; empty: from everywhere.",
        check=check_networks,
    )
    authorizer: str = option(
        "", "With custom: the authorizer as module:attribute, or an entry point of godwit.authorizers."
    )
    authorizer_timeout_ms: int = option(
        5_000,
        "Time after which an unanswered question fails; the client may retry (4204, 4125).",
        minimum=10,
        maximum=60_000,
    )
    authorizer_calls_max: int = option(
        1_000, "Most questions to the authorizer at the same time; more wait.", minimum=1, maximum=100_000
    )
    authorizer_start_timeout_ms: int = option(
        30_000,
        "Time limit of the authorizer's `start`; beyond it the node does not start.",
        minimum=100,
        maximum=HOUR_MS,
    )
    authorizer_stop_timeout_ms: int = option(
        5_000, "Time limit of the authorizer's `stop`; beyond it the node stops anyway.", minimum=0, maximum=HOUR_MS
    )


@dataclass(frozen=True, slots=True)
class LoggingConfig:
    """The node's log: one event per line on standard error."""

    level: str = option("info", "Lowest level that is logged.", choices=("debug", "info", "warning", "error"))
    format: str = option("auto", "auto: console on a terminal, else JSON.", choices=("auto", "json", "console"))
    sessions: bool = option(False, "Log each connect, token renewal, subscription and disconnect.")
    events_per_second_max: int = option(
        20,
        "Most lines per second of one event; further ones are counted and reported in one line.",
        minimum=1,
        maximum=100_000,
    )


@dataclass(frozen=True, slots=True)
class DrainConfig:
    """Graceful shutdown after SIGTERM or SIGINT."""

    delay_ms: int = option(
        0,
        "Time between reporting not ready and refusing connections, for load balancers that poll.",
        minimum=0,
        maximum=HOUR_MS,
    )
    spread_ms: int = option(
        5_000, "Period over which the reconnects of clients are spread.", minimum=0, maximum=HOUR_MS
    )
    grace_ms: int = option(3_000, "Time after which remaining connections are closed.", minimum=0, maximum=HOUR_MS)


@dataclass(frozen=True, slots=True)
class MonitoringConfig:
    """The node's statistics."""

    push: bool = option(True, "Publish them once a second on /$node/NAME/….")


@dataclass(frozen=True, slots=True)
class PatternConfig:
    """Settings for the subjects of one pattern. The most specific pattern that sets a value wins."""

    pattern: str
    log_messages_max: int | None = limit_option("log_messages_max")
    log_age_ms_max: int | None = limit_option("log_age_ms_max")
    snapshot: bool | None = option(None, "Keep the latest retained state for new subscribers.")
    journal: bool | None = option(None, "Record messages of these subjects in the journal; true by default.")
    mqtt_retain: str | None = option(
        None, "Which MQTT publishes are retained: those that ask (default), or all.", choices=("asked", "always")
    )
    merge: bool | None = option(None, "Merge members of JSON objects into the snapshot; off by default.")
    snapshot_age_ms_max: int | None = limit_option("snapshot_age_ms_max")
    conflate_when_slow: bool | None = option(
        None, "A slow consumer receives one merged message per subject instead of a gap."
    )
    batch_ms: int | None = option(
        None, "Batching: a message waits up to this long for others; 0: no batching.", minimum=0, maximum=1_000
    )
    batch_bytes_max: int | None = option(
        None, "Batching: a batch of this size is sent at once.", minimum=1, maximum=1_048_576
    )
    publishes_per_second_max: int | None = option(
        None, "Most publishes per second on each subject, of all publishers together.", minimum=1, maximum=100_000_000
    )
    mqtt_ack: str | None = option(
        None,
        "What PUBACK and PUBREC acknowledge: that the message is cached (default), or on disk.",
        choices=("cached", "disk"),
    )
    mqtt_holds: bool | None = option(
        None,
        "Keep messages that MQTT sessions and groups still need beyond the log's age and count; true by default.",
    )
    mqtt_at_owed_max: str | None = option(
        None,
        "What happens if messages for an MQTT session are no longer available: skip them (default), or end the session.",
        choices=("skip", "end"),
    )
    visible: str | None = option(
        None,
        "When a message is delivered: once accepted (default), or once on disk, as long as the disk works.",
        choices=("accepted", "journaled"),
    )


@dataclass(frozen=True, slots=True)
class IssuerConfig:
    """Issuers of tokens (mode jwt). The table's name is the claim `iss`, and only that selects the keys."""

    issuer: str
    algorithms: tuple[str, ...] = option(
        ("RS256", "ES256", "EdDSA"), "Algorithms that are accepted.", check=check_algorithms
    )
    keys_file: str = option(
        "", "File with its keys: public keys or certificates (PEM), a JWK Set, or secrets, one per line."
    )
    keys_url: str = option("", "URL of its JWK Set: https, or http on this machine.")
    keys_authorities_file: str = option(
        "", "Authorities (PEM) for the certificate of keys_url; empty: those that this machine trusts."
    )
    keys_age_ms_max: int = option(
        600_000,
        "How long keys of keys_url stay valid without a refresh; after that new clients are refused.",
        minimum=1_000,
        maximum=24 * HOUR_MS,
    )
    refresh_ms_min: int = option(
        10_000, "Shortest time between two requests to keys_url.", minimum=100, maximum=HOUR_MS
    )
    audience: str = option("", "Required value of the claim aud; empty: tokens with an audience are refused.")
    leeway_ms: int = option(
        0, "Tolerated difference between the issuer's clock and the node's.", minimum=0, maximum=600_000
    )
    identity_claim: str = option("sub", "Claim with the identity.")
    tenant_claim: str = option("", "Claim with the tenant, for limits of all its identities together; empty: none.")
    identity_prefix: str = option(
        "",
        "Prefix of its identities and tenants, to separate several issuers; no other issuer's prefix may begin with it.",
    )
    permissions_claim: str = option("permissions", "Claim with the permissions.")
    subscribe: tuple[str, ...] = option(
        (),
        "Patterns that each of its tokens may subscribe to; {identity} and {tenant} stand for the token's.",
        check=check_issuer_templates,
    )
    publish: tuple[str, ...] = option(
        (), "The same for publishing, such as /users/{identity}/**.", check=check_issuer_templates
    )


@dataclass(frozen=True, slots=True)
class Config:
    """The whole tree. `sources` has the source of every value, by key."""

    node: NodeConfig = field(default_factory=NodeConfig)
    client: ClientConfig = field(default_factory=ClientConfig)
    mqtt: MqttConfig = field(default_factory=MqttConfig)
    admin: AdminConfig = field(default_factory=AdminConfig)
    tls: TlsConfig = field(default_factory=TlsConfig)
    access: AccessConfig = field(default_factory=AccessConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    journal: JournalConfig = field(default_factory=JournalConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    drain: DrainConfig = field(default_factory=DrainConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)
    monitoring: MonitoringConfig = field(default_factory=MonitoringConfig)
    demo: DemoConfig = field(default_factory=DemoConfig)
    dispatch: DispatchConfig = field(default_factory=DispatchConfig)
    dispatch_email: DispatchEmailConfig = field(default_factory=DispatchEmailConfig)
    dispatch_limits: DispatchLimits = field(default_factory=DispatchLimits)
    patterns: tuple[PatternConfig, ...] = ()
    issuers: tuple[IssuerConfig, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    ignored_variables: tuple[str, ...] = ()
    """Environment variables that Kubernetes set for a Service with this program's name."""


SECTIONS: Mapping[str, type] = MappingProxyType(
    {
        "node": NodeConfig,
        "client": ClientConfig,
        "mqtt": MqttConfig,
        "admin": AdminConfig,
        "tls": TlsConfig,
        "access": AccessConfig,
        "audit": AuditConfig,
        "journal": JournalConfig,
        "limits": LimitsConfig,
        "drain": DrainConfig,
        "logging": LoggingConfig,
        "monitoring": MonitoringConfig,
        "demo": DemoConfig,
        "dispatch": DispatchConfig,
        "dispatch_email": DispatchEmailConfig,
        "dispatch_limits": DispatchLimits,
    }
)


def _list_limits() -> list[Option]:
    return [
        Option(f"limits.{row.name}", int, row.default, row.sentence, minimum=row.minimum, maximum=row.maximum)
        for row in LIMITS
    ]


OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        found.key: found
        for name, section in SECTIONS.items()
        for found in (_list_limits() if section is LimitsConfig else list_options(section, name))
    }
)


def list_pattern_options(pattern: str) -> dict[str, Option]:
    """The options of one pattern's table by name, with their full keys."""
    prefix = f'patterns."{check_pattern(pattern)}"'
    return {found.key.removeprefix(prefix + "."): found for found in list_options(PatternConfig, prefix)}


def list_issuer_options(issuer: str) -> dict[str, Option]:
    """The options of one issuer's table by their name."""
    prefix = f'issuers."{issuer}"'
    return {found.key.removeprefix(prefix + "."): found for found in list_options(IssuerConfig, prefix)}


def read_value(config: Config, key: str) -> object:
    """The value of a key, such as `limits.message_bytes_max`."""
    section, name = key.split(".")
    return config.limits[name] if section == "limits" else getattr(getattr(config, section), name)


def list_values(section: object) -> dict[str, object]:
    """A section's values by name."""
    return {f.name: getattr(section, f.name) for f in dataclasses.fields(section)}  # type: ignore[arg-type]  # any section
