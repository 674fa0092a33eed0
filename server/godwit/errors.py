"""Every error that Godwit raises on purpose.

    GodwitError
    ├── ConfigInvalid          a setting is not valid: key, value, bound, hint; exit 2 before a port opens
    │   ├── ConfigNameUnknown  the name is not a setting; its value is not shown
    │   └── ConfigsInvalid     several of them, a line for each
    ├── SubjectInvalid         a subject or pattern that is not valid (also a ValueError)
    ├── PositionInvalid        a text that is not a position (also a ValueError)
    ├── PositionFileHeld       a file of saved positions that another process uses
    ├── PositionFileInvalid    a file of saved positions that cannot be read (also a ValueError)
    ├── CommandRefused         the node answered one command with an error code; the session continues
    ├── SessionClosed          the session ended with a code that says whether to reconnect
    ├── AuthorizerFailed       a user's authorizer raised an error, was late, or gave no valid answer
    │   └── KeysUnavailable    an issuer's keys could not be fetched, or not yet again
    └── NodeFailed             the node itself could not do what it was asked
        └── ListenFailed       a port could not be opened

Each message says what is wrong and, if possible, what to do. Codes are those of protocol/codes.toml.
"""

from __future__ import annotations

from collections.abc import Sequence

EXIT_CONFIG_INVALID = 2
EXIT_LISTEN_FAILED = 3


class GodwitError(Exception):
    """The base class of all errors that Godwit raises on purpose."""


class ConfigInvalid(GodwitError):
    """A configuration value is not valid. The message has the key, its source, the value, what is expected, and a hint."""

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
    """The name is not a setting. Its value is not shown, because it may be a secret under a misspelt name."""

    def show_value(self) -> str:
        return ""


class ConfigsInvalid(ConfigInvalid):
    """Several values are not valid, with a line for each. `key`, `value` and the others are those of the first."""

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
        super().__init__(
            f"{path} does not contain saved positions ({why}): repair the file, or move it away to start without positions"
        )


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
    """The session ended. `reconnect` is true if the client may reconnect, after `reconnect_after_ms`, or after a wait of its own if
    that is None.
    """

    def __init__(
        self, code: int, reason: str, *, reconnect: bool = True, reconnect_after_ms: int | None = None
    ) -> None:
        self.code = code
        self.reason = reason
        self.reconnect = reconnect
        self.reconnect_after_ms = reconnect_after_ms
        super().__init__(f"closed with {code}: {reason}")


class AuthorizerFailed(GodwitError):
    """A user's authorizer raised an error, exceeded its timeout, or returned something else than an answer. The question is refused."""


class KeysUnavailable(AuthorizerFailed):
    """The keys of a token's issuer cannot be fetched now, or it is too soon to look for another key. The question is refused."""


class NodeFailed(GodwitError):
    """The node could not do what it was asked. The message says what and why."""


class ListenFailed(NodeFailed):
    """A port could not be opened."""

    def __init__(self, listener: str, address: str, reason: str | OSError) -> None:
        self.listener = listener
        self.address = address
        super().__init__(f"cannot listen for {listener} on {address}: {_describe(reason)}")


def _describe(reason: str | OSError) -> str:
    """The system's words for an error. asyncio repeats the address before them."""
    text = reason if isinstance(reason, str) else reason.strerror or str(reason)
    return text.rpartition("): ")[2] if text.startswith("error while attempting to bind on address") else text
