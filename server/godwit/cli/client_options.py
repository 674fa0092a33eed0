"""The options of commands that talk to a node as a client: which node, which token."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..config.load import SERVER_VARIABLE, TOKEN_VARIABLE
from ..errors import ConfigInvalid

Command = Callable[..., Any]
_CA_FILE = "godwit.ca_file"
DEFAULT_SERVER = "ws://127.0.0.1:8800"


def client_options(command: Command) -> Command:
    """--server (repeatable) and --token-file; a token never stands on a command line, where every process could read it."""
    server = click.option(
        "--server",
        "servers",
        multiple=True,
        metavar="URL",
        help=f"A node's client port; may be repeated ({DEFAULT_SERVER}).",
    )
    token = click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"A file with the token; or {TOKEN_VARIABLE}.",
    )
    ca_file = click.option(
        "--ca-file",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        expose_value=False,
        callback=lambda context, _, file: context.meta.update({_CA_FILE: file}),
        help="Who signed the node's certificate (wss://…), where this machine does not know it.",
    )
    return server(token(ca_file(command)))


def read_ca_file() -> Path | None:
    """The file of --ca-file, while a command runs."""
    context = click.get_current_context(silent=True)
    return context.meta.get(_CA_FILE) if context else None


def read_servers(servers: tuple[str, ...]) -> list[str | tuple[str, float]]:
    """The servers given, else the environment's, else this machine's."""
    given = servers or tuple(os.environ.get(SERVER_VARIABLE, DEFAULT_SERVER).split(","))
    return [server.strip() if "://" in server else f"ws://{server.strip()}" for server in given]


def read_token(file: Path | None) -> str | None:
    """The token of a file, else the environment's, else none."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid("--token-file", str(file), f"cannot be read: {error}") from error
    if any(not "!" <= character <= "~" for character in token):  # whoever sends such a one shows it in an error
        raise ConfigInvalid("--token-file", str(file), "is not one token of printable ASCII, and nothing else")
    return token or None
