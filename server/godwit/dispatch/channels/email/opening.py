"""E-mail as a part of dispatch: its providers, the channel that sends over them, and the server that takes bounces.

Owns which providers are in use: that of the configuration, and those that operators stored. The channel opens with the first of them. The
libraries come with the extra `dispatch` and are loaded when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ....config.dispatch_email import DispatchEmailConfig
from ...clock import mono_ms, now_ms
from ...codes import DispatchCode
from ...errors import RequestRefused
from ...fanout.lanes import Places
from ...model import ProviderState, Shipment, State
from ...pure.verp import MakeMac, Token
from ...stores.sqlite.manage.bounces import apply_report
from ...stores.sqlite.manage.providers import ProviderRow, has_mail, list_providers
from ...stores.sqlite.manage.waiting import find_end
from ...stores.sqlite.store import SqliteStore
from ..letter import ReadLetter
from .reports import Report

if TYPE_CHECKING:
    from .bounces import BounceServer
    from .provider import ProviderSettings
    from .providers import Providers
    from .sender import EmailSender

MakeLink = Callable[[Shipment, str], str]


class MailPart:
    """Made with the roles; `open` once, then providers come and go."""

    def __init__(
        self,
        store: SqliteStore,
        config: DispatchEmailConfig,
        read_letter: ReadLetter,
        make_mac: MakeMac,
        make_link: MakeLink | None,
        on_open: Callable[[EmailSender, Places], Callable[[int], None]],
    ) -> None:
        """`on_open` gets the channel's sender, and the places at the providers; what it returns sets the most e-mails at once.

        Raises ConfigInvalid if a file cannot be used.
        """
        self._store, self._config, self._read_letter = store, config, read_letter
        self._make_mac, self._make_link, self._on_open = make_mac, make_link, on_open
        self._providers: Providers | None = None
        self._resize: Callable[[int], None] = lambda slots: None
        self._configured = _read_configured(config)
        self._bounces = self._open_bounces()

    async def open(self) -> None:
        """Uses the stored providers; raises ListenFailed if the port for bounces cannot be opened."""
        if self._configured is not None:
            self._use(self._configured)
        for row in await self._store.reader.run(list_providers):
            self.put(row)
        if await self._store.reader.run(has_mail):
            self._begin()  # waiting e-mails expire, or are sent over a provider that is added later
        if self._bounces is not None:
            await self._bounces.start()

    async def close(self) -> None:
        """Takes no more bounces. The sender closes the providers."""
        if self._bounces is not None:
            await self._bounces.stop()

    def may_send(self, tenant: str, sender: str) -> bool:
        """Whether a tenant has a provider for a From address."""
        return self._providers is not None and self._providers.may_send(tenant, sender)

    def check(self, row: ProviderRow) -> None:
        """Raises RequestRefused if a provider cannot be used."""
        try:
            from .dkim import parse_dkim_key

            if row.dkim_key:
                parse_dkim_key(row.dkim_key.encode())
        except ImportError as error:
            detail = "e-mail needs the extra: pip install 'godwit-server[dispatch]'"
            raise RequestRefused(DispatchCode.CHANNEL_MISSING, detail) from error
        except ValueError as error:
            raise RequestRefused(DispatchCode.REQUEST_INVALID, f"dkim.key {error}", pointer="/dkim/key") from error

    def put(self, row: ProviderRow) -> None:
        """Uses a provider from now on."""
        self._use(_make_settings(row))

    def remove(self, name: str) -> None:
        """Uses it no longer."""
        if self._providers is not None:
            self._providers.remove(name)
            self._resize(max(1, self._providers.slots))

    def describe(self) -> Mapping[str, ProviderState]:
        """How each provider is that is used."""
        return {} if self._providers is None else self._providers.describe()

    def _use(self, settings: ProviderSettings) -> None:
        providers = self._begin()
        providers.put(settings)
        self._resize(providers.slots)

    def _begin(self) -> Providers:
        if self._providers is None:
            from .providers import Providers
            from .sender import EmailSender

            self._providers = Providers(mono_ms)
            sender = EmailSender(
                self._read_letter,
                self._providers,
                now_ms,
                self._make_link,
                self._make_mac,
                self._config.bounce_domain,
                self._read_end,
            )
            self._resize = self._on_open(sender, self._providers)
        return self._providers

    def _open_bounces(self) -> BounceServer | None:
        if not (self._config.bounce_address and self._config.bounce_domain):
            return None
        from .bounces import BounceServer

        return BounceServer(self._config.bounce_address, self._config.bounce_domain, self._make_mac, self._apply_report)

    async def _read_end(self, shipment: Shipment) -> tuple[State, str] | None:
        return await self._store.reader.run(lambda connection: find_end(connection, shipment, now_ms()))

    async def _apply_report(self, token: Token, report: Report) -> bool:
        return await self._store.writer.run(lambda connection: apply_report(connection, token, report, now_ms()))


def _read_configured(config: DispatchEmailConfig) -> ProviderSettings | None:
    if not config.relay:
        return None
    from .sender import read_default

    return read_default(config)


def _make_settings(row: ProviderRow) -> ProviderSettings:
    from .provider import ProviderSettings

    known = msgspec.json.decode(row.settings, type=dict[str, Any])
    fields = {"name": row.name, "password": row.password, "dkim_key": row.dkim_key, **known}
    return msgspec.convert(fields, ProviderSettings)
