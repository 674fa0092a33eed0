"""The reports of a run: one JSON document, and one page made from it without other files."""

from .document import build_document, write_json
from .page import build_page

__all__ = ["build_document", "build_page", "write_json"]
