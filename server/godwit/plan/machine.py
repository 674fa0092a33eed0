"""The capacity of one machine, as `godwit plan` measured it: plain values, stored as JSON, and the costs computed from them.

Pure. Costs are the node's CPU time for one operation, in microseconds of one core, including the kernel's. A send costs
the measured time for its bytes, and `frame_us` for each frame. It grows with the number of connections, because their
sockets no longer fit into caches.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..errors import GodwitError

FRAME_OVERHEAD_BYTES = 90
"""Bytes of a JSON message in addition to its content: subject, position, time, WebSocket header."""
MANY = 1_000
"""The number of connections at which sends were measured."""


MANY_GROWTH = 0.25
"""What each further factor of ten adds, as a share of what the first adds: measured from 10,000 to 1,000,000."""


class MachineInvalid(GodwitError):
    """The file was not written by `godwit plan`."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine's figures."""

    cores: int
    memory_mb: int
    descriptors: int
    """The limit of open files of a process, which is also the limit of one shard's ring."""
    driver: str
    send_us: Mapping[str, float]
    """The cost of a send with one frame, at MANY connections, by its bytes."""
    send_growth: float
    """What ten times MANY connections add to a send, as a share of the smallest one's cost."""
    frame_us: float
    """The cost of a frame, in addition to the send."""
    full_share: float
    """The cost of a send of `full_frames` on a saturated node, as a share of its cost on a node that wakes up for it."""
    turn_us: Mapping[str, float]
    """The cost of a wake-up, by wake-ups a second; it is higher after a long idle time."""
    rest_cores: float
    """The CPU of an idle node."""
    publish_us: float
    publish_byte_us: float
    connect_us: float
    """The cost of connect, handshake and subscribe."""
    catch_up_us: float
    """For one message that a resuming connection missed."""
    user_kb: float
    """The node's memory for a connection with one subscription."""
    kernel_kb: float
    """The kernel's, for its socket."""
    base_mb: float
    """The memory of a node with one shard and no clients."""
    tls_connect_us: float | None = None
    """What TLS adds to a connect; None in files written before it was measured."""
    tls_send_us: float | None = None
    """What TLS adds to a send, in addition to `tls_byte_us` for each byte."""
    tls_byte_us: float | None = None
    tls_full_byte_us: float | None = None
    """What TLS adds to each byte on a saturated node, in all; None in files written before it was measured."""
    tls_kb: float | None = None
    """The node's memory for a connection's TLS keys."""
    full_growth: float | None = None
    """Like `send_growth`, on a saturated node; None in files written before it was measured."""
    full_frames: float = 30.0
    """The number of frames in a send where `full_share` was measured; an estimate in files written before it was recorded."""
    seconds: float = 0.0
    """The duration of the measurement."""

    def send_cost_us(
        self, connections: float, message_bytes: float, frames: float = 1.0, *, is_full: bool = False
    ) -> float:
        """The cost of a send of so many frames with so many connections; linear between the measured sizes. `is_full`: on a
        saturated node.
        """
        points = _points(self.send_us)
        size = frames * (message_bytes + FRAME_OVERHEAD_BYTES)
        place = next((at for at in range(1, len(points) - 1) if size <= points[at][0]), len(points) - 1)
        (low, low_us), (high, high_us) = points[place - 1], points[place]
        cost = max(points[0][1], low_us + max(0.0, high_us - low_us) * (size - low) / (high - low))
        cost += frames * self.frame_us
        if is_full and self.full_growth is not None:
            many = points[0][1] * self.full_growth * _packing(connections)
        else:
            many = points[0][1] * self.send_growth * _many_growth(connections)
        return cost * (self.full_cost_share(frames) if is_full else 1.0) + many

    def full_cost_share(self, frames: float) -> float:
        """The cost of a send on a saturated node, as a share of its cost on a node that wakes up for it. For one frame it is
        1; between that and `full_frames` it is linear.
        """
        saves = min(1.0, max(0.0, frames - 1.0) / max(1.0, self.full_frames - 1.0))
        return 1.0 - (1.0 - self.full_share) * saves

    def tls_cost_us(self, message_bytes: float, frames: float = 1.0, *, is_full: bool = False) -> float:
        """What TLS adds to such a send; 0 if it was not measured."""
        size = frames * (message_bytes + FRAME_OVERHEAD_BYTES)
        if is_full and self.tls_full_byte_us is not None:
            return max(self.tls_send_us or 0.0, self.tls_full_byte_us * size)
        return (self.tls_send_us or 0.0) + (self.tls_byte_us or 0.0) * size

    def turn_cost_us(self, rate: float) -> float:
        """The cost of one wake-up at this rate; interpolated between the measured rates by their logarithms."""
        points = _points(self.turn_us)
        rate = min(max(rate, points[0][0]), points[-1][0])
        for (low, low_us), (high, high_us) in pairwise(points):
            if rate <= high:
                return low_us + (high_us - low_us) * math.log(rate / low) / math.log(high / low)
        return points[-1][1]  # the only one, of a machine that was never let rest

    def publish_cost_us(self, message_bytes: float) -> float:
        return self.publish_us + self.publish_byte_us * message_bytes

    def describe(self) -> dict[str, Any]:
        """As a JSON value."""
        return dataclasses.asdict(self)


def read_machine(value: Any) -> Machine:
    """The machine from the JSON of `describe`; raises MachineInvalid."""
    if not isinstance(value, Mapping):
        raise MachineInvalid("the measurements are not a JSON object")
    try:
        machine = Machine(**value)
    except TypeError as error:
        raise MachineInvalid(f"the figures do not fit this version: {error}") from None
    for name in (found.name for found in dataclasses.fields(Machine)):
        figure = getattr(machine, name)
        is_text, is_none = isinstance(figure, str), figure is None and name.startswith(("tls_", "full_growth"))
        if name == "driver":
            if not is_text:
                raise MachineInvalid("the figure driver must be text")
        elif name in ("send_us", "turn_us"):
            if not _is_curve(figure):
                raise MachineInvalid(f"the figure {name} must be an object of two numbers or more, by a number each")
        elif not is_none and (not isinstance(figure, int | float) or not math.isfinite(figure) or figure < 0):
            raise MachineInvalid(f"the figure {name} must be a number of 0 or more")
    return machine


def _many_growth(connections: float) -> float:
    """How far the cost of a send is towards that at ten times MANY: caches overflow early, and then the cost grows slowly."""
    tens = math.log10(max(1.0, connections / MANY))
    return (1 - math.exp(-2 * tens)) / (1 - math.exp(-2)) + MANY_GROWTH * max(0.0, tens - 1)


def _packing(connections: float) -> float:
    """The same for a saturated node: measured as nearly 0 at twice MANY, and half at five times."""
    times = max(1.0, connections / MANY)
    return min(1.0, (times - 1.0) / 9.0) + MANY_GROWTH * max(0.0, math.log10(times) - 1.0)


def _points(curve: Mapping[str, float]) -> list[tuple[float, float]]:
    return sorted((float(at), us) for at, us in curve.items())


def _is_curve(figure: Any) -> bool:
    return (
        isinstance(figure, Mapping)
        and len(figure) >= 2
        and all(at.isdigit() and int(at) > 0 for at in figure)
        and all(isinstance(us, int | float) and math.isfinite(us) and us >= 0 for us in figure.values())
    )
