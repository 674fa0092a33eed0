"""Names as one segment of a configured pattern."""

import pytest

from godwit.access.templates import fill_template
from godwit.config.forms import check_anonymous_patterns, check_issuer_templates, check_templates


def test_a_name_stands_for_its_segment() -> None:
    names = {"{identity}": "ann", "{tenant}": "acme"}
    assert fill_template("/t/{tenant}/{identity}/**", names) == "/t/acme/ann/**"
    assert fill_template("/plain/*", {"{identity}": "a/b"}) == "/plain/*"


@pytest.mark.parametrize("name", ["", "a/b", "*", "**", "$node", "a\x00", "{tenant}"])
def test_a_name_never_becomes_more_than_a_segment(name: str) -> None:
    with pytest.raises(ValueError, match="not valid as a segment"):
        fill_template("/u/{identity}/**", {"{identity}": name, "{tenant}": "acme"})


def test_unknown_braces_are_refused_where_they_are_configured() -> None:
    check_issuer_templates(("/t/{tenant}/{identity}/**", "/a/*"))
    check_templates(("/d/{identity}/**",))
    for check, template in [
        (check_issuer_templates, "/u/{user}/**"),
        (check_issuer_templates, "/u/x{identity}/**"),
        (check_templates, "/u/{tenant}/**"),
        (check_anonymous_patterns, "/u/{identity}/**"),
    ]:
        with pytest.raises(ValueError, match="whole segment|neither identity"):
            check((template,))
