"""The only interface to the compiled engine: settings and orders go in, reports come out, each in batches.

Owns the conversion between the node's values and the engine's tuples (declared in `_engine.pyi`). It decides nothing and
never runs once per delivered message. Invariant: no other module imports `_engine`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from .config import Address, Config
from .config.audit import AuditConfig
from .config.journal import make_journal
from .config.tls import TlsConfig
from .config.tree import list_values
from .errors import ConfigInvalid, ListenFailed, NodeFailed
from .model import Kind, Position

Statistic = tuple[str, str, str, str, float, tuple[float | None, float | None, float | None, float | None]]
"""(metric, scope, label, window, covered_s, (value, max, mean, deviation)): a row of the journal's table `stats`."""

RuleTuple = tuple[str, str, str]
"""(pattern, actions, verdict) in the engine's form."""


class CompiledEngine(Protocol):
    """The interface of `_engine.Engine`, which the fake engine of godwit.testing also has."""

    def start(self) -> dict[str, Any]: ...
    def report_fd(self) -> int: ...
    def reports(self) -> list[tuple[Any, ...]]: ...
    def order(self, orders: list[tuple[Any, ...]]) -> None: ...
    def publish_many(self, messages: list[tuple[str, bytes, str, bool]]) -> list[tuple[int, str]]: ...
    def stats(self) -> dict[str, Any]: ...
    def write_stats(self, time_ms: int, rows: list[Statistic]) -> bool: ...
    def subjects(self, after: str, limit: int, pattern: str | None) -> list[dict[str, Any]]: ...
    def survey(
        self, pattern: str | None, search: str, sort: str, is_descending: bool, offset: int, limit: int
    ) -> dict[str, Any]: ...
    def connections(
        self, after: int, limit: int, search: str | None, is_behind: bool
    ) -> tuple[list[dict[str, Any]], int | None]: ...
    def connection(self, connection: int) -> dict[str, Any] | None: ...
    def configure(self, settings_json: str) -> None: ...
    def purge(self, subject: str) -> tuple[int | None, bool]: ...
    def revoke(
        self, identity: str | None, token: str | None, code: int, tenant: str | None, authority: str | None
    ) -> tuple[int, int, int]: ...
    def take_heard(self, max: int, bytes_max: int, with_content: bool) -> tuple[list[tuple[Any, ...]], int]: ...
    def drain(self, grace_ms: int, spread_ms: int) -> None: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class AuthorizeReport:
    """A client sent a token (or none, if every client must be judged); its connection waits for a Grant or Refuse."""

    connection: int
    token: str | None = field(repr=False)
    client: str | None
    address: str
    is_renewal: bool
    certificate: bytes | None = field(default=None, repr=False)
    """The client's verified TLS certificate, then the others that it sent (DER), if `tls.client_identity` is set."""

    @property
    def key(self) -> str:
        """The key of the question: a connection has at most one."""
        return ""


@dataclass(frozen=True, slots=True)
class AskReport:
    """A rule says `ask`; the connection waits for an Answer."""

    connection: int
    identity: str
    action: str
    selector: str
    tenant: str = ""
    authority: str = ""
    is_background: bool = False
    """Nothing waits for this answer: the subscription continues by an earlier answer until this one."""

    @property
    def key(self) -> str:
        """The key of the question: a connection has one that it waits for, and one for each subscription that is asked again."""
        return self.selector if self.is_background else ""


class GrantOrder(NamedTuple):
    connection: int
    identity: str
    rules: list[RuleTuple]
    expires_ms: int | None
    token_id: str | None = None
    tenant: str = ""
    source: str | None = None
    authority: str = "authorizer"
    """The authority that vouches for the identity; the same name from two authorities is two holders."""
    configured: int = 0
    """How many of the rules, from the first one, come from the configuration."""


class RefuseOrder(NamedTuple):
    connection: int
    code: int
    reason: str


class AnswerOrder(NamedTuple):
    connection: int
    rule: RuleTuple
    is_background: bool = False


class CloseOrder(NamedTuple):
    connection: int
    code: int
    reason: str


class RevokeOrder(NamedTuple):
    """Closes every connection of an identity, or of a token id; with a tenant or an authority only theirs."""

    identity: str | None
    token_id: str | None
    code: int
    tenant: str | None = None
    authority: str | None = None


class WithdrawOrder(NamedTuple):
    """Ends every connection whose grant names this source, or one of its keys: at once, or at a given time by an end of its token."""

    source: str
    code: int
    within_ms: int = 0


class AskAgainOrder(NamedTuple):
    """Removes the kept answers about an identity of a tenant, or about all; those of live subscriptions are asked again."""

    identity: str | None = None
    tenant: str | None = None


Answer = GrantOrder | RefuseOrder | AnswerOrder
Order = Answer | CloseOrder | RevokeOrder | WithdrawOrder | AskAgainOrder
_VERBS: dict[type, str] = {
    GrantOrder: "grant",
    RefuseOrder: "refuse",
    AnswerOrder: "answer",
    CloseOrder: "close",
    RevokeOrder: "revoke",
    WithdrawOrder: "withdraw",
    AskAgainOrder: "ask_again",
}


class Draft(NamedTuple):
    """A message that the node itself publishes."""

    subject: str
    content: bytes
    kind: Kind = Kind.JSON
    retain: bool = True


@dataclass(frozen=True, slots=True)
class Listening:
    """The engine's addresses and driver; the reason says why io_uring is not used, and is empty otherwise."""

    client: Address
    driver: str
    driver_reason: str
    shards: int
    mqtt: Address | None = None
    """None without an MQTT port."""
    client_tls: Address | None = None
    mqtt_tls: Address | None = None
    resumed: Mapping[str, Any] | None = None
    """What was recovered from the journal, if there is one."""


class Engine:
    """The engine of one node, created from its settings and not listening yet."""

    def __init__(self, compiled: CompiledEngine, address: Address, data_directory: str = "") -> None:
        self.compiled = compiled
        self._address, self._data_directory = address, data_directory
        self.report_fd = compiled.report_fd
        self.reports = compiled.reports
        self.stats = compiled.stats
        self.write_stats = compiled.write_stats
        self.subjects = compiled.subjects
        self.survey = compiled.survey
        self.connections = compiled.connections
        self.connection = compiled.connection
        self.purge = compiled.purge
        self.revoke = compiled.revoke
        self.take_heard = compiled.take_heard
        self.drain = compiled.drain
        self.stop = compiled.stop

    def start(self) -> Listening:
        """Read the journal, open the port and start the shards; raises ConfigInvalid, ListenFailed."""
        try:
            started = self.compiled.start()
        except RuntimeError as error:
            raise ConfigInvalid("node.data_directory", self._data_directory, f"cannot be used: {error}") from error
        except OSError as error:
            listener, _, rest = (error.strerror or str(error)).partition(" on ")
            address, is_named, reason = rest.partition(": ")
            if not is_named:
                listener, address, reason = "client", str(self._address), str(error)
            raise ListenFailed(listener, address, reason) from error
        reason = str(started.get("driver_reason") or "")
        found = {
            name: Address.parse(started[name])
            for name in ("client", "mqtt", "client_tls", "mqtt_tls")
            if name in started
        }
        shards, resumed = int(started["shards"]), started.get("resumed")
        return Listening(driver=str(started["driver"]), driver_reason=reason, shards=shards, resumed=resumed, **found)

    def configure(self, config: Config, start: Start) -> None:
        """Apply other settings, except those of the start. Raises ConfigInvalid, and then nothing has changed."""
        try:
            self.compiled.configure(json.dumps(make_settings(config, start)))
        except ValueError as error:
            raise _blame(error) from error

    def order(self, orders: Iterable[Order]) -> None:
        """Send a batch of decisions; raises NodeFailed if a shard does not accept orders."""
        try:
            self.compiled.order([(_VERBS[type(order)], *order) for order in orders])
        except TimeoutError as error:
            raise NodeFailed(f"the node cannot keep up with its orders: {error}") from error

    def publish_many(self, drafts: Sequence[Draft]) -> list[Position | int]:
        """Publish a batch as the node itself; returns for each message its position, or the error code."""
        outcomes = self.compiled.publish_many([(d.subject, d.content, str(d.kind), d.retain) for d in drafts])
        return [code if code else Position.parse(at) for code, at in outcomes]


@dataclass(frozen=True, slots=True)
class Start:
    """The values of one start, in addition to the configuration. `run` names this run in resume tokens; `seed` is a secret
    against chosen hash collisions; `epoch` is the epoch of new positions. `anonymous`: the rules of clients without a
    token (None: they need one). `asks`: Python judges tokens. `patterns`: the node's own, before the configured ones.
    `revoked`: the current revocations. `trusted`: the authorities that may vouch. `authority_rules`: the rules that the
    configuration gives the holders of each authority, with {identity} and {tenant}.
    """

    run: int
    seed: int = field(repr=False)
    epoch: int
    asks: bool
    anonymous: Sequence[RuleTuple] | None = None
    patterns: Sequence[Mapping[str, Any]] = ()
    revoked: Sequence[Mapping[str, str | None]] = field(default=(), repr=False)
    trusted: Sequence[str] | None = field(default=None, repr=False)
    authority_rules: Mapping[str, Sequence[RuleTuple]] = field(default_factory=dict)


def open_engine(config: Config, start: Start) -> Engine:
    """Create the compiled engine with these settings; raises NodeFailed if it refuses them."""
    from . import _engine  # loaded only when a node is built: `godwit config` works without it

    settings = make_settings(config, start)
    try:
        return Engine(_engine.Engine(json.dumps(settings)), config.client.address, config.node.data_directory)
    except ValueError as error:
        if str(error).startswith("tls"):
            raise _blame(error) from error
        raise NodeFailed(f"the engine does not accept its settings: {error}") from error


def _blame(error: ValueError) -> ConfigInvalid:
    """An error about a file that only the engine reads, in the form `KEY: VALUE: what is wrong`, as ConfigInvalid."""
    key, _, rest = str(error).partition(": ")
    value, _, bound = rest.partition(": ")
    if not key.startswith("tls.") or not bound:
        return ConfigInvalid("configuration", "", f"is not accepted by the engine: {error}")
    return ConfigInvalid(key, value, bound)


def check_journal(directory: Path) -> list[dict[str, Any]]:
    """The content of each file of a journal; every row is checked against its checksum. Raises OSError."""
    from . import _engine

    return _engine.check_journal(str(directory))


def make_settings(config: Config, start: Start) -> dict[str, Any]:
    """The settings in the engine's form, declared in core/src/settings.rs."""
    return {
        "node": config.node.name,
        "run": start.run,
        "seed": start.seed,
        "epoch": start.epoch,
        "shards": config.node.shards,
        "driver": config.node.driver,
        "listeners": _list_listeners(config),
        "tls": make_tls(config.tls),
        "origins": list(config.client.origins),
        "hosts": list(config.client.hosts),
        "compresses": config.client.compression,
        "drops_mqtt_refused": config.mqtt.refused == "drop",
        "revoked": list(start.revoked),
        "trusted": None if start.trusted is None else list(start.trusted),
        "authority_rules": {name: _make_rules(rules) for name, rules in start.authority_rules.items()},
        "reply_to_needs_publish": config.access.reply_to == "publish",
        "publisher_addresses": list(config.access.publisher_addresses),
        "trusted_proxies": list(config.client.trusted_proxies),
        "limits": dict(config.limits),
        "anonymous": None if start.anonymous is None else _make_rules(start.anonymous),
        "asks_on_connect": start.asks,
        "reports_sessions": config.logging.sessions or bool(config.audit.plugins),
        "tap": _make_tap(config.audit),
        "journal": make_journal(config.journal, config.node.data_directory),
        "patterns": [
            *start.patterns,
            *(
                {name: value for name, value in list_values(pattern).items() if value is not None}
                for pattern in config.patterns
            ),
        ],
    }


def _make_rules(rules: Sequence[RuleTuple]) -> list[dict[str, str]]:
    return [{"pattern": pattern, "actions": actions, "verdict": verdict} for pattern, actions, verdict in rules]


def _list_listeners(config: Config) -> list[dict[str, Any]]:
    client = {"role": config.client.role, "proxy_protocol": config.client.proxy_protocol}
    listeners: list[dict[str, Any]] = [{"name": "client", "address": str(config.client.address), **client}]
    if config.client.tls_address:
        listeners.append({"name": "client_tls", "address": config.client.tls_address, "is_tls": True, **client})
    packets = {"role": config.mqtt.role, "proxy_protocol": config.mqtt.proxy_protocol}
    if config.mqtt.enabled:
        is_default = config.sources.get("mqtt.address", "default") == "default"
        listeners.append({"name": "mqtt", "address": str(config.mqtt.address), "is_optional": is_default, **packets})
    if config.mqtt.tls_address:
        listeners.append({"name": "mqtt_tls", "address": config.mqtt.tls_address, "is_tls": True, **packets})
    return listeners


def _make_tap(audit: AuditConfig) -> dict[str, Any]:
    return {
        "patterns": list(audit.patterns) if audit.plugins else [],
        "entries_max": audit.queue_events_max,
        "bytes_max": audit.queue_bytes_max,
        "holds_publishers": audit.overflow == "block",
    }


def make_tls(tls: TlsConfig) -> dict[str, Any]:
    """The certificate files and rules; the engine reads the files."""
    pairs = zip(tls.certificate_files, tls.key_files, strict=True)
    return {
        "certificates": [{"certificate_file": certificate, "key_file": key} for certificate, key in pairs],
        "version_min": tls.version_min,
        "cipher_suites": list(tls.cipher_suites),
        "client_certificates": tls.client_certificates,
        "client_authorities_file": tls.client_authorities_file,
        "gives_identity": tls.client_identity != "none",
    }


def make_authorize(report: tuple[Any, ...]) -> AuthorizeReport:
    """("authorize", connection, token, client, address, is_renewal, certificate) as a value."""
    return AuthorizeReport(*report[1:])


def make_ask(report: tuple[Any, ...]) -> AskReport:
    """("ask", connection, identity, action, selector, tenant, authority, is_background) as a value."""
    return AskReport(*report[1:])


OpenEngine = Callable[[Config, Start], Engine]
