"""The options that several commands share: the configuration's source and the node's address."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from ..config import Config, load_config
from ..errors import ConfigInvalid

Command = Callable[..., Any]


def config_options(command: Command) -> Command:
    """--config FILE and --set KEY=VALUE."""
    set_option = click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set any configuration key. Repeatable.",
    )
    file_option = click.option(
        "--config",
        "file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Read the configuration from this TOML file; or set GODWIT_CONFIG.",
    )
    return file_option(set_option(command))


def read_config(
    file: Path | None,
    settings: tuple[str, ...],
    flags: Mapping[str, str | None] | None = None,
    *,
    is_reload: bool = False,
) -> Config:
    """The configuration from a command's options; missing flags are None."""
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ConfigInvalid("--set", setting, "must be KEY=VALUE", hint="e.g. --set limits.log_messages_max=100")
        given[key.strip()] = value.strip()
    return load_config(file, os.environ, given, is_reload=is_reload)
