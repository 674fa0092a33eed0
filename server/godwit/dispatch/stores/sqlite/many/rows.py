"""Statements over many rows.

After each step of a statement the writer's thread waits for the interpreter's lock, which the event loop holds while it answers
requests; `executemany` takes a step for each row. So the rows of a unit go into one statement.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec

ROWS_MAX = 64
"""Of one statement: there is a prepared one for each number of rows."""


def run_on_rows(connection: sqlite3.Connection, before: str, rows: Sequence[Sequence[Any]], after: str = "") -> None:
    """Runs `before VALUES (…), (…) after`: an insert, or an update from rows whose columns are column1, column2, …"""
    for begin in range(0, len(rows), ROWS_MAX):
        some = rows[begin : begin + ROWS_MAX]
        marks = f"({','.join('?' * len(some[0]))})"
        connection.execute(f"{before} VALUES {','.join([marks] * len(some))}{after}", tuple(chain.from_iterable(some)))


def pack_list(numbers: Iterable[int]) -> str:
    """Numbers for `json_each`: a statement over all of them costs less than one for each."""
    return f"[{','.join(map(str, numbers))}]"


def pack_names(names: Iterable[str]) -> str:
    """Names for `json_each`."""
    return msgspec.json.encode(list(names)).decode()
