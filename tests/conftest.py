"""What every test shares: the repository's root.

Fixtures that only one folder needs live in that folder's own conftest. No test sleeps, and none uses a fixed port.
"""

from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("house", deadline=None)  # no test depends on how fast the machine is
hypothesis.settings.load_profile("house")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return Path(__file__).resolve().parent.parent
