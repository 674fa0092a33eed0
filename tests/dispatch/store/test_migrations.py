"""The database of an earlier version is brought up to date with all that is in it; one of a later version is refused in a sentence."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from godwit.dispatch.errors import DispatchDatabaseInvalid
from godwit.dispatch.model import Head
from godwit.dispatch.stores.sqlite.inbox import fetch_before
from godwit.dispatch.stores.sqlite.migrations import MIGRATIONS, OLDEST, VERSION
from godwit.dispatch.stores.sqlite.schema import open_writer
from godwit.dispatch.vault import Vault

VAULT = Vault([bytes(32)])
OLD = Path(__file__).parent / "schemas" / "version_5.sql"


def describe(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Columns of every table and index, by name."""
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")]
    return {name: sorted(column[1:] for column in connection.execute(f"PRAGMA table_info({name})")) for name in names}


def test_an_old_database_is_brought_up_to_date_with_what_is_in_it(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old.sqlite")) as connection:
        connection.executescript(OLD.read_text("utf-8"))
        connection.execute("INSERT INTO tenant VALUES ('default', x'7b7d', 1, 0, 0, 0)")
        connection.execute(
            "INSERT INTO receiver (tenant, name, epoch, since, attributes, profile, preferences) "
            "VALUES ('default', 'ann', 1, 1, x'7b7d', x'', x'')"
        )
        connection.commit()
    with (
        closing(open_writer(tmp_path / "old.sqlite", VAULT)) as old,
        closing(open_writer(tmp_path / "new.sqlite", VAULT)) as new,
    ):
        assert describe(old) == describe(new)
        assert old.execute("PRAGMA user_version").fetchone()[0] == VERSION
        assert old.execute("SELECT name FROM receiver").fetchall() == [("ann",)]
    with closing(open_writer(tmp_path / "old.sqlite", VAULT)) as again:
        assert again.execute("PRAGMA user_version").fetchone()[0] == VERSION


@pytest.mark.parametrize("version", range(OLDEST, VERSION))
def test_an_item_of_each_earlier_version_is_in_the_inbox_afterwards(tmp_path: Path, version: int) -> None:
    """Two items, of which the first was changed: in version 5 nothing says where it stood."""
    with closing(sqlite3.connect(tmp_path / "old.sqlite")) as connection:
        connection.executescript(OLD.read_text("utf-8"))
        for step in range(OLDEST, version):
            connection.executescript(f"{MIGRATIONS[step]} PRAGMA user_version = {step + 1};")
        connection.execute(
            "INSERT INTO receiver (tenant, name, epoch, since, attributes, profile, preferences) "
            "VALUES ('default', 'ann', 1, 1, x'7b7d', x'', x'')"
        )
        connection.execute("INSERT INTO head VALUES (1, 7, 3, 1, 1, 2)")
        for seq, nid, flags, first in ((3, 1, 3, 1), (2, 2, 0, 2)):
            connection.execute(
                "INSERT INTO notification (tenant, id, fingerprint, body, targets, gid, version, state, accepted, accepted_ms, due_ms, "
                "expires_ms, priority, options, collapse_key) "
                "VALUES ('default', ?, x'', x'7b7d', x'', 0, 0, 'routed', 1, 1, 0, 1, 1, x'', '')",
                (f"n{nid}",),
            )
            row = (1, seq, nid, flags, 1_000, first)
            connection.execute(
                f"INSERT INTO item VALUES ({', '.join('?' * (5 if version == 5 else 6))})",
                row[: 5 if version == 5 else 6],
            )
        connection.commit()
    with closing(open_writer(tmp_path / "old.sqlite", VAULT)) as connection:
        found = fetch_before(connection, "default", "ann", 10, 10)
    assert found is not None and found.head == Head(7, 3, 1, 1)
    shown = [(item.notification, item.seq, item.first, item.flags) for item in found.items]
    if version == 5:
        assert shown == [("n1", 3, 3, 3), ("n2", 2, 2, 0)]
    else:
        assert shown == [("n2", 2, 2, 0), ("n1", 3, 1, 3)]


@pytest.mark.parametrize(("version", "which"), [(VERSION + 1, "newer"), (min(MIGRATIONS) - 1, "older")])
def test_a_database_of_another_version_is_refused_in_a_sentence(tmp_path: Path, version: int, which: str) -> None:
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(DispatchDatabaseInvalid, match=which):
        open_writer(tmp_path / "x.sqlite", VAULT)
