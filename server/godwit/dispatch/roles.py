"""The roles of dispatch in one event loop: API, router, and the workers of the channels.

Owns their tasks. A role that raises is logged and restarted after a second, so that an error in one tenant's data does
not stop the others. Invariant: `stop` returns after everything in flight is finished and stored.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from typing import Any

import msgspec
from aiohttp import web

from ..config.dispatch import DispatchConfig
from ..config.dispatch_email import DispatchEmailConfig, is_email
from ..config.dispatch_limits import DispatchLimits
from ..config.option import Address
from ..errors import ListenFailed
from ..http_port.connection import attend
from ..logs import read_logger
from ..rows.feedback import FeedbackJournal
from .api.answers import allow_origins, answer, answer_errors, show_expectation
from .api.console import files
from .api.console.lists import ListApi
from .api.groups import GroupApi
from .api.inbox import InboxApi
from .api.keys import KeyRing
from .api.letters import LetterApi
from .api.notifications import NotificationApi
from .api.openapi import make_document
from .api.operating.providers import ProviderApi
from .api.operating.tenants import TenantApi
from .api.rates import AcceptRates, bound_previews
from .api.receivers import ReceiverApi
from .api.requests import BODY_S
from .api.templates import TemplateApi
from .api.unsubscribe import UnsubscribeApi
from .api.waiters import Waiters
from .api.wishes import WishApi
from .channels.email.opening import MailPart
from .channels.inbox.announcer import Announcer
from .channels.letter import Letter
from .channels.part import ChannelPart, ClosingSender
from .channels.webhook.http import HttpPoster
from .channels.webhook.sender import WebhookSender, host_of
from .channels.webhook.targets import check_url, list_private_targets
from .clock import now_ms
from .codes import DispatchCode
from .content.renderer import Renderer, Source
from .content.worker import TemplateWorker
from .errors import RequestRefused
from .fanout.dispatcher import Pace
from .fanout.inbox_worker import InboxWorker
from .fanout.lanes import Places
from .fanout.run import hold
from .feed.presence import Presence
from .feed.roles import FeedRoles
from .listener import Listener, choose_public, count_connections
from .model import Head, InboxItem, Shipment
from .pure.clients import list_networks
from .pure.mail_lane import domain_of
from .stores.sqlite import tenants
from .stores.sqlite.accept import next_due_ms
from .stores.sqlite.contents import read_letter
from .stores.sqlite.deciding import digest_value
from .stores.sqlite.manage.heads import read_heads
from .stores.sqlite.manage.presence import StoredPresence
from .stores.sqlite.store import SqliteStore
from .tokens import Leaving, SigningKey
from .wakeups import WakeUps

ROUTE_LIMIT = 200
FORGET_LIMIT = 400
"""Rows of one unit of retention: accepts wait for it, with 1,000 rows up to 124 ms."""
RESTART_S = 1.0


class Roles:
    """All roles over one store. `node_url` is the address of the node that has the inboxes."""

    def __init__(
        self,
        store: SqliteStore,
        signing: SigningKey,
        config: DispatchConfig,
        limits: DispatchLimits,
        node_url: str,
        email: DispatchEmailConfig,
        *,
        journal: FeedbackJournal | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Raises ConfigInvalid if a channel's file cannot be used."""
        self._store, self._signing, self._config, self._limits = store, signing, config, limits
        self._tls = tls
        self._accepted, self._inbox_due = asyncio.Event(), asyncio.Event()
        self._wakeups = {channel: WakeUps() for channel in ("inbox", "webhook")}
        self._waiters = Waiters(limits.inbox_waiters_max)
        self._announcer = Announcer(
            node_url,
            signing.sign_service,
            self._read_heads,
            lambda owner: self._presence.take(owner),
            lambda is_complete: self._presence.settle(is_complete),
        )
        self._presence = Presence(StoredPresence(store), self._announcer.is_connected)
        self._inbox = InboxWorker(
            store,
            self._announce,
            page_receivers=limits.page_receivers_max,
            lease_ms=limits.lease_ms,
            now_ms=now_ms,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._feed = FeedRoles(store, config, limits, signing, node_url, journal)
        self._renderer = Renderer()
        self._templates = TemplateWorker(
            store, Renderer(), lambda: tuple(self._wakeups), self._wake_channels, limits=limits, now_ms=now_ms
        )
        self._channels = [self._open_webhooks()]
        link = self._make_link if config.public_url else None
        self._mail = MailPart(store, email, self._read_letter, signing.make_mac, link, self._open_email)
        self._listeners: list[Listener] = []
        self.public_address: Address | None = None
        """Where the port for receivers listens, if there is one."""
        self._is_started = self._is_stopping = False

    async def start(self) -> Address:
        """Start the roles; returns the API's address. Raises ListenFailed."""
        app, public = self._build_apps()
        try:
            await self._mail.open()  # before a request needs a provider
            address = await self._listen(app, "dispatch.address", self._config.address)
            if self._config.public_address:
                wanted = Address.parse(self._config.public_address)
                self.public_address = await self._listen(public, "dispatch.public_address", wanted)
        except ListenFailed:
            await self._close_listeners()
            await self._mail.close()
            raise
        limits = self._limits
        roles = {
            "retention": self._forget,
            "router": self._route,
            "inbox": lambda: self._inbox.run(self._wakeups["inbox"], limits.sweep_ms / 1_000),
            "inbox_due": self._append_due,
            "templates": self._templates.run,
            "steps": self._advance_routes,
            "announcer": self._announcer.run,
            "presence": self._presence.run,
            **self._feed.list_roles(),
        }
        self._tasks = [asyncio.create_task(self._keep(name, role)) for name, role in roles.items()]
        self._is_started = True
        for channel in self._channels:
            channel.start(self._keep)
        return address

    async def _listen(self, app: web.Application, setting: str, wanted: Address) -> Address:
        listener = Listener(app, setting, self._tls, self._limits)
        bound = await listener.start(wanted)
        self._listeners.append(listener)
        return bound

    async def _close_listeners(self) -> None:
        while self._listeners:
            await self._listeners.pop().stop()

    async def stop(self) -> None:
        """Take no more requests, start no new work, and finish running sends."""
        self._is_stopping = True
        self._waiters.close()
        self._feed.close_waiters()
        await self._close_listeners()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for channel in self._channels:
            await channel.stop()
        await self._mail.close()
        await self._feed.stop()
        await asyncio.gather(self._renderer.close(), self._templates.close())

    def _open_webhooks(self) -> ChannelPart:
        limits = self._limits
        private = list_private_targets(self._config.private_targets)
        poster = HttpPoster(private, sends_max=limits.webhook_sends_max, timeout_ms=limits.webhook_timeout_ms)
        webhooks = WebhookSender(self._read_letter, poster, self._render, self._signing.sign_bytes, now_ms=now_ms)
        sends = (limits.webhook_sends_max, limits.webhook_sends_per_host_max)
        return self._open_channel("webhook", webhooks, host_of, *sends)

    def _open_email(self, sender: ClosingSender, places: Places) -> Callable[[int], None]:
        """The first provider of e-mail is there; what sets how many e-mails are sent at once."""
        self._wakeups["email"] = WakeUps()
        channel = self._open_channel("email", sender, domain_of, 1, 1, places)
        self._channels.append(channel)
        if self._is_started:
            channel.start(self._keep)
        return channel.resize

    def _open_channel(
        self,
        channel: str,
        sender: ClosingSender,
        lane_of: Callable[[Shipment], Hashable],
        slots: int,
        per_lane: int,
        places: Places | None = None,
    ) -> ChannelPart:
        limits = self._limits
        pace = Pace(limits.page_receivers_max, slots, per_lane, limits.lease_ms)
        hints = self._wakeups[channel]
        common = (channel, self._store, sender, hints)
        return ChannelPart(*common, pace=pace, sweep_ms=limits.sweep_ms, lane_of=lane_of, places=places)

    def _make_app(self) -> web.Application:
        app = web.Application(
            middlewares=(attend, allow_origins(self._config.origins), answer_errors),
            client_max_size=self._limits.request_bytes_max,
        )
        app[BODY_S] = self._limits.request_body_ms_max / 1_000
        app.on_response_prepare.append(show_expectation)
        return app

    def _build_apps(self) -> tuple[web.Application, web.Application]:
        """The application with the whole API, and the one for a public port."""
        proxies = list_networks(self._config.trusted_proxies)
        keys = KeyRing(self._find_key, self._limits.wrong_keys_per_minute_max, now_ms, proxies)
        rates = AcceptRates(self._read_rate, now_ms)
        previews = bound_previews(self._limits.previews_per_second_max, now_ms)
        app, public = self._make_app(), self._make_app()
        parts = (
            NotificationApi(
                self._store,
                keys,
                self._limits,
                self._wake_accepted,
                self._check_address,
                self._wakeups.keys(),
                self._mail.may_send,
                self._renderer,
                rates,
                previews,
            ),
            ListApi(self._store, keys, self._limits),
            TemplateApi(self._store, keys, self._limits, self._renderer, previews),
            LetterApi(self._store, keys, self._limits, self._announce, self._look_for_due),
            UnsubscribeApi(self._store, self._signing),
            WishApi(self._store, keys, self._limits, self._signing),
            TenantApi(self._store, keys, self._limits, rates, self._begin_presence, self._mail),
            ProviderApi(self._store, keys, self._limits, self._mail),
            GroupApi(self._store, keys, self._limits),
            ReceiverApi(
                self._store,
                keys,
                self._limits,
                self._signing,
                self._check_address,
                self._renderer,
                self._announcer.is_connected,
            ),
            InboxApi(self._store, self._limits, self._signing, self._waiters, self._announce),
        )
        routes = [route for part in parts for route in part.list_routes()]
        routes += self._feed.list_routes(keys, self._check_address, lambda: count_connections(self._listeners))
        routes += [web.get("/v1/keys.json", self._show_keys), web.get("/health/ready", self._show_ready)]
        routes += [web.get("/health/live", self._show_live)]
        app.add_routes(routes)
        public.add_routes(choose_public(routes))
        document = msgspec.json.encode(make_document(app.router.routes()))

        app.add_routes(files.list_routes())

        async def show_document(request: web.Request) -> web.Response:
            return web.Response(body=document, content_type="application/json")

        app.router.add_get("/v1/openapi.json", show_document, allow_head=False)
        return app, public

    async def _keep(self, name: str, role: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await role()
            except Exception as error:
                read_logger().error("dispatch_role_failed", role=name, reason=f"{type(error).__name__}: {error}")
                await asyncio.sleep(RESTART_S)

    async def _route(self) -> None:
        """Make jobs of accepted notifications; looks at least every `sweep_ms`, in case a wake-up was lost."""
        while True:
            self._accepted.clear()
            tenants = await self._store.route(tuple(self._wakeups), now_ms(), ROUTE_LIMIT)
            for tenant in dict.fromkeys(tenants):
                self._wake_channels(tenant)
                self._templates.wakeups.add(tenant)
            if len(tenants) < ROUTE_LIMIT:
                due_ms = await self._store.reader.run(next_due_ms)
                wait_ms = self._limits.sweep_ms if due_ms is None else max(0, due_ms - now_ms())
                await hold(self._accepted, min(wait_ms, self._limits.sweep_ms) / 1_000)

    def _wake_accepted(self, tenant: str, channels: Collection[str]) -> None:
        """Wake the channels that have jobs of an accepted notification; the router, if it has none yet."""
        for channel in channels:
            self._wakeups[channel].add(tenant)
        if not channels:
            self._accepted.set()

    def _wake_channels(self, tenant: str) -> None:
        """Wake all channels, because there may be work."""
        for wakeups in self._wakeups.values():
            wakeups.add(tenant)

    async def _forget(self) -> None:
        """Delete rows older than `retention_ms`, a bounded number at a time, and what is left of deleted tenants and groups."""
        while True:
            await self._store.finish_all_leaving()
            before_ms = now_ms() - self._limits.retention_ms
            removed: list[InboxItem] = []
            rows = await self._store.forget_old(before_ms, FORGET_LIMIT, removed)
            self._announce(removed)
            if not rows:
                await self._store.forget_versions(FORGET_LIMIT)
                await asyncio.sleep(self._limits.sweep_ms / 1_000)

    async def _advance_routes(self) -> None:
        """Move receivers to the next step of their policy."""
        while True:
            woken = await self._store.advance_routes(tuple(self._wakeups), now_ms(), ROUTE_LIMIT)
            self._look_for_due(woken)
            if len(woken) < ROUTE_LIMIT:
                await asyncio.sleep(self._limits.sweep_ms / 1_000)

    def _look_for_due(self, names: Collection[str]) -> None:
        """Deliveries of these channels became due, or content must be rendered again."""
        self._templates.look_again()
        for channel in self._channels:
            if channel.name in names:
                channel.look_for_due()
        if "inbox" in names:
            self._inbox_due.set()

    async def _append_due(self) -> None:
        """Append deferred items that are due."""
        while True:
            self._inbox_due.clear()
            if not await self._inbox.work_due():
                await hold(self._inbox_due, self._limits.sweep_ms / 1_000)

    def _announce(self, items: Sequence[InboxItem]) -> None:
        self._announcer.announce(items)
        for item in items:
            self._waiters.wake((item.tenant, item.receiver))

    def _begin_presence(self, tenant: str) -> None:
        self._presence.take(*self._announcer.list_connected(tenant))

    async def _read_heads(self, owners: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Head]:
        return await self._store.reader.run(lambda connection: read_heads(connection, owners))

    async def _render(self, tenant: str, text: str, names: dict[str, Any]) -> str:
        return (await self._renderer.of(tenant).render([Source(text)], names))[0]

    def _make_link(self, shipment: Shipment, category: str) -> str:
        channel = shipment.key.channel
        leaving = Leaving(shipment.tenant, channel, digest_value(channel, shipment.target.value), category)
        return f"{self._config.public_url.rstrip('/')}/u/{self._signing.sign_unsubscribe(leaving)}"

    async def _read_letter(self, nid: int, locale: str, rid: int) -> Letter | None:
        found = await self._store.reader.run(lambda connection: read_letter(connection, nid, locale, rid))
        return None if found is None else Letter(*found)

    def _check_address(self, channel: str, value: str) -> None:
        problem = "" if is_email(value) else "is not an e-mail address"
        if channel == "webhook":
            problem = check_url(value, list_private_targets(self._config.private_targets))
        if problem:
            raise RequestRefused(DispatchCode.ADDRESS_FORBIDDEN, f"the address {problem}", pointer="/value")

    async def _find_key(self, digest: bytes) -> tuple[str, str, bool] | None:
        return await self._store.reader.run(lambda connection: tenants.find_key(connection, digest))

    async def _read_rate(self, tenant: str) -> int:
        found = await self._store.reader.run(lambda connection: tenants.read_tenant(connection, tenant, now_ms()))
        return 0 if found is None else found[0].accepts_per_s

    async def _show_keys(self, request: web.Request) -> web.Response:
        """The public keys of tokens, as a JWK Set; the same key signs webhooks, in a header of Standard Webhooks."""
        headers = {"Godwit-Webhook-Key": self._signing.webhook_key}
        return web.Response(body=self._signing.key_set, content_type="application/json", headers=headers)

    async def _show_live(self, request: web.Request) -> web.Response:
        """The process is alive, even if it is ending."""
        return answer({"live": True})

    async def _show_ready(self, request: web.Request) -> web.Response:
        return answer({"ready": not self._is_stopping}, 503 if self._is_stopping else 200)
