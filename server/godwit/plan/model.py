"""Predicts what a node needs for a workload and how far this machine carries it. Pure: measured figures in, numbers out.

The theory. A node's work is publishes and sends. While there are cores to spare every message leaves alone: as many sends as
deliveries, and often a turn of its own for each message, because the node was resting. When there are not, messages wait for
one another and leave together: if a round over all connections takes T, each gets one send a round, `N ÷ T` a second in all,
with whatever has come meanwhile; turns follow one another without rest. So the longest T allowed (`delay_ms_max`) says how
little the sends may cost. Everything here grows with the rate and with the connections, so that the largest that fit, and
the T that a load settles at, are found by halving. A node that is busy for a share b of the time is found busy by b² of the
writes: publishers are more even than chance (seen: 0.94 of the writes woke a node that was busy for 0.27 of the time, 0.85 one
that was for 0.44).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from .machine import FRAME_OVERHEAD_BYTES, Machine
from .workload import Budget, Workload

RING_SPARE = 0.08
"""Of a ring's descriptors: clients fall on the shards by chance, and accepts that wait hold some."""
SHARDS_MAX = 64
SHARD_MB = 0.8
"""Receive buffers and tables of each further shard."""
SUBJECT_KB = 0.55
LOGGED_BYTES = 120
"""What a message takes in its log in addition to its content."""
SUBSCRIPTION_KB = 0.06
"""For each subscription of a connection after its first."""
PACKET_BYTES = 66
"""What TCP, IP and Ethernet add to a send."""
SEND_BYTES_MAX = 65_536
"""A send carries no more; what is left goes with the next."""
STORM_SHARE = 0.05
"""Of the cores, what a storm gets at least beside the live traffic."""
CONNECTIONS_MOST = 1 << 27
HALVINGS = 40
RATE_MOST = 1e9


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing there is only so much of: what the workload takes of it, and what there is."""

    name: str
    needed: float
    available: float
    unit: str
    advice: str
    """What to do when it binds."""

    @property
    def share(self) -> float:
        return self.needed / self.available if self.available > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a workload takes of a machine."""

    limits: tuple[Limit, ...]
    shards: int
    deliveries_per_second: float
    frames_a_send: float
    cores: float
    """Busy with it, where every message leaves as soon as it can."""
    delay_ms: float
    """From a message's acceptance to its last receiver."""
    memory_mb: float
    node_mb: float
    kernel_mb: float
    network_mbit: float
    storm_seconds: float
    storm_cores_seconds: float
    settings: Mapping[str, int] = field(default_factory=dict)
    """Limits that have to be raised, with the least that does."""

    @property
    def binding(self) -> Limit:
        """The limit that is reached first."""
        return max(self.limits, key=lambda limit: limit.share)

    @property
    def fits(self) -> bool:
        return self.binding.share <= 1.0


@dataclass(frozen=True, slots=True)
class Node:
    """What of a node's limits matters here: core/src/limits.rs by name."""

    connections_max: int = 1_000_000
    subjects_max: int = 1_000_000
    log_messages_max: int = 1_000
    log_age_ms_max: int = 180_000
    logs_bytes_max: int = 536_870_912
    stream_window_bytes_max: int = 1_048_576
    windows_bytes_max: int = 134_217_728


def fill_budget(budget: Budget, machine: Machine) -> Budget:
    """The budget, with the machine's own where nothing was said."""
    return replace(
        budget,
        cores=budget.cores or machine.cores,
        memory_mb=budget.memory_mb or machine.memory_mb,
        descriptors=budget.descriptors or machine.descriptors,
    )


def predict(workload: Workload, budget: Budget, machine: Machine, node: Node | None = None) -> Prediction:
    """What this workload takes; `budget` is filled from the machine."""
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
    """Everything there is only so much of; the budget is full."""
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
    """Whether no limit is passed."""
    return all(limit.share <= 1.0 for limit in list_limits(workload, budget, machine, node))


def _describe_pace(workload: Workload, budget: Budget, machine: Machine, eager: float) -> tuple[float, float]:
    """Seconds from a message's acceptance to its last receiver, and frames that leave together."""
    one = send_us(workload, machine) / 1e6
    if eager < budget.cores:
        return workload.receivers * one / budget.cores, 1.0
    round_s = find_round(workload, budget, machine)
    return round_s, max(1.0, deliveries(workload) / workload.connections * round_s)


def deliveries(workload: Workload) -> float:
    """Frames a second to all clients together; conflation bounds those of each subscription."""
    a_subscription = workload.subject_rate
    if workload.conflate_ms:
        a_subscription = min(a_subscription, 1e3 / workload.conflate_ms)
    return a_subscription * workload.subjects * workload.receivers


def send_us(workload: Workload, machine: Machine, frames: float = 1.0, *, is_full: bool = False) -> float:
    """One send of so many of the workload's frames, encrypted where clients connect by TLS; `is_full`: by a node that never rests."""
    plain = machine.send_cost_us(workload.connections, workload.message_bytes, frames, is_full=is_full)
    return plain + (machine.tls_cost_us(workload.message_bytes, frames, is_full=is_full) if workload.tls else 0.0)


def cores_at_ease(workload: Workload, budget: Budget, machine: Machine) -> float:
    """Cores busy where every message leaves alone. Only a message that finds its shard resting has a turn of its own."""
    size = workload.message_bytes
    sends = deliveries(workload) * send_us(workload, machine)
    publishing = workload.messages_per_second * machine.publish_cost_us(size)
    busy = (sends + publishing) / 1e6 / budget.cores
    if busy >= 1:
        return budget.cores * busy
    # each shard with a receiver is woken, if it rests
    writes = workload.messages_per_second / workload.messages_at_once * min(1.0, workload.receivers / budget.cores)

    def in_all(share: float) -> float:
        """How busy a shard is with its wake-ups, were it busy for such a share of the time."""
        wakes = writes * (1.0 - share * share)
        return busy + wakes * machine.turn_cost_us(max(1.0, wakes)) / 1e6

    low, high = busy, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if in_all(middle) > middle else (low, middle)
    return budget.cores * low + machine.rest_cores


def cores_at_delay(workload: Workload, machine: Machine, delay_s: float) -> float:
    """The fewest cores that do it, messages waiting for one another for so long and no longer."""
    rate, size = deliveries(workload), workload.message_bytes
    publishing = workload.messages_per_second * machine.publish_cost_us(size)
    if rate == 0:
        return publishing / 1e6
    frames = max(1.0, rate / workload.connections * delay_s)
    frames = min(frames, max(1.0, SEND_BYTES_MAX / (size + FRAME_OVERHEAD_BYTES)))
    return (publishing + rate / frames * send_us(workload, machine, frames, is_full=True)) / 1e6


def messages_a_core(workload: Workload, machine: Machine, frames: float) -> float:
    """Messages a second that one core carries where so many leave together."""
    size, frames = workload.message_bytes, max(1.0, frames)
    sending = workload.receivers / frames * send_us(workload, machine, frames, is_full=True)
    return 1e6 / (machine.publish_cost_us(size) + sending)


def find_round(workload: Workload, budget: Budget, machine: Machine) -> float:
    """Seconds of a round over all connections when all cores are busy: the shortest that they manage."""
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
    """Shards to be configured: one a core, more where a ring holds too few connections."""
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
    """CPU until all clients are back with what they missed."""
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
    """What leaves the node where every message leaves alone; together they are a little less."""
    return deliveries(workload) * (workload.message_bytes + FRAME_OVERHEAD_BYTES + PACKET_BYTES) * 8 / 1e6


def _settings(workload: Workload, node: Node) -> dict[str, int]:
    wanted = {"connections_max": workload.connections, "subjects_max": workload.subjects}
    return {name: value for name, value in wanted.items() if value > getattr(node, name)}


def most_connections(workload: Workload, budget: Budget, machine: Machine, node: Node | None = None) -> int:
    """How many connections this machine carries, subjects, rate and (where it was said) fan-out staying as they are."""

    full, limits = fill_budget(budget, machine), node or Node()

    def fits(count: int) -> bool:
        grown = replace(workload, connections=count)
        return grown.receivers <= count and fits_in(grown, full, machine, limits)

    return int(_largest(fits, max(1, math.ceil(workload.fan_out)), CONNECTIONS_MOST))


def most_messages(workload: Workload, budget: Budget, machine: Machine, node: Node | None = None) -> float:
    """Messages a second this machine carries, everything else staying as it is."""

    full, limits = fill_budget(budget, machine), node or Node()

    def fits(rate: int) -> bool:
        return fits_in(replace(workload, messages_per_second=rate / 1e3), full, machine, limits)

    return _largest(fits, 0, int(RATE_MOST * 1e3)) / 1e3


def _largest(fits: Callable[[int], bool], least: int, most: int) -> int:
    """The largest whole number that fits, of those from `least` to `most`; 0 where none does."""
    if not fits(least):
        return 0
    low, high = least, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
