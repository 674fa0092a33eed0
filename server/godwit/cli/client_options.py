"""The options of commands that connect to a node as a client: the node's address, and the token."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..codes import Code
from ..config.load import SERVER_VARIABLE, TOKEN_VARIABLE
from ..errors import CommandRefused, ConfigInvalid, GodwitError, SessionClosed, SubjectInvalid
from ..subject import check_pattern
from ..words import printable

if TYPE_CHECKING:
    from ..client import Client, PositionFile

Command = Callable[..., Any]
_NEED_RIGHTS = {
    Code.CONNECT_REFUSED,
    Code.PUBLISH_FORBIDDEN,
    Code.SUBSCRIBE_FORBIDDEN,
    Code.TOKEN_MISSING,
}
_CA_FILE = "godwit.ca_file"
_TOKEN_BYTES_MAX = 65_536
DEFAULT_SERVER = "ws://127.0.0.1:8800"


def client_options(command: Command) -> Command:
    """--server (repeatable) and --token-file. A token is never a command-line argument, because every process could read it."""
    server = click.option(
        "--server",
        "servers",
        multiple=True,
        metavar="URL",
        help=f"Client port of a node ({DEFAULT_SERVER}). Repeatable.",
    )
    token = click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"Read the token from this file; or set {TOKEN_VARIABLE}.",
    )
    ca_file = click.option(
        "--ca-file",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        expose_value=False,
        callback=lambda context, _, file: context.meta.update({_CA_FILE: file}),
        help="Trust this authority's certificate (PEM) for wss:// servers.",
    )
    return server(token(ca_file(command)))


def read_ca_file() -> Path | None:
    """The file of --ca-file, while a command runs."""
    context = click.get_current_context(silent=True)
    return context.meta.get(_CA_FILE) if context else None


def make_client(servers: tuple[str, ...], token: str | None, positions: PositionFile | None = None) -> Client:
    """A client of these servers that trusts the file of --ca-file; raises ConfigInvalid, click.BadParameter."""
    from ..client import Client

    ca_file = read_ca_file()
    try:
        return Client(read_servers(servers), token=token, positions=positions, ca_file=ca_file)
    except OSError as error:
        raise ConfigInvalid("--ca-file", str(ca_file), f"holds no certificate that can be read: {error}") from error


def read_servers(servers: tuple[str, ...]) -> list[str | tuple[str, float]]:
    """The servers of the options, else of the environment, else this machine's; raises click.BadParameter."""
    from ..client.servers import ServerList

    variable = [server for server in os.environ.get(SERVER_VARIABLE, "").split(",") if server.strip()]
    given = servers or variable or (DEFAULT_SERVER,)  # a variable that is empty is as one that is not set
    read: list[str | tuple[str, float]] = []
    for server in map(str.strip, given):
        address = server if "://" in server or not server else f"ws://{server}"
        try:
            ServerList(address)
        except ValueError as error:
            scheme, _, rest = address.partition("://")
            is_near = scheme in ("http", "https") and "@" not in rest
            hint = f"; did you mean ws{scheme[4:]}://{rest.rstrip('/')}?" if is_near else ""
            place = "--server" if servers else SERVER_VARIABLE
            said = str(error).replace("`token=`", "--token-file")
            raise click.BadParameter(f"{said}{hint}", param_hint=place) from error
        read.append(address)
    return read


def explain(error: GodwitError, token: str | None) -> str:
    """The sentence of a refusal; without a token it also says how to pass one."""
    is_of_rights = isinstance(error, CommandRefused | SessionClosed) and error.code in _NEED_RIGHTS
    hint = f"; give one with --token-file FILE, or {TOKEN_VARIABLE}"
    return f"{error}{hint if is_of_rights and token is None else ''}"


class _Escaping(logging.Formatter):
    """Escapes control characters, because these lines contain texts of the node."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record), kept="\n")


def show_warnings() -> None:
    """Write the client's warnings to standard error, one on each line."""
    logs = logging.StreamHandler()
    logs.setFormatter(_Escaping("godwit: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[logs])


def check_selector(argument: str, selector: str, check: Callable[[str], str]) -> str:
    """Return the subject or pattern if `check` accepts it; raises ConfigInvalid with what may have been meant."""
    try:
        return check(selector)
    except SubjectInvalid as error:
        near = f"/{selector}"
        near = translate_mqtt(near) if check is check_pattern else near
        hint = f"did you mean {near}?" if selector and selector[0] not in "/ " and _is_valid(near, check) else ""
        raise ConfigInvalid(argument, selector, error.reason, hint=hint) from error


def translate_mqtt(pattern: str) -> str:
    """The pattern for an MQTT topic filter: `+` is `*` here, and a `#` at its end is `**`."""
    *segments, last = pattern.split("/")
    translated = ["*" if segment == "+" else segment for segment in segments]
    return "/".join([*translated, {"#": "**", "+": "*"}.get(last, last)])


def _is_valid(selector: str, check: Callable[[str], str]) -> bool:
    try:
        check(selector)
    except SubjectInvalid:
        return False
    return True


def read_token(file: Path | None, variable: str = TOKEN_VARIABLE) -> str | None:
    """The token of a file, else the environment's, else none. Raises ConfigInvalid; an error never shows the token.

    A file without a token is refused: the command would continue as anonymous. A variable that is empty counts as not set.
    """
    if file is None:
        place, name, token = variable, "(secret)", os.environ.get(variable, "").strip()
    else:
        place, name, token = "--token-file", str(file), _read_token_file(file)
        if not token:
            raise ConfigInvalid(place, name, "holds no token")
    if any(not "!" <= character <= "~" for character in token):
        raise ConfigInvalid(place, name, "is not one token of printable ASCII, and nothing else")
    return token or None


def _read_token_file(file: Path) -> str:
    try:
        with file.open("rb") as opened:  # also a pipe; a device such as /dev/zero never ends
            content = opened.read(_TOKEN_BYTES_MAX + 1)
        token = content.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid("--token-file", str(file), f"cannot be read: {error}") from error
    if len(content) > _TOKEN_BYTES_MAX:
        raise ConfigInvalid("--token-file", str(file), f"is longer than {_TOKEN_BYTES_MAX} bytes")
    return token
