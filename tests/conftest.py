"""What every test shares: the repository's root.

Fixtures that only one folder needs live in that folder's own conftest. No test sleeps, and none uses a fixed port.
"""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return Path(__file__).resolve().parent.parent
