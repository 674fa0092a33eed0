"""The settings of a client. Names end in their unit; every setting has a bound and a default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ..limits import FRAME_BYTES_MIN, FRAME_BYTES_TOP
from ..words import shown
from .arguments import NEVER_MS

OnUnknownPublish = Literal["resend", "raise"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits and times of one client."""

    items_max: int = 1_000
    """Items of one subscription that wait for the program. Beyond it the client stops reading for that subscription."""
    items_bytes_max: int = 8 << 20
    """Bytes of their content. One message is always accepted."""
    items_total_bytes_max: int = 64 << 20
    """Bytes of waiting content of all subscriptions of the client."""
    publish_queue_max: int = 10_000
    """Publishes without an answer. Beyond it `publish` raises PublishQueueFull."""
    publish_queue_bytes_max: int = 16 << 20
    """Bytes of publishes without an answer."""
    publish_in_flight_max: int = 500
    """Publishes that were sent and have no answer. The server allows 1,000 commands."""
    subjects_max: int = 4_000
    """Positions kept of one pattern, in addition to its resume token."""
    frame_bytes_max: int = 16 << 20
    """Bytes of one frame received, from 8,192 to 1,073,741,824. In place of a longer message the server sends a gap `too_large`."""
    connect_timeout_ms: int = 10_000
    """Time to open a connection and to be answered."""
    answer_timeout_ms: int = 10_000
    """Time for the answer to a ping. After it the connection is closed."""
    ping_interval_ms: int = 25_000
    """Silence before a ping, if the server names no interval."""
    reconnect_first_ms: int = 1_000
    """Upper bound of the first wait before the client reconnects."""
    reconnect_max_ms: int = 20_000
    """Upper bound of later waits."""
    positions_save_ms: int = 1_000
    """Time between two savings of positions."""
    on_unknown_publish: OnUnknownPublish = "resend"
    """For a publish whose answer was lost and that the server no longer knows (it was restarted, or is short of
    memory): "resend" publishes it again, perhaps as a second message; "raise" raises AnswerLost."""

    def __post_init__(self) -> None:
        if self.on_unknown_publish not in get_args(OnUnknownPublish):
            raise ValueError(f"on_unknown_publish is {shown(self.on_unknown_publish)}: expected resend or raise")
        for name in (name for name in self.__slots__ if name != "on_unknown_publish"):
            value = getattr(self, name)
            is_time = name.endswith("_ms")
            if isinstance(value, bool) or not isinstance(value, int | float if is_time else int) or not value >= 1:
                raise ValueError(f"{name} is {shown(value)}: expected a {'' if is_time else 'whole '}number from 1 up")
            if is_time:  # one so long that it never ends, such as infinity, is that long a whole number
                object.__setattr__(self, name, NEVER_MS if value >= NEVER_MS else int(value))
        if not FRAME_BYTES_MIN <= self.frame_bytes_max <= FRAME_BYTES_TOP:
            raise ValueError(
                f"frame_bytes_max is {self.frame_bytes_max}: expected {FRAME_BYTES_MIN} to {FRAME_BYTES_TOP}"
            )
