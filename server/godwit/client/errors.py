"""What the client raises.

    ClientError
    ├── PositionInvalid       a position or saved stand that cannot be read
    ├── FrameInvalid          the server sent what the wire does not allow
    ├── SubscriptionExists    this client already has that selector
    ├── PublishQueueFull      more publishes wait than the client may hold
    ├── AnswerLost            the connection went before the answer to a publish that must not be sent twice
    ├── ReplyTimeout          nobody replied to a request in time
    ├── CommandRefused        the server refused one command (codes 4100-4199)
    └── ClientClosed          the client was closed
        └── ConnectionRefused the server said never to come back (codes 4000-4099)
"""


class ClientError(Exception):
    """Anything this package raises on purpose."""


class PositionInvalid(ClientError):
    def __init__(self, found: object) -> None:
        super().__init__(f"{_brief(found)} is no position; one is EPOCH.SEQUENCE, such as 7.42")


class FrameInvalid(ClientError):
    """The peer broke the protocol: the connection is given up and tried again."""


class SubscriptionExists(ClientError):
    def __init__(self, selector: str) -> None:
        super().__init__(f"{selector} is already subscribed; close that subscription first, or use a second Client")


class PublishQueueFull(ClientError):
    """A limit on unanswered publishes was met; nothing of the refused one was kept."""

    def __init__(self, limit: str, value: int) -> None:
        super().__init__(f"publishes are waiting up to {limit} = {value}; await receipts, or raise the limit")
        self.limit = limit


class AnswerLost(ClientError):
    def __init__(self, subject: str) -> None:
        super().__init__(f"the connection went before {subject} was acknowledged, and once=False forbids a second try")


class ReplyTimeout(ClientError):
    def __init__(self, subject: str, timeout_ms: int) -> None:
        super().__init__(f"no reply from {subject} within {timeout_ms} ms")


class CommandRefused(ClientError):
    """The server's answer to one command: `code`, `name` and `reason` as in protocol/codes.toml."""

    def __init__(self, code: int, name: str, reason: str, retry: bool = False) -> None:
        super().__init__(f"{code} {name}: {reason}")
        self.code, self.name, self.reason, self.retry = code, name, reason, retry


class ClientClosed(ClientError):
    def __init__(self, reason: str = "the client is closed") -> None:
        super().__init__(reason)


class ConnectionRefused(ClientClosed):
    """The server closed with a code that forbids reconnecting; `code` and `reason` are its own."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"the server refused this client for good: {code} {reason}")
        self.code, self.reason = code, reason


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
