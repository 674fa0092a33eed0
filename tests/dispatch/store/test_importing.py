"""Receivers that are stored many at once: the rows are those of one after the other, for fewer statements."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from godwit.dispatch.errors import RequestRefused
from godwit.dispatch.model import Quotas
from godwit.dispatch.stores.sqlite import tenants
from godwit.dispatch.stores.sqlite.receivers import put_preferences, put_receiver, put_receivers
from godwit.dispatch.stores.sqlite.schema import open_writer
from godwit.dispatch.vault import Vault

VAULT = Vault([bytes(32)])
RECEIVERS = "SELECT name, epoch, attributes, profile, preferences FROM receiver ORDER BY name"
HEADS = "SELECT name, head.epoch, seq, unread, unseen, items FROM head JOIN receiver USING (rid) ORDER BY name"


def read(connection: sqlite3.Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


def test_many_at_once_are_what_one_after_the_other_is(tmp_path: Path) -> None:
    stored = []
    for name in ("one", "many"):
        with closing(open_writer(tmp_path / name, VAULT)) as connection:
            tenants.put_tenant(connection, "t")
            put_receiver(connection, "t", "there", b'{"zone":"UTC"}', 1)
            put_preferences(connection, "t", "there", b'{"news":{"inbox":false}}')
            put_receiver(connection, "t", "other", b"{}", 1)
            rows = {
                "there": b'{"locale":"de"}',
                "new": b'{"quiet":{"start":"22:00","end":"07:00"}}',
                'a"ü\u2028': b"{}",
            }
            if name == "one":
                for receiver, attributes in rows.items():
                    put_receiver(connection, "t", receiver, attributes, 2)
            else:
                put_receivers(connection, "t", rows, 2)
            stored.append([read(connection, query) for query in (RECEIVERS, HEADS, "SELECT receivers FROM tenant")])
    assert stored[0] == stored[1] and stored[0][2] == [(4,)]


def test_a_new_receiver_costs_one_statement(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "x", VAULT)) as connection:
        tenants.put_tenant(connection, "t")
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        put_receivers(connection, "t", {f"user:{number}": b"{}" for number in range(500)}, 1)
        assert len(statements) < 520


def test_beyond_the_quota_none_of_them_is_stored(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "x", VAULT)) as connection:
        tenants.put_tenant(connection, "t", Quotas(receivers=3))
        put_receivers(connection, "t", {"a": b"{}", "b": b"{}"}, 1)
        put_receivers(connection, "t", {"a": b"{}", "b": b"{}", "c": b"{}"}, 1)
        with pytest.raises(RequestRefused):
            put_receivers(connection, "t", {"c": b"{}", "d": b"{}", "e": b"{}"}, 1)
        assert len(read(connection, RECEIVERS)) == len(read(connection, HEADS)) == 3
