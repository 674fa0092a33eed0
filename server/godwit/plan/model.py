"""Predicts what a node needs for a workload and how far this machine carries it. Pure: computes predictions from measured
values.

The theory. A node's work is publishes and sends. While cores are idle, every message is sent alone: as many sends as
deliveries, and often a wake-up for each message. When all cores are busy, messages are sent together: if a round over all
connections takes T, each connection gets one send in a round, `N ÷ T` a second in all, with all messages of that time. So
the longest allowed T (`delay_ms_max`) gives the lowest cost of sends. All costs grow with the rate and the connections,
so the largest values that fit, and the T of a load, are found by bisection. If a node is busy for a share b of the time,
b² of the writes find it busy, because publishers are more regular than chance (measured: 0.94 of the writes woke a node
with b = 0.27, and 0.85 one with b = 0.44).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from .machine import FRAME_OVERHEAD_BYTES, Machine
from .workload import Budget, Workload

RING_SPARE = 0.08
"""The usable share of a ring's descriptors: clients are spread over shards at random, and pending accepts use some."""
SHARDS_MAX = 64
SHARD_MB = 0.8
"""Memory of each further shard: receive buffers and tables."""
SUBJECT_KB = 0.55
LOGGED_BYTES = 120
"""Memory of a message in its log, in addition to its content."""
SUBSCRIPTION_KB = 0.06
"""Memory of each subscription of a connection after its first."""
PACKET_BYTES = 66
"""What TCP, IP and Ethernet add to a send."""
SEND_BYTES_MAX = 65_536
"""The most bytes of a send; the rest follows with the next."""
STORM_SHARE = 0.05
"""The share of the cores that a reconnect storm gets at least in addition to live traffic."""
CONNECTIONS_MOST = 1 << 27
HALVINGS = 40
RATE_MOST = 1e9


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: what the workload needs of it, and how much there is."""

    name: str
    needed: float
    available: float
    unit: str
    advice: str
    """What to do if it is exceeded."""

    @property
    def share(self) -> float:
        return self.needed / self.available if self.available > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a workload needs of a machine."""

    limits: tuple[Limit, ...]
    shards: int
    deliveries_per_second: float
    frames_a_send: float
    cores: float
    """The busy share if every message is sent at once."""
    delay_ms: float
    """Seconds from a message's acceptance to its last receiver."""
    memory_mb: float
    node_mb: float
    kernel_mb: float
    network_mbit: float
    storm_seconds: float
    storm_cores_seconds: float
    settings: Mapping[str, int] = field(default_factory=dict)
    """Limits that must be raised, with the lowest sufficient values."""

    @property
    def binding(self) -> Limit:
        """The limit that is reached first."""
        return max(self.limits, key=lambda limit: limit.share)

    @property
    def fits(self) -> bool:
        return self.binding.share <= 1.0


@dataclass(frozen=True, slots=True)
class Node:
    """The limits of a node that matter here, by their names in core/src/limits.rs."""

    connections_max: int = 1_000_000
    subjects_max: int = 1_000_000
    log_messages_max: int = 1_000
    log_age_ms_max: int = 180_000
    logs_bytes_max: int = 536_870_912
    stream_window_bytes_max: int = 1_048_576
    windows_bytes_max: int = 134_217_728


def fill_budget(budget: Budget, machine: Machine) -> Budget:
    """The budget, with the machine's values for missing ones."""
    return replace(
        budget,
        cores=budget.cores or machine.cores,
        memory_mb=budget.memory_mb or machine.memory_mb,
        descriptors=budget.descriptors or machine.descriptors,
    )


def predict(workload: Workload, budget: Budget, machine: Machine, node: Node | None = None) -> Prediction:
    """Predict what this workload needs; `budget` is completed from the machine."""
    budget, node = fill_budget(budget, machine), node or Node()
    shards = count_shards(workload, budget, machine)
    least = cores_at_delay(workload, machine, workload.delay_ms_max / 1e3)
    eager = cores_at_ease(workload, budget, machine)
    rate = deliveries(workload)
    delay, together = _describe_pace(workload, budget, machine, eager)
    node_mb, kernel_mb = find_memory(workload, machine, node, shards)
    storm = storm_core_seconds(workload, machine, node)
    return Prediction(
        limits=list_limits(workload, budget, machine, node),
        shards=shards,
        deliveries_per_second=rate,
        frames_a_send=together,
        cores=max(least, min(eager, float(budget.cores))),
        delay_ms=delay * 1e3,
        memory_mb=node_mb + kernel_mb,
        node_mb=node_mb,
        kernel_mb=kernel_mb,
        network_mbit=deliveries_mbit(workload),
        storm_seconds=storm / max(STORM_SHARE * budget.cores, budget.cores - least),
        storm_cores_seconds=storm,
        settings=_settings(workload, node),
    )


def list_limits(workload: Workload, budget: Budget, machine: Machine, node: Node) -> tuple[Limit, ...]:
    """All limits; the budget is complete."""
    node_mb, kernel_mb = find_memory(workload, machine, node, count_shards(workload, budget, machine))
    least = cores_at_delay(workload, machine, workload.delay_ms_max / 1e3)
    limits = [
        Limit("cpu", least, budget.cores, "cores", "more cores, fewer messages, or conflation"),
        Limit("memory", node_mb + kernel_mb, budget.memory_mb, "MB", "more memory, or shorter logs"),
        _descriptors(workload, budget, machine),
    ]
    if budget.network_mbit:
        network = deliveries_mbit(workload)
        limits.append(Limit("network", network, budget.network_mbit, "Mbit/s", "smaller messages, or conflation"))
    return tuple(limits)


def fits_in(workload: Workload, budget: Budget, machine: Machine, node: Node) -> bool:
    """Whether no limit is exceeded."""
    return all(limit.share <= 1.0 for limit in list_limits(workload, budget, machine, node))


def _describe_pace(workload: Workload, budget: Budget, machine: Machine, eager: float) -> tuple[float, float]:
    """Seconds from a message's acceptance to its last receiver, and the number of frames sent together."""
    one = send_us(workload, machine) / 1e6
    if eager < budget.cores:
        return workload.receivers * one / budget.cores, 1.0
    round_s = find_round(workload, budget, machine)
    return round_s, max(1.0, deliveries(workload) / workload.connections * round_s)


def deliveries(workload: Workload) -> float:
    """Frames a second to all clients; conflation limits those of each subscription."""
    a_subscription = workload.subject_rate
    if workload.conflate_ms:
        a_subscription = min(a_subscription, 1e3 / workload.conflate_ms)
    return a_subscription * workload.subjects * workload.receivers


def send_us(workload: Workload, machine: Machine, frames: float = 1.0, *, is_full: bool = False) -> float:
    """The cost of a send of so many of the workload's frames, with TLS if clients use it; `is_full`: on a saturated node."""
    plain = machine.send_cost_us(workload.connections, workload.message_bytes, frames, is_full=is_full)
    return plain + (machine.tls_cost_us(workload.message_bytes, frames, is_full=is_full) if workload.tls else 0.0)


def cores_at_ease(workload: Workload, budget: Budget, machine: Machine) -> float:
    """Busy cores if every message is sent alone. Only a message that finds its shard idle causes a wake-up."""
    size = workload.message_bytes
    sends = deliveries(workload) * send_us(workload, machine)
    publishing = workload.messages_per_second * machine.publish_cost_us(size)
    busy = (sends + publishing) / 1e6 / budget.cores
    if busy >= 1:
        return budget.cores * busy
    # each shard with a receiver is woken, if it rests
    writes = workload.messages_per_second / workload.messages_at_once * min(1.0, workload.receivers / budget.cores)

    def in_all(share: float) -> float:
        """The busy share including wake-ups, if the shard was busy for this share."""
        wakes = writes * (1.0 - share * share)
        return busy + wakes * machine.turn_cost_us(max(1.0, wakes)) / 1e6

    low, high = busy, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if in_all(middle) > middle else (low, middle)
    return budget.cores * low + machine.rest_cores


def cores_at_delay(workload: Workload, machine: Machine, delay_s: float) -> float:
    """The fewest cores that are enough, if messages may wait for each other for this time."""
    rate, size = deliveries(workload), workload.message_bytes
    publishing = workload.messages_per_second * machine.publish_cost_us(size)
    if rate == 0:
        return publishing / 1e6
    frames = max(1.0, rate / workload.connections * delay_s)
    frames = min(frames, max(1.0, SEND_BYTES_MAX / (size + FRAME_OVERHEAD_BYTES)))
    return (publishing + rate / frames * send_us(workload, machine, frames, is_full=True)) / 1e6


def messages_a_core(workload: Workload, machine: Machine, frames: float) -> float:
    """Messages a second of one core, if so many are sent together."""
    size, frames = workload.message_bytes, max(1.0, frames)
    sending = workload.receivers / frames * send_us(workload, machine, frames, is_full=True)
    return 1e6 / (machine.publish_cost_us(size) + sending)


def find_round(workload: Workload, budget: Budget, machine: Machine) -> float:
    """The shortest round over all connections with all cores busy, in seconds."""
    least, most = 1e-5, 1e5
    if cores_at_delay(workload, machine, most) > budget.cores:
        return math.inf
    for _ in range(60):
        middle = math.sqrt(least * most)
        if cores_at_delay(workload, machine, middle) > budget.cores:
            least = middle
        else:
            most = middle
    return most


def count_shards(workload: Workload, budget: Budget, machine: Machine) -> int:
    """The number of shards to configure: one for each core, more if a ring holds too few connections."""
    if machine.driver != "io_uring":
        return budget.cores
    a_ring = max(1.0, budget.descriptors * (1 - RING_SPARE))
    return max(budget.cores, math.ceil(workload.connections / a_ring))


def _descriptors(workload: Workload, budget: Budget, machine: Machine) -> Limit:
    rings = SHARDS_MAX if machine.driver == "io_uring" else 1
    holds = budget.descriptors * (1 - RING_SPARE) * rings
    return Limit("descriptors", workload.connections, holds, "connections", "raise LimitNOFILE (ulimit -n)")


def find_memory(workload: Workload, machine: Machine, node: Node, shards: int) -> tuple[float, float]:
    """MB of the process, and of the kernel for its sockets."""
    size = workload.message_bytes
    kept = min(node.log_messages_max, max(1.0, workload.subject_rate * node.log_age_ms_max / 1e3))
    logs = min(node.logs_bytes_max, workload.subjects * kept * (size + LOGGED_BYTES)) / 1e6
    shared = workload.subjects if workload.receivers / shards >= 2 else 0
    of_stream = min(node.stream_window_bytes_max, kept * (size + FRAME_OVERHEAD_BYTES))
    windows = shards * min(node.windows_bytes_max, shared * of_stream) / 1e6
    a_connection = machine.user_kb + max(0.0, workload.subscriptions - 1) * SUBSCRIPTION_KB
    a_connection += (machine.tls_kb or 0.0) if workload.tls else 0.0
    connections = workload.connections * a_connection / 1e3
    node_mb = machine.base_mb + (shards - 1) * SHARD_MB + connections
    node_mb += workload.subjects * SUBJECT_KB / 1e3 + logs + windows
    return node_mb, workload.connections * machine.kernel_kb / 1e3


def storm_core_seconds(workload: Workload, machine: Machine, node: Node) -> float:
    """CPU seconds until all clients are reconnected and have the messages they missed."""
    missed = min(
        deliveries(workload) / workload.connections * workload.away_seconds,
        workload.subscriptions * node.log_messages_max,
    )
    one = machine.connect_us + missed * machine.catch_up_us
    if workload.tls:
        bytes_missed = missed * (workload.message_bytes + FRAME_OVERHEAD_BYTES)
        one += (machine.tls_connect_us or 0.0) + (machine.tls_byte_us or 0.0) * bytes_missed
    return workload.connections * one / 1e6


def deliveries_mbit(workload: Workload) -> float:
    """The outgoing traffic if every message is sent alone; messages sent together need slightly less."""
    return deliveries(workload) * (workload.message_bytes + FRAME_OVERHEAD_BYTES + PACKET_BYTES) * 8 / 1e6


def _settings(workload: Workload, node: Node) -> dict[str, int]:
    wanted = {"connections_max": workload.connections, "subjects_max": workload.subjects}
    return {name: value for name, value in wanted.items() if value > getattr(node, name)}


def most_connections(workload: Workload, budget: Budget, machine: Machine, node: Node | None = None) -> int:
    """The most connections of this machine, with the same subjects, rate and (if it was given) fan-out."""

    full, limits = fill_budget(budget, machine), node or Node()

    def fits(count: int) -> bool:
        grown = replace(workload, connections=count)
        return grown.receivers <= count and fits_in(grown, full, machine, limits)

    return int(_largest(fits, max(1, math.ceil(workload.fan_out)), CONNECTIONS_MOST))


def most_messages(workload: Workload, budget: Budget, machine: Machine, node: Node | None = None) -> float:
    """The most messages a second of this machine, with everything else the same."""

    full, limits = fill_budget(budget, machine), node or Node()

    def fits(rate: int) -> bool:
        return fits_in(replace(workload, messages_per_second=rate / 1e3), full, machine, limits)

    return _largest(fits, 0, int(RATE_MOST * 1e3)) / 1e3


def _largest(fits: Callable[[int], bool], least: int, most: int) -> int:
    """The largest integer from `least` to `most` that fits; 0 if none does."""
    if not fits(least):
        return 0
    low, high = least, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
