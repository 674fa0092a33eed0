"""The browser is the console tests' own."""

from tests.console.conftest import chromium, page

__all__ = ["chromium", "page"]
