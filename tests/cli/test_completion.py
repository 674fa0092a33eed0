"""Completion in a real bash, as the page on the command line sets it up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BINARIES = Path(sys.executable).parent


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ta"], {"tail"}),
        (["journal", ""], {"show", "check"}),
        (["tail", "--on"], {"--on-gap"}),
        (["tail", "--on-gap", ""], {"snapshot", "oldest"}),
        (["publish", "--ack", "d"], {"disk"}),
        (["tail", "--token-file", "file-"], {"file-of-a-token"}),
    ],
)
def test_a_shell_completes(words: list[str], expected: set[str], root: Path, tmp_path: Path) -> None:
    (tmp_path / "file-of-a-token").touch()
    page = (root / "docs/command-line.md").read_text()
    setting_up = re.search(r"^    (eval .*)$", page, re.MULTILINE)
    assert setting_up is not None
    given = " ".join(f"'{word}'" for word in ["godwit", *words])
    script = f"""
        {setting_up[1]}
        complete -p godwit >&2 || exit 9
        COMP_WORDS=({given}) COMP_CWORD={len(words)}
        compopt() {{ compgen -f -- "${{COMP_WORDS[COMP_CWORD]}}"; }}  # for files bash itself answers
        _godwit_completion godwit
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = {**os.environ, "PATH": f"{BINARIES}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == expected, done
