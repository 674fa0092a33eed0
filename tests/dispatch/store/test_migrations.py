"""The database of an earlier version is brought up to date with all that is in it; one of a later version is refused in a sentence."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from godwit.dispatch.errors import DispatchDatabaseInvalid
from godwit.dispatch.model import Head, Options, State
from godwit.dispatch.stores.sqlite.accept import pack_options
from godwit.dispatch.stores.sqlite.deciding import digest_value
from godwit.dispatch.stores.sqlite.fanout import claim_due
from godwit.dispatch.stores.sqlite.inbox import fetch_before
from godwit.dispatch.stores.sqlite.migrations import MIGRATIONS, OLDEST, VERSION
from godwit.dispatch.stores.sqlite.schema import open_writer
from godwit.dispatch.vault import Vault

A, B, C = "https://a.example/", "https://b.example/", "https://c.example/"
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
        connection.create_function("digest_value", 2, digest_value)
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


@pytest.mark.parametrize(
    ("addresses", "taken", "owners", "sent"),
    [
        ([(A, State.DEFERRED, 0)], [A], [1], [(1, False)]),
        ([(A, State.SENT, 1), (A, State.DEFERRED, 0)], [A, C], [1, 0], []),
        ([(A, State.DEFERRED, 0), (A, State.SENT, 1)], [A, C], [2, 0], []),
        ([(A, State.SENT, 1), (B, State.DEFERRED, 0)], [A, B], [1, 2], [(2, False)]),
        ([(B, State.SENT, 1), (A, State.DEFERRED, 0)], [A, C], [2, 0], [(2, True)]),  # nobody knows which of them was A
        ([(B, State.DEFERRED, 0)], [A], [0, 1], [(1, False)]),
    ],
)
def test_an_address_value_of_an_earlier_version_belongs_to_the_delivery_that_has_it(
    tmp_path: Path,
    addresses: list[tuple[str, State, int]],
    taken: list[str],
    owners: list[int],
    sent: list[tuple[int, bool]],
) -> None:
    """Addresses as they are at the upgrade. A delivery to a value of another one is not sent, and one in doubt is flagged."""
    with closing(sqlite3.connect(tmp_path / "old.sqlite")) as connection:
        connection.executescript(OLD.read_text("utf-8"))
        for step in range(OLDEST, 14):
            connection.executescript(f"{MIGRATIONS[step]} PRAGMA user_version = {step + 1};")
        options = pack_options(Options(dedupe=True))
        connection.execute(
            "INSERT INTO notification (tenant, id, fingerprint, body, targets, gid, version, state, accepted, accepted_ms, due_ms, "
            "expires_ms, priority, options, collapse_key) "
            "VALUES ('t', 'n', x'', x'7b7d', x'', 0, 0, 'routed', 1, 1, 0, ?, 1, ?, '')",
            (10**13, options),
        )
        for rid, one in enumerate(addresses, 1):
            connection.execute(
                "INSERT INTO receiver (tenant, name, epoch, since, attributes, profile, preferences) "
                "VALUES ('t', ?, 1, 1, x'7b7d', x'', x'')",
                (f"r{rid}",),
            )
            connection.execute(
                "INSERT INTO address (rid, channel, name, value, secret, state, since, reason, format) "
                "VALUES (?, 'webhook', 'w', ?, ?, 'active', 1, '', '')",
                (rid, one[0], VAULT.seal("x")),
            )
            connection.execute(
                "INSERT INTO delivery VALUES (1, ?, 'webhook', ?, ?, ?, 0, 0, '', '')", (rid, rid, int(one[1]), one[2])
            )
        rows = [(digest_value("webhook", value),) for value in taken]
        connection.executemany("INSERT INTO sent_value VALUES (1, 'webhook', ?)", rows)
        connection.commit()
    with closing(open_writer(tmp_path / "old.sqlite", VAULT)) as connection:
        claimed = claim_due(connection, "webhook", 1_000, 2_000, 9, ())
        assert [(shipment.key.rid, shipment.is_doubtful) for shipment in claimed] == sent
        found = dict(connection.execute("SELECT value, rid FROM sent_value WHERE rid = aid").fetchall())
    values = [digest_value("webhook", value) for value in dict.fromkeys([*taken, *(one[0] for one in addresses)])]
    assert [found[value] for value in values if value in found] == owners


@pytest.mark.parametrize(("version", "which"), [(VERSION + 1, "newer"), (min(MIGRATIONS) - 1, "older")])
def test_a_database_of_another_version_is_refused_in_a_sentence(tmp_path: Path, version: int, which: str) -> None:
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(DispatchDatabaseInvalid, match=which):
        open_writer(tmp_path / "x.sqlite", VAULT)
