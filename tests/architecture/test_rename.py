"""The rename tool changes identifiers, and keeps words."""

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "rename.py"
TABLE = """
[[row]]
name = "mark"
not_after = ["pytest."]
[row.identifiers]
mark = "token"
[row.strings]
mark = "token"
[row.prose]
marks = "tokens"
[row.words]
idempotency_keys_max = "entries_max"
"""
BEFORE = '''"""It keeps marks, and `mark` of idempotency_keys_max."""
mark = f"{mark} mark" + pytest.mark.long  # marks: a mark
said = {"mark": mark, "a mark": remark, "t": "[limits]\\nidempotency_keys_max = 5"}
'''
AFTER = '''"""It keeps tokens, and `token` of entries_max."""
token = f"{token} mark" + pytest.mark.long  # tokens: a mark
said = {"token": token, "a mark": remark, "t": "[limits]\\nentries_max = 5"}
'''


def rename(root: Path, *more: str) -> subprocess.CompletedProcess[str]:
    table = root / "names.toml"
    table.write_text(TABLE)
    command = [sys.executable, str(TOOL), "--all", "--root", str(root), "--table", str(table), *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def make_tree(root: Path, text: str) -> Path:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "one.py").write_text(text)
    subprocess.run(["git", "-C", str(root), "add", "one.py"], check=True)
    return root / "one.py"


def test_identifiers_are_renamed_and_words_of_prose_are_not(tmp_path: Path) -> None:
    file = make_tree(tmp_path, BEFORE)
    assert rename(tmp_path).returncode == 0
    assert file.read_text() == AFTER


def test_a_new_name_that_is_in_use_is_refused_unless_forced(tmp_path: Path) -> None:
    file = make_tree(tmp_path, BEFORE + "entries_max = 1\n")
    refused = rename(tmp_path)
    assert refused.returncode == 1 and "one.py already uses entries_max" in refused.stderr
    assert "idempotency_keys_max" in file.read_text()
    assert rename(tmp_path, "--force").returncode == 0
