"""`godwit config show|check|doc`: the current configuration, whether a node would start with it, and all options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ..config import describe_config, show_config
from ..config.mistakes import Mistakes
from ..words import counted
from .options import config_options, read_config


@click.group()
def config() -> None:
    """Show, check or document the configuration."""


def _which_file(named: Path | None, option: Path | None) -> Path | None:
    if named and option:
        raise click.UsageError("the configuration file is named twice: as FILE and by --config")
    return named or option


file_argument = click.argument("named", required=False, type=click.Path(path_type=Path), metavar="[FILE]")


@config.command()
@file_argument
@config_options
def show(named: Path | None, file: Path | None, settings: tuple[str, ...]) -> None:
    """Print every value in force and its source."""
    click.echo(show_config(read_config(_which_file(named, file), settings)), nl=False)


@config.command()
@file_argument
@config_options
def check(named: Path | None, file: Path | None, settings: tuple[str, ...]) -> None:
    """Check whether a node would start with this configuration. If not, list all mistakes and exit with code 2."""
    from ..access.access_mode import build_access_mode
    from ..admin.guard import read_admin_token
    from ..audit.runner import load_audits
    from ..server import Node
    from ..tls.context import make_tls_context

    found = read_config(_which_file(named, file), settings)
    mistakes = Mistakes()
    reads = (
        lambda: read_admin_token(found.admin),
        lambda: build_access_mode(found.access, found.issuers, found.tls),
        lambda: load_audits(found.audit),
        lambda: (found.admin.tls or found.dispatch.tls) and make_tls_context(found.tls),
    )
    for read in reads:
        with mistakes.gather():
            read()
    mistakes.raise_found()
    # What a start reads, files and plug-ins too; but for the data directory, which a running node holds.
    Node(replace(found, node=replace(found.node, data_directory="")))
    count = sum(source != "default" for source in found.sources.values()) + len(found.patterns)
    click.echo(f"the configuration is valid: {counted(count, 'value')} set, the others are the defaults")


@config.command()
def doc() -> None:
    """Print the reference of all keys, in Markdown."""
    click.echo(describe_config(), nl=False)
