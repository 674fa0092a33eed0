"""`godwit receivers import` and `godwit groups import`: a file of any length, in parts, with progress and every rejected line.

A part is one request. After a failure the command says where to continue; lines that are there already change nothing.
Each rejected line is printed as one line of JSON; the last line is the result.

Exit codes: 0 all lines were taken, 1 some were rejected or the import stopped, 2 a mistake of the command.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import click

from .dispatch import server_options
from .send import SendFailed, call, find_dispatch

PART_LINES = 5_000
PART_BYTES = 4_000_000


def import_options(command: Any) -> Any:
    """FILE and --after-line."""
    file = click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
    after = click.option(
        "--after-line", type=click.IntRange(0), default=0, help="Skip this many lines, which were imported before."
    )
    return file(after(server_options(command)))


@click.group()
def receivers() -> None:
    """Manage receivers of notifications."""


@receivers.command(name="import")
@import_options
def import_receivers(file: Path, after_line: int, server: str | None, key_file: Path | None) -> None:
    """Create or replace receivers: FILE has one JSON object a line, such as {"id": "user:42", "locale": "de"}. `-` is standard input."""
    done, rejected = run_import(find_dispatch(server, key_file), "/v1/receivers/import", file, after_line)
    click.echo(json.dumps({"lines": done, "rejected": rejected}))
    raise SystemExit(1 if rejected else 0)


@click.group()
def groups() -> None:
    """Manage groups of receivers."""


@groups.command(name="import")
@import_options
@click.option("--group", required=True, metavar="GROUP", help="The group; created if it does not exist.")
@click.option(
    "--version", type=click.IntRange(1), help="The version to import into; by default the one after the last."
)
@click.option(
    "--switch",
    "is_switching",
    is_flag=True,
    help="With --after-line: make the version current, although this command does not see the lines before.",
)
def import_groups(
    file: Path,
    after_line: int,
    group: str,
    version: int | None,
    is_switching: bool,
    server: str | None,
    key_file: Path | None,
) -> None:
    """Replace the receivers of a group: FILE has one {"receiver": "user:42"} a line. The group changes when all lines are there."""
    url, key = find_dispatch(server, key_file)
    path = f"/v1/groups/{quote(group, safe='')}"
    call(url, key, "PUT", path, {})
    if version is None:
        if after_line:
            raise click.UsageError("--after-line needs --version: the version that was begun")
        version = int(call(url, key, "GET", path)["last_version"]) + 1
    more = f" --version {version}"
    is_seen = not after_line or is_switching
    done, rejected = run_import(
        (url, key), f"{path}/import?version={version}", file, after_line, more, " --switch" if is_seen else ""
    )
    if done == after_line:
        detail = f"{file} has no lines after line {after_line:,}" if after_line else f"{file} has no lines"
        raise SendFailed(f"{detail}: the group keeps its version; DELETE {path} deletes a group")
    is_current = is_seen and not rejected
    if is_current:
        call(url, key, "PUT", f"{path}/version", {"version": version})
    elif not is_seen:
        click.echo(
            "the group keeps its version: add --switch if the lines before were imported without errors", err=True
        )
    click.echo(
        json.dumps({"group": group, "version": version, "current": is_current, "lines": done, "rejected": rejected})
    )
    raise SystemExit(1 if rejected else 0)


def run_import(
    server: tuple[str, str], path: str, file: Path, after_line: int, more: str = "", more_if_whole: str = ""
) -> tuple[int, int]:
    """Send the file in parts; returns the number of lines, and of rejected ones. Raises SendFailed, which says where to
    continue, with the options `more`, and `more_if_whole` if nothing was rejected.
    """
    done, rejected = after_line, 0
    try:
        opened: IO[bytes] = sys.stdin.buffer if str(file) == "-" else file.open("rb")
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error
    with opened:
        for part in read_parts(opened, after_line):
            try:
                answer = call(*server, "POST", path, b"".join(part))
            except SendFailed as failed:
                resume = f"continue with --after-line {done}{more}{'' if rejected else more_if_whole}"
                raise SendFailed(f"the import stopped after line {done:,}: {failed}; {resume}") from failed
            for row in answer["rejected"]:
                click.echo(json.dumps({**row, "line": row["line"] + done}))
            done, rejected = done + len(part), rejected + answer["rejected_count"]
            click.echo(f"{done:,} lines, {rejected:,} rejected", err=True)
    return done, rejected


def read_parts(opened: IO[bytes], after_line: int) -> Iterator[list[bytes]]:
    """The lines after `after_line`, in parts that are bounded in lines and bytes."""
    part: list[bytes] = []
    size = 0
    for line in islice(opened, after_line, None):
        part.append(line if line.endswith(b"\n") else line + b"\n")
        size += len(line)
        if len(part) >= PART_LINES or size >= PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
