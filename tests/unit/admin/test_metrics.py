"""OpenMetrics, unless a request accepts only the older format, as old collectors do."""

import pytest

from godwit.admin.metrics import is_old_form_wanted


@pytest.mark.parametrize(
    "accept, is_old",
    [
        ("", False),
        ("*/*", False),
        ("text/html,application/xhtml+xml,*/*;q=0.8", False),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3", False),
        ("text/plain;version=0.0.4", True),
        ("text/plain", True),
    ],
)
def test_the_form_follows_what_is_accepted(accept: str, is_old: bool) -> None:
    assert is_old_form_wanted(accept) is is_old
