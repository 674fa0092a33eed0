"""The report: what the tables say about the last day as one document, and one page that is made from it and needs
nothing else.
"""

from .document import build_document
from .page import build_page

__all__ = ["build_document", "build_page"]
