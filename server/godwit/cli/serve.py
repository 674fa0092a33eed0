"""`godwit serve`: runs one node in the foreground until a signal.

Owns signals and standard output: the line `listening client=… mqtt=… admin=…` once all ports accept. SIGTERM or SIGINT
drains the node and exits with code 0; a second one closes the remaining connections and exits with code 1. SIGHUP reloads
the configuration; if it is invalid, nothing changes.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..config.option import Address
from ..errors import ConfigInvalid
from ..signals import hangups as early_hangups
from ..signals import terminations as early_terminations
from ..signals.ending import Ending
from .options import config_options, read_config
from .program import drop_output, spare_start
from .supervisor import READY, STOPPING, tell_supervisor

if TYPE_CHECKING:
    from ..config import Config
    from ..dispatch.part import DispatchPart
    from ..server import Listeners, Node

EARLY_END_S = 5.0
"""Seconds in which started parts must stop, if a signal arrives during the start."""
EXIT_AT_ONCE = 1
"""The exit code after a second signal: connections were closed without a drain."""


@click.command()
@config_options
@click.option(
    "--data", metavar="DIR", help="Data directory: the journal and everything else that must survive a restart."
)
@click.option("--client", metavar="HOST:PORT", help="Address of the client port (127.0.0.1:8800).")
@click.option("--mqtt", metavar="HOST:PORT", help="Address of the MQTT port (127.0.0.1:1883).")
@click.option("--admin", metavar="HOST:PORT", help="Address of the admin port (127.0.0.1:8801).")
@click.option("--shards", metavar="N", help="Number of shards (threads with connections); 0: one per core.")
@click.option("--dispatch", is_flag=True, help="Also run dispatch: one API for notifications over every channel.")
@click.option("--demo", is_flag=True, help="Publish live telemetry of this host on /host/NAME/….")
def serve(
    file: Path | None,
    settings: tuple[str, ...],
    data: str | None,
    client: str | None,
    mqtt: str | None,
    admin: str | None,
    shards: str | None,
    dispatch: bool,
    demo: bool,
) -> None:
    """Start a node."""
    if data == "":  # an unset shell variable: the user expects a journal
        raise ConfigInvalid(
            "--data", data, "is empty", hint="name a directory, or leave out --data to keep messages in memory"
        )
    flags = {
        "client.address": client,
        "mqtt.address": mqtt,
        "admin.address": admin,
        "node.shards": shards,
        "node.data_directory": data,
        "demo.enabled": "true" if demo else None,
        "dispatch.enabled": "true" if dispatch else None,
    }
    config = read_config(file, settings, flags)
    ending = Ending(_note_forced_end)
    ending.prepare()
    ending.leave(asyncio.run(run_node(config, lambda: read_config(file, settings, flags, is_reload=True))))


async def run_node(config: Config, read: Callable[[], Config]) -> int:
    """Run a node until a signal; returns the exit code. SIGHUP calls `read` to reload the configuration."""
    from ..logs import read_logger, start_logs, wait_for_logs
    from ..server import Node, read_host_name

    start_logs(config.logging, config.node.name or read_host_name())
    for variable in config.ignored_variables:
        read_logger().warning(
            "variable_ignored", variable=variable, reason="Kubernetes sets it for a Service of that name"
        )
    _end_on_signals()
    hangups = listen_to_hangups()
    dispatch = _open_dispatch(config)
    read_again = read if dispatch is None else lambda: dispatch.trust(read())

    def restart_logs(config: Config) -> None:
        start_logs(config.logging, config.node.name)

    try:
        own = config if dispatch is None else dispatch.config
        node = Node(own, read_config=read_again, on_reload=restart_logs, beside=dispatch)
    except BaseException:
        await _stop_dispatch(dispatch)
        raise
    signals = listen_to_signals()
    asked = asyncio.create_task(signals.get())
    start = asyncio.create_task(_start(node, dispatch))
    await asyncio.wait({start, asked}, return_when=asyncio.FIRST_COMPLETED)
    if not start.done():
        await _leave_early(asked.result(), start)
    line, listeners = start.result()
    reloads = asyncio.create_task(_reload_on_hangup(hangups, node))
    await asyncio.to_thread(wait_for_logs)  # warnings of the start appear before the line below
    _note_admin(config, listeners.admin)
    lines = [line]
    if config.demo.enabled:
        lines.append(f"live telemetry of this machine: http://{name_reachable(listeners.admin)}/")
    try:
        click.echo("\n".join(lines))
    except OSError as error:  # standard output is closed; clients that know the ports are served
        read_logger().warning("standard_output_failed", reason=str(error), listeners=str(listeners))
        drop_output()
    tell_supervisor(READY)
    spare_start()
    read_logger().info("signal_received", signal=(await asked).name)
    tell_supervisor(STOPPING)
    reloads.cancel()
    await _stop_dispatch(dispatch)
    drain = asyncio.create_task(node.drain())
    again = asyncio.create_task(signals.get())
    await asyncio.wait({drain, again}, return_when=asyncio.FIRST_COMPLETED)
    is_drained = drain.done()
    for task in (drain, again):
        task.cancel()
    await asyncio.gather(drain, again, return_exceptions=True)
    if not is_drained:
        await node.hang_up()
    await node.stop()
    return 0 if is_drained else EXIT_AT_ONCE


async def _start(node: Node, dispatch: DispatchPart | None) -> tuple[str, Listeners]:
    """Start node and dispatch; returns the line with all listeners, and the node's listeners."""
    try:
        listeners = await node.start()
    except BaseException:
        await _stop_dispatch(dispatch)
        raise
    return await _start_dispatch(dispatch, node, listeners), listeners


async def _leave_early(asked: signal.Signals, start: asyncio.Task[tuple[str, Listeners]]) -> None:
    """End the process with code 0 during its start: it has served no client. A thread that opens a journal cannot be
    interrupted; the journal is as safe as after a crash.
    """
    from ..logs import wait_for_logs

    _note_early_end(asked)
    start.cancel()
    await asyncio.wait({start}, timeout=EARLY_END_S)
    await asyncio.to_thread(wait_for_logs)
    os._exit(0)


def _end_on_signals() -> None:
    """Until the event loop handles signals (it cannot while an extension loads), each ends the process with code 0."""
    from ..logs import wait_for_logs

    def tell(asked: signal.Signals) -> None:
        _note_early_end(asked)
        wait_for_logs()

    early_terminations.EARLY.tell = tell
    early_terminations.EARLY.hold(signal.SIGTERM, signal.SIGINT)


def _note_early_end(asked: signal.Signals) -> None:
    from ..logs import read_logger

    read_logger().info("signal_received", signal=asked.name, during="start")
    tell_supervisor(STOPPING)


def _note_forced_end(threads: str) -> None:
    from ..logs import read_logger, wait_for_logs

    read_logger().warning("exit_forced", reason="an extension keeps the process from ending", threads=threads)
    wait_for_logs()


def _open_dispatch(config: Config) -> DispatchPart | None:
    if not config.dispatch.enabled:
        return None
    from ..dispatch.part import DispatchPart  # its libraries are loaded only if needed

    return DispatchPart(config)


async def _start_dispatch(dispatch: DispatchPart | None, node: Node, listeners: Listeners) -> str:
    """Start dispatch with the node; returns the line with all listeners. Stops both if it cannot start."""
    if dispatch is None:
        return str(listeners)
    try:
        return f"{listeners} {dispatch.describe_listeners(await dispatch.start(listeners.client))}"
    except BaseException:
        await dispatch.stop()
        await node.stop()
        raise


async def _stop_dispatch(dispatch: DispatchPart | None) -> None:
    if dispatch is not None:
        await dispatch.stop()


def _note_admin(config: Config, admin: Address) -> None:
    """Write the admin port's address for `godwit health`; the node runs even if that fails."""
    if not config.node.data_directory:
        return
    from ..logs import read_logger
    from .health import write_note

    try:
        address = name_reachable(admin)
        write_note(Path(config.node.data_directory), f"{'https' if config.admin.tls else 'http'}://{address}")
    except OSError as error:
        read_logger().warning("admin_address_not_written", reason=error.strerror)


def name_reachable(address: Address) -> Address:
    """An address that a browser on this machine can open, also if the node listens on all addresses."""
    return Address("localhost", address.port) if address.host in ("0.0.0.0", "::") else address


def listen_to_signals() -> asyncio.Queue[signal.Signals]:
    """SIGTERM and SIGINT, as they arrive."""
    signals: asyncio.Queue[signal.Signals] = asyncio.Queue()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, signals.put_nowait, number)
    return signals


def listen_to_hangups() -> asyncio.Event:
    """Set when a SIGHUP arrives, or arrived during the start."""
    hangups = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hangups.set)
    if early_hangups.EARLY.has_come:
        hangups.set()
    return hangups


async def _reload_on_hangup(hangups: asyncio.Event, node: Node) -> None:
    from ..logs import read_logger

    while await hangups.wait():
        hangups.clear()
        try:
            await node.reload()
        except ConfigInvalid as error:  # the operator's mistake: the old settings stay in force
            read_logger().error("config_not_reloaded", reason=str(error))
        except Exception as error:  # such as a failing node: the next SIGHUP is handled all the same
            read_logger().error("config_not_reloaded", reason=f"{type(error).__name__}: {error}")
