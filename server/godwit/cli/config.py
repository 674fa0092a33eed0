"""`godwit config show|check|doc`: the configuration in force, whether a node would start with it, and all there is to set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ..config import describe_config, show_config
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
    """Tell whether a node would start with this configuration; exit code 2 where not."""
    from ..admin.app import make_tls_context
    from ..server import Node

    found = read_config(file, settings)
    # What a start reads, files and plug-ins too; but for the data directory, which a running node holds.
    Node(replace(found, node=replace(found.node, data_directory="")))
    if found.admin.tls:
        make_tls_context(found.tls)
    count = sum(source != "default" for source in found.sources.values()) + len(found.patterns)
    click.echo(f"the configuration is valid; {count} of its values are not defaults")


@config.command()
def doc() -> None:
    """Print the reference of all keys, in Markdown."""
    click.echo(describe_config(), nl=False)
