"""Measures this machine for `godwit plan`: a node on one core, the load generator on another, a few seconds of each kind of work.

Owns the steps, and which cost is computed from which step; model.py uses the costs. It runs as many rounds as there is
time for, and takes the lowest value of each step, because other activity of the machine only adds.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import psutil

from ..bench.generator import run_plan
from ..bench.million import LIMITS, read_descriptors
from ..bench.rounds import choose_cores
from ..bench.shape import Shape, connect, pause, publish, steps_of
from ..bench.targets import TARGETS, BenchFailed, Order, start_target
from .machine import FRAME_OVERHEAD_BYTES, MANY, Machine

Show = Callable[[str], None]
Steps = dict[str, dict[str, Any]]
Run = dict[str, Any]

SECONDS_MAX = 75.0
ROUNDS = 3
HELD = 10_000
"""The number of connections for measuring memory, and for the cost of sends with more connections than MANY."""
PLAIN, LARGE = 144, 4_096
"""The measured content sizes in bytes; the cost is linear between them."""
PUBLISHED = (PLAIN, LARGE)
SUBJECTS = HELD // MANY
FAN_RATE = 30
RATES = {"rare": FAN_RATE, "seldom": 400, "often": 8_000}
"""Messages a second to one receiver each: a wake-up costs more after a long idle time."""
AHEAD = 16
"""Unacknowledged messages of a subject that keep a node with many connections busy."""
TLS_TARGET, TLS_NAME = "godwit-tls", "localhost"
TLS_MANY = 1_500
"""More connections than a shard has cached ciphers, so that each record pays for its own, as with more connections."""
MISSED = 100
ALONE = 1.02
"""The most deliveries in a read if messages are sent alone."""
NEARLY = 1.5
"""The least share of messages sent alone from which a send's cost can be computed, on a busy machine."""
SLICES = 3
"""Parts of a paced load; the one with the least other activity of the machine is used."""


class Rest(NamedTuple):
    """The CPU and wake-ups of an idle node, in a second."""

    cores: float
    rests: float


def measure_machine(driver: str, show: Show) -> Machine:
    """Measure everything; raises BenchFailed if a node cannot be started or a message is lost."""
    began = time.monotonic()
    rounds: list[dict[str, Run]] = []
    while len(rounds) < ROUNDS:
        if rounds and (time.monotonic() - began) * (len(rounds) + 1) / len(rounds) > SECONDS_MAX:
            break
        rounds.append(_take_round(driver, show))
    least = {name: pick_least([runs[name] for runs in rounds]) for name in rounds[0]}
    many, fan, large = least["many"], least["fan"], least["large"]
    publishing = {size: steps_of(least[f"publish {size}"])["publish"] for size in PUBLISHED}
    found = read_costs(many, steps_of(fan), steps_of(large), publishing)
    found |= read_tls(fan, steps_of(fan), steps_of(large), {size: least[f"tls {size}"] for size in (PLAIN, LARGE)})
    sends, turns, wakes = (
        {name.split()[1]: found.pop(name) for name in list(found) if name.startswith(f"{what} ")}
        for what in ("send", "turn", "wakes")
    )
    machine = Machine(
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_mb=psutil.virtual_memory().total // 1_000_000,
        descriptors=read_descriptors(),
        driver=str(many["driver"]),
        send_us=sends,
        turn_us={str(max(1, round(wakes[name]))): us for name, us in turns.items()},
        seconds=round(time.monotonic() - began, 1),
        **found,
    )
    machine = dataclasses.replace(machine, full_growth=find_full_growth(steps_of(many)["packed"], machine))
    packed = steps_of(least[f"tls {PLAIN}"])["packed"]
    return dataclasses.replace(machine, tls_full_byte_us=find_tls_full(packed, machine))


def _take_round(driver: str, show: Show) -> dict[str, Run]:
    return {
        "many": run_shape(driver, _many(), show, "connections"),
        "fan": run_shape(driver, _fan(), show, "fan-out"),
        "large": run_shape(driver, _paced(LARGE), show, f"{LARGE} bytes"),
        **{f"publish {size}": run_shape(driver, _publishing(size), show, "publishes") for size in PUBLISHED},
        **{
            f"tls {size}": run_shape(driver, _encrypted(size), show, f"TLS, {size} bytes", True)
            for size in (PLAIN, LARGE)
        },
    }


def pick_least(runs: list[Run]) -> Run:
    """One run made of each step's lowest cost, because other activity only adds to a step. Steps whose messages were sent
    alone are preferred. Differences then compare steps at the machine's best. Memory is that of the last run.
    """
    steps = []
    for at, last in enumerate(runs[-1]["steps"]):
        least = min((run["steps"][at] for run in runs), key=lambda step: (not _is_alone(step), step["cpu_seconds"]))
        steps.append({**least, **{what: last[what] for what in ("pss_kb", "kernel_kb")}})
    return {**runs[-1], "steps": steps}


def run_shape(driver: str, shape: Shape, show: Show, what: str, is_tls: bool = False) -> dict[str, Any]:
    """One run of a new node with one shard; raises BenchFailed."""
    target = TARGETS[TLS_TARGET if is_tls else "godwit"]
    server_core, generator_core = choose_cores()
    with start_target(target, Order(driver=driver, limits=LIMITS), server_core) as running:
        plan = {
            **shape.plan(),
            "dialect": "godwit-json",
            "address": running.address,
            "pids": running.pids,
            "core": generator_core,
            "driver": driver,
        }
        if running.certificate is not None:
            plan["tls"] = {"authorities_file": str(running.certificate), "name": TLS_NAME}
        result = run_plan(plan, lambda text: show(f"{what}: {text}"))
    if result["fault"] is not None or not result["is_exact"]:
        raise BenchFailed(f"measuring {what}: {result['fault'] or 'a delivery was lost'}")
    return result


def _many() -> Shape:
    """Single receivers give the cost of a wake-up; then very many connections give theirs, with a thousand receivers for each message."""
    steps = [
        connect("some", upto=SUBJECTS),
        pause(0.6, "resting"),
        publish("warm", 100, rate=RATES["seldom"]),
        *(publish(name, max(FAN_RATE, rate // 2), rate=rate) for name, rate in RATES.items()),
        connect("all", upto=HELD),
        pause(0.6, "idle"),
        *_paced_parts("broad", FAN_RATE),
        *_packed_parts(1_600, SUBJECTS),
    ]
    return Shape(HELD, SUBJECTS, steps, publishers=1, is_acked=True)


def _fan() -> Shape:
    """A thousand receivers: first one frame in a send, then as many as possible; then they disconnect and reconnect."""
    steps = [
        connect(),
        *_paced_parts("fan", FAN_RATE),
        publish("warm 2", 500, in_flight=64, ahead_max=512),
        publish("merged", 5_000, in_flight=64, ahead_max=512),
        {"do": "leave", "name": "leave"},
        pause(0.3),
        publish("missed", MISSED, in_flight=10),
        {"do": "return", "name": "return"},
    ]
    return Shape(MANY, 1, steps, publishers=1, is_acked=True, keeps_places=True)


def _paced(size: int) -> Shape:
    return Shape(MANY, 1, [connect(), *_paced_parts("fan", FAN_RATE)], publishers=1, content_bytes=size)


def _encrypted(size: int) -> Shape:
    """The steps with TLS, acknowledged like the same load without TLS. The small one is compared with the fan-out, the large
    one with `_paced`.
    """
    steps = [connect(), *_paced_parts("fan", FAN_RATE), *(_packed_parts(800, 1) if size == PLAIN else [])]
    return Shape(TLS_MANY, 1, steps, publishers=1, is_acked=size == PLAIN, content_bytes=size)


def _packed_parts(messages: int, subjects: int) -> list[dict[str, Any]]:
    """Messages at the rate of a saturated node: some are sent together."""
    ahead = {"in_flight": AHEAD * subjects, "ahead_max": AHEAD}
    return [publish("filling", messages // 4, **ahead), publish("packed", messages, **ahead)]


def _paced_parts(name: str, rate: int) -> list[dict[str, Any]]:
    """Almost a second to warm up, because a node's first sends are slow, then the parts of the load."""
    parts = [publish(f"{name} {n + 1}", rate * 2 // 5, rate=rate) for n in range(SLICES)]
    return [publish(f"warm {name}", rate * 3 // 4, rate=rate), *parts]


def _publishing(size: int) -> Shape:
    count = 150_000 if size == PLAIN else 40_000
    in_flight = 2_000 if size == PLAIN else 200
    steps = [
        connect(),
        publish("warm", count // 10, in_flight=in_flight),
        publish("publish", count, in_flight=in_flight),
    ]
    return Shape(0, 4, steps, publishers=4, is_acked=True, content_bytes=size)


def read_costs(
    many: dict[str, Any], fan: Steps, large: Steps, publishing: dict[int, dict[str, Any]]
) -> dict[str, float]:
    """Costs from steps: one unknown after the other, each from the step that shows it best."""
    steps = steps_of(many)
    published = {size: _us(step, "acked") for size, step in publishing.items()}
    small, most = sorted(published)
    publish_byte = max(0.0, (published[most] - published[small]) / (most - small))
    rest = Rest(*(steps["resting"][what] / steps["resting"]["seconds"] for what in ("cpu_seconds", "rests")))
    beside = _least(fan) + published[small]
    turns = {name: _find_turn(steps[name], beside, rest) for name in RATES}
    wakes, a_wake = turns["rare"]
    a_turn = wakes * a_wake / RATES["rare"] + published[small]  # of each message of the paced loads
    plain = max(0.1, _least(fan) - a_turn / MANY)
    sends = {PLAIN + FRAME_OVERHEAD_BYTES: plain}
    sends[LARGE + FRAME_OVERHEAD_BYTES] = max(_least(large) - a_turn / MANY, plain)
    at_many = _least(steps, "broad") - a_turn / MANY
    connecting = steps["all"]["cpu_seconds"] * 1e6 / (HELD - SUBJECTS)
    costs = {
        "send_growth": max(0.0, (at_many - plain) / plain),
        "rest_cores": rest.cores,
        "publish_us": max(0.05, published[small] - publish_byte * small),
        "publish_byte_us": publish_byte,
        "connect_us": connecting,
        "catch_up_us": max(0.01, (fan["return"]["cpu_seconds"] * 1e6 / MANY - connecting) / MISSED),
        "user_kb": max(0.01, (steps["idle"]["pss_kb"] - many["pss_kb_before"]) / HELD),
        "kernel_kb": max(0.1, (steps["idle"]["kernel_kb"] - many["machine_before"]["kernel_kb"]) / (2 * HELD)),
        "base_mb": many["pss_kb_before"] / 1e3,
        **{f"send {size}": us for size, us in sends.items()},
        **{f"wakes {name}": wakes for name, (wakes, _) in turns.items()},
        **{f"turn {name}": us for name, (_, us) in turns.items()},
    }
    return costs | _find_full(fan["merged"], sends)


def _find_full(merged: dict[str, Any], sends: dict[int, float]) -> dict[str, float]:
    """From sends of very many frames on a saturated node: they cost more than by their bytes because of the frames, or less."""
    frames, found = _look_at_sends(merged)
    (low, low_us), (high, high_us) = sorted(sends.items())
    size = frames * (PLAIN + FRAME_OVERHEAD_BYTES)
    by_bytes = max(low_us, low_us + (high_us - low_us) * (size - low) / (high - low))
    share = min(1.0, max(0.3, found / by_bytes))
    return {"frame_us": max(0.0, found - by_bytes) / frames, "full_share": share, "full_frames": frames}


def _look_at_sends(step: dict[str, Any]) -> tuple[float, float]:
    """The number of frames sent together, and the cost of such a send."""
    frames = max(1.0, step["delivered"] / max(1, step["reads"]))
    return frames, _us(step, "delivered") * frames


def find_full_growth(packed: dict[str, Any], machine: Machine) -> float:
    """What HELD connections add to a send on a saturated node; `machine` has its cost at MANY."""
    frames, found = _look_at_sends(packed)
    plain = machine.send_cost_us(MANY, PLAIN, frames, is_full=True)
    return max(0.0, found - plain) / min(machine.send_us.values())


def find_tls_full(packed: dict[str, Any], machine: Machine) -> float:
    """What TLS adds to a byte on a saturated node, computed in the same way."""
    frames, found = _look_at_sends(packed)
    plain = machine.send_cost_us(TLS_MANY, PLAIN, frames, is_full=True)
    return max(0.0, found - plain) / (frames * (PLAIN + FRAME_OVERHEAD_BYTES))


def _find_turn(step: dict[str, Any], a_message_us: float, rest: Rest) -> tuple[float, float]:
    """Wake-ups a second, and the cost of each: the CPU time that the work itself does not explain."""
    wakes = max(1.0, step["rests"] - rest.rests * step["seconds"])
    beside = (step["cpu_seconds"] - rest.cores * step["seconds"]) * 1e6 - step["published"] * a_message_us
    return float(wakes / step["seconds"]), float(max(0.0, beside / wakes))


def read_tls(fan: dict[str, Any], plain: Steps, large: Steps, tls: dict[int, dict[str, Any]]) -> dict[str, float]:
    """What TLS adds, from the same work with and without it: `fan` and `plain` have small messages, `large` the largest."""
    small, steps = tls[PLAIN], {size: steps_of(result) for size, result in tls.items()}
    size = max(tls)
    added = {PLAIN: _least(steps[PLAIN]) - _least(plain), size: _least(steps[size]) - _least(large)}
    a_byte = max(0.0, (added[size] - added[PLAIN]) / (size - PLAIN))

    def of_each(what: Callable[[Run, Steps], float]) -> float:
        """What TLS adds to one connection."""
        return what(small, steps[PLAIN]) / TLS_MANY - what(fan, plain) / MANY

    return {
        "tls_connect_us": max(1.0, of_each(lambda run, found: found["connect"]["cpu_seconds"] * 1e6)),
        "tls_send_us": max(0.0, added[PLAIN] - a_byte * (PLAIN + FRAME_OVERHEAD_BYTES)),
        "tls_byte_us": a_byte,
        "tls_kb": max(0.1, of_each(lambda run, found: found["connect"]["pss_kb"] - run["pss_kb_before"])),
    }


def _least(steps: Steps, load: str = "fan") -> float:
    """The cost of a send with one message, in the part with the least other activity. If messages waited for others, there
    were fewer sends.
    """
    parts = [step for name, step in steps.items() if name.startswith(f"{load} ")]
    nearly = [step for step in parts if _is_alone(step)] or [
        step for step in parts if step["delivered"] <= NEARLY * step["reads"]
    ]
    if not nearly:
        raise BenchFailed(
            "the machine is too busy to measure: no message was sent on its own; try again when the machine is idle"
        )
    return min(float(step["cpu_seconds"] * 1e6 / max(1, min(step["delivered"], step["reads"]))) for step in nearly)


def _is_alone(step: dict[str, Any]) -> bool:
    return bool(step["delivered"] <= ALONE * step["reads"])


def _us(step: dict[str, Any], what: str) -> float:
    return float(step["cpu_seconds"] * 1e6 / max(1, step[what]))
