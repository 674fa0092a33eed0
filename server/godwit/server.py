"""The node: builds its parts, starts them, drains, stops. Start reading here.

Owns the order: invalid settings are refused before a port opens; the client port listens before the admin port reports
ready; at the end the node reports not ready, drains, and stops. The engine handles messages; Python receives reports in
batches. Invariant: every start is followed by exactly one stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import __version__
from .access.access_mode import build_access_mode
from .access.gate import Gate
from .access.metric_specs import count_authorizer
from .access.revocation import Revocation, Revocations
from .access.revoker import Revoker
from .admin.guard import Guard, read_admin_token
from .announcement import announce
from .audit import NodeFace
from .audit.metric_specs import count_audits
from .audit.runner import AuditRunner, load_audits
from .codes import Code
from .config import Address, Config
from .config.changes import compare_configs, read_nothing, take_over
from .data import JUMP_BITS, DataDirectory
from .engine import Engine, Listening, OpenEngine, RevokeOrder, Start, make_ask, make_authorize, open_engine
from .errors import AuthorizerFailed
from .extension import describe_error
from .logs import read_logger
from .monitoring.certificates import Certificates
from .monitoring.disk_reports import DISK_REPORTS, take_disk_report
from .monitoring.health import Condition, Health
from .monitoring.metric_specs import MetricSpec
from .monitoring.monitor import Monitor, list_patterns
from .monitoring.refusals import Refusals
from .monitoring.window_file import WindowFile

if TYPE_CHECKING:  # loaded when it starts: the library under it takes longest of all
    from .admin.app import AdminPort
    from .demo import Demo
    from .tls.context import TlsPort

_SESSION_FIELDS = {
    "connected": ("connection", "identity", "client", "address", "protocol", "tenant", "authority"),
    "renewed": ("connection", "identity", "token_id", "tenant", "authority"),
    "subscribed": ("connection", "selector", "outcome", "position"),
    "unsubscribed": ("connection", "selector"),
    "disconnected": ("connection", "code", "duration_ms"),
}
"""Reports of sessions and their subscriptions, which are logged only with `logging.sessions`."""
DRAIN_MARGIN_S = 2.0
"""Seconds that a drain may take beyond its grace period before the node stops anyway."""
HANG_UP_S = 1.0
"""Seconds that connections closed at once may take to end."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """The bound addresses."""

    client: Address
    admin: Address
    mqtt: Address | None = None
    client_tls: Address | None = None
    mqtt_tls: Address | None = None

    def __str__(self) -> str:
        named = {"client": self.client, "client_tls": self.client_tls, "mqtt": self.mqtt, "mqtt_tls": self.mqtt_tls}
        bound = [f"{name}={address}" for name, address in {**named, "admin": self.admin}.items() if address]
        return f"listening {' '.join(bound)}"


class Node:
    """One node. Call `start`, then `drain` (optional), then `stop`; `run` in cli/serve.py does so with signals."""

    def __init__(
        self,
        config: Config,
        *,
        open_engine: OpenEngine = open_engine,
        read_config: Callable[[], Config] = read_nothing,
        on_reload: Callable[[Config], None] = lambda _: None,
        beside: TlsPort | None = None,
    ) -> None:
        """`read_config` and `on_reload` serve reloads. `beside`: another port of this process, with the node's certificates."""
        self._read_config, self._on_reload, self._beside = read_config, on_reload, beside
        self._reloading = asyncio.Lock()
        self.config = replace(config, node=replace(config.node, name=config.node.name or read_host_name()))
        self.health = Health()
        self.refusals = Refusals()
        self.guard = Guard(config.admin)
        self._access_mode = build_access_mode(config.access, config.issuers, config.tls, config.dispatch)
        audits = load_audits(config.audit)
        self._data = DataDirectory(Path(config.node.data_directory)) if config.node.data_directory else None
        try:
            folder = Path(config.node.data_directory) if self._data else None
            self.revocations = Revocations(folder, same_holder=config.access.same_holder)
            self._start = replace(self._decide_start(), revoked=tuple(self.revocations.name_all()))
            self.engine: Engine = open_engine(self.config, self._start)
        except BaseException:
            self._close_data()
            raise
        self.gate = Gate(
            self._access_mode.authorizer,
            self.engine.order,
            timeout_ms=config.access.authorizer_timeout_ms,
            calls_max=config.access.authorizer_calls_max,
            revocations=self.revocations,
        )
        self.monitor = Monitor(
            self.config.node.name,
            self.engine.stats,
            self.engine.publish_many if config.monitoring.push else None,
            WindowFile(self._data.path) if self._data else None,
            write_stats=self.engine.write_stats if self._data and config.journal.statistics else None,
            write_interval_s=config.journal.statistics_interval_ms / 1000,
            read_limits=lambda: self.config.limits,
        )
        self.audits = AuditRunner(
            audits,
            config.audit,
            take_heard=self.engine.take_heard,
            read_stats=self.engine.stats,
            node=NodeFace(self.engine.publish_many),
        )
        self.revoker = Revoker(self.revocations, self.engine.revoke, self.gate.seen, self.audits.tell_revoked)
        self._certificates = Certificates(config.tls.certificate_files)
        self._admin: AdminPort | None = None
        self._demo: Demo | None = None
        self._drained = asyncio.Event()
        self._is_listening = self._has_started = False
        self._began = time.monotonic()

    async def start(self) -> Listeners:
        """Open both ports; raises ListenFailed, NodeFailed. After any exception, everything that was started is stopped."""
        try:
            await self._start_authorizer()
            await self.audits.start()
            listening = await asyncio.to_thread(self.engine.start)  # a long journal must not hold up signals
            self._is_listening = True
            asyncio.get_running_loop().add_reader(self.engine.report_fd(), self._take_reports)
            self.monitor.start()
            admin = await self._start_admin(listening)
            if self.config.demo.enabled:
                self._start_demo()
        except BaseException:
            await self.stop()
            raise
        self.health.change(Condition.READY)
        announce(self.config, listening, admin)
        self._has_started = True
        return Listeners(listening.client, admin, listening.mqtt, listening.client_tls, listening.mqtt_tls)

    async def drain(self) -> None:
        """Accept no new clients, tell connected ones when to reconnect, finish acknowledged work; returns when done."""
        drain = self.config.drain
        self.health.change(Condition.DRAINING)
        await asyncio.sleep(drain.delay_ms / 1000)  # not ready, and still serving: balancers look now and then
        read_logger().info("drain_began", spread_ms=drain.spread_ms, grace_ms=drain.grace_ms)
        if self._demo is not None:
            await self._demo.stop()
        self.engine.drain(drain.grace_ms, drain.spread_ms)
        try:
            async with asyncio.timeout(drain.grace_ms / 1000 + DRAIN_MARGIN_S):
                await self._drained.wait()
            read_logger().info("drain_finished")
        except TimeoutError:
            read_logger().warning("drain_timed_out", reason="the engine did not report its end in time")

    async def hang_up(self) -> None:
        """Close every connection with its code without waiting for work; returns within about a second."""
        self.engine.drain(0, self.config.drain.spread_ms)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HANG_UP_S):
                await self._drained.wait()

    async def stop(self) -> None:
        """Stop everything at once; a second call does nothing."""
        if self.health.condition is Condition.STOPPED:
            return
        self.health.change(Condition.STOPPED)
        if self._demo is not None:
            await self._demo.stop()
        self.gate.stop()
        await self.revocations.stop()
        if self._is_listening:
            self._take_reports()  # the last of them
        await self.audits.stop()
        await self.monitor.stop()
        if self._is_listening:
            asyncio.get_running_loop().remove_reader(self.engine.report_fd())
            self._is_listening = False
            await asyncio.to_thread(self.engine.stop)
            self._tell_what_is_lost()
        if self._admin is not None:
            await self._admin.stop()
        await self._stop_authorizer()
        self._close_data()
        if self._has_started:
            read_logger().info("node_stopped")

    async def reload(self, config: Config | None = None) -> dict[str, Any]:
        """Apply the settings that a running node can change, and name those that need a restart; without `config` what the
        sources say now. One reload at a time. Raises ConfigInvalid, and then nothing has changed. Clients whose publishing
        token was removed are closed.
        """
        async with self._reloading:
            if config is None:
                config = self._read_config()
            before = self.config
            live, waiting = compare_configs(before, replace(config, node=replace(config.node, name=before.node.name)))
            after = take_over(before, config, live)
            # all that can be wrong first; nothing below can fail
            token = read_admin_token(after.admin)
            ports: list[TlsPort] = [port for port in (self._admin, self._beside) if port is not None]
            for port in ports:
                port.try_certificates(after.tls)
            mode = build_access_mode(after.access, after.issuers, after.tls, after.dispatch, self._access_mode)
            join = self.revocations.join
            removed = self._access_mode.list_authorities(join) - mode.list_authorities(join)
            self._start = mode.complete(self._start, join)
            await asyncio.to_thread(self.engine.configure, after, self._start)
            self.guard.configure(after.admin, token)
            self._certificates.read(after.tls.certificate_files)
            for port in ports:
                port.certify(after.tls)
            gone = self._access_mode.adopt(mode)
            self.gate.judge_again()
            self.config = after
            code = int(Code.TOKEN_INVALID)
            revoked = [RevokeOrder(identity, None, code, None, join("basic")) for identity in gone]
            revoked += [RevokeOrder(None, None, code, None, authority) for authority in removed]
            self.engine.order([*revoked, *self._access_mode.take_withdrawn()])
            result = {"taken_over": live, "waits_for_restart": waiting, "tokens_gone": len(gone)}
            self._on_reload(after)
            read_logger().info("config_reloaded", **result)
            return result

    async def revoke(self, revocation: Revocation) -> dict[str, Any]:
        """Refuse an identity or a token id from now on, and close its connections; returns what that ended."""
        return await self.revoker.revoke(revocation)

    def describe(self) -> dict[str, Any]:
        """The node's description, as in /v1/stats."""
        return {
            "node": self.config.node.name,
            "version": __version__,
            "condition": str(self.health.condition),
            "uptime_ms": int((time.monotonic() - self._began) * 1000),
            "authorizer": {**self.gate.counts, "waiting": self.gate.waiting},
            "audits": dict(self.audits.counts),
        }

    def count(self) -> Mapping[MetricSpec, float]:
        """The counters kept in Python, for /metrics."""
        extensions = {**count_authorizer(self.gate, self._access_mode.host), **count_audits(self.audits)}
        return {**extensions, **self._certificates.count()}

    def describe_troubles(self) -> dict[str, str]:
        """The problems of extensions and their tasks, by name; for health."""
        host = self._access_mode.host
        troubles = {**self.audits.describe_troubles(), **self.revoker.describe_trouble()}
        return {**troubles, "authorizer": host.describe()} if host is not None and host.describe() else troubles

    async def _start_authorizer(self) -> None:
        if self._access_mode.authorizer is not None:
            try:
                await self._access_mode.authorizer.start()
            except Exception as error:  # a user's code may raise anything
                raise AuthorizerFailed(f"the authorizer did not start: {describe_error(error)}") from error

    async def _stop_authorizer(self) -> None:
        if self._access_mode.authorizer is not None:
            try:
                await self._access_mode.authorizer.stop()
            except Exception as error:  # a user's code may raise anything, and the node stops all the same
                read_logger().warning("authorizer_failed", reason=f"stop: {describe_error(error)}")

    def _decide_start(self) -> Start:
        wall_ms = time.time_ns() // 1_000_000  # in milliseconds, so that two starts never share an epoch
        start = Start(
            run=secrets.randbits(63),
            seed=secrets.randbits(64),
            epoch=self._data.reserve_epoch(wall_ms, secrets.randbits(JUMP_BITS)) if self._data else wall_ms,
            asks=self._access_mode.judges_tokens,
            patterns=list_patterns(pattern.pattern for pattern in self.config.patterns),
        )
        return self._access_mode.complete(start, self.revocations.join)

    def _close_data(self) -> None:
        if self._data is not None:
            self._data.close()
            self._data = None

    async def _start_admin(self, listening: Listening) -> Address:
        from .admin.app import AdminPort
        from .admin.changes import Changes
        from .admin.view import NodeView

        view = NodeView(
            engine=self.engine,
            health=self.health,
            client=listening.client,
            driver=listening.driver,
            shards=listening.shards,
            read_config=lambda: self.config,
            describe=self.describe,
            describe_troubles=self.describe_troubles,
            count=self.count,
            monitor=self.monitor,
            read_refusals=self.refusals.list,
        )
        changes = Changes(self.revocations, self.revoker, self.engine.purge, self.reload)
        self._admin = AdminPort(self.config.admin, view, self.guard, changes, tls=self.config.tls)
        return await self._admin.start()

    def _start_demo(self) -> None:
        from .demo import Demo

        self._demo = Demo(self.engine.publish_many, self.config.demo.interval_ms)
        self._demo.start()

    def _take_reports(self) -> None:
        """Process one batch of reports. A report costs time per connection, never per message."""
        reports = self.engine.reports()
        refused: dict[int, list[tuple[Any, ...]]] = {}
        for report in reports:
            kind = report[0]
            if kind == "refused":
                refused.setdefault(report[2], []).append(report)
                _, address, code, why, connection, _ = report
                self.refusals.add(
                    time.time_ns() // 1_000_000, code, why, address=address, connection=connection or None
                )
            elif kind not in _SESSION_FIELDS:
                self._take_report(kind, report)
            elif kind == "disconnected":
                self.gate.withdraw(report[1])
        for code, alike in refused.items():  # a storm of them is one line a batch
            _, address, _, why, *_ = alike[-1]
            read_logger().warning("connections_refused", code=code, reason=why, count=len(alike), last=address)
        self.audits.tell_reports(reports)
        if self.config.logging.sessions:
            self._log_sessions(reports)

    def _take_report(self, kind: str, report: tuple[Any, ...]) -> None:
        if kind == "authorize":
            self.gate.ask(make_authorize(report))
        elif kind == "ask":
            self.gate.ask(make_ask(report))
        elif kind == "command_refused":
            _, connection, identity, address, code, why, client, tenant, authority = report
            now_ms = time.time_ns() // 1_000_000
            if client is not None:
                read_logger().warning(
                    "mqtt_refused", client=client, identity=identity, address=address, code=code, reason=why
                )
            holder = (identity, tenant, authority)
            self.refusals.add(now_ms, code, why, address=address, connection=connection, holder=holder)
        elif kind == "mqtt_missed":
            _, client, subject, missed, reason = report
            read_logger().warning("mqtt_messages_missed", client=client, subject=subject, missed=missed, reason=reason)
        elif kind == "mqtt_overdue":
            _, name, messages, owed_bytes = report
            read_logger().warning("mqtt_messages_skipped", holder=name, messages=messages, bytes=owed_bytes)
        elif kind == "drained":
            self._drained.set()
        elif kind in DISK_REPORTS:
            take_disk_report(self.health, kind, report[1])
        elif kind == "shard_failed":
            self.health.change(Condition.FAILED, f"shard {report[1]} gave up")
            read_logger().error("shard_failed", shard=report[1], reason=report[2])

    def _tell_what_is_lost(self) -> None:
        """Report rows that the journal lost, because it had no room or the disk failed."""
        stats = self.engine.stats()
        lost = {stream: rows for stream, (_, rows) in stats.get("journal_streams", {}).items() if rows}
        if lost:
            why = stats["journal_reason"] or "the queue was full while the disk failed or was slow"
            read_logger().error("journal_incomplete", reason=why, rows_lost=lost)

    def _log_sessions(self, reports: list[tuple[Any, ...]]) -> None:
        for kind, *fields in reports:
            if kind in _SESSION_FIELDS:
                read_logger().info(f"session_{kind}", **dict(zip(_SESSION_FIELDS[kind], fields, strict=True)))


def read_host_name() -> str:
    """This host's name, for the node and the demo."""
    import socket

    return socket.gethostname() or "localhost"
