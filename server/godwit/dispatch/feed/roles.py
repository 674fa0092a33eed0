"""The roles of the feed: the watcher, event webhooks, live counts, and the metrics they are counted in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from ...config.dispatch import DispatchConfig
from ...config.dispatch_limits import DispatchLimits
from ...rows.feedback import FeedbackJournal
from ..api.events import EventApi
from ..api.keys import KeyRing
from ..channels.webhook.http import HttpPoster
from ..channels.webhook.targets import list_private_targets
from ..stores.sqlite.accept import read_live
from ..stores.sqlite.feed.store import FeedStore
from ..stores.sqlite.store import SqliteStore
from ..tokens import SigningKey
from .feedback import FeedbackWriter
from .hooks import EventHooks
from .live import LiveCounts
from .metrics import DispatchMetrics
from .watcher import EventWatcher, Fresh


class FeedRoles:
    """The feed's roles. Create them in the event loop that runs them."""

    def __init__(
        self,
        store: SqliteStore,
        config: DispatchConfig,
        limits: DispatchLimits,
        signing: SigningKey,
        node_url: str,
        journal: FeedbackJournal | None,
    ) -> None:
        self._store, self._limits, self._signing = store, limits, signing
        private, sweep_s = list_private_targets(config.private_targets), limits.sweep_ms / 1_000
        self._poster = HttpPoster(private, sends_max=64, timeout_ms=limits.webhook_timeout_ms)
        feed = FeedStore(store)
        self._watcher = EventWatcher(feed.read_fresh, sweep_s)
        self._hooks = EventHooks(feed, self._poster, signing.sign_bytes, sweep_s)
        self._live = LiveCounts(node_url, signing.sign_service, self._read_counts)
        self._written = None if journal is None else FeedbackWriter(feed, journal, sweep_s)
        self.metrics = DispatchMetrics()
        self._api: EventApi | None = None
        store.writer.on_commit = self._watcher.stir
        self._watcher.tell(self.metrics.take)
        self._watcher.tell(self._live.take)
        self._watcher.tell(self._stir)

    def list_roles(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What runs, by name."""
        written = {} if self._written is None else {"feedback": self._written.run}
        return {
            "events": self._watcher.run,
            "event_webhooks": self._hooks.run,
            "live_counts": self._live.run,
            **written,
        }

    def list_routes(
        self,
        keys: KeyRing,
        check_address: Callable[[str, str], None],
        count: Callable[[], dict[str, tuple[str, float]]],
    ) -> list[web.RouteDef]:
        """The API of the feed, and the metrics for scope `operator`, with those of `count`: name → help and value."""
        api = self._api = EventApi(self._store, keys, self._limits, self._signing, self._poster, check_address)
        self._watcher.tell(api.take)

        async def show_metrics(request: web.Request) -> web.Response:
            await keys.read_request(request, "operator")
            return web.Response(text=self.metrics.show({**await self._read_values(api), **count()}))

        return [*api.list_routes(), web.get("/metrics", show_metrics, allow_head=False)]

    def close_waiters(self) -> None:
        """Let all waiting requests answer now."""
        if self._api is not None:
            self._api.waiters.close()

    async def stop(self) -> None:
        """After the roles were cancelled."""
        self._store.writer.on_commit = None
        await self._hooks.stop()
        if self._written is not None:
            await self._written.stop()

    def _stir(self, fresh: Fresh) -> None:
        self._hooks.stir()
        if self._written is not None:
            self._written.stir()

    async def _read_counts(self, tenant: str, name: str) -> tuple[int, dict[str, Any]] | None:
        return await self._store.reader.run(lambda connection: read_live(connection, tenant, name))

    async def _read_values(self, api: EventApi) -> dict[str, tuple[str, float]]:
        jobs, failing = await self._store.reader.run(
            lambda connection: (
                connection.execute(
                    "SELECT (SELECT count(*) FROM job WHERE is_done = 0) + (SELECT count(*) FROM job WHERE is_done = 2)"
                ).fetchone()[0],
                connection.execute("SELECT count(*) FROM webhook WHERE failures > 0 OR state <> 'active'").fetchone()[
                    0
                ],
            )
        )
        return {
            "godwit_dispatch_commits_total": ("Commits of the store.", self._store.writer.commits),
            "godwit_dispatch_wal_bytes": ("Size of the store's write-ahead log.", self._store.read_wal_bytes()),
            "godwit_dispatch_jobs_open": ("Jobs that are not done.", jobs),
            "godwit_dispatch_webhooks_failing": ("Event webhooks that fail or are disabled.", failing),
            "godwit_dispatch_event_waiters": ("Requests that wait for events.", api.waiters.count),
        }
