"""The browser is the console tests' own."""

from tests.console.conftest import browser, chromium, page

__all__ = ["browser", "chromium", "page"]
