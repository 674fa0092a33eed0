"""`godwit config show|check|doc`: the configuration in force, whether a node would start with it, and all there is to set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ..config import describe_config, show_config
from ..config.mistakes import Mistakes
from .options import config_options, read_config


@click.group()
def config() -> None:
    """Show, check or document the configuration."""


@config.command()
@config_options
def show(file: Path | None, settings: tuple[str, ...]) -> None:
    """Print every value in force and where it came from."""
    click.echo(show_config(read_config(file, settings)), nl=False)


@config.command()
@config_options
def check(file: Path | None, settings: tuple[str, ...]) -> None:
    """Tell whether a node would start with this configuration; list all mistakes and exit with code 2 if not."""
    from ..access.access_mode import build_access_mode
    from ..admin.guard import read_admin_token
    from ..admin.listener.tls import make_tls_context
    from ..audit.runner import load_audits
    from ..server import Node

    found = read_config(file, settings)
    mistakes = Mistakes()
    reads = (
        lambda: read_admin_token(found.admin),
        lambda: build_access_mode(found.access, found.issuers, found.tls),
        lambda: load_audits(found.audit),
        lambda: found.admin.tls and make_tls_context(found.tls),
    )
    for read in reads:
        with mistakes.gather():
            read()
    mistakes.raise_found()
    # What a start reads, files and plug-ins too; but for the data directory, which a running node holds.
    Node(replace(found, node=replace(found.node, data_directory="")))
    count = sum(source != "default" for source in found.sources.values()) + len(found.patterns)
    click.echo(f"the configuration is valid; {count} of its values are not defaults")


@config.command()
def doc() -> None:
    """Print the reference of all keys, in Markdown."""
    click.echo(describe_config(), nl=False)
