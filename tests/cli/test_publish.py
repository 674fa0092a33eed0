"""Lines of standard input while no node answers: none is lost because of the others."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.test_wrong_places import free_port


def test_large_lines_wait_for_each_other() -> None:
    """Three of 6 MB are more than the client's publish queue takes."""
    url = f"ws://127.0.0.1:{free_port()}"
    done = subprocess.run(
        [sys.executable, "-m", "godwit", "publish", "/a", "--text", "--timeout", "1", "--server", url],
        input=3 * (b"x" * 6_000_000 + b"\n"),
        capture_output=True,
        timeout=60,
        check=False,
    )
    errors = done.stderr.decode()
    assert done.returncode == 1 and errors.count("/a: no answer in 1 s") == 3, errors
