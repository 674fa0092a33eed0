"""A new key for the secrets of an embedded store, while no process uses it.

The new key is written to the key file before anything is encrypted with it, and old keys are removed after nothing is
encrypted with them. After a crash the store still opens, and another run finishes the work.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ....vault import KEY_BYTES, Vault, read_keys, write_keys
from ..schema import open_writer
from ..store import KEYS_FILE, take_lock

ROWS = 1_000
"""Rows in one transaction."""
_TABLES = (
    ("address", "aid", ("secret", "format")),
    ("webhook", "wid", ("secret", "old_secret")),
    ("provider", "pid", ("password", "dkim_key")),
)


class Rekeyed(NamedTuple):
    """The number of texts encrypted with the new key. `unreadable` texts were encrypted with a key that is not in the file,
    and stay unchanged.
    """

    key_id: str
    addresses: int
    webhooks: int
    providers: int
    unreadable: int


def rekey(folder: Path, keys_file: Path | None = None) -> Rekeyed:
    """Encrypt all secrets of a folder's store with a new key; raises ConfigInvalid if a process uses it."""
    file = keys_file or folder / KEYS_FILE
    lock = take_lock(folder)
    try:
        keys = [os.urandom(KEY_BYTES), *read_keys(file)]
        write_keys(file, keys)
        vault = Vault(keys)
        with closing(open_writer(folder / "dispatch.sqlite", vault)) as connection:
            counts = [_rekey_table(connection, *table) for table in _TABLES]
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        unreadable = sum(count for _, count in counts)
        write_keys(file, keys if unreadable else keys[:1])
        return Rekeyed(vault.key_id, counts[0][0], counts[1][0], counts[2][0], unreadable)
    finally:
        os.close(lock)


def _rekey_table(connection: sqlite3.Connection, table: str, key: str, columns: tuple[str, ...]) -> tuple[int, int]:
    """The number of rows encrypted, and of texts that could not be read."""
    sealed = ", ".join(f"{column} = seal(unseal({column}))" for column in columns)
    may_read = " AND ".join(f"({column} = '' OR unseal({column}) <> '')" for column in columns)
    is_used = " OR ".join(f"{column} <> ''" for column in columns)
    after = rows = 0
    while True:
        last = connection.execute(
            f"SELECT max({key}) FROM (SELECT {key} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT ?)", (after, ROWS)
        ).fetchone()[0]
        if last is None:
            break
        rows += connection.execute(
            f"UPDATE {table} SET {sealed} WHERE {key} > ? AND {key} <= ? AND ({is_used}) AND {may_read}", (after, last)
        ).rowcount
        after = last
    unreadable = connection.execute(f"SELECT count(*) FROM {table} WHERE ({is_used}) AND NOT ({may_read})").fetchone()[
        0
    ]
    return rows, int(unreadable)
