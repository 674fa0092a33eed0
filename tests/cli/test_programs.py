"""The programs of README and examples without a node: one line says where they tried to connect, and why it failed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from godwit.children import follow_parent
from tests.cli.test_wrong_places import free_port


@pytest.mark.parametrize("program", ["hello.py", "tail.py", "tail.js", "publish.py", "reply.py"])
def test_a_program_without_a_node_says_so(program: str, root: Path, tmp_path: Path) -> None:
    url = f"ws://127.0.0.1:{free_port()}"
    command = {"tail.js": ["node", f"{root}/examples/tail.js", "/a", url]}.get(
        program, [sys.executable, f"{root}/examples/{program}"]
    )
    if program == "hello.py":
        block = re.search(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
        assert block is not None
        (tmp_path / program).write_text(block[1].replace("ws://127.0.0.1:8800", url))
        command = [sys.executable, str(tmp_path / program)]
    elif program != "tail.js":
        command += [url] if program == "reply.py" else ["/a", url]
    pipe = subprocess.PIPE
    running = subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, preexec_fn=follow_parent())
    with running:
        assert running.stdin is not None and running.stderr is not None
        running.stdin.write(b"1\n")
        running.stdin.flush()
        line = running.stderr.readline().decode()
        running.kill()
    assert re.fullmatch(rf"(godwit: )?cannot connect to {url}/v1/live: .*(refused|ECONNREFUSED).*; retrying\n", line), (
        line
    )
