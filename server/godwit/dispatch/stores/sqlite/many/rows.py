"""Statements over many rows.

After each step of a statement the writer's thread waits for the interpreter's lock, which the event loop holds while it
answers requests. `executemany` takes one step for each row, so the rows of a unit are written with one statement. A query takes
one for each row of its answer, so many rows are read as one JSON text.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

import msgspec

Result = TypeVar("Result")

ROWS_MAX = 64
"""Rows in one statement; there is a prepared statement for each number of rows."""


PAIR = "(SELECT json_extract(value, '$[0]') AS nid, json_extract(value, '$[1]') AS rid FROM json_each(?)) AS pair"
"""Numbers of notifications and receivers, as `pack_rows` gives them."""


def run_on_rows(connection: sqlite3.Connection, before: str, rows: Sequence[Sequence[Any]], after: str = "") -> int:
    """Run `before VALUES (…), (…) after`: an insert, or an update from rows whose columns are column1, column2, … Returns the
    number of the last row that was inserted.
    """
    last: int | None = 0
    for begin in range(0, len(rows), ROWS_MAX):
        some = rows[begin : begin + ROWS_MAX]
        marks = f"({','.join('?' * len(some[0]))})"
        statement = f"{before} VALUES {','.join([marks] * len(some))}{after}"
        last = connection.execute(statement, tuple(chain.from_iterable(some))).lastrowid
    return last or 0


def pack_list(numbers: Iterable[int]) -> str:
    """Numbers for `json_each`: a statement over all of them costs less than one for each."""
    return f"[{','.join(map(str, numbers))}]"


def pack_names(names: Iterable[str]) -> str:
    """Names for `json_each`."""
    return msgspec.json.encode(list(names)).decode()


def pack_rows(rows: Sequence[Any]) -> str:
    """Rows for `json_each`: one statement for any number of rows."""
    return msgspec.json.encode(rows).decode()


def read_all(connection: sqlite3.Connection, query: str, given: Sequence[Any]) -> str:
    """What a query over `json_each(?)` answers as one JSON text: its only row."""
    found: str = connection.execute(query, (pack_rows(given),)).fetchone()[0]
    return found


def run_in_savepoint(connection: sqlite3.Connection, work: Callable[[], Result]) -> Result | Exception:
    """What `work` returned; the exception that it raised, after its changes were undone."""
    result: Result | Exception
    connection.execute("SAVEPOINT part")
    try:
        result = work()
    except sqlite3.OperationalError:
        raise  # the disk or the file: the whole unit failed
    except Exception as error:
        connection.execute("ROLLBACK TO part")
        result = error
    connection.execute("RELEASE part")
    return result
