"""MJML of a template's e-mail part becomes HTML when the template is stored; nothing is included."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dispatch.conftest import Running

pytest.importorskip("mrml", reason="needs the extra `dispatch`")
TEXT = "<mj-section><mj-column><mj-text>Hi {{ name }}</mj-text></mj-column></mj-section>"
MJML = f"<mjml><mj-body>{TEXT}</mj-body></mjml>"


def make_template(**email: Any) -> dict[str, Any]:
    return {"locales": {"default": {"title": "Hi", "email": email}}}


async def test_mjml_is_html_with_its_variables_once_it_is_stored(dispatch: Running) -> None:
    template = make_template(mjml=MJML)
    status, answer = await dispatch.api("PUT", "/v1/templates/t", template)
    assert (status, answer) == (200, {"id": "t", "version": 1, "variables": ["name"]})
    _, answer = await dispatch.api("POST", "/v1/templates/t/preview", {"data": {"name": "<Ann>"}})
    html = answer["email"]["html"]
    assert "Hi &lt;Ann&gt;" in html and "<table" in html and "mj-text" not in html
    _, answer = await dispatch.api("GET", "/v1/templates/t")
    assert answer["locales"] == template["locales"], "what was stored can be stored again"
    assert (await dispatch.api("PUT", "/v1/templates/t", template))[1]["version"] == 1


@pytest.mark.parametrize(
    "email",
    [
        {"mjml": '<mjml><mj-body><mj-include path="file:///etc/passwd" /></mj-body></mjml>'},
        {"mjml": '<mjml><mj-head><mj-include path="http://127.0.0.1/x" /></mj-head><mj-body /></mjml>'},
        {"mjml": "<mjml><mj-body>"},
        {"mjml": f"<mjml><mj-body>{'<mj-section>' * 4_000}"},
        {"mjml": MJML, "html": "<p>Hi</p>"},
        {"mjml": "<mjml><mj-body><mj-text>{{ name </mj-text></mj-body></mjml>"},
    ],
)
async def test_mjml_that_includes_or_is_not_valid_is_refused(dispatch: Running, email: dict[str, str]) -> None:
    status, answer = await dispatch.api("PUT", "/v1/templates/t", make_template(**email))
    assert (status, answer["code"]) == (422, 4327), answer
    assert answer["pointer"].startswith("/locales/default/email/")
    assert (await dispatch.api("GET", "/v1/templates/t"))[0] == 404
