"""Errors that only the client raises; it shares the others with the node (godwit.errors).

GodwitError
└── ClientError
    ├── FrameInvalid        the server sent a frame that is not valid; the client reconnects once
    ├── SubscriptionExists  this client already subscribes to or watches that selector
    ├── PublishQueueFull    too many publishes wait for an answer
    ├── AnswerLost          the connection was lost before the answer to a publish that must not be sent twice
    ├── ReplyTimeout        nobody replied to a request in time
    ├── Unauthorized        raised by a token function: there is no token, and the client ends
    └── ClientClosed        the program closed the client
"""

from __future__ import annotations

from ..errors import GodwitError


class ClientError(GodwitError):
    """The base class of errors that only the client raises."""


class FrameInvalid(ClientError):
    """The server sent a frame that is not valid. The message shows its beginning."""


class SubscriptionExists(ClientError):
    """The client already has a subscription or watch for this selector."""

    def __init__(self, selector: str) -> None:
        super().__init__(f"{selector} is subscribed or watched already; close that first, or use a second Client")


class PublishQueueFull(ClientError):
    """A limit of unanswered publishes is reached. The publish was not queued."""

    def __init__(self, limit: str, value: int) -> None:
        self.limit = limit
        super().__init__(f"unanswered publishes have reached {limit} = {value}; await them, or raise the limit")


class AnswerLost(ClientError):
    """It is unknown whether the server accepted the message."""

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"the connection ended before {subject} was acknowledged, and it is not sent again: it has neither number nor "
            "key, another token was set meanwhile, or the server cannot know whether it took it"
        )


class ReplyTimeout(ClientError):
    """A request was published, and no reply arrived in time."""

    def __init__(self, subject: str, timeout_ms: float) -> None:
        super().__init__(f"no reply from {subject} within {timeout_ms} ms")


class ClientClosed(ClientError):
    """The client, or the subscription, is closed."""

    def __init__(self, what: str = "the client") -> None:
        super().__init__(f"{what} is closed")


class Unauthorized(ClientError):
    """Raise it in a token function to end the client. After any other error the client calls the function again."""
