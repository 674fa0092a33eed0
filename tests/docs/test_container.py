"""The image of deploy/Containerfile, built and run: podman builds its second stage unchanged, and a container serves.

The first stage is `deploy/wheel`, whose wheel the other tests install as well; compilers and the base image come from the network and
from a registry, so the stage is replaced by the wheels, and the base by a fresh Debian. Without podman and debootstrap the steps are run
without a container, in `test_deploy.py`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from godwit.children import follow_parent
from tests.architecture.source import ROOT
from tests.docs.test_deploy import read_variables

PROGRAMS = ("podman", "buildah", "runc", "conmon", "debootstrap")
MISSING = [program for program in PROGRAMS if shutil.which(program) is None]
BASE = "docker.io/library/python:3.13-slim"
LIMITS = (
    "--ulimit",
    "nofile=4096:4096",
    "--ulimit",
    "nproc=4096:4096",
)  # the engine's defaults may exceed this machine's

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} not here")]


@dataclass(frozen=True, slots=True)
class Engine:
    """Podman with a storage of its own, which leaves with the test."""

    folder: Path

    def run(self, *words: str | Path, checked: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(self.list_words(*words), text=True, capture_output=True, timeout=600)
        assert not checked or done.returncode == 0, done.stderr
        return done

    def list_words(self, *words: str | Path) -> tuple[str | Path, ...]:
        storage = ("--storage-driver", "vfs", "--root", self.folder / "storage", "--runroot", self.folder / "run")
        return ("podman", *storage, "--runtime", "runc", "--cgroup-manager", "cgroupfs", *words)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine that has a base image with a Python: a Debian of this moment in place of the registry's."""
    folder = tmp_path_factory.mktemp("engine")
    packages = "--include=python3,python3-venv,python-is-python3"
    debian = ("debootstrap", "--variant=minbase", packages, "bookworm", folder / "debian")
    done = subprocess.run(debian, text=True, capture_output=True, timeout=900)
    if done.returncode:
        pytest.skip(f"no Debian to be had: {done.stdout[-200:]}")
    subprocess.run(["tar", "-C", folder / "debian", "-cf", folder / "base.tar", "."], check=True)
    shutil.rmtree(folder / "debian")
    made = Engine(folder)
    made.run("import", folder / "base.tar", BASE)
    (folder / "base.tar").unlink()
    yield made
    made.run("system", "reset", "--force", checked=False)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def image(engine: Engine, wheel: Path) -> str:
    """The second stage, built from the wheel and what it requires, all of it from files."""
    context = engine.folder / "context"
    (wheels := context / "wheels").mkdir(parents=True)
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--dest", wheels)
    subprocess.run([*pip, wheel], check=True, timeout=600)
    text = (ROOT / "deploy/Containerfile").read_text()
    final = text[text.rindex(f"FROM {BASE}") :]
    (context / "Containerfile").write_text(final)
    given = ("--pull=never", "--layers=false", "--build-context", f"build={context}")
    engine.run("build", "--format", "docker", "--isolation", "chroot", *given, "-t", "godwit", context)
    return "localhost/godwit"


def test_the_guide_builds_the_image_in_the_format_that_keeps_its_health_check() -> None:
    """Images in the OCI format have none: podman leaves it out with a warning."""
    for page in ("docs/guides/deploying.md", "docs/installation.md", "deploy/Containerfile"):
        lines = [line for line in (ROOT / page).read_text().splitlines() if "podman build" in line]
        assert lines and all("--format docker" in line for line in lines), page


def test_a_container_serves_keeps_its_data_and_reports_its_health(engine: Engine, image: str) -> None:
    """With a flag after the image's name, as the guide appends it; the other settings stay those of the image."""
    config = json.loads(engine.run("image", "inspect", image).stdout)[0]
    assert config["User"] == "godwit" and (config.get("HealthCheck") or config["Healthcheck"])["Test"][-1] == "health"
    variables = read_variables((ROOT / "deploy/Containerfile").read_text())
    isolated = (
        "--network",
        "none",
        *LIMITS,
        "--volume",
        "data:/var/lib/godwit",
        "--stop-timeout",
        "45",
        "--timeout",
        "300",
    )
    program, client = "/opt/godwit/bin/godwit", f"ws://127.0.0.1:{variables['GODWIT_CLIENT_ADDRESS'].split(':')[1]}"
    for name, count in (("first", "1"), ("second", "2")):
        words = engine.list_words("run", "--name", name, *isolated, image, "--admin", "0.0.0.0:8801")
        node = subprocess.Popen(
            words, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=follow_parent()
        )
        try:
            assert node.stdout is not None
            listening = node.stdout.readline()
            assert "client=0.0.0.0:8800" in listening and "admin=0.0.0.0:8801" in listening
            engine.run("healthcheck", "run", name)
            engine.run("exec", name, program, "publish", "/rooms/kitchen", f"number {count}", "--server", client)
            kept = ("tail", "/rooms/kitchen", "--last", "9", "--count", count, "--server", client)
            lines = engine.run("exec", name, program, *kept).stdout.splitlines()
            assert [line.split(" ", 3)[3] for line in lines] == [f"number {one}" for one in range(1, int(count) + 1)]
            engine.run("stop", name)
            assert node.wait(60) == 0
        finally:
            engine.run("rm", "--force", name, checked=False)
            node.kill()
            node.communicate()
