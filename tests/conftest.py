"""Shared by all tests: the repository's root.

Fixtures that only one folder needs live in that folder's own conftest. No test sleeps, and none uses a fixed port.
"""

import faulthandler
import os
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("house", deadline=None)  # no test depends on how fast the machine is
hypothesis.settings.load_profile("house")


LONG_S = 1_800
"""A test marked long that takes longer hangs; of the others pyproject.toml says when (faulthandler_timeout)."""
told_to = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[told_to] = os.dup(2)  # pytest captures this one while a test runs


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[told_to])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("long") is not None:
        faulthandler.dump_traceback_later(LONG_S, exit=True, file=item.config.stash[told_to])


def pytest_itemcollected(item: pytest.Item) -> None:
    if "page" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)  # where the browser lives


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return Path(__file__).resolve().parent.parent
