"""What a client may be told about itself; every quantity has a unit, a bound and a default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ..limits import FRAME_BYTES_MIN, FRAME_BYTES_TOP
from .arguments import NEVER_MS

OnUnknownPublish = Literal["resend", "raise"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits and times of one client."""

    items_max: int = 1_000  # of one subscription between wire and reader; beyond it nothing is read
    items_bytes_max: int = 8 << 20  # and the bytes of their content; one message is always taken
    items_total_bytes_max: int = 64 << 20  # of all subscriptions of one client
    publish_queue_max: int = 10_000  # publishes without an answer
    publish_queue_bytes_max: int = 16 << 20  # and their bytes
    publish_in_flight_max: int = 500  # of these on the wire; the server allows 1,000 commands
    subjects_max: int = 4_000  # positions kept of one pattern, beside its resume token
    frame_bytes_max: int = (
        16 << 20
    )  # of one frame received; the server is told, and sends a gap in place of a longer one
    connect_timeout_ms: int = 10_000  # to open a connection and be answered
    answer_timeout_ms: int = 10_000  # to answer a ping, else the peer is dead
    ping_interval_ms: int = 25_000  # silence before a ping, where the server names none
    reconnect_first_ms: int = 1_000  # the first try comes within this
    reconnect_max_ms: int = 20_000  # and a later one within this
    positions_save_ms: int = 1_000  # between two savings of positions
    # A publish without an answer of which the server, restarted or short of memory, cannot know whether it took it.
    on_unknown_publish: OnUnknownPublish = "resend"  # publish again, perhaps as a second message; "raise": AnswerLost

    def __post_init__(self) -> None:
        if self.on_unknown_publish not in get_args(OnUnknownPublish):
            raise ValueError(f"on_unknown_publish is {self.on_unknown_publish!r}; it must be resend or raise")
        for name in (name for name in self.__slots__ if name != "on_unknown_publish"):
            value = getattr(self, name)
            is_time = name.endswith("_ms")
            if isinstance(value, bool) or not isinstance(value, int | float if is_time else int) or not value >= 1:
                raise ValueError(f"{name} is {value!r}; it must be a {'' if is_time else 'whole '}number from 1 up")
            if is_time:  # one so long that it never ends, such as infinity, is that long a whole number
                object.__setattr__(self, name, NEVER_MS if value >= NEVER_MS else int(value))
        if not FRAME_BYTES_MIN <= self.frame_bytes_max <= FRAME_BYTES_TOP:
            raise ValueError(
                f"frame_bytes_max is {self.frame_bytes_max}; it must be from {FRAME_BYTES_MIN} to {FRAME_BYTES_TOP}"
            )
