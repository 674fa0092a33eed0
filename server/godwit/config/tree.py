"""The configuration tree: every value a node can be told, each declared once with default, bounds and sentence.

Sections are TOML tables; that of limits is made from the contract's table. How values are read and where each came from is load.py's.
Invariant: a Config that load.py returned is complete and consistent; nothing else of the node reads file or environment.
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
    """What a pattern may set instead of the node's own limit: the same bounds and sentence, no default."""
    row = next(row for row in LIMITS if row.name == name)
    return option(None, row.sentence, minimum=row.minimum, maximum=row.maximum)


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The node itself."""

    name: str = option("", "The node's name, told to clients and on every log line; empty: the host's name.")
    data_directory: str = option(
        "",
        "Where the node keeps what must survive it: its journal and its epoch. Empty: nowhere, and all is gone when it stops.",
    )
    shards: int = option(0, "Threads that hold connections; 0: one for each core.", minimum=0, maximum=64)
    driver: str = option(
        "auto",
        "How sockets are driven; auto tries io_uring and falls back to readiness (epoll, kqueue), saying why.",
        choices=("auto", "io_uring", "readiness"),
    )


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """The client port, which serves everybody: WebSocket and HTTP, publishers and subscribers."""

    address: Address = option(
        Address("127.0.0.1", 8800), "Where clients connect; 0.0.0.0:8800 serves other machines too."
    )
    origins: tuple[str, ...] = option(
        (),
        "Origins whose pages may connect, such as https://a.example (the admin page's too); empty: any. Programs are not asked.",
        check=check_origins,
    )
    hosts: tuple[str, ...] = option(
        (),
        "With origins: the names, beside addresses and localhost, that a plain GET without Origin and token may be addressed to.",
        check=check_hosts,
    )
    compression: bool = option(
        False,
        "WebSocket clients that offer permessage-deflate get messages compressed: each once, for all of them together.",
    )
    trusted_proxies: tuple[str, ...] = option(
        (),
        "Addresses and networks of proxies whose word about a client's address is taken: X-Forwarded-For, PROXY protocol.",
        check=check_networks,
    )
    role: str = option("both", "What clients of this port may do at most.", choices=("both", "subscribe", "publish"))
    proxy_protocol: bool = option(False, "Trusted proxies begin each connection with a PROXY header (version 1 or 2).")
    tls_address: str = option(
        "", "A port beside it for clients that speak TLS, such as 0.0.0.0:8443.", check=check_address
    )


@dataclass(frozen=True, slots=True)
class MqttConfig:
    """The MQTT port: 3.1.1 and 5.0 over TCP. MQTT over WebSocket is on the client port, at /mqtt."""

    enabled: bool = option(True, "Whether there is an MQTT port.")
    address: Address = option(
        Address("127.0.0.1", 1883),
        "Where MQTT clients connect. Where it is not set and the port is taken, the node starts without.",
    )
    role: str = option("both", "What clients of this port may do at most.", choices=("both", "subscribe", "publish"))
    proxy_protocol: bool = option(False, "Trusted proxies begin each connection with a PROXY header (version 1 or 2).")
    tls_address: str = option(
        "", "A port beside it for clients that speak TLS, such as 0.0.0.0:8883.", check=check_address
    )
    refused: str = option(
        "close",
        "What happens to a publish of MQTT 3.1.1 that cannot be kept: close the connection, or acknowledge and drop it.",
        choices=("close", "drop"),
    )


@dataclass(frozen=True, slots=True)
class AccessConfig:
    """Who may do what."""

    mode: str = option(
        "none",
        "none: everybody may publish and subscribe; basic: publishing needs a token; jwt: a signed token says what its holder "
        "may do; custom: the authorizer decides.",
        choices=("none", "basic", "jwt", "custom"),
    )
    publish_tokens: tuple[str, ...] = option((), "With basic: the tokens that may publish.", is_secret=True)
    publish_tokens_file: str = option("", "With basic: a file with one publishing token a line; # begins a comment.")
    anonymous_subscribe: tuple[str, ...] = option(
        (),
        "With jwt: patterns that clients without a token may subscribe to; empty: they are refused.",
        check=check_anonymous_patterns,
    )
    verified_tokens_max: int = option(
        100_000, "With jwt: verified tokens that are remembered.", minimum=1, maximum=10_000_000
    )
    verified_tokens_ms_max: int = option(
        600_000, "With jwt: how long a verified token is remembered at most.", minimum=0, maximum=24 * HOUR_MS
    )
    certificate_subscribe: tuple[str, ...] = option(
        (),
        "With basic and jwt: patterns that the holder of a certificate may subscribe to; {identity} stands for who it is.",
        check=check_templates,
    )
    certificate_publish: tuple[str, ...] = option(
        (), "The same for publishing, such as /devices/{identity}/**.", check=check_templates
    )
    reply_to: str = option(
        "either",
        "What a client needs to await replies on a subject: the right to subscribe or to publish there, or to publish.",
        choices=("either", "publish"),
    )
    same_holder: tuple[str, ...] = option(
        (),
        "Authorities whose names mean the same people, such as certificate and jwt:ISSUER; lists and logs name the first.",
        check=check_authorities,
    )
    publisher_addresses: tuple[str, ...] = option(
        (),
        "Addresses and networks, such as 10.0.0.0/8, from which publishing is possible at all; empty: from everywhere.",
        check=check_networks,
    )
    authorizer: str = option(
        "", "With custom: the authorizer as module:attribute, or an entry point of godwit.authorizers."
    )
    authorizer_timeout_ms: int = option(
        5_000, "An authorizer that takes longer has said no.", minimum=10, maximum=60_000
    )
    authorizer_calls_max: int = option(
        1_000, "Questions an authorizer works on at once; more wait their turn.", minimum=1, maximum=100_000
    )
    authorizer_start_timeout_ms: int = option(
        30_000, "An authorizer whose `start` takes longer keeps the node from starting.", minimum=100, maximum=HOUR_MS
    )
    authorizer_stop_timeout_ms: int = option(
        5_000, "An authorizer whose `stop` takes longer is left behind.", minimum=0, maximum=HOUR_MS
    )


@dataclass(frozen=True, slots=True)
class LoggingConfig:
    """The node's own log, one event a line on standard error."""

    level: str = option(
        "info", "The least important events that are written.", choices=("debug", "info", "warning", "error")
    )
    format: str = option("auto", "auto: console on a terminal, else JSON.", choices=("auto", "json", "console"))
    sessions: bool = option(False, "Also log each connect, subscription and disconnect.")
    events_per_second_max: int = option(
        20, "Lines a second of one event; what is over is counted and said once.", minimum=1, maximum=100_000
    )


@dataclass(frozen=True, slots=True)
class DrainConfig:
    """How the node leaves at SIGTERM or SIGINT."""

    delay_ms: int = option(
        0,
        "How long the node says that it is not ready before it refuses anybody, for balancers that ask now and then.",
        minimum=0,
        maximum=HOUR_MS,
    )
    spread_ms: int = option(
        5_000, "Clients are told to reconnect at moments spread over this time.", minimum=0, maximum=HOUR_MS
    )
    grace_ms: int = option(3_000, "What is still connected after this time is closed.", minimum=0, maximum=HOUR_MS)


@dataclass(frozen=True, slots=True)
class MonitoringConfig:
    """The node's statistics."""

    push: bool = option(
        True, "Publish them once a second on /$node/NAME/…, for whoever has the right to subscribe there."
    )


@dataclass(frozen=True, slots=True)
class PatternConfig:
    """What differs for the subjects of one pattern; the most specific pattern that names a value decides it."""

    pattern: str
    log_messages_max: int | None = limit_option("log_messages_max")
    log_age_ms_max: int | None = limit_option("log_age_ms_max")
    snapshot: bool | None = option(None, "Whether the latest retained state is kept for new subscribers.")
    journal: bool | None = option(None, "Whether the journal keeps messages of these subjects; true by default.")
    mqtt_retain: str | None = option(
        None, "Which MQTT publishes are retained: those that ask (default), or all.", choices=("asked", "always")
    )
    merge: bool | None = option(None, "Whether members of JSON objects are merged into the snapshot; off by default.")
    snapshot_age_ms_max: int | None = limit_option("snapshot_age_ms_max")
    conflate_when_slow: bool | None = option(
        None, "A reader too slow for every message gets one merged message a subject instead of a gap."
    )
    hold_ms: int | None = option(
        None, "Batching: messages wait this long for company; 0: not.", minimum=0, maximum=1_000
    )
    hold_bytes_max: int | None = option(
        None, "Batching: a batch of this size goes out at once.", minimum=1, maximum=1_048_576
    )
    publishes_per_second_max: int | None = option(
        None, "Most publishes on each subject in a second, whoever publishes.", minimum=1, maximum=100_000_000
    )
    mqtt_ack: str | None = option(
        None,
        "What PUBACK and PUBREC say of an MQTT message: that it is cached (default), or on the disk.",
        choices=("cached", "disk"),
    )
    mqtt_holds: bool | None = option(
        None,
        "Whether the logs keep what MQTT sessions and groups are owed beyond their age and count; true by default.",
    )
    mqtt_at_owed_max: str | None = option(
        None,
        "What an MQTT session does where messages it is owed are gone: skip them (default), or end.",
        choices=("skip", "end"),
    )
    visible: str | None = option(
        None,
        "When subscribers are shown a message: when it is accepted (default), or once it is on the disk, while that works.",
        choices=("accepted", "journaled"),
    )


@dataclass(frozen=True, slots=True)
class IssuerConfig:
    """Who signs tokens (mode jwt); the table's name is the claim `iss`, and keys are looked up by it alone."""

    issuer: str
    algorithms: tuple[str, ...] = option(
        ("RS256", "ES256", "EdDSA"), "The algorithms its tokens may be signed with.", check=check_algorithms
    )
    keys_file: str = option("", "Its keys: public keys or certificates (PEM), a JWK Set, or secrets, one a line.")
    keys_url: str = option("", "Its JWK Set, instead: https, or http on this machine.")
    keys_authorities_file: str = option(
        "", "Who signs the certificate that keys_url shows (PEM); empty: the authorities that this machine trusts."
    )
    keys_age_ms_max: int = option(
        600_000,
        "Keys of keys_url serve so long; where they cannot be had anew, nobody is let in.",
        minimum=1_000,
        maximum=24 * HOUR_MS,
    )
    refresh_ms_min: int = option(10_000, "The least time between two looks at keys_url.", minimum=100, maximum=HOUR_MS)
    audience: str = option("", "What the claim aud must hold; empty: tokens that name an audience are refused.")
    leeway_ms: int = option(0, "How far its clock may differ from ours.", minimum=0, maximum=600_000)
    identity_claim: str = option("sub", "The claim that names the holder.")
    tenant_claim: str = option(
        "", "The claim that names the holder's tenant, for limits of all its identities together; empty: none does."
    )
    identity_prefix: str = option(
        "",
        "Stands before the names of holders and tenants, to keep those of several issuers apart; no other's begins with it.",
    )
    permissions_claim: str = option("permissions", "The claim that says what the holder may do.")
    subscribe: tuple[str, ...] = option(
        (),
        "Patterns that each of its tokens may subscribe to; {identity} and {tenant} stand for its holder's.",
        check=check_issuer_templates,
    )
    publish: tuple[str, ...] = option(
        (), "The same for publishing, such as /users/{identity}/**.", check=check_issuer_templates
    )


@dataclass(frozen=True, slots=True)
class Config:
    """The whole tree. `sources` says of every key where its value came from."""

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
    """Variables of the environment that Kubernetes set for a Service named like this program."""


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
    """The options of one pattern's table by their name, with keys as an operator would write them."""
    prefix = f'patterns."{check_pattern(pattern)}"'
    return {found.key.removeprefix(prefix + "."): found for found in list_options(PatternConfig, prefix)}


def list_issuer_options(issuer: str) -> dict[str, Option]:
    """The options of one issuer's table by their name."""
    prefix = f'issuers."{issuer}"'
    return {found.key.removeprefix(prefix + "."): found for found in list_options(IssuerConfig, prefix)}


def read_value(config: Config, key: str) -> object:
    """The value of a key such as `limits.message_bytes_max`."""
    section, name = key.split(".")
    return config.limits[name] if section == "limits" else getattr(getattr(config, section), name)


def list_values(section: object) -> dict[str, object]:
    """A section's values by name."""
    return {f.name: getattr(section, f.name) for f in dataclasses.fields(section)}  # type: ignore[arg-type]  # any section
