"""The page is plain: scripts that Node can read, nothing fetched from elsewhere, nothing installed to run it."""

import re
import subprocess

import pytest

from tests.house.source import ROOT, code_files, read

SCRIPTS = code_files(".js")
FOREIGN = re.compile(r"""(?:src|href|import|from|url\()\s*=?\s*["'(]?\s*(?:https?:)?//""")


@pytest.mark.parametrize("path", SCRIPTS, ids=str)
def test_every_script_is_one_that_parses(path: object) -> None:
    command = ["node", "--check", "--input-type=module", "-"]
    done = subprocess.run(command, input=(ROOT / str(path)).read_text(), text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_no_page_fetches_anything_from_elsewhere() -> None:
    assert not [str(path) for path in code_files(".js", ".html", ".css") if FOREIGN.search(read(path))]
