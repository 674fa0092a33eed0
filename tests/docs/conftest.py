"""The browser is the console tests' own; the wheel of the server is built and installed once for all tests that need it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.console.conftest import browser, chromium, page

__all__ = ["browser", "chromium", "page"]


@pytest.fixture(scope="session")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `deploy/wheel` makes of a clean clone, as the first stage of the container file does."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    subprocess.run(["git", "clone", "--quiet", str(root), str(source)], check=True)
    for changed in ("deploy/wheel", "pyproject.toml"):  # also before it is committed
        shutil.copy(root / changed, source / changed)
    environment = {**os.environ, "CARGO_TARGET_DIR": str(root / "target")}
    subprocess.run(["deploy/wheel", folder / "wheels"], cwd=source, env=environment, check=True, timeout=1_500)
    [made] = (folder / "wheels").glob("godwit_server-*.whl")
    return made


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it, as the second stage makes it."""
    folder = tmp_path_factory.mktemp("opt") / "godwit"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True)
    return folder
