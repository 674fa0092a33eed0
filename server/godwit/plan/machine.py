"""What one machine can do, as `godwit plan` measured it: plain figures, kept as JSON, and the costs that follow from them.

Pure. Costs are CPU of the node for one thing done, in microseconds of one core; the kernel's work for it is included. A send
costs what was measured for its bytes and `frame_us` for each frame in it; it grows with the connections, whose sockets no
cache holds any more.
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
"""Of a message of the JSON wire, beside its content: subject, position, time, WebSocket's head."""
MANY = 1_000
"""Connections at which sends were measured."""


MANY_GROWTH = 0.25
"""What each further ten times adds, as a share of what the first adds: seen from 10,000 to 1,000,000."""


class MachineInvalid(GodwitError):
    """A file of figures that `godwit plan` did not write."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine's figures."""

    cores: int
    memory_mb: int
    descriptors: int
    """What a process may open, which is also what one shard's ring holds."""
    driver: str
    send_us: Mapping[str, float]
    """A send of one frame, at MANY connections, by its bytes."""
    send_growth: float
    """What ten times MANY add to a send, as a share of the smallest one's cost."""
    frame_us: float
    """A frame, beside the send it leaves with."""
    full_share: float
    """What a send of `full_frames` costs a node that never rests, as a share of what it costs one that wakes up for it."""
    turn_us: Mapping[str, float]
    """To wake up for what comes when the node rests, by such times a second: it is dearer after a long rest."""
    rest_cores: float
    """What a node does that has nothing to do."""
    publish_us: float
    publish_byte_us: float
    connect_us: float
    """To connect, shake hands and subscribe."""
    catch_up_us: float
    """For one message that a resuming connection missed."""
    user_kb: float
    """The node's own memory for a connection with one subscription."""
    kernel_kb: float
    """The kernel's, for its socket."""
    base_mb: float
    """A node of one shard that serves nobody."""
    tls_connect_us: float | None = None
    """What TLS adds to a connect; none in figures that were kept before it was measured."""
    tls_send_us: float | None = None
    """What it adds to a send, beside `tls_byte_us` for each byte."""
    tls_byte_us: float | None = None
    tls_full_byte_us: float | None = None
    """What it adds to each byte of a node that never rests, all told; none in figures that were kept before it was measured."""
    tls_kb: float | None = None
    """The memory of the node for a connection's keys."""
    full_growth: float | None = None
    """As `send_growth`, of a node that never rests; none in figures that were kept before it was measured."""
    full_frames: float = 30.0
    """How many left together where `full_share` was measured; in figures that were kept before it was told, about so many."""
    seconds: float = 0.0
    """How long measuring took."""

    def send_cost_us(
        self, connections: float, message_bytes: float, frames: float = 1.0, *, is_full: bool = False
    ) -> float:
        """One send of so many frames, where so many connections are held: linear between the sizes measured. `is_full`: by
        a node that never rests.
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
        """What a send of so many frames costs a node that never rests, of what it costs one that wakes up for it.

        One frame that leaves alone saves nothing; between that and `full_frames` it is a straight line.
        """
        saves = min(1.0, max(0.0, frames - 1.0) / max(1.0, self.full_frames - 1.0))
        return 1.0 - (1.0 - self.full_share) * saves

    def tls_cost_us(self, message_bytes: float, frames: float = 1.0, *, is_full: bool = False) -> float:
        """What TLS adds to such a send; nothing where it was not measured."""
        size = frames * (message_bytes + FRAME_OVERHEAD_BYTES)
        if is_full and self.tls_full_byte_us is not None:
            return max(self.tls_send_us or 0.0, self.tls_full_byte_us * size)
        return (self.tls_send_us or 0.0) + (self.tls_byte_us or 0.0) * size

    def turn_cost_us(self, rate: float) -> float:
        """One wake-up, where there are so many a second: between the rates measured by their logarithms."""
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
    """From what `describe` made; raises MachineInvalid."""
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
    """How far a send is towards the cost at ten times MANY: caches are soon too small, then little is added."""
    tens = math.log10(max(1.0, connections / MANY))
    return (1 - math.exp(-2 * tens)) / (1 - math.exp(-2)) + MANY_GROWTH * max(0.0, tens - 1)


def _packing(connections: float) -> float:
    """The same of a node that never rests: seen to be nearly nothing at twice MANY, half at five times."""
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
