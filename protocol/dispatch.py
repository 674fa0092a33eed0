"""What is made for dispatch from codes.toml and limits.toml: modules in Python alone, from the rows with `part = "dispatch"`.

Standard library only. Used by generate.py.
"""

from __future__ import annotations

import re
from typing import Any

Table = dict[str, dict[str, Any]]


def is_dispatch(row: dict[str, Any]) -> bool:
    """Whether a row belongs to dispatch: for its Python and its page alone."""
    return row.get("part") == "dispatch"


def split(table: Table) -> tuple[Table, Table]:
    """The rows of a node, and those of dispatch."""
    node = {name: row for name, row in table.items() if not is_dispatch(row)}
    return node, {name: row for name, row in table.items() if is_dispatch(row)}


def constant(name: str) -> str:
    """SubjectInvalid -> SUBJECT_INVALID."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def grouped(number: int) -> str:
    """Digits grouped by underscores, which Rust and Python both read."""
    return f"{number:_}"


def python_dispatch_codes(codes: Table) -> str:
    members = "".join(f"    {constant(name)} = {row['number']}\n" for name, row in codes.items())
    rows = "".join(
        f'    DispatchCode.{constant(name)}: DispatchCodeFacts(\n        {row["number"]}, "{name}", {row["retry"]}, '
        f'{row["http"]},\n        "{row["sentence"]}",\n    ),\n'
        for name, row in codes.items()
    )
    return f'''\
"""Every code of the dispatch API: number, name, may the client retry, HTTP status, one sentence.

Generated from protocol/codes.toml by `make generate`; change it there.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class DispatchCode(IntEnum):
    """Why a request was refused."""

{members}

class DispatchCodeFacts(NamedTuple):
    """One row of codes.toml."""

    number: int
    name: str
    retry: bool
    http: int
    sentence: str


DISPATCH_CODES: dict[int, DispatchCodeFacts] = {{
{rows}}}
'''


def python_dispatch_limits(limits: Table) -> str:
    fields = "".join(
        f'    {name}: int = option(\n        {grouped(row["default"])}, "{row["sentence"]}",\n'
        f"        minimum={grouped(row['bounds'][0])}, maximum={grouped(row['bounds'][1])},\n    )\n"
        for name, row in limits.items()
    )
    return f'''\
"""The section `dispatch_limits`: every limit of dispatch with its default, bounds and meaning.

Generated from protocol/limits.toml by `make generate`; change it there.
"""

from __future__ import annotations

from dataclasses import dataclass

from .option import option


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    """Limits of dispatch. Times are milliseconds."""

{fields}'''
