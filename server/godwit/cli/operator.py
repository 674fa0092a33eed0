"""`godwit revoke, purge, reload`: an operator's changes to a running node, over its admin port.

The admin token is that of the node's own configuration: GODWIT_ADMIN_TOKEN, or --token-file; never on the command line.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import click

from ..errors import ConfigInvalid, NodeFailed
from ..words import printable
from .client_options import read_token

ADMIN_DEFAULT = "127.0.0.1:8801"
TIMEOUT_S = 30
EXIT_NOT_KEPT = 3


def admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--admin and --token-file."""
    token = click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Read the admin token from this file; or set GODWIT_ADMIN_TOKEN.",
    )
    admin = click.option(
        "--admin", metavar="URL", help=f"Admin port of the node; or set GODWIT_ADMIN_ADDRESS ({ADMIN_DEFAULT})."
    )
    return admin(token(command))


@click.command()
@admin_options
@click.option("--identity", help="Disconnect this identity and reject it from now on.")
@click.option("--token-id", help="Disconnect clients with this token id (jti) and reject the token.")
@click.option("--tenant", help="Limit it to the identity or token of this tenant.")
@click.option(
    "--authority", help="Limit it to identities proven by this authority: certificate, authorizer, basic or jwt:ISSUER."
)
@click.option(
    "--until",
    "until_ms",
    type=int,
    metavar="UNIX_MS",
    help="Time at which the revocation ends. Default: until it is undone.",
)
@click.option("--undo", "lift", is_flag=True, help="Undo a revocation.")
@click.option("--list", "is_list", is_flag=True, help="List active revocations.")
def revoke(
    admin: str | None,
    token_file: Path | None,
    identity: str | None,
    token_id: str | None,
    tenant: str | None,
    authority: str | None,
    until_ms: int | None,
    lift: bool,
    is_list: bool,
) -> None:
    """Revoke an identity or a token: reject it from now on and close its connections.

    Exits with code 3 if the disk is failing: the revocation holds until the node stops, and is written when the disk works again.
    """
    if is_list:
        for row in call(admin, token_file, "GET", "/v1/revocations")["rows"]:
            click.echo(json.dumps(row))
        return
    if bool(identity) == bool(token_id):
        raise click.UsageError("give either --identity or --token-id: what to revoke")
    given = {"identity": identity, "token_id": token_id, "tenant": tenant, "authority": authority}
    named = {name: value for name, value in given.items() if value}
    if lift:
        result = call(admin, token_file, "DELETE", f"/v1/revocations?{urlencode(named)}")
        click.echo("lifted")
    else:
        result = call(admin, token_file, "POST", "/v1/revocations", {**named, "until_ms": until_ms})
        ended = (_count(result, "connections"), _count(result, "sessions"), f"{_count(result, 'wills')} withheld")
        click.echo(f"revoked: {', '.join(ended)}")
    if result.get("warning"):
        click.echo(f"godwit: {result['warning']}", err=True)
    if not result.get("kept", True):
        click.echo("godwit: the disk is failing: the change may be lost when the node restarts", err=True)
        raise click.exceptions.Exit(EXIT_NOT_KEPT)


def _count(result: dict[str, Any], what: str) -> str:
    count = result.get(what, 0)
    return f"{count} {what.removesuffix('s') if count == 1 else what}"


@click.command()
@admin_options
@click.argument("subject")
def purge(admin: str | None, token_file: Path | None, subject: str) -> None:
    """Delete the messages and the snapshot that a node has of SUBJECT.

    Exits with code 3 if the journal disk is failing, so that a crash may undo the purge.
    """
    result = call(admin, token_file, "POST", f"/v1/purge?{urlencode({'subject': subject})}")
    gone = "1 message" if result["purged"] == 1 else f"{result['purged']} messages"
    click.echo(f"deleted: {gone} of {printable(result['subject'])}")
    if not result.get("kept", True):
        click.echo("godwit: the journal disk is failing: a crash of the node may undo the purge", err=True)
        raise click.exceptions.Exit(EXIT_NOT_KEPT)


@click.command()
@admin_options
def reload(admin: str | None, token_file: Path | None) -> None:
    """Make a node read its configuration again. If it is invalid, nothing changes."""
    result = call(admin, token_file, "POST", "/v1/reload")
    click.echo(
        f"changed: {', '.join(result['taken_over']) or 'no setting; certificate and token files were read again'}"
    )
    if result["waits_for_restart"]:
        click.echo(f"needs a restart: {', '.join(result['waits_for_restart'])}")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token may only be sent to the given address."""

    def redirect_request(self, *_: Any) -> None:
        return None


OPENER = urllib.request.build_opener(NoRedirect, urllib.request.ProxyHandler({}))


def call(admin: str | None, token_file: Path | None, method: str, path: str, body: object = None) -> dict[str, Any]:
    """Send one request. Raises NodeFailed with the node's sentence, ConfigInvalid if the address is not an admin port."""
    base = read_base(admin)
    token = read_token(token_file, "GODWIT_ADMIN_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    data = None if body is None else json.dumps(body).encode()
    if data is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(base + path, data=data, headers=headers, method=method)
    try:
        with OPENER.open(request, timeout=TIMEOUT_S) as answer:
            result: dict[str, Any] = json.loads(answer.read())
            return result
    except urllib.error.HTTPError as error:
        try:
            reason = json.loads(error.read())["title"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            reason = f"HTTP {error.code} {error.reason}"
        if reason == "PathUnknown":  # the client port's word
            bound = "is the client port of a node: expected its admin port (admin.address)"
            raise ConfigInvalid("--admin", base, bound) from error
        hint = "" if token or error.code != 401 else ": give it with --token-file FILE, or GODWIT_ADMIN_TOKEN"
        raise NodeFailed(f"the node refused: {reason}{hint}") from error
    except (OSError, HTTPException) as error:
        raise NodeFailed(f"{base} cannot be reached: {getattr(error, 'reason', error)}") from error
    except (ValueError, RecursionError) as error:
        raise NodeFailed(f"{base} answered something that is not the JSON of an admin port") from error


def read_base(admin: str | None) -> str:
    """The address of the admin port as http://HOST:PORT; raises ConfigInvalid, which never shows a password."""
    if admin:
        return read_address("--admin", admin)
    return read_address("GODWIT_ADMIN_ADDRESS", os.environ.get("GODWIT_ADMIN_ADDRESS") or ADMIN_DEFAULT)


def read_address(place: str, address: str) -> str:
    """The address of an HTTP port, with its scheme and without a slash at its end; raises ConfigInvalid."""
    base = address.rstrip("/") if "://" in address else f"http://{address}"
    shown = base if "@" not in base else base.rpartition("@")[2]
    try:
        parts = urlsplit(base)
        is_host = bool((parts.hostname or "").encode("idna"))  # a part of a name that is empty or too long raises
        is_valid = is_host and parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or "@" in base or not base.isascii() or not base.isprintable() or " " in base:
        hint = "a token or key is given in a file or a variable of the environment" if "@" in base else ""
        raise ConfigInvalid(place, shown, "is not a valid address: expected http://HOST:PORT", hint=hint)
    return base
