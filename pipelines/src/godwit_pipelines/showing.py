"""Shows rows of a table on a terminal without Spark: Arrow reads the live files."""

from __future__ import annotations

import codecs
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from .delta import is_table
from .delta.log import open_table
from .errors import ConfigInvalid, TableMissing
from .settings import Config
from .tables import Table
from .words import counted, json_line, printable

_CELL = 64  # a SHA-256
_INDENT = 2
_COLUMN = 12  # narrower columns cannot be read: then each row is shown downwards


def show_table(table: Table, config: Config, console: Console, rows: int, where: str, as_json: bool) -> None:
    """The newest rows. If the table has a time, those with the latest time come first."""
    path = str(Path(config.lake.path).absolute().joinpath(*table.name.split(".")))
    if not is_table(path):
        run_options = f" {table.run_options}" if table.run_options else ""
        raise TableMissing(
            f"{table.name} is not in {config.lake.path} yet: `godwit-pipelines run {table.job}{run_options}` writes it"
        )
    found = select(path, table, rows, where)
    if as_json:
        is_utf8 = codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"
        for row in found.to_pylist():
            click.echo(json_line(row, is_terminal=sys.stdout.isatty(), is_utf8=is_utf8))
        return
    if found.num_columns * _COLUMN > console.width:
        for row in found.to_pylist():
            lines = (f"[bold]{name}[/bold] {escape(cell(value))}" for name, value in row.items())
            console.print(*lines, "", sep="\n", highlight=False)
        console.print(f"{found.num_rows} of {counted(open_table(path).count(), 'row')}", highlight=False)
        return
    grid = Grid(title=f"{table.name}: {table.about}", title_justify="left", show_lines=False)
    for name in found.schema.names:
        grid.add_column(name, overflow="fold")
    for row in found.to_pylist():
        grid.add_row(*(escape(cell(value)) for value in row.values()))
    console.print(grid)
    console.print(f"{found.num_rows} of {counted(open_table(path).count(), 'row')}", highlight=False)


def list_downwards(console: Console, name: str, about: str, facts: dict[str, str]) -> None:
    """A name, its sentence, and a line for each fact: a list that fits a narrow terminal."""
    console.print(f"[bold]{escape(name)}[/bold]: {escape(about)}", highlight=False)
    for key, value in facts.items():
        if value:
            line = Text.assemble((key, "dim"), " ", value, overflow="fold")
            console.print(Padding(line, (0, 0, 0, _INDENT), expand=False))
    console.print()


def select(path: str, table: Table, rows: int, where: str) -> pa.Table:
    """The newest rows that match the condition. If it treats bytes as text, rows whose bytes are not text do not match."""
    source = open_table(path)
    try:
        return run_query(source, table, "shown", "*", rows, where)
    except Exception as error:  # what the engine raises has no narrower kind
        if not where:
            hint = (
                "; `godwit-pipelines run reconcile` names rows that are missing"
                if table.name.startswith("bronze.")
                else ""
            )
            raise TableMissing(f"{table.name} cannot be read: {error}{hint}") from error
        failed = error
    if "UTF-8" in str(failed):
        try:
            return run_query(source, table, *as_texts(source), rows, where)
        except Exception as error:
            failed = error
    raise ConfigInvalid("--where", where, f"is not a valid condition on {table.name}: {failed}") from failed


def run_query(source: DeltaTable, table: Table, shown: str, columns: str, rows: int, where: str) -> pa.Table:
    order = f"ORDER BY `{table.day}` DESC" if table.day else ""
    query = f"SELECT {columns} FROM {shown} {f'WHERE ({where})' if where else ''} {order} LIMIT {rows}"
    return pa.table(QueryBuilder().register("shown", source).execute(query).read_all())


def as_texts(source: DeltaTable) -> tuple[str, str]:
    """A query in which columns of bytes are text, or null if they are not, and its columns in the order of the table."""
    fields = source.schema().fields
    binary = {field.name for field in fields if str(field.type) == 'PrimitiveType("binary")'}
    texts = [f"try_cast(`{name}` AS varchar) AS `{name}`, `{name}` AS `bytes of {name}`" for name in sorted(binary)]
    others = [f"`{field.name}`" for field in fields if field.name not in binary]
    columns = [
        f"`bytes of {field.name}` AS `{field.name}`" if field.name in binary else f"`{field.name}`" for field in fields
    ]
    return f"(SELECT {', '.join([*others, *texts])} FROM shown)", ", ".join(columns)


def plain(value: Any) -> str:
    """The JSON form of a value that JSON does not know."""
    if isinstance(value, date | datetime):
        return value.isoformat()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def cell(value: Any) -> str:
    text = (
        ""
        if value is None
        else value
        if isinstance(value, str)
        else plain(value)
        if isinstance(value, bytes)
        else str(value)
    )
    text = printable(text)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"
