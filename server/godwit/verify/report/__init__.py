"""What is left of a run: one JSON document, and one page that is made from it and needs nothing else."""

from .document import build_document, write_json
from .page import build_page

__all__ = ["build_document", "build_page", "write_json"]
