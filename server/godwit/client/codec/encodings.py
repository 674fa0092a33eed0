"""The encodings of this client, by the names that a program passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, Protocol, TypeAlias

from .binary import BinaryEncoding
from .command import Command
from .json import JsonEncoding
from .push import Received

EncodingName: TypeAlias = Literal["json", "binary"]


class Encoding(Protocol):
    """The encoder and decoder of one connection; it may keep what the node announced on that connection."""

    subprotocol: str

    def encode(self, commands: Iterable[Command]) -> str | bytes:
        """Several commands as one frame, handled in order."""

    def decode(self, frame: str | bytes) -> list[Received]:
        """The pushes and replies of one frame; raises FrameInvalid."""


ENCODINGS: dict[EncodingName, Callable[[], Encoding]] = {"json": JsonEncoding, "binary": BinaryEncoding}
