"""`godwit send`: one notification through the dispatch that runs here, or at a URL.

Finds a dispatch of this user on this machine by its note; the API key comes from there, from a file, or from GODWIT_DISPATCH_KEY, never
from the command line. Exit codes: 0 accepted, 1 refused or unreachable, 2 a mistake of the command.
"""

from __future__ import annotations

import json
import os
import ssl
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from ..config.load import DISPATCH_KEY_VARIABLE
from ..errors import GodwitError
from .operator import OPENER, NoRedirect, read_address

TIMEOUT_S = 30
AWAY = (502, 503, 504)
"""Statuses of dispatch, or a proxy in front of it, while it cannot accept requests."""


class SendFailed(GodwitError):
    """Dispatch could not be reached, or refused the notification."""


class DispatchUnreachable(SendFailed):
    """Dispatch did not answer, or is temporarily unable: the same request may succeed later."""


@click.command()
@click.option("--to", "receiver", required=True, metavar="RECEIVER", help="The receiver; created if it does not exist.")
@click.option("--title", help="The title of the notification.")
@click.option("--text", help="The text of the notification.")
@click.option("--url", "link", metavar="URL", help="The link of the notification.")
@click.option(
    "--id", "name", metavar="ID", help="The notification's id. Sending it again with the same id changes nothing."
)
@click.option("--dispatch", "server", metavar="URL", help="URL of dispatch; default: the one on this machine.")
@click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read the API key from this file; or set GODWIT_DISPATCH_KEY.",
)
def send(
    receiver: str,
    title: str | None,
    text: str | None,
    link: str | None,
    name: str | None,
    server: str | None,
    key_file: Path | None,
) -> None:
    """Send a notification to one receiver."""
    url, key = find_dispatch(server, key_file)
    content = {field: value for field, value in (("title", title), ("body", text), ("url", link)) if value is not None}
    if not content:
        raise click.UsageError("the notification is empty: give --text or --title")
    body = {"to": {"receiver": {"id": receiver}}, "content": content}
    path = "/v1/notifications" if name is None else f"/v1/notifications/{quote(name, safe='')}"
    click.echo(json.dumps(call(url, key, "POST" if name is None else "PUT", path, body)))


def find_dispatch(server: str | None, key_file: Path | None) -> tuple[str, str]:
    """The address of dispatch, and the key; raises SendFailed, and ConfigInvalid for an invalid address."""
    from ..dispatch.folder import runtime_folder

    key = os.environ.get(DISPATCH_KEY_VARIABLE, "")
    note: dict[str, str] = {}
    if server is not None and not (key or key_file):
        raise SendFailed(
            "--dispatch needs a key of that dispatch: give --key-file FILE, or set " + DISPATCH_KEY_VARIABLE
        )
    try:
        if server is None:
            note = json.loads((runtime_folder() / "dispatch.json").read_text("utf-8"))
        if key_file is not None or not key:
            key = (key_file or Path(note["key_file"])).read_text("ascii").strip()
        url = note["url"] if server is None else read_address("--dispatch", server)
    except FileNotFoundError as error:
        hint = "start one with `godwit serve --dispatch`, or give --dispatch URL and --key-file FILE"
        raise SendFailed(f"no dispatch of this user runs here ({error.filename} does not exist): {hint}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SendFailed(f"the key cannot be read: {error}") from error
    if not all("!" <= character <= "~" for character in key):
        raise SendFailed("the API key must be one word of printable ASCII characters")
    return url.rstrip("/"), key


def call(url: str, key: str, method: str, path: str, body: dict[str, Any] | bytes | None = None) -> Any:
    """The answer of dispatch; raises SendFailed with its reason."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url + path, data, headers, method=method)
    try:
        with _open(url, request) as answered:
            return json.loads(answered.read() or b"null")
    except urllib.error.HTTPError as error:
        kind = DispatchUnreachable if error.code in AWAY else SendFailed
        raise kind(_read_problem(error.read(), error.code)) from error
    except (OSError, ValueError, HTTPException) as error:
        raise DispatchUnreachable(f"dispatch at {url} cannot be reached: {error}") from error


def _open(url: str, request: urllib.request.Request) -> Any:
    """Open a request. The certificate of the dispatch on this machine is for its public name, so exactly that certificate is trusted."""
    note = _read_note() if url.startswith("https:") else {}
    file = note.get("certificate")
    if not file or note.get("url") != url:
        return OPENER.open(request, timeout=TIMEOUT_S)
    context = ssl.create_default_context(cafile=file)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    handlers = (NoRedirect(), urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    return urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT_S)


def _read_note() -> dict[str, str]:
    from ..dispatch.folder import runtime_folder

    try:
        note: dict[str, str] = json.loads((runtime_folder() / "dispatch.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return note


def _read_problem(body: bytes, status: int) -> str:
    try:
        problem = json.loads(body)
        return f"dispatch refused it: {problem['title']} ({problem['code']}): {problem['detail']}"
    except (ValueError, KeyError, TypeError):
        return f"dispatch answered HTTP {status}"
