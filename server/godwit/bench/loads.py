"""The loads: the steps of each, at full size and at a smaller size for a smoke test, and the metrics read from its run.

Pure: makes plans for the generator and reads results; starts nothing. For all metrics lower is better, except those whose
name ends in `_per_second` or begins with `exact`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .million import LIMITS, check_machine, plan_million, read_million
from .shape import Figures, Shape, connect, pause, publish, steps_of


@dataclass(frozen=True, slots=True)
class Load:
    """A load: its runs (most have one) and its metrics."""

    name: str
    sentence: str
    shapes: Callable[[float], list[Shape]]
    """Takes the share of the full size, at most 1.0."""
    figures: Callable[[list[dict[str, Any]], list[Shape]], Figures]
    against: tuple[str, ...] = ("baseline",)
    shards: int = 1
    is_one_frame_a_send: bool = False
    """Whether it is paced so that every message is sent alone. If a busy machine made a server merge messages, the round
    does not count.
    """
    limits: Mapping[str, int] = field(default_factory=dict)
    """The settings of the node for this load."""
    check: Callable[[Shape], None] | None = None
    """Raises if the machine cannot run it."""


def _per_delivery(step: dict[str, Any]) -> Figures:
    return {
        "cpu_us_per_delivery": step["cpu_seconds"] * 1e6 / max(1, step["delivered"]),
        "deliveries_per_read": step["delivered"] / max(1, step["reads"]),
        "p50_us": step["latency"]["p50_us"],
        "p99_us": step["latency"]["p99_us"],
        "p999_us": step["latency"]["p999_us"],
        "max_us": step["latency"]["max_us"],
    }


def _idle(clients: int, threads: int) -> Callable[[float], list[Shape]]:
    def shapes(size: float) -> list[Shape]:
        return [Shape(int(clients * size), 100, [connect(), pause(2 * size, "idle")], threads=threads)]

    return shapes


def _memory(results: list[dict[str, Any]], shapes: list[Shape]) -> Figures:
    grown = results[0]["steps"][-1]["pss_kb"] - results[0]["pss_kb_before"]
    return {"memory_kb_per_connection": grown / shapes[0].subscribers}


def _connect(size: float) -> list[Shape]:
    return [Shape(int(10_000 * size), 100, [connect()])]


def _connect_figures(results: list[dict[str, Any]], shapes: list[Shape]) -> Figures:
    step = steps_of(results[0])["connect"]
    count = shapes[0].subscribers
    return {
        "cpu_ms_per_1000": step["cpu_seconds"] * 1e6 / count,
        "connects_per_second": count / step["seconds"],
        "p99_us": step["latency"]["p99_us"],
    }


def _fanout(size: float) -> list[Shape]:
    steps = [
        connect(),
        publish("warm", int(25 * size), rate=25),
        publish("at 25", int(150 * size), rate=25),
        publish("at 50", int(300 * size), rate=50),
    ]
    return [Shape(int(1_000 * max(size, 0.1)), 1, steps, publishers=1)]


def _fanout_figures(results: list[dict[str, Any]], shapes: list[Shape]) -> Figures:
    steps = steps_of(results[0])
    figures = _per_delivery(steps["at 25"])
    figures |= {f"{name}_at_50": value for name, value in _per_delivery(steps["at 50"]).items()}
    return figures


def _mqtt(size: float) -> list[Shape]:
    """Like the fan-out, but shorter, because five servers run it. Publishes are acknowledged, so they use QoS 1."""
    steps = [
        connect(),
        publish("warm", int(25 * size), rate=25),
        publish("at 25", int(75 * size), rate=25),
        publish("at 50", int(150 * size), rate=50),
    ]
    return [Shape(int(1_000 * max(size, 0.1)), 1, steps, publishers=1, is_acked=True)]


def _many(size: float) -> list[Shape]:
    steps = [connect(), publish("warm", int(250 * size), rate=250), publish("many", int(2_500 * size), rate=250)]
    return [Shape(int(10_000 * size), 100, steps, publishers=1)]


def _saturated(size: float) -> list[Shape]:
    steps = [
        connect(),
        publish("warm", int(1_000 * size), in_flight=64, ahead_max=512),
        publish("saturated", int(10_000 * size), in_flight=64, ahead_max=512),
    ]
    return [Shape(int(1_000 * max(size, 0.1)), 1, steps, publishers=1, is_acked=True)]


def _publish(size: float) -> list[Shape]:
    steps = [
        connect(),
        publish("warm", int(50_000 * size), in_flight=2_000),
        publish("publish", int(1_000_000 * size), in_flight=2_000),
    ]
    return [Shape(0, 4, steps, publishers=4, is_acked=True)]


def _post(size: float) -> list[Shape]:
    steps = [
        connect(),
        publish("warm", int(10_000 * size), in_flight=16),
        publish("publish", int(300_000 * size), in_flight=16),
    ]
    return [Shape(0, 16, steps, publishers=16, is_acked=True)]


def _publish_figures(results: list[dict[str, Any]], shapes: list[Shape]) -> Figures:
    step = steps_of(results[0])["publish"]
    return {
        "publishes_per_cpu_second": step["acked"] / max(1e-9, step["cpu_seconds"]),
        "publishes_per_second": step["acked"] / step["seconds"],
        "cpu_us_per_publish": step["cpu_seconds"] * 1e6 / max(1, step["acked"]),
    }


def _resume(size: float) -> list[Shape]:
    steps = [
        connect(),
        publish("first", 10, in_flight=10),
        {"do": "leave", "name": "leave"},
        pause(0.5),
        publish("missed", 100, in_flight=10),
        pause(0.5, "away"),
        {"do": "return", "name": "return"},
    ]
    return [Shape(int(1_000 * max(size, 0.1)), 1, steps, publishers=1, is_acked=True, keeps_places=True)]


def _resume_figures(results: list[dict[str, Any]], shapes: list[Shape]) -> Figures:
    step = steps_of(results[0])["return"]
    return {
        "cpu_seconds": step["cpu_seconds"],
        "seconds": step["seconds"],
        "exact": float(step["delivered"] == shapes[0].subscribers * 100),
    }


def _latency(size: float) -> list[Shape]:
    rate = 50_000 * max(size, 0.1)
    steps = [connect(), publish("warm", int(rate), rate=rate), publish("latency", int(rate * 10 * size), rate=rate)]
    return [Shape(1_000, 1_000, steps, publishers=10)]


def _slow(size: float) -> list[Shape]:
    """The same work twice: without and with one percent of silent clients. A quarter of it is paced, the rest runs at full speed."""
    silence = {"do": "silence", "name": "silence", "clients": 1}
    main = [
        publish("warm", int(1_000 * size), in_flight=64),
        publish("paced", int(25_000 * size), rate=1_000),
        publish("saturated", int(75_000 * size), in_flight=64, ahead_max=512),
    ]
    wake = {"do": "wake", "name": "wake"}
    return [
        Shape(99, 1, [connect(), pause(0.2), *main], publishers=1, is_acked=True),
        Shape(99, 1, [connect(), silence, pause(0.2), *main, wake], publishers=1, is_acked=True),
    ]


def _slow_figures(results: list[dict[str, Any]], shapes: list[Shape]) -> Figures:
    without, silent = (steps_of(result) for result in results)
    told = silent["wake"]["told"]
    grown = [steps["saturated"]["pss_kb"] - steps["pause"]["pss_kb"] for steps in (without, silent)]
    return {
        "cpu_ratio": silent["paced"]["cpu_seconds"] / without["paced"]["cpu_seconds"],
        "cpu_ratio_saturated": silent["saturated"]["cpu_seconds"] / without["saturated"]["cpu_seconds"],
        "p99_ratio": silent["paced"]["latency"]["p99_us"] / without["paced"]["latency"]["p99_us"],
        **_per_delivery(silent["paced"]),
        "memory_grown_kb": grown[1] - grown[0],
        "send_queue_kb": max(told["send_queues"], default=0) / 1024,
        "exact": float(told["exact"] == told["clients"]),
    }


def _own(size: float) -> list[Shape]:
    count = int(100_000 * size)
    steps = [connect(), publish("one each", count, in_flight=500), pause(2 * size, "idle")]
    return [Shape(count, count, steps, publishers=1, is_acked=True, threads=6)]


def _figures_of(name: str) -> Callable[[list[dict[str, Any]], list[Shape]], Figures]:
    return lambda results, shapes: _per_delivery(steps_of(results[0])[name])


LOADS = {
    load.name: load
    for load in (
        Load("idle", "10,000 connections, each subscribed to one of 100 subjects", _idle(10_000, 1), _memory),
        Load(
            "idle-100k",
            "100,000 connections, each subscribed to one of 100 subjects",
            _idle(100_000, 6),
            _memory,
            (),
            6,
        ),
        Load("own", "100,000 connections, each on a subject of its own with one message", _own, _memory, (), 6),
        Load("connect", "10,000 clients connect and subscribe to one of 100 subjects", _connect, _connect_figures),
        Load(
            "fanout",
            "1 publisher to 1,000 subscribers, 25 and 50 messages a second",
            _fanout,
            _fanout_figures,
            is_one_frame_a_send=True,
        ),
        Load(
            "journal",
            "the fan-out with and without a data directory: what it costs to write down every message and every delivery",
            _fanout,
            _fanout_figures,
            (),
            is_one_frame_a_send=True,
        ),
        Load(
            "mqtt",
            "1 publisher to 1,000 MQTT subscribers at QoS 0 and at QoS 1, 25 and 50 messages a second",
            _mqtt,
            _fanout_figures,
            (),
            is_one_frame_a_send=True,
        ),
        Load(
            "mqtt-idle", "10,000 MQTT connections, each subscribed to one of 100 topics", _idle(10_000, 1), _memory, ()
        ),
        Load(
            "many",
            "100 subjects with 100 subscribers each, 250 messages a second",
            _many,
            _figures_of("many"),
            is_one_frame_a_send=True,
        ),
        Load(
            "saturated",
            "1 publisher with 64 publishes in flight to 1,000 subscribers",
            _saturated,
            _figures_of("saturated"),
            ("baseline-merge",),
        ),
        Load("publish", "4 publishers, 2,000 acknowledged publishes in flight", _publish, _publish_figures),
        Load("post", "16 publishers, each waits for its answer before it publishes again", _post, _publish_figures),
        Load(
            "resume",
            "1,000 clients reconnect and receive the 100 messages that they missed",
            _resume,
            _resume_figures,
            (),
        ),
        Load("latency", "50,000 deliveries a second on 1,000 subjects", _latency, _figures_of("latency")),
        Load(
            "slow",
            "100 clients of which 1 never reads, 100,000 messages",
            _slow,
            _slow_figures,
            (),
            is_one_frame_a_send=True,
        ),
        Load(
            "million",
            "1,000,000 connections, each subscribed, ten broadcasts to all of them",
            plan_million,
            read_million,
            (),
            limits=LIMITS,
            check=check_machine,
        ),
    )
}
