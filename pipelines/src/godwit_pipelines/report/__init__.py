"""The report: what the tables contain about the last day, as one document, and a self-contained page made from it."""

from .document import build_document
from .page import build_page

__all__ = ["build_document", "build_page"]
