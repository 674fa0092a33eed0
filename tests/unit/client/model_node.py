"""A node without I/O: logs, positions, keys and resume tokens, just enough of the protocol to test sessions.

It answers commands with what a connection would read, held back in `outbox` so that a test can break the connection
between any two of them.
"""

from __future__ import annotations

from godwit.client.codec.command import Command, Connect, Ping, Publish, Subscribe, Unsubscribe, Unwatch, Watch
from godwit.client.codec.push import Marked, Received
from godwit.client.codec.reply import Reply
from godwit.model import Message, Outcome, Position
from godwit.subject import is_pattern, matches

EPOCH = 7


class ModelNode:
    """Keeps everything for ever; one connection at a time."""

    def __init__(self) -> None:
        self.feed: list[Message] = []  # the arrival of a message is its place here, from 1
        self.keys: dict[str, Position] = {}
        self.selectors: dict[str, int] = {}  # subscription: the arrival up to which it was sent
        self.outbox: list[Received] = []

    def disconnect(self) -> None:
        self.outbox.clear()
        self.selectors.clear()

    def take(self, command: Command) -> None:
        match command:
            case Connect(id):
                self.outbox.append(Reply(id, "connected", session="s", node="n", ping_interval_ms=25_000))
            case Subscribe():
                self._subscribe(command)
            case Unsubscribe(id, selector):
                self.selectors.pop(selector, None)
                self.outbox.append(Reply(id, "unsubscribed"))
            case Publish(id, draft):
                key = draft.key or str(id)
                is_duplicate = key in self.keys
                if not is_duplicate:
                    self.keys[key] = self.append(draft.subject, draft.content)
                self.outbox.append(Reply(id, "published", self.keys[key], is_duplicate=is_duplicate))
            case Ping(id) | Watch(id) | Unwatch(id):
                self.outbox.append(Reply(id, "pong"))

    def append(self, subject: str, content: bytes) -> Position:
        sequence = 1 + sum(each.subject == subject for each in self.feed)
        at = Position(EPOCH, sequence)
        self.feed.append(Message(subject, content, position=at))
        self.deliver()
        return at

    def deliver(self, resume_token: bool = False) -> None:
        for selector, arrival in self.selectors.items():
            for message in self.feed[arrival:]:
                self._send(selector, message)
            self.selectors[selector] = len(self.feed)
            if resume_token and is_pattern(selector):
                self.outbox.append(Marked(f"1.{len(self.feed)}.0", selector))

    def _subscribe(self, command: Subscribe) -> None:
        selector, resume_point = command.selector, command.resume_point
        arrival = 0 if resume_point.since is None else int(resume_point.since.split(".")[1])
        backlog = [
            each
            for place, each in enumerate(self.feed)
            if matches(selector, each.subject)
            and _is_wanted(each, resume_point.after.get(each.subject), place >= arrival)
        ]
        at = None if is_pattern(selector) else Position(EPOCH, sum(each.subject == selector for each in self.feed))
        self.outbox.append(Reply(command.id, "subscribed", at, Outcome.RECOVERED, 0 if at is None else len(backlog)))
        for message in backlog:
            self._send(selector, message)
        self.selectors[selector] = len(self.feed)

    def _send(self, selector: str, message: Message) -> None:
        if matches(selector, message.subject):
            pattern = selector if is_pattern(selector) else None
            self.outbox.append(Message(message.subject, message.content, position=message.position, pattern=pattern))


def _is_wanted(message: Message, resume_point: Position | None, is_after_resume_token: bool) -> bool:
    """Subjects of the map go by their positions, the others by the resume token."""
    assert message.position is not None
    return is_after_resume_token if resume_point is None else not message.position.is_at_or_before(resume_point)
