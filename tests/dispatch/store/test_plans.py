"""Statements that run again and again, or for one tenant, use an index: a table that grows for a month stops nobody."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from godwit.dispatch.model import DeliveryKey, State
from godwit.dispatch.stores.sqlite import ending, retention
from godwit.dispatch.stores.sqlite.schema import open_writer
from godwit.dispatch.vault import Vault

LARGE = ("notification", "event", "delivery", "item")
READS: dict[str, Callable[[sqlite3.Connection], object]] = {
    "retention": lambda connection: retention.forget_old(connection, 1, 400),
    "dead letters": lambda connection: ending.list_dead(connection, "default", None, DeliveryKey(0, 0, "", 0), 100),
    "replay": lambda connection: ending.replay(connection, "default", ending.Replayed(State.FAILED), 100, 1, 2),
}


def list_plans(connection: sqlite3.Connection, read: Callable[[sqlite3.Connection], object]) -> dict[str, list[str]]:
    """How SQLite finds the rows of each statement that `read` executes."""
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    read(connection)
    connection.set_trace_callback(None)
    return {
        statement: [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
        for statement in statements
        if statement.startswith(("SELECT", "DELETE", "UPDATE"))
    }


@pytest.mark.parametrize("name", READS)
def test_no_statement_reads_a_large_table_to_its_end(tmp_path: Path, name: str) -> None:
    with closing(open_writer(tmp_path / "dispatch.sqlite", Vault([bytes(32)]))) as connection:
        plans = list_plans(connection, READS[name])
    assert plans
    for statement, steps in plans.items():
        for step in steps:
            assert not step.startswith(tuple(f"SCAN {table}" for table in LARGE)) or "delivery_failed" in step, (
                statement,
                steps,
            )
            assert not step.startswith(("SEARCH delivery USING PRIMARY KEY", "USE TEMP B-TREE")), (statement, steps)
