"""Everything that Godwit raises on purpose, one tree, one word each.

    GodwitError
    ├── ConfigInvalid          the operator's mistake: key, value, bound, hint; exit 2 before a port opens
    │   ├── ConfigNameUnknown  the name of a value is nothing's; its value is not shown
    │   └── ConfigsInvalid     several of them, a line for each
    ├── SubjectInvalid         a name or pattern that the contract does not allow (also a ValueError)
    ├── PositionInvalid        a text that is not a position (also a ValueError)
    ├── PositionFileHeld       a file of saved positions that another process uses
    ├── PositionFileInvalid    a file of saved positions that cannot be read (also a ValueError)
    ├── CommandRefused         the node answered one command with an error code; the session lives
    ├── SessionClosed          the session ended with a closing code, which says whether to come back
    ├── AuthorizerFailed       a user's authorizer raised, was late, or answered something else
    └── NodeFailed             the node itself could not do what it was asked
        └── ListenFailed       a port could not be opened

Each says what is wrong and, where there is one, what to do; codes are those of protocol/codes.toml.
"""

from __future__ import annotations

from collections.abc import Sequence

EXIT_CONFIG_INVALID = 2
EXIT_LISTEN_FAILED = 3


class GodwitError(Exception):
    """The base class of all errors that Godwit raises on purpose."""


class ConfigInvalid(GodwitError):
    """A configuration value that cannot be used: which, where it came from, what would be accepted, what to try."""

    def __init__(self, key: str, value: object, bound: str, *, hint: str = "", source: str = "") -> None:
        self.key = key
        self.value = value
        self.bound = bound
        self.hint = hint
        self.source = source
        where = f" (from {source})" if source else ""
        after = f"; {hint}" if hint else ""
        super().__init__(f"{key}{where}{self.show_value()} {bound}{after}")

    def show_value(self) -> str:
        return f": {self.value!r}"


class ConfigNameUnknown(ConfigInvalid):
    """A name that is nothing's. Its value is not shown: it may be a secret whose name is misspelt."""

    def show_value(self) -> str:
        return ""


class ConfigsInvalid(ConfigInvalid):
    """Several values that cannot be used, a line for each; key, value and the rest are the first one's."""

    def __init__(self, errors: Sequence[ConfigInvalid]) -> None:
        first = errors[0]
        super().__init__(first.key, first.value, first.bound, hint=first.hint, source=first.source)
        self.errors = tuple(errors)
        self.args = ("\n".join(map(str, errors)),)


class SubjectInvalid(GodwitError, ValueError):
    """The subject or pattern is not valid; the message names the rule that it breaks."""

    def __init__(self, subject: str, reason: str) -> None:
        self.subject = subject
        self.reason = reason
        super().__init__(f"{subject[:80]!r} {reason}")


class PositionInvalid(GodwitError, ValueError):
    """The text is not a position `EPOCH.SEQUENCE`."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(
            f"{text[:80]!r} is not a position: expected two decimal numbers below 2^64 joined by a dot, such as 7.42"
        )


class PositionFileInvalid(GodwitError, ValueError):
    """The file does not contain saved positions. It is not overwritten, because its content may matter."""

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"{path} holds no saved positions ({why}): repair it, or move it away to start without")


class PositionFileHeld(GodwitError):
    """Another process uses this file of positions. Give each process its own file."""

    def __init__(self, path: str, host: str, pid: str) -> None:
        self.path, self.host, self.pid = path, host, pid
        super().__init__(f"{path} is used by process {pid} on {host}: end that one, or use another file")


class CommandRefused(GodwitError):
    """The node refused a command. `retry` is true if the same command can succeed later."""

    def __init__(self, code: int, name: str, reason: str, *, retry: bool = False) -> None:
        self.code = code
        self.name = name
        self.reason = reason
        self.retry = retry
        super().__init__(f"{name} ({code}): {reason}")


class SessionClosed(GodwitError):
    """The session is over. `reconnect` says whether to come back, `reconnect_after_ms` when (None: by own back-off)."""

    def __init__(
        self, code: int, reason: str, *, reconnect: bool = True, reconnect_after_ms: int | None = None
    ) -> None:
        self.code = code
        self.reason = reason
        self.reconnect = reconnect
        self.reconnect_after_ms = reconnect_after_ms
        super().__init__(f"closed with {code}: {reason}")


class AuthorizerFailed(GodwitError):
    """A user's authorizer raised, was late, or answered something that is no answer: questions are then refused."""


class NodeFailed(GodwitError):
    """The node could not do what it was asked; the sentence says what and why."""


class ListenFailed(NodeFailed):
    """A port could not be opened."""

    def __init__(self, listener: str, address: str, reason: str) -> None:
        self.listener = listener
        self.address = address
        super().__init__(f"cannot listen for {listener} on {address}: {reason}")
