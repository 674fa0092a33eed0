"""`godwit journal`: shows and checks the journal of a data directory.

It reads files and changes nothing, so that it can run while a node writes. `show` reads only the manifests. `check` reads
every row and its checksum, compares sealed files with their manifests, and exits with code 1 if something is damaged or
missing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..words import counted, printable

EXIT_DAMAGED = 1
MANIFEST = "manifest.json"
FORMAT = 2
"""The fields of a manifest that this version knows."""
WIDTH = 160
"""The width of the table if the output is not a terminal, so that nothing is cut off."""
_LOOK_BYTES = 1 << 20
_DIRECTORY = click.argument("directory", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")


@click.group()
def journal() -> None:
    """Inspect the journal in a node's data directory.

    Each table is a folder of Arrow files. The file `notes` has the current sessions and wills of MQTT clients and the purges, as
    lines of checksum, name and text.
    """


@journal.command()
@_DIRECTORY
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def show(directory: Path, as_json: bool) -> None:
    """Show the contents of each table of the journal in DIR (a node's --data).

    Rows, offsets and times are those of sealed segments; `check` counts those of open ones, too.
    """
    rows = list(list_streams(find_journal(directory)))
    if not rows:
        raise _no_journal(directory)
    if as_json:
        click.echo(json.dumps(rows))
        return
    table = Table(box=None)
    for head in ("stream", "segments", "sealed rows", "bytes", "kept from", "next", "oldest", "newest"):
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_show(row[name])) for name in row))
    Console(width=None if sys.stdout.isatty() else WIDTH).print(table)


@journal.command()
@_DIRECTORY
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file.")
def check(directory: Path, as_json: bool) -> None:
    """Verify the checksum of every row of the journal in DIR, and that its files are complete.

    Exits with code 1 if a row, a file or a manifest is damaged, or a segment is missing.
    """
    from ..engine import check_journal  # loads the compiled engine

    found = find_journal(directory)
    try:
        files = check_journal(found)
    except OSError as error:
        raise click.ClickException(str(error)) from error
    if not files:
        raise _no_journal(directory)
    for file in files:
        if as_json:
            click.echo(json.dumps(file))
        elif said := _describe(file):
            click.echo(printable(said))
    bad = [file for file in files if not file["is_whole"]]
    if not as_json:
        there = [file for file in files if not file["is_missing"] and not file["is_gap"]]
        rows, size = sum(file["rows"] for file in there), sum(file["bytes"] for file in there)
        verdict = f"{len(bad)} damaged or missing" if bad else "complete and undamaged"
        segments = sum(file["file"] != MANIFEST for file in there)
        click.echo(f"{counted(segments, 'segment')}, {counted(rows, 'row')}, {size:,} bytes: {verdict}")
    if bad:
        raise SystemExit(EXIT_DAMAGED)


def _describe(file: Mapping[str, Any]) -> str:
    """What is noteworthy about one file; empty if nothing is."""
    name = f"{file['stream']}/{file['file']}"
    if file["file"] == MANIFEST:
        return f"{name}: cannot be read; the node creates it again from the segments when it starts"
    if file["is_missing"]:
        return f"{name}: missing with {counted(file['rows'], 'row')}; the manifest names it"
    if file["is_gap"]:
        return f"{name}: missing; no file has offsets {file['first']:,} to {file['next'] - 1:,}, and the manifest does not explain it"
    said = []
    if file["damaged"]:
        said.append(counted(file["damaged"], "damaged row or batch", "damaged rows or batches"))
    if file["damaged"] or file["lost"]:
        said.append(
            counted(file["rows"], "good row") + (f" of {file['rows'] + file['lost']:,}" if file["lost"] else "")
        )
    if file["is_bent"]:
        said.append("its footer or an Arrow marker is missing or damaged, so other programs cannot read it")
    if not said and file["torn_bytes"]:
        said.append(f"ends in {file['torn_bytes']:,} bytes of an incomplete batch")
    return f"{name}: {', '.join(said)}" if said else ""


def find_journal(directory: Path) -> Path:
    """The journal of a data directory, or the directory itself if it is a journal."""
    for found in (directory / "journal", directory):
        if any((found / stream).is_dir() for stream in ("messages", "runs")):
            return found
    raise _no_journal(directory)


def _no_journal(directory: Path) -> click.ClickException:
    return click.ClickException(f"{directory} does not contain a journal: give the --data directory of a node")


def list_streams(journal: Path) -> Iterator[dict[str, Any]]:
    """The manifest of each table, and the size of its open segments."""
    for folder in sorted(path for path in journal.iterdir() if path.is_dir()):
        manifest = _read_manifest(folder)
        try:
            if found := _describe_stream(folder, manifest):
                yield found
        except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
            raise click.ClickException(f"{folder / MANIFEST} is not a valid manifest: {error!r}") from error


def _describe_stream(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    segments = manifest.get("segments", [])
    sealed = {segment["first"] for segment in segments}
    files = [file for file in folder.glob("*.arrows") if file.stem.isdecimal()]
    open_files = [file for file in files if int(file.stem) not in sealed]
    if not segments and not open_files:
        return None
    return {
        "stream": folder.name,
        "segments": len(segments) + len(open_files),
        "rows": sum(segment["rows"] for segment in segments),
        "bytes": sum(segment["bytes"] for segment in segments) + sum(map(count_bytes, open_files)),
        "first": manifest.get("first", 0),
        "next": manifest.get("next", 0),
        "oldest": _time(segments[0]["time_min"]) if segments else None,
        "newest": _time(segments[-1]["time_max"]) if segments else None,
    }


def count_bytes(file: Path) -> int:
    """The length of an open segment without the zeros that were preallocated after its rows."""
    try:
        with file.open("rb") as opened:
            end = opened.seek(0, os.SEEK_END)
            while end:
                start = max(0, end - _LOOK_BYTES)
                opened.seek(start)
                if found := opened.read(end - start).rstrip(b"\0"):
                    return start + -(-len(found) // 8) * 8
                end = start
    except FileNotFoundError:  # sealed since the folder was read
        pass
    return 0


def _read_manifest(folder: Path) -> Mapping[str, Any]:
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:  # nothing has been sealed yet
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise click.ClickException(f"{folder / MANIFEST} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise click.ClickException(f"{folder / MANIFEST} cannot be read: it is not a JSON object")
    if found.get("format", FORMAT) != FORMAT:
        raise click.ClickException(
            f"{folder / MANIFEST} has format {found['format']}: this version reads only format {FORMAT}"
        )
    return found


def _time(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="milliseconds")


def _show(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else printable(str(value or ""))
