"""The corpus over both drivers: every sequence whole and byte by byte, and a sample of it behind a WebSocket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mqtt.conftest import serve
from tests.mqtt.corpus import acknowledging, connecting, framing, publishing, statements, subscribing
from tests.mqtt.corpus.case import VERSION, Case
from tests.mqtt.packets import V3, Peer, connect, packet

FAMILIES = {
    "framing": framing.list_cases,
    "connecting": connecting.list_cases,
    "publishing": publishing.list_cases,
    "acknowledging": acknowledging.list_cases,
    "subscribing": subscribing.list_cases,
    "statements": statements.list_cases,
}
CODES3 = {VERSION: 1, 0x85: 2, 0x86: 4, 0x87: 5}
"""What a 3.1.1 CONNACK makes of a reason; of all others it has no word."""


@pytest.fixture(params=["io_uring", "readiness"])
def corpus_address(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """A node for each family: what one leaves retained, another's subscriptions would hear."""
    with serve(f"node.driver={request.param}") as node:
        yield node.mqtt


def run(case: Case, peer: Peer, *, step: int) -> str:
    """What differs from the case; nothing if it is as it should be."""
    if not case.is_first:
        peer.join(connect("", case.version))
    sent = case.sent if case.is_refused else case.sent + packet(0xC0)
    try:
        for at in range(0, len(sent), step or len(sent)):
            peer.send(sent[at : at + (step or len(sent))])
    except (BrokenPipeError, ConnectionResetError):
        pass  # it was refused before it was whole
    if not case.is_refused:
        wanted = case.answer + packet(0xD0)
        got = b""
        while len(got) < len(wanted) and (more := peer.receive()):
            got += more
        return "" if got == wanted else f"{got.hex(' ')} instead of {wanted.hex(' ')}"
    said, last = _what_is_said(case), peer.receive()
    if said:
        if last[:1] != said[:1] or last[2 : 2 + len(said) - 1] != said[1:]:
            return f"{last[:60].hex(' ')} instead of {said.hex(' ')} …"
        last = peer.receive()
    return "" if not last else f"{last[:60].hex(' ')} instead of the end"


def _what_is_said(case: Case) -> bytes:
    """The packet's type and what stands behind its length: as far as the standard settles it."""
    if case.is_silent or case.reason is None:
        return b""
    if not case.is_first:
        return b"" if case.version == V3 else bytes([0xE0, case.reason])
    if case.version == V3:
        code = CODES3.get(case.reason)
        return b"" if code is None else bytes([0x20, 0, code])
    return bytes([0x20, 0, case.reason])


@pytest.mark.parametrize("step", [0, pytest.param(1, marks=pytest.mark.long)], ids=["whole", "byte by byte"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_sequence_gets_the_answer_of_the_standard(
    corpus_address: tuple[str, int], family: str, step: int
) -> None:
    wrong = []
    for case in FAMILIES[family]():
        if step and len(case.sent) > 300:
            continue
        with Peer(corpus_address, case.version) as peer:
            try:
                fault = run(case, peer, step=step)
            except (AssertionError, TimeoutError) as error:
                fault = repr(error)
        if fault:
            wrong.append(f"{'3.1.1' if case.version == V3 else '5.0'} {case.name} ({case.sent[:40].hex(' ')}): {fault}")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong)


def test_the_corpus_holds_each_sequence_once() -> None:
    for family, list_cases in FAMILIES.items():
        keys = [(case.version, case.sent, case.is_first) for case in list_cases()]
        assert len(keys) > (80 if family == "statements" else 300), family
    assert sum(len(list(list_cases())) for list_cases in FAMILIES.values()) > 2_500
