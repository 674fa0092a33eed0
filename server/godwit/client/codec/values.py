"""The values of the binary encoding: varints, strings, positions, read from a frame and written to one."""

from __future__ import annotations

from ...model import Position

NUMBER_END = 1 << 64


class Reader:
    """Reads one frame from its beginning; anything past its end raises ValueError or IndexError."""

    __slots__ = ("_at", "_frame")

    def __init__(self, frame: bytes) -> None:
        self._frame, self._at = frame, 0

    def byte(self) -> int:
        value = self._frame[self._at]
        self._at += 1
        return value

    def varint(self) -> int:
        frame, at = self._frame, self._at
        value = frame[at]
        at += 1
        if value >= 0x80:
            value &= 0x7F
            shift = 7
            while (byte := frame[at]) >= 0x80:
                value |= (byte & 0x7F) << shift
                shift += 7
                at += 1
            value |= byte << shift
            at += 1
            if byte == 0 or value >= NUMBER_END:
                raise ValueError("a varint that is too long")
        self._at = at
        return value

    def signed(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def sized(self) -> bytes:
        size = self.varint()
        start = self._at
        self._at = end = start + size
        if end > len(self._frame):
            raise ValueError("a frame that is cut short")
        return self._frame[start:end]

    def string(self) -> str:
        return self.sized().decode()

    def position(self) -> Position:
        return Position(self.varint(), self.varint())

    def rest(self) -> bytes:
        start, self._at = self._at, len(self._frame)
        return self._frame[start:]


class Writer:
    """Writes one frame."""

    def __init__(self, type: int) -> None:
        self._frame = bytearray((type,))

    def byte(self, value: int) -> None:
        self._frame.append(value)

    def varint(self, value: int) -> None:
        while value >= 0x80:
            self._frame.append(value & 0x7F | 0x80)
            value >>= 7
        self._frame.append(value)

    def rest(self, value: bytes) -> None:
        """The remaining bytes of the frame, unchanged."""
        self._frame += value

    def sized(self, value: bytes) -> None:
        self.varint(len(value))
        self._frame += value

    def string(self, value: str) -> None:
        self.sized(value.encode())

    def position(self, position: Position) -> None:
        self.varint(position.epoch)
        self.varint(position.sequence)

    def done(self) -> bytes:
        return bytes(self._frame)
