"""`godwit health`: checks the node on this machine, for containers and service managers.

Owns the file `admin` of a data directory: the address of the admin port of the node that uses it, whichever flags it has.
The file stays if the node is killed; the check then gets no answer.
"""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

import click

from ..errors import NodeFailed
from ..words import printable
from .operator import read_base

NOTE = "admin"
TIMEOUT_S = 3.0
PATHS = {False: "/health/live", True: "/health/ready"}


@click.command()
@click.option("--admin", metavar="URL", help="Admin port of the node. Default: read from the data directory.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="DIR",
    envvar="GODWIT_NODE_DATA_DIRECTORY",
    help="Data directory of the node; or set GODWIT_NODE_DATA_DIRECTORY.",
)
@click.option(
    "--ready", "is_ready", is_flag=True, help="Ask whether the node accepts clients, not only whether it runs."
)
def health(admin: str | None, data: Path | None, is_ready: bool) -> None:
    """Check a node: exit with code 0 if it runs (--ready: accepts clients), else with code 1 and the reason.

    Without --admin and a data directory it asks GODWIT_ADMIN_ADDRESS, or 127.0.0.1:8801.
    """
    base = read_base(admin or (read_note(data) if data is not None else None))
    click.echo(ask(base + PATHS[is_ready]))


def ask(url: str) -> str:
    """The first line of a healthy node's answer; otherwise raises NodeFailed with the reason."""
    # The certificate names the node's public host, not this address, and nothing secret is sent.
    context = ssl._create_unverified_context() if url.startswith("https:") else None
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    try:
        with urllib.request.build_opener(*handlers).open(url, timeout=TIMEOUT_S) as answer:
            return _read_line(answer.read(1_024))
    except urllib.error.HTTPError as error:
        raise NodeFailed(f"{url} answered {error.code}: {_read_line(error.read(1_024))}") from error
    except (OSError, HTTPException) as error:
        raise NodeFailed(f"{url} cannot be reached: {getattr(error, 'reason', error)}") from error


def _read_line(body: bytes) -> str:
    return printable(body.decode(errors="replace").strip().split("\n")[0])


def write_note(data: Path, url: str) -> None:
    """Write the address of the admin port into `data`; raises OSError."""
    fresh = data / f"{NOTE}.new"
    fresh.write_text(f"{url}\n", encoding="utf-8")
    fresh.replace(data / NOTE)


def read_note(data: Path) -> str | None:
    """The address in `data`; None if there is none."""
    try:
        return (data / NOTE).read_text(encoding="utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise NodeFailed(f"{data / NOTE} cannot be read: {error}") from error
