"""The console is plain: scripts that Node can read, nothing fetched from elsewhere, one door to the browser."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, code_files, read

SCRIPTS = code_files(".js")
IMPORT = re.compile(r"""^import \{([^}]*)\} from "(\.{1,2}/[^"]+)";""", re.MULTILINE)
EXPORT = re.compile(r"^export (?:async )?(?:function\*?|class|const|let) (\w+)|^export \{([^}]*)\}", re.MULTILINE)
FOREIGN = re.compile(r"""(?:src|href|import|from|url\()\s*=?\s*["'(]?\s*(?:https?:)?//""")


@pytest.mark.parametrize("path", SCRIPTS, ids=str)
def test_every_script_is_one_that_parses(path: object) -> None:
    command = ["node", "--check", "--input-type=module", "-"]
    done = subprocess.run(command, input=(ROOT / str(path)).read_text(), text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_no_page_fetches_anything_from_elsewhere() -> None:
    assert not [str(path) for path in code_files(".js", ".html", ".css") if FOREIGN.search(read(path))]


def test_only_one_script_of_the_console_names_what_belongs_to_the_browser() -> None:
    browser = re.compile(
        r"(?<![\w.\"'#/-])(?:window|document|navigator|location|history|localStorage|sessionStorage|fetch|WebSocket|matchMedia|"
        r"setTimeout|setInterval|clearTimeout|requestAnimationFrame|getComputedStyle|ResizeObserver|performance)\b(?!\s*[:=])(?=[.(\[])"
    )
    scripts = [path for path in SCRIPTS if path.parts[0] == "console" and path.name != "browser.js"]
    assert len(scripts) > 10
    crossing = [
        f"{path}:{number}: {line.strip()[:80]}"
        for path in scripts
        for number, line in enumerate(read(path).splitlines(), 1)
        if browser.search(line.split("//")[0])
    ]
    assert not crossing


def test_the_lock_says_what_but_not_from_where() -> None:
    assert '"resolved"' not in read(Path("console/package-lock.json")) and '"integrity"' in read(
        Path("console/package-lock.json")
    )


def list_names(braced: str) -> set[str]:
    return {name.split(" as ")[0].strip() for name in braced.split(",") if name.strip()}


def test_every_name_that_a_script_of_the_console_imports_is_exported_there() -> None:
    missing, looked_at = [], 0
    for path in (path for path in SCRIPTS if path.parts[0] == "console"):
        for braced, named in IMPORT.findall(read(path)):
            target = (ROOT / path).parent / named
            if not target.is_file():  # served from elsewhere in the repository: the browser's tests load it
                continue
            looked_at += 1
            exported: set[str] = set()
            for one, many in EXPORT.findall(target.read_text()):
                exported |= {one} if one else {name.split(" as ")[-1].strip() for name in many.split(",")}
            missing += [f"{path}: {name} from {named}" for name in list_names(braced) - exported]
    assert looked_at > 50
    assert not missing
