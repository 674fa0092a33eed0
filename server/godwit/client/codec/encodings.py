"""The wires this client speaks, by the names a user gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, Protocol, TypeAlias

from .binary import BinaryEncoding
from .command import Command
from .json import JsonEncoding
from .push import Told

EncodingName: TypeAlias = Literal["json", "binary"]


class Encoding(Protocol):
    """One connection's way of writing; a wire may remember what it was told on the connection."""

    subprotocol: str

    def encode(self, commands: Iterable[Command]) -> str | bytes:
        """Several commands as one frame, handled in order."""

    def decode(self, frame: str | bytes) -> list[Told]:
        """What one frame says; raises FrameInvalid."""


ENCODINGS: dict[EncodingName, Callable[[], Encoding]] = {"json": JsonEncoding, "binary": BinaryEncoding}
