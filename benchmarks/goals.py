"""The goals of the measurements, each with its load and metric. Pure: reads outcomes, runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

Outcomes = Mapping[str, dict[str, Any]]
"""Outcomes by load."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on one metric of one server; `is_ratio`: the metric divided by the baseline's in the same round."""

    sentence: str
    load: str
    figure: str
    bound: float
    unit: str
    server: str = "godwit"
    is_ratio: bool = False
    is_at_least: bool = False
    scale: float = 1.0
    """A factor for the stored value."""
    over: str = ""
    """The metric divided by that of this other server in the same round."""

    def measure(self, outcomes: Outcomes) -> float | None:
        """The measured value; None if that load or server was not measured."""
        outcome = outcomes.get(self.load, {})
        if self.over:
            rounds = self.list_rounds(outcomes)
            return median(rounds) if rounds else None
        if self.is_ratio:
            value = outcome.get("against_baseline", {}).get(self.server, {}).get(self.figure)
        else:
            value = outcome.get("servers", {}).get(self.server, {}).get("median", {}).get(self.figure)
        return None if value is None else float(value) * self.scale

    def list_rounds(self, outcomes: Outcomes) -> list[float]:
        """The same, round by round."""
        outcome = outcomes.get(self.load, {})
        servers = outcome.get("servers", {})
        mine = [figures.get(self.figure) for figures in servers.get(self.server, {}).get("rounds", [])]
        if not self.is_ratio and not self.over:
            return [value * self.scale for value in mine if value is not None]

        def is_base(name: str) -> bool:
            return name == self.over if self.over else name.startswith("baseline")

        baseline = next((found["rounds"] for name, found in servers.items() if is_base(name)), [])
        return [
            value / base[self.figure]
            for value, base in zip(mine, baseline, strict=False)
            if value and base.get(self.figure)
        ]

    def is_met(self, measured: float) -> bool:
        return measured >= self.bound if self.is_at_least else measured <= self.bound

    def describe_bound(self) -> str:
        return f"{'≥' if self.is_at_least else '≤'} {self.bound:,g} {self.unit}"


def _at_most(sentence: str, load: str, figure: str, bound: float, unit: str, server: str = "godwit") -> Goal:
    return Goal(sentence, load, figure, bound, unit, server)


def _ratio(sentence: str, load: str, figure: str, bound: float, server: str = "godwit") -> Goal:
    return Goal(sentence, load, figure, bound, "× the baseline", server, is_ratio=True)


def _over(sentence: str, suffix: str, bound: float, server: str, over: str, load: str = "mqtt") -> Goal:
    unit = "× JSON over WebSocket" if over == "godwit" else f"× {over}"
    return Goal(sentence, load, f"cpu_us_per_delivery{suffix}", bound, unit, server, over=over)


def _journaled(sentence: str, suffix: str) -> Goal:
    figure = f"cpu_us_per_delivery{suffix}"
    return Goal(sentence, "journal", figure, 1.05, "× without it", "godwit-journal", over="godwit")


URING, READY = "io_uring", "readiness"
CPU = "cpu_us_per_delivery"
MEMORY = "user_kb_per_connection"

GOALS = (
    _at_most(f"idle connection of 10,000, own memory, {URING}", "idle", "memory_kb_per_connection", 0.40, "kB"),
    _at_most(
        f"idle connection of 10,000, own memory, {READY}",
        "idle",
        "memory_kb_per_connection",
        0.40,
        "kB",
        "godwit-readiness",
    ),
    _at_most(
        "idle connection of 10,000 over TLS, own memory", "idle", "memory_kb_per_connection", 3.0, "kB", "godwit-tls"
    ),
    _at_most(f"idle connection of 100,000, own memory, {URING}", "idle-100k", "memory_kb_per_connection", 0.40, "kB"),
    _at_most(
        f"100,000 connections, each on a subject of its own with one message, {URING}",
        "own",
        "memory_kb_per_connection",
        1.2,
        "kB",
    ),
    _at_most(f"idle connection of 1,000,000 in one process, own memory, {URING}", "million", MEMORY, 0.40, "kB"),
    Goal("… and each gets each of ten broadcasts once, in order", "million", "exact", 1, "", is_at_least=True),
    _ratio(f"connect and subscribe, server CPU, {URING}", "connect", "cpu_ms_per_1000", 1.4),
    _ratio(f"connect and subscribe, server CPU, {READY}", "connect", "cpu_ms_per_1000", 2.0, "godwit-readiness"),
    _ratio(f"1 to 1,000, 25 messages/s, CPU per delivery, {URING}", "fanout", CPU, 1.0),
    _ratio(f"1 to 1,000, 50 messages/s, CPU per delivery, {URING}", "fanout", f"{CPU}_at_50", 1.0),
    _ratio(f"1 to 1,000, 25 messages/s, CPU per delivery, {READY}", "fanout", CPU, 1.1, "godwit-readiness"),
    _ratio(f"1 to 1,000, 50 messages/s, CPU per delivery, {READY}", "fanout", f"{CPU}_at_50", 1.1, "godwit-readiness"),
    _ratio(f"100 subjects with 100 subscribers each, CPU per delivery, {URING}", "many", CPU, 1.1),
    _journaled("with the journal, every delivery written down, 25 messages/s, CPU per delivery", ""),
    _journaled("… 50 messages/s", "_at_50"),
    _over("event streams, 1 to 1,000, 25 messages/s, CPU per delivery", "", 1.15, "godwit-http", "godwit", "fanout"),
    _over(
        "event streams, 1 to 1,000, 50 messages/s, CPU per delivery", "_at_50", 1.15, "godwit-http", "godwit", "fanout"
    ),
    _over("MQTT at QoS 0, 1 to 1,000, 25 messages/s, CPU per delivery", "", 1.15, "godwit-mqtt", "godwit"),
    _over("MQTT at QoS 0, 1 to 1,000, 50 messages/s, CPU per delivery", "_at_50", 1.15, "godwit-mqtt", "godwit"),
    _over("MQTT at QoS 1, acknowledged, 25 messages/s, CPU per delivery", "", 2.0, "godwit-mqtt-qos1", "godwit-mqtt"),
    _over(
        "MQTT at QoS 1, acknowledged, 50 messages/s, CPU per delivery", "_at_50", 2.0, "godwit-mqtt-qos1", "godwit-mqtt"
    ),
    _over("… over mosquitto's, 50 messages/s", "_at_50", 1.0, "godwit-mqtt-qos1", "mosquitto-qos1"),
    _over("… over nats-server's, 50 messages/s", "_at_50", 1.0, "godwit-mqtt-qos1", "nats-mqtt-qos1"),
    _at_most(
        "idle MQTT connection of 10,000, own memory", "mqtt-idle", "memory_kb_per_connection", 0.9, "kB", "godwit-mqtt"
    ),
    _at_most(
        "saturated, 1 to 1,000, 64 publishes in flight, resumable, CPU per delivery", "saturated", CPU, 0.40, "µs"
    ),
    _at_most("1,000 clients resume 100 missed messages each, server CPU", "resume", "cpu_seconds", 0.12, "s"),
    Goal("… and each gets exactly what it missed", "resume", "exact", 1, "", is_at_least=True),
    _ratio("latency at 50,000 deliveries/s over 1,000 subjects, p99", "latency", "p99_us", 1.5),
    Goal(
        "acknowledged publishes of 144 B a second of CPU, JSON",
        "publish",
        "publishes_per_cpu_second",
        200_000,
        "/s",
        is_at_least=True,
    ),
    Goal(
        "acknowledged publishes of 144 B a second of CPU, binary",
        "publish",
        "publishes_per_cpu_second",
        400_000,
        "/s",
        "godwit-binary",
        is_at_least=True,
    ),
    Goal(
        "acknowledged publishes over REST, keep-alive, 16 connections, a second of CPU",
        "post",
        "publishes_per_cpu_second",
        50_000,
        "/s",
        "godwit-http",
        is_at_least=True,
    ),
    _at_most("1 % never read: CPU over the same load without them", "slow", "cpu_ratio", 1.05, "×"),
    _at_most("1 % never read: p99 of the others over the same load without them", "slow", "p99_ratio", 1.25, "×"),
    _at_most("1 % never read: memory grown beyond the same load without them", "slow", "memory_grown_kb", 1024, "kB"),
    _at_most("1 % never read: largest send queue of their sockets", "slow", "send_queue_kb", 64, "kB"),
    Goal("1 % never read: each receives a gap with the exact count", "slow", "exact", 1, "", is_at_least=True),
)
