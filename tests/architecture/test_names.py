"""A file is a noun of the domain: names that say nothing about what is inside are refused."""

import re

from tests.architecture.source import code_files

SAY_NOTHING = {
    *("manager", "helper", "helpers", "util", "utils", "common", "base", "misc", "handler", "handlers"),
    *("processor", "service", "services", "impl", "v2"),
}


def test_no_file_has_a_name_that_says_nothing() -> None:
    empty = [str(path) for path in code_files() if SAY_NOTHING & set(re.split(r"[_.\-/]", str(path).lower()))]
    assert not empty
