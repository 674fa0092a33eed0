"""One version: the workspace's, the package's and the changelog's agree."""

import json
import re
import tomllib
from pathlib import Path

import godwit
from tests.architecture.source import read


def test_versions_agree() -> None:
    version = tomllib.loads(read(Path("Cargo.toml")))["workspace"]["package"]["version"]
    assert godwit.__version__ == version
    assert json.loads(read(Path("clients/javascript/package.json")))["version"] == version
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", read(Path("CHANGELOG.md")), re.MULTILINE)
    assert "## [Unreleased]" in read(Path("CHANGELOG.md")) or released[0] == version
    assert not released or released[0] <= version
