"""Saved positions: the file they are kept in, and when they are saved."""

from .file import PositionFile
from .saved import SavedPositions

__all__ = ["PositionFile", "SavedPositions"]
