"""A file stops at 400 lines, a function at 60, a folder at 20 files: past that the cut is wrong, not the limit."""

from collections import Counter
from pathlib import Path

from tests.architecture.source import code_files, is_generated, kept_files, python_functions, read, rust_functions

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
FOLDER_FILES_MAX = 20
DATA = (Path("benchmarks/results"),)  # measurements are data and grow with time


def test_no_file_is_longer_than_400_lines() -> None:
    long = {
        str(path): lines
        for path in code_files()
        if not is_generated(path) and (lines := len(read(path).splitlines())) > FILE_LINES_MAX
    }
    assert not long


def test_no_function_is_longer_than_60_lines() -> None:
    long = [
        f"{path}:{found.line} {found.name} has {found.lines} lines"
        for path in code_files(".rs", ".py")
        if not is_generated(path)
        for found in (python_functions if path.suffix == ".py" else rust_functions)(read(path))
        if found.lines > FUNCTION_LINES_MAX
    ]
    assert not long


def test_no_folder_holds_more_than_20_files() -> None:
    folders = Counter(path.parent for path in kept_files() if not any(data in path.parents for data in DATA))
    assert not {str(folder): count for folder, count in folders.items() if count > FOLDER_FILES_MAX}
