"""A table's declaration: name, columns, key, days, the job that writes it, and how fresh it is. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import DateType, StructField, StructType

DATE = "date"
"""The column by which tables are laid out in folders: the day (UTC) of the column that Table.day names."""


@dataclass(frozen=True)
class Table:
    """A table of the lake. `name` is layer.table; `columns` are without the date, which `day` adds."""

    name: str
    about: str
    columns: StructType
    key: tuple[str, ...]
    """Columns that no two rows share."""
    job: str
    """Which job writes it."""
    day: str = ""
    """The timestamp whose day the rows are laid out by; empty for a table in one folder."""
    fresh_s: int = 60
    """How old the newest row may be while its job runs; 0: it does not write one each time."""
    run_options: str = ""
    """The options that its job needs to write it."""
    persons: tuple[str, ...] = ()
    """Columns that name a person; `maintain --option erase=WHO` looks for them there."""
    texts: tuple[str, ...] = ()
    """Columns of JSON in which a value may name one."""

    @property
    def schema(self) -> StructType:
        """The columns as they are stored, the date last."""
        if not self.day:
            return self.columns
        date = StructField(DATE, DateType(), False, {"comment": f"Day (UTC) of `{self.day}`; a folder each."})
        return StructType([*self.columns.fields, date])

    @property
    def partitions(self) -> tuple[str, ...]:
        return (DATE,) if self.day else ()
