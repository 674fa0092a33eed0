"""Groups of units in one commit."""

from __future__ import annotations

import asyncio
from pathlib import Path

from godwit.dispatch.stores.sqlite.writer import Writer


async def test_a_units_error_undoes_nothing_of_its_neighbours(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "x.sqlite")
    try:
        insert = "INSERT INTO category VALUES ('t', ?, 0, 0)"

        def fail(connection: object) -> None:
            connection.execute(insert, ("lost",))  # type: ignore[attr-defined]  # a connection
            raise ValueError("mine")

        told = await asyncio.gather(
            writer.run(lambda connection: connection.execute(insert, ("a",)).rowcount),
            writer.run(fail),
            writer.run(lambda connection: connection.execute(insert, ("b",)).rowcount),
            return_exceptions=True,
        )
        assert told[0] == told[2] == 1 and isinstance(told[1], ValueError)
        names = await writer.run(lambda connection: connection.execute("SELECT name FROM category").fetchall())
        assert names == [("a",), ("b",)]
    finally:
        writer.close()
