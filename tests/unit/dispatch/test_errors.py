"""A refusal has its code's sentence unless it says more."""

from godwit.dispatch.codes import DISPATCH_CODES, DispatchCode
from godwit.dispatch.errors import RequestRefused


def test_a_refusal_names_its_code_and_field() -> None:
    plain = RequestRefused(DispatchCode.GROUP_MISSING)
    assert plain.detail == DISPATCH_CODES[DispatchCode.GROUP_MISSING].sentence
    assert RequestRefused(DispatchCode.GROUP_MISSING, "x", pointer="/to").pointer == "/to"
