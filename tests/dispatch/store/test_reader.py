"""Reads beside the writer, where a moment without descriptors must not end them all."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from godwit.dispatch.stores.sqlite import reader, tenants
from godwit.dispatch.stores.sqlite.store import SqliteStore
from godwit.dispatch.vault import Vault


async def test_a_connection_that_cannot_be_opened_fails_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, vault: Vault) -> sqlite3.Connection:
        raise sqlite3.OperationalError("unable to open database file")

    store = SqliteStore(tmp_path)
    try:
        await store.writer.run(lambda connection: tenants.put_tenant(connection, "default"))
        with monkeypatch.context() as patched:
            patched.setattr(reader, "open_reader", refuse)
            for _ in range(2 * reader.THREADS):
                with pytest.raises(sqlite3.OperationalError):
                    await store.reader.run(tenants.has_tenants)
        assert await store.reader.run(tenants.has_tenants)
    finally:
        store.close()
