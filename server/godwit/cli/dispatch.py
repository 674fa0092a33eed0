"""`godwit dispatch`: run dispatch alone, make keys, send failed deliveries again, and list deliveries.

`run all` is a process without a node: its node is `dispatch.node_url`, which must trust its keys (`dispatch.token_keys_file`). SIGTERM or
SIGINT takes no new requests, finishes what is in flight, and exits with code 0. SIGHUP reads the certificates again; broken ones change
nothing. A second process on one data directory exits with code 2.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import click

from ..errors import ConfigInvalid
from .check import check
from .options import config_options, read_config
from .program import spare_start
from .send import call, find_dispatch

if TYPE_CHECKING:
    from ..config import Config
    from ..dispatch.part import DispatchPart

SCOPES = ("send", "read", "manage", "events", "admin", "operator")


def server_options(command: Any) -> Any:
    """--dispatch URL and --key-file FILE."""
    server = click.option(
        "--dispatch", "server", metavar="URL", help="URL of dispatch; default: the one on this machine."
    )
    key = click.option(
        "--key-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Read the API key from this file; or set GODWIT_DISPATCH_KEY.",
    )
    return server(key(command))


@click.group()
def dispatch() -> None:
    """Run dispatch without a node, or manage a running one."""


dispatch.add_command(check)


@dispatch.command()
@click.argument("roles", type=click.Choice(["all"]))
@config_options
@click.option("--data", metavar="DIR", help="Directory for the data of dispatch.")
def run(roles: str, file: Path | None, settings: tuple[str, ...], data: str | None) -> None:
    """Run dispatch without a node. The only role is `all`, because the embedded store allows one process."""
    flags = {"node.data_directory": data, "dispatch.enabled": "true"}
    config = read_config(file, settings, flags)
    raise SystemExit(asyncio.run(run_dispatch(config, lambda: read_config(file, settings, flags, is_reload=True))))


@dispatch.command()
@config_options
@click.option("--data", metavar="DIR", help="Directory for the data of dispatch.")
def rekey(file: Path | None, settings: tuple[str, ...], data: str | None) -> None:
    """Encrypt stored secrets under a new key. Stop dispatch first; after a crash, run it again."""
    from ..dispatch.stores.sqlite.manage.rekeying import rekey as change_key

    config = read_config(file, settings, {"node.data_directory": data})
    if not config.node.data_directory:
        raise click.UsageError("name the data directory: --data DIR")
    keys = config.dispatch.secrets_key_file
    changed = change_key(Path(config.node.data_directory) / "dispatch", Path(keys) if keys else None)
    click.echo(json.dumps(changed._asdict()))
    raise SystemExit(1 if changed.unreadable else 0)


async def run_dispatch(config: Config, read: Callable[[], Config]) -> int:
    """Run until a signal; returns the exit code. SIGHUP calls `read` to reload the configuration."""
    from ..dispatch.part import DispatchPart
    from ..logs import read_logger, start_logs, wait_for_logs
    from .serve import listen_to_hangups, listen_to_signals

    start_logs(config.logging, config.node.name or "dispatch")
    signals, hangups = listen_to_signals(), listen_to_hangups()
    part = DispatchPart(config)
    renewals = asyncio.create_task(_renew_on_hangup(hangups, part, read))
    try:
        address = await part.start_at(config.dispatch.node_url)
        await asyncio.to_thread(wait_for_logs)
        click.echo(f"listening {part.describe_listeners(address)}")
        spare_start()
        asked = await signals.get()
        read_logger().info("signal_received", signal=asked.name)
    finally:
        renewals.cancel()
        await part.stop()
    return 0


async def _renew_on_hangup(hangups: asyncio.Event, part: DispatchPart, read: Callable[[], Config]) -> None:
    from ..logs import read_logger

    while await hangups.wait():
        hangups.clear()
        try:
            tls = read().tls
            part.try_certificates(tls)
        except ConfigInvalid as error:  # the operator's mistake: the old certificate stays
            read_logger().error("config_not_reloaded", reason=str(error))
        else:
            part.certify(tls)
            read_logger().info("config_reloaded", taken_over=["tls"])


@dispatch.command()
@click.option(
    "--scope", "scopes", multiple=True, type=click.Choice(SCOPES), required=True, help="Allow this. Repeatable."
)
@click.option("--tenant", help="Make the key for this tenant; needs scope `operator`.")
@click.option(
    "--test",
    "is_test",
    is_flag=True,
    help="Make a test key: it sends to the sandbox only, and sees what test keys sent.",
)
@server_options
def key(scopes: tuple[str, ...], tenant: str | None, is_test: bool, server: str | None, key_file: Path | None) -> None:
    """Make an API key; it is shown once."""
    body: dict[str, Any] = {"scopes": list(scopes), "test": is_test}
    if tenant is not None:
        body["tenant"] = tenant
    click.echo(json.dumps(call(*find_dispatch(server, key_file), "POST", "/v1/keys", body)))


@dispatch.command()
@click.option("--reason", help="Replay only deliveries that failed for this reason.")
@click.option("--notification", metavar="ID", help="Replay only deliveries of this notification.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=1_000, help="Replay at most this many (1,000).")
@click.option("--dry-run", is_flag=True, help="List the deliveries instead of sending them again.")
@server_options
def replay(
    reason: str | None,
    notification: str | None,
    limit: int,
    dry_run: bool,
    server: str | None,
    key_file: Path | None,
) -> None:
    """Send failed deliveries again."""
    url, secret = find_dispatch(server, key_file)
    if not dry_run:
        wanted = {"reason": reason, "notification": notification, "limit": limit}
        body = {name: value for name, value in wanted.items() if value is not None}
        click.echo(json.dumps(call(url, secret, "POST", "/v1/dead-letters/replay", body)))
        return
    after, shown = None, 0
    while shown < limit:
        query = urlencode({name: value for name, value in (("reason", reason), ("after", after)) if value})
        page = call(url, secret, "GET", f"/v1/dead-letters?{query}")
        for letter in page["dead_letters"]:
            is_wanted = letter["state"] == "failed" and notification in (None, letter["notification"])
            if shown < limit and is_wanted:
                click.echo(json.dumps(letter))
                shown += 1
        after = page["after"]
        if after is None:
            return


@dispatch.command()
@click.argument("notification")
@server_options
def deliveries(notification: str, server: str | None, key_file: Path | None) -> None:
    """List the deliveries of a notification, one JSON object a line."""
    url, secret = find_dispatch(server, key_file)
    after = 0
    while after is not None:
        page = call(url, secret, "GET", f"/v1/notifications/{quote(notification, safe='')}/deliveries?after={after}")
        for row in page["deliveries"]:
            click.echo(json.dumps(row))
        after = page["after"]
