"""Write what is made from codes.toml, limits.toml and events.toml: modules in three languages, and the tables of protocol.md.

Run `python3 protocol/generate.py` to write, with `--check` to fail when a file is not what it would write, with `--freeze` to take
new fields of events.toml into what its readers rely on. What is made from events.toml is in streams.py, for dispatch in dispatch.py.
Standard library only. Invariant: the output depends on the three TOML files and on nothing else. Where mkdocs is installed it also
writes the reference pages (docs/reference.py).
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from dispatch import constant, grouped, is_dispatch, python_dispatch_codes, python_dispatch_limits, split
from streams import freeze, list_breaks, python_schemas, read_streams, rust_schema

ROOT = Path(__file__).resolve().parent.parent
EVENTS = ROOT / "protocol/events.toml"
FROZEN = ROOT / "tests/architecture/events.json"
Table = dict[str, dict[str, Any]]


def read_codes() -> Table:
    codes: Table = tomllib.loads((ROOT / "protocol/codes.toml").read_text("utf-8"))
    numbers = [row["number"] for row in codes.values()]
    if numbers != sorted(set(numbers)):
        raise SystemExit("codes.toml: numbers must rise and be unique")
    if any(is_dispatch(row) != (4300 <= row["number"] <= 4399) for row in codes.values()):
        raise SystemExit("codes.toml: 4300 to 4399 are the codes of dispatch, and no others are")
    return codes


def read_limits(codes: Table) -> tuple[Table, Table]:
    tables = tomllib.loads((ROOT / "protocol/limits.toml").read_text("utf-8"))
    limits, fixed = tables["limit"], tables["fixed"]
    for name, row in {**limits, **fixed}.items():
        if row.get("code", "ClosedNormally") not in codes:
            raise SystemExit(f"limits.toml: {name} names an unknown code")
    for name, row in limits.items():
        low, high = row["bounds"]
        if not low <= row["default"] <= high:
            raise SystemExit(f"limits.toml: the default of {name} is outside its bounds")
    return limits, fixed


RUST_CODE = """\
impl Code {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The code of a number, if there is one.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        let row = ROWS.iter().find(|row| row.code as u16 == number)?;
        Some(row.code)
    }

    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// May the same thing succeed later, unchanged?
    #[must_use]
    pub fn is_retryable(self) -> bool {
        self.row().retry
    }

    /// The HTTP status that goes with it; 0 when HTTP never carries it.
    #[must_use]
    pub fn http_status(self) -> u16 {
        self.row().http
    }

    /// One sentence for a person.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        self.row().sentence
    }

    /// All of them, by number.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.code)
    }

    fn row(self) -> &'static Row {
        let place = ROWS.partition_point(|row| row.code < self);
        &ROWS[place]
    }
}
"""


def rust_codes(codes: Table) -> str:
    variants = "".join(f"    /// {row['sentence']}\n    {name} = {row['number']},\n" for name, row in codes.items())
    rows = "".join(
        f'    Row {{ code: Code::{name}, name: "{name}", retry: {str(row["retry"]).lower()}, '
        f'http: {row.get("http", 0)}, sentence: "{row["sentence"]}" }},\n'
        for name, row in codes.items()
    )
    return f"""\
//! Every code a client can be told, as an enum: number, name, may the client retry, HTTP status, one sentence.
//!
//! Generated from protocol/codes.toml by `make generate`; change it there.

/// Why a command failed, a connection closed or a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum Code {{
{variants}}}

struct Row {{
    code: Code,
    name: &'static str,
    retry: bool,
    http: u16,
    sentence: &'static str,
}}

#[rustfmt::skip]
static ROWS: [Row; {len(codes)}] = [
{rows}];

{RUST_CODE}"""


def rust_type(name: str) -> str:
    return "u64" if "_ms" in name else "usize"


def rust_limits(limits: Table, fixed: Table) -> str:
    fields = "".join(f"    /// {row['sentence']}\n    pub {name}: {rust_type(name)},\n" for name, row in limits.items())
    defaults = "".join(f"            {name}: {grouped(row['default'])},\n" for name, row in limits.items())
    constants = "".join(
        f"/// {row['sentence']}\npub const {name.upper()}: usize = {grouped(row['value'])};\n"
        for name, row in fixed.items()
    )
    return f"""\
//! Every limit of a node, one plain struct, and the fixed limits of the wire.
//!
//! Generated from protocol/limits.toml by `make generate`; change it there. Bounds are checked where the configuration is read.

use serde::Deserialize;

{constants}
/// Limits that can be configured. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {{
{fields}}}

impl Default for Limits {{
    fn default() -> Self {{
        Self {{
{defaults}        }}
    }}
}}
"""


def python_codes(codes: Table) -> str:
    members = "".join(f"    {constant(name)} = {row['number']}\n" for name, row in codes.items())
    rows = "".join(
        f'    Code.{constant(name)}: CodeFacts(\n        {row["number"]}, "{name}", {row["retry"]}, '
        f'{row.get("http", 0)},\n        "{row["sentence"]}",\n    ),\n'
        for name, row in codes.items()
    )
    return f'''\
"""Every code that a client can receive: number, name, may the client retry, HTTP status, one sentence.

Generated from protocol/codes.toml by `make generate`; change it there.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Code(IntEnum):
    """Why a command failed, a connection closed or a request was refused."""

{members}

class CodeFacts(NamedTuple):
    """One row of codes.toml; `http` is 0 when HTTP never carries the code."""

    number: int
    name: str
    retry: bool
    http: int
    sentence: str


CODES: dict[int, CodeFacts] = {{
{rows}}}


def is_close(number: int) -> bool:
    """Does this code end a connection, and not just one command?"""
    return not 4100 <= number <= 4199
'''


def python_limits(limits: Table, fixed: Table) -> str:
    rows = "".join(
        f'    Limit("{name}", {grouped(row["default"])}, {grouped(row["bounds"][0])}, {grouped(row["bounds"][1])},\n'
        f'          "{row["scope"]}", "{row.get("code", "")}",\n          "{row["sentence"]}"),\n'
        for name, row in limits.items()
    )
    constants = "".join(f"{name.upper()} = {grouped(row['value'])}\n" for name, row in fixed.items())
    return f'''\
"""Every limit of a node with its default, bounds and meaning, and the fixed limits of the wire.

Generated from protocol/limits.toml by `make generate`; change it there.
"""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """One configurable limit; `code` is the name of the code that a client receives at it; empty if there is none."""

    name: str
    default: int
    minimum: int
    maximum: int
    scope: str
    code: str
    sentence: str


LIMITS: tuple[Limit, ...] = (
{rows})

{constants}'''


def javascript_codes(codes: Table) -> str:
    numbers = "".join(f"  /** {row['sentence']} */\n  {name}: {row['number']},\n" for name, row in codes.items())
    rows = "".join(
        f"  [{row['number']}, {{ number: {row['number']}, name: {json.dumps(name)}, retry: {json.dumps(row['retry'])}, "
        f"sentence: {json.dumps(row['sentence'])} }}],\n"
        for name, row in codes.items()
    )
    return f"""\
// Every code that a client can receive: number, name, may the client retry, one sentence.
//
// Generated from protocol/codes.toml by `make generate`; change it there.

/** Why a command failed, a connection closed or a request was refused. */
export const Code = Object.freeze({{
{numbers}}});

/** @typedef {{{{ number: number, name: string, retry: boolean, sentence: string }}}} CodeFacts one row of codes.toml */

/** @type {{ReadonlyMap<number, CodeFacts>}} */
export const CODES = new Map([
{rows}]);

/**
 * May a client come back after it was closed with this code? Unknown codes outside 4000-4099: yes.
 * @param {{number}} number
 */
export function mayReconnect(number) {{
  return CODES.get(number)?.retry ?? !(number >= 4000 && number <= 4099);
}}
"""


def markdown_codes(codes: Table) -> str:
    rows = "".join(
        f"| {row['number']} | `{name}` | {'yes' if row['retry'] else 'no'} | {row.get('http') or ''} | {row['sentence']} |\n"
        for name, row in codes.items()
    )
    return f"| number | name | retry | HTTP | meaning |\n|---|---|---|---|---|\n{rows}"


def markdown_limits(limits: Table, fixed: Table) -> str:
    rows = "".join(
        f"| `{name}` | {row['default']:,} | {row['bounds'][0]:,} to {row['bounds'][1]:,} | {row['scope']} | {row.get('code', '')} "
        f"| {row['sentence']} |\n"
        for name, row in limits.items()
    )
    rows += "".join(
        f"| `{name}` | {row['value']:,} | fixed | protocol | {row.get('code', '')} | {row['sentence']} |\n"
        for name, row in fixed.items()
    )
    return f"| limit | default | bounds | whose | code | meaning |\n|---|---|---|---|---|---|\n{rows}"


def with_table(text: str, name: str, table: str) -> str:
    """Replace what stands between `<!-- NAME -->` and `<!-- /NAME -->`."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    if begin not in text or end not in text:
        raise SystemExit(f"protocol.md: the resume tokens of the table of {name} are missing")
    return text[: text.index(begin) + len(begin)] + table + text[text.index(end) :]


def outputs() -> dict[str, str]:
    all_codes = read_codes()
    all_limits, fixed = read_limits(all_codes)
    (codes, dispatch_codes), (limits, dispatch_limits) = split(all_codes), split(all_limits)
    streams = read_streams(EVENTS)
    contract = (ROOT / "protocol/protocol.md").read_text("utf-8")
    contract = with_table(contract, "codes", markdown_codes(codes))
    contract = with_table(contract, "limits", markdown_limits(limits, fixed))
    dispatch = (ROOT / "protocol/dispatch.md").read_text("utf-8")
    dispatch = with_table(dispatch, "codes", markdown_codes(dispatch_codes))
    dispatch = with_table(dispatch, "limits", markdown_limits(dispatch_limits, {}))
    return {
        "core/src/codes.rs": rust_codes(codes),
        "core/src/limits.rs": rust_limits(limits, fixed),
        "server/godwit/codes.py": python_codes(codes),
        "server/godwit/limits.py": python_limits(limits, fixed),
        "clients/javascript/src/codes.js": javascript_codes(codes),
        "journal/src/schema.rs": rust_schema(streams),
        "pipelines/src/godwit_pipelines/schemas.py": python_schemas(streams),
        "protocol/protocol.md": contract,
        "protocol/dispatch.md": dispatch,
        "server/godwit/dispatch/codes.py": python_dispatch_codes(dispatch_codes),
        "server/godwit/config/dispatch_limits.py": python_dispatch_limits(dispatch_limits),
    }


def freeze_events() -> None:
    """Take new fields into the frozen copy; what would break a reader is refused."""
    streams = read_streams(EVENTS)
    frozen = json.loads(FROZEN.read_text("utf-8")) if FROZEN.exists() else {}
    breaks = list_breaks(frozen, streams)
    if breaks:
        raise SystemExit("events.toml: " + "\n".join(breaks))
    FROZEN.write_text(freeze(streams), "utf-8")


def main(arguments: list[str]) -> int:
    if "--freeze" in arguments:
        freeze_events()
    stale = []
    for name, text in outputs().items():
        path = ROOT / name
        if path.exists() and path.read_text("utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    if stale:
        print(("not current, run `make generate`: " if "--check" in arguments else "written: ") + ", ".join(stale))
    if (
        "--check" not in arguments and importlib.util.find_spec("mkdocs") is not None
    ):  # the reference pages depend on the same files
        subprocess.run([sys.executable, "-m", "docs.reference"], cwd=ROOT, check=True)
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
