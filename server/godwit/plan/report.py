"""Prints a plan: as one JSON value, or as a few tables that begin with the answer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from .check import NEAR, Compared
from .machine import FRAME_OVERHEAD_BYTES, Machine
from .model import Prediction, fill_budget, most_connections, most_messages, predict
from .workload import Budget, Workload

BAR = 24


def describe_plan(
    workload: Workload, budget: Budget, machine: Machine, compared: Sequence[Compared] | None = None
) -> dict[str, Any]:
    """Everything as a JSON value; infinite values are null."""
    prediction = predict(workload, budget, machine)
    described: dict[str, Any] = {
        "fits": prediction.fits,
        "binding": prediction.binding.name,
        "workload": dataclasses.asdict(workload),
        "budget": dataclasses.asdict(fill_budget(budget, machine)),
        "limits": [{**dataclasses.asdict(limit), "share": _finite(limit.share)} for limit in prediction.limits],
        "most": {
            "connections": most_connections(workload, budget, machine),
            "messages_per_second": most_messages(workload, budget, machine),
        },
        "prediction": {
            name: _finite(value) if isinstance(value, float) else value
            for name, value in _fields(prediction).items()
            if name != "limits"
        },
        "sends_per_second_a_core": {
            str(int(size) - FRAME_OVERHEAD_BYTES): round(1e6 / us) for size, us in machine.send_us.items() if us > 0
        },
        "machine": machine.describe(),
    }
    if compared is not None:
        described["check"] = [
            {**dataclasses.asdict(one), "ratio": _finite(one.ratio), "is_near": one.is_near} for one in compared
        ]
    return described


def _fields(prediction: Prediction) -> dict[str, Any]:
    return {found.name: getattr(prediction, found.name) for found in dataclasses.fields(prediction)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def show_plan(described: dict[str, Any], console: Console | None = None) -> None:
    """The tables, for people."""
    console = console or Console()
    console.print(_answer(described))
    console.print(_limits(described))
    console.print(_facts(described))
    console.print(_machine(described))
    if "check" in described:
        console.print(_check(described["check"]))


def _answer(described: dict[str, Any]) -> Panel:
    binding = next(limit for limit in described["limits"] if limit["name"] == described["binding"])
    most = described["most"]
    share = "more than is available" if binding["share"] is None else f"{binding['share']:.0%} of it"
    lines = [
        f"[bold]{'It fits.' if described['fits'] else 'It does not fit.'}[/] "
        f"The bottleneck is [bold]{binding['name']}[/]: {share}.",
        f"At most [bold]{most['connections']:,}[/] connections, or [bold]{most['messages_per_second']:,.0f}[/] messages "
        "a second, with everything else unchanged.",
    ]
    if not described["fits"]:
        lines.append(f"Possible remedy: {binding['advice']}.")
    settings = described["prediction"]["settings"]
    lines += [f"Set limits.{name} = {value}." for name, value in settings.items()]
    return Panel("\n".join(lines), border_style="green" if described["fits"] else "red", title="godwit plan")


def _limits(described: dict[str, Any]) -> Table:
    table = Table("limit", "needed", "available", "", "share", box=None, header_style="dim")
    for limit in described["limits"]:
        share = limit["share"] if limit["share"] is not None else 9.99
        full = min(BAR, round(share * BAR))
        colour = "red" if share > 1 else "yellow" if share > 0.7 else "green"
        bar = f"[{colour}]{'█' * full}[/][dim]{'░' * (BAR - full)}[/]"
        unit = limit["unit"]
        table.add_row(
            limit["name"],
            f"{_number(limit['needed'])} {unit}",
            f"{_number(limit['available'])} {unit}",
            bar,
            f"{share:.0%}",
        )
    return table


def _facts(described: dict[str, Any]) -> Table:
    found, budget = described["prediction"], described["budget"]
    storm = (
        f"{_number(found['storm_seconds'])} s on {budget['cores']} cores, without the time that clients wait on purpose"
    )
    delay = "never: it falls behind" if found["delay_ms"] is None else f"{_number(found['delay_ms'])} ms"
    rows = {
        "deliveries a second": f"{_number(found['deliveries_per_second'])}, {_number(found['frames_a_send'])} a send",
        "until the last receiver has it": delay,
        "cores busy with it": _number(found["cores"]),
        "memory": f"{_number(found['node_mb'])} MB of the node, {_number(found['kernel_mb'])} MB of the kernel",
        "network": f"{_number(found['network_mbit'])} Mbit/s",
        "all clients reconnect and catch up": storm,
        "node.shards": str(found["shards"]),
    }
    table = Table("this workload", "", box=None, header_style="dim")
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _machine(described: dict[str, Any]) -> Table:
    machine = described["machine"]
    table = Table("this machine", "", box=None, header_style="dim")
    for size, count in described["sends_per_second_a_core"].items():
        table.add_row(f"sends per second and core, {int(size):,} bytes", f"{count:,}")
    table.add_row("connects with a subscription, per second and core", f"{1e6 / machine['connect_us']:,.0f}")
    if machine["tls_connect_us"] is None:
        table.add_row("TLS", "not measured, and not part of the prediction")
    else:
        handshakes = 1e6 / (machine["connect_us"] + machine["tls_connect_us"])
        table.add_row("the same with TLS, per second and core", f"{handshakes:,.0f}")
        a_send = machine["tls_send_us"] + machine["tls_byte_us"] * (144 + FRAME_OVERHEAD_BYTES)
        table.add_row("what TLS adds to a send of 144 bytes", f"{a_send:.2f} µs")
        table.add_row("memory of a connection's keys", f"{machine['tls_kb']:.2f} kB")
    table.add_row(
        "memory of a connection",
        f"{machine['user_kb']:.2f} kB of the node, {machine['kernel_kb']:.1f} kB of the kernel",
    )
    table.add_row("measured", f"in {machine['seconds']:.0f} s, with {machine['driver']}, on loopback")
    return table


def _check(compared: list[dict[str, Any]]) -> Table:
    table = Table("measured workload", "predicted", "measured", "ratio", box=None, header_style="dim")
    for one in compared:
        colour = "green" if one["is_near"] else "red"
        ratio = "" if one["ratio"] is None else f"[{colour}]{one['ratio']:.2f}[/]"
        table.add_row(f"{one['name']}, {one['unit']}", _number(one["predicted"]), _number(one["measured"]), ratio)
    table.caption = f"green: measured and predicted differ by at most {NEAR:.0%}"
    return table


def _number(value: float | None) -> str:
    if value is None:
        return "endless"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
