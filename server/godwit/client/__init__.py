"""The Python client of Godwit.

    from godwit.client import Client

    async with Client("ws://127.0.0.1:8800") as client:
        await client.publish("/greetings/en", {"hello": "world"})
        async for message in client.subscribe("/greetings/**"):
            print(message.subject, message.position, message.json())

If the connection breaks, the client reconnects, resumes each subscription at its position, and repeats publishes that
have no answer. The node recognizes a repeated publish. For messages that are no longer available, `subscription.items()`
yields a Gap between the messages. If the program reads slowly, the client stops reading, and the messages wait in the
node's log.
"""

from ..errors import (
    CommandRefused,
    GodwitError,
    PositionFileHeld,
    PositionFileInvalid,
    PositionInvalid,
    SessionClosed,
    SubjectInvalid,
)
from ..model import Ack, Gap, GapReason, Interest, Kind, Message, Outcome, Position, Published
from .client import Client
from .codec.command import JsonText
from .errors import (
    AnswerLost,
    ClientClosed,
    ClientError,
    FrameInvalid,
    PublishQueueFull,
    ReplyTimeout,
    SubscriptionExists,
    Unauthorized,
)
from .items import Dropped, Item, Status
from .positions import PositionFile
from .resume_point import ResumePoint
from .settings import Settings
from .subscription import Subscription, Watch

__all__ = [
    "Ack",
    "AnswerLost",
    "Client",
    "ClientClosed",
    "ClientError",
    "CommandRefused",
    "Dropped",
    "FrameInvalid",
    "Gap",
    "GapReason",
    "GodwitError",
    "Interest",
    "Item",
    "JsonText",
    "Kind",
    "Message",
    "Outcome",
    "Position",
    "PositionFile",
    "PositionFileHeld",
    "PositionFileInvalid",
    "PositionInvalid",
    "PublishQueueFull",
    "Published",
    "ReplyTimeout",
    "ResumePoint",
    "SessionClosed",
    "Settings",
    "Status",
    "SubjectInvalid",
    "Subscription",
    "SubscriptionExists",
    "Unauthorized",
    "Watch",
]
