"""Dispatch as a part of a process: a thread and an event loop of its own, from `start` to `stop`.

Owns the order: the folder and its keys exist before the node, which trusts them; the store opens before the API listens;
at the end the roles stop before the store closes. Start reading here.
"""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import threading
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from ..config import Config
from ..config.option import Address
from ..config.tls import TlsConfig
from ..rows.feedback import FeedbackJournal
from ..tls.context import make_tls_context, renew_context
from .api.keys import SCOPES, digest_key, make_key
from .folder import DispatchFolder
from .roles import Roles
from .stores.sqlite.store import SqliteStore
from .stores.sqlite.tenants import has_tenants, put_key, put_tenant
from .tokens import SigningKey, write_private

DEFAULT_TENANT = "default"


def make_loop() -> asyncio.AbstractEventLoop:
    """An event loop of uvloop, with which an accept takes a tenth less CPU; asyncio's own without the extra `dispatch`."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class DispatchPart:
    """Create it before the node. `config` names the keys that the node must trust; `store` is open from the start."""

    def __init__(self, config: Config) -> None:
        """Raises ConfigInvalid if the folder is in use or contains something else."""
        self._folder = DispatchFolder(config.node.data_directory)
        try:
            keys = config.dispatch.secrets_key_file
            self.store = SqliteStore(
                self._folder.path,
                inbox_items_max=config.dispatch_limits.inbox_items_max,
                secrets_key_file=Path(keys) if keys else None,
            )
        except BaseException:
            self._folder.close()
            raise
        try:
            self._tls = make_tls_context(config.tls) if config.dispatch.tls else None
            self._signing = SigningKey(self._folder.signing_key_file)
            write_private(self._folder.public_keys_file, self._signing.key_set)
        except BaseException:
            self.store.close()
            self._folder.close()
            raise
        self.config = self.trust(config)
        self._loop = make_loop()
        self._thread = threading.Thread(target=self._run, name="godwit-dispatch", daemon=True)
        self._roles: Roles | None = None

    def trust(self, config: Config) -> Config:
        """Add the keys of this dispatch to a configuration, also after a reload."""
        keys = replace(config.dispatch, token_keys_file=str(self._folder.public_keys_file), token_keys_url="")
        return replace(config, dispatch=keys)

    async def start(self, node: Address) -> Address:
        """Start all roles with the node of this process; returns the API's address. Raises ListenFailed."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(node.host, node.host)
        return await self.start_at(f"ws://{Address(host, node.port)}")

    async def start_at(self, url: str) -> Address:
        """Start all roles with the node at a URL; returns the API's address. Raises ListenFailed."""
        self._thread.start()
        address = await asyncio.wrap_future(self._submit_start(url))
        certificate = self.config.tls.certificate_files[0] if self._tls is not None else ""
        self._folder.note_listener(f"{'https' if certificate else 'http'}://{address}", certificate)
        return address

    def try_certificates(self, tls: TlsConfig) -> None:
        """Raises ConfigInvalid if `certify` would fail."""
        if self._tls is not None:
            make_tls_context(tls)

    def certify(self, tls: TlsConfig) -> None:
        """Use these certificates, versions and suites, which `try_certificates` accepted; the thread that accepts connections does it."""
        if self._tls is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(renew_context, self._tls, tls)

    @property
    def public_address(self) -> Address | None:
        """The address of the port for receivers, if there is one."""
        return None if self._roles is None else self._roles.public_address

    def describe_listeners(self, address: Address) -> str:
        """The ports, for the line that the start prints."""
        public = self.public_address
        return f"dispatch={address}" + (f" dispatch_public={public}" if public else "")

    async def stop(self) -> None:
        """Stop after running sends are finished; a second call does nothing."""
        if self._loop.is_closed():
            return
        if self._roles is not None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._roles.stop(), self._loop))
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            await asyncio.to_thread(self._thread.join)
        self._loop.close()
        await asyncio.to_thread(self.store.close)
        self._folder.close()

    def _submit_start(self, url: str) -> Future[Address]:
        return asyncio.run_coroutine_threadsafe(self._start(url), self._loop)

    async def _start(self, url: str) -> Address:
        await self._ensure_admin_key()
        config = self.config
        settings = (config.dispatch, config.dispatch_limits, url, config.dispatch_email)
        journal = self._open_journal()
        try:
            self._roles = Roles(self.store, self._signing, *settings, journal=journal, tls=self._tls)
        except BaseException:
            if journal is not None:
                journal.close()
            raise
        return await self._roles.start()  # from here on its `stop` closes the journal

    def _open_journal(self) -> FeedbackJournal | None:
        """The journal for deliveries, if it is enabled; raises JournalFailed."""
        if not self.config.dispatch.feedback_journal:
            return None
        limits, name = self.config.dispatch_limits, self.config.node.name or socket.gethostname()
        bounds = (limits.feedback_age_ms_max, limits.feedback_bytes_max)
        return FeedbackJournal(
            self._folder.path / "journal", f"{name}-dispatch", age_ms_max=bounds[0], bytes_max=bounds[1]
        )

    async def _ensure_admin_key(self) -> None:
        file = self._folder.admin_key_file
        is_new = not file.exists()
        if is_new:
            write_private(file, make_key().encode())
        digest = digest_key(file.read_text("ascii").strip())

        def put(connection: sqlite3.Connection) -> None:
            is_first = not has_tenants(connection)  # a new database, or a first start that was cut here
            put_tenant(connection, DEFAULT_TENANT)
            if is_new or is_first:  # a key that was deleted since stays deleted
                put_key(connection, digest, DEFAULT_TENANT, " ".join(SCOPES))

        await self.store.writer.run(put)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
