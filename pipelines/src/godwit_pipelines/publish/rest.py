"""One task's conversation with a node: requests over a connection that is kept, tried again until they are answered.

Owns patience: what may succeed later is tried again with growing pauses until the time is up; what may not fails at once and
names the message. Invariant: when `send` returns, every command of it has a
position, or was refused and is in `refused`, where that is wanted.
"""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Callable, Mapping
from http.client import HTTPMessage
from typing import Any
from urllib.parse import urlsplit

from ..errors import ConfigInvalid, PublishFailed
from ..values.numbers import parse_count
from ..words import counted
from .commands import Alone, Command

_PAUSE_S, _PAUSE_S_MAX = 0.1, 5.0
_ANSWER_S = 30.0
_OF_ONE_MESSAGE = (400, 403, 404, 409, 413, 415, 422)
"""Answers to a request of one message that refuse it for good, and no other message with it."""
_STEP_S = 0.1
"""With a pace: how long a time the messages of one request may cover."""


class Node:
    """A node's REST endpoint."""

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        timeout_s: float = 60.0,
        per_second: float = 0.0,
        skips_refused: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigInvalid("node.url", url, "must be http://HOST:PORT or https://HOST:PORT")
        self.kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.host, self.port = parts.hostname, parts.port
        self.path = parts.path.rstrip("/") + "/v1/messages"
        self.fields = {"Authorization": f"Bearer {token}"} if token else {}
        self.timeout_s = timeout_s
        self.per_second = per_second
        self.skips_refused = skips_refused
        self.refused: list[str] = []
        """Why each message was refused that was skipped."""
        self.sleep = sleep
        self.connection: http.client.HTTPConnection | None = None
        self.due = time.monotonic()
        self.repeats = 0

    def send(self, commands: list[Command]) -> None:
        """Publish them, in order and at the pace that is asked for: a request has no more than a tenth of a second's messages."""
        most = max(1, int(self.per_second * _STEP_S)) if self.per_second else len(commands)
        for first in range(0, len(commands), most):
            part = commands[first : first + most]
            self._keep_pace(len(part))
            self._send(part)

    def _send(self, commands: list[Command]) -> None:
        """One request; what the node asks to send again is, with all after it."""
        deadline, pause = time.monotonic() + self.timeout_s, _PAUSE_S
        while True:
            commands, why, wait_s = self._try(commands)
            if not commands:
                return
            pause = min(_PAUSE_S_MAX, pause * 2)
            wait_s = max(wait_s, pause * random.uniform(0.5, 1.0))
            if time.monotonic() + wait_s > deadline:
                raise PublishFailed(
                    f"{self.url} did not accept {counted(len(commands), 'message')} ({named(commands)}) in {self.timeout_s:g} s: {why}"
                )
            self.sleep(wait_s)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def _keep_pace(self, count: int) -> None:
        if self.per_second:
            now = time.monotonic()
            self.due = max(self.due, now - _STEP_S)  # a pause is not made up for by a burst
            if self.due > now:
                self.sleep(self.due - now)
            self.due += count / self.per_second

    def _try(self, commands: list[Command]) -> tuple[list[Command], str, float]:
        """The messages that must still be sent, why, and how long the node asks to wait."""
        alone = commands[0].alone
        try:
            status, retry_after, body = self._request(commands) if alone is None else self._request_alone(alone)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return commands, str(error) or type(error).__name__, 0.0
        answer = self._parse(status, body)
        if status not in (200, 201):
            if alone is not None and self.skips_refused and status in _OF_ONE_MESSAGE:
                self.refused.append(f"{commands[0].subject}: {status} {body[:200].decode('utf-8', 'replace')}")
                return [], "", 0.0
            if isinstance(answer, dict) and not answer.get("retry", status in (429, 500, 502, 503, 504)):
                raise PublishFailed(
                    f"{self.url} refused to publish {named(commands)}: {status} {answer.get('title', '')} {answer.get('detail', '')}"
                )
            return commands, f"{status} {body[:200].decode('utf-8', 'replace')}", retry_after
        if alone is not None:
            return [], "", 0.0
        if not isinstance(answer, list) or len(answer) != len(commands):
            raise PublishFailed(
                f"{self.url} answered {body[:200]!r}, expected one outcome for each of {len(commands)} messages"
            )
        for index, (outcome, command) in enumerate(zip(answer, commands, strict=True)):
            self.repeats += bool(outcome.get("duplicate"))
            if "error" in outcome:
                if not outcome.get("retry"):
                    why = f"{command.subject}: {outcome.get('name')} ({outcome['error']}): {outcome.get('reason')}"
                    if not self.skips_refused:
                        raise PublishFailed(why)
                    self.refused.append(why)
                    continue
                return commands[index:], f"{outcome.get('name')}: {outcome.get('reason')}", retry_after
        return [], "", 0.0

    def _parse(self, status: int, body: bytes) -> Any:
        try:
            return json.loads(body)
        except ValueError:
            if status == 200:
                raise PublishFailed(f"{self.url} answered without valid JSON: {body[:200]!r}") from None
            return None

    def _request(self, commands: list[Command]) -> tuple[int, float, bytes]:
        """Several publishes as one array, each with its key."""
        body = "[" + ",".join(command.text for command in commands) + "]"
        status, fields, content = self._ask(self.path, body.encode(), {"Content-Type": "application/json"})
        return status, pause_of(fields), content

    def _request_alone(self, alone: Alone) -> tuple[int, float, bytes]:
        """One publish whose content is the body, as large as the node takes a message."""
        given: dict[str, str | bytes] = {"Content-Type": alone.media, "Idempotency-Key": f'"{alone.key}"'.encode()}
        status, fields, content = self._ask(f"{self.path}?{alone.query}", alone.content, given)
        self.repeats += fields.get("Godwit-Duplicate") == "true"
        return status, pause_of(fields), content

    def _ask(self, path: str, body: bytes, fields: Mapping[str, str | bytes]) -> tuple[int, HTTPMessage, bytes]:
        if self.connection is None:
            self.connection = self.kind(self.host, self.port, timeout=_ANSWER_S)
        self.connection.request("POST", path, body, {**self.fields, **fields})
        answer = self.connection.getresponse()
        content = answer.read()
        return answer.status, answer.headers, content


def pause_of(fields: HTTPMessage) -> float:
    """How many seconds the node asks to wait."""
    asked = fields.get("Retry-After", "0")
    return float(parse_count(asked) or 0)


def named(commands: list[Command]) -> str:
    """The messages that an answer is about, as text."""
    others = f" and {counted(len(commands) - 1, 'other')}" if len(commands) > 1 else ""
    return f"{commands[0].subject}{others}"
