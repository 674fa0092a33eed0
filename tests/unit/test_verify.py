"""The parts of a `godwit verify` run: the plan of a seed, lanes that break connections, traces, and the text of a verdict."""

from __future__ import annotations

import asyncio
from collections import Counter
from io import StringIO
from itertools import pairwise

import pytest
from rich.console import Console

from godwit.verify.fault_injection import FaultInjection
from godwit.verify.judge.content import Contents
from godwit.verify.judge.context import CheckContext, Rules
from godwit.verify.judge.expected_history import ExpectedHistory
from godwit.verify.judge.finding import Finding, Findings, Guarantee
from godwit.verify.judge.merging import Merging
from godwit.verify.plan import CALM_S, OF_NODE, WARM_UP_S, Fault, FaultKind, Kind, Plan, Scale, make_plan
from godwit.verify.proxy import Proxy
from godwit.verify.timing import start_clock
from godwit.verify.trace import EVENTS_MAX, Trace
from godwit.verify.verdict import Verdict, print_verdict


class Reader:
    """Says how long it was made to stop."""

    def __init__(self) -> None:
        self.reported: list[tuple[int, int]] = []
        self.is_stalled = False

    def stall(self, is_stalled: bool) -> None:
        self.is_stalled = is_stalled

    def tell(self, name: str, begin: int, end: int) -> None:
        self.reported.append((begin, end))


async def test_the_last_fault_kind_lasts_as_long_as_it_was_planned() -> None:
    reader, clock = Reader(), start_clock()
    expected = ExpectedHistory(Contents(1, 20), {})
    context = CheckContext(expected, Merging(expected), Findings(), Rules())
    faults = [Fault(0.0, FaultKind.STALL, 0.2, ("a",))]
    injection = FaultInjection(faults, Proxy(None), None, context, clock, {"a": reader}, reader.tell, 10.0)
    await injection.run()
    [(begin, end)] = reader.reported
    assert end - begin >= 190 and not reader.is_stalled


def a_plan(seed: int = 3, seconds: float = 120.0, subscribers: int = 200) -> Plan:
    return make_plan(seed, Scale(seconds, subscribers), frozenset(Kind), frozenset(FaultKind))


def test_the_same_seed_gives_the_same_plan_and_another_another() -> None:
    assert a_plan(3) == a_plan(3)
    assert a_plan(3).faults != a_plan(4).faults and a_plan(3).subscribers != a_plan(4).subscribers


def test_all_subjects_of_a_plan_are_under_its_root() -> None:
    plan = make_plan(1, Scale(60, 50), frozenset(Kind), frozenset(FaultKind), "/verify/run")
    selectors = [*plan.styles, *(subscriber.selector for subscriber in plan.subscribers)]
    assert all(selector.startswith("/verify/run/") for selector in selectors)


def test_a_plan_has_every_kind_of_subscriber_and_as_many_as_wanted() -> None:
    plan = a_plan()
    assert len(plan.subscribers) == 200
    assert set(Counter(each.kind for each in plan.subscribers)) == set(Kind)
    assert {each.encoding for each in plan.subscribers} == {"json", "binary"}
    assert len({each.name for each in plan.subscribers}) == 200


def test_every_fault_kind_is_done_within_two_minutes_and_none_while_everybody_joins_or_comes_to_the_end() -> None:
    faults = a_plan().faults
    assert {fault.fault_kind for fault in faults} == set(FaultKind)
    assert all(fault.at_s >= WARM_UP_S and fault.at_s + fault.for_s <= 120 - CALM_S for fault in faults)
    assert [fault.at_s for fault in faults] == sorted(fault.at_s for fault in faults)


def test_what_fault_kinds_the_node_does_not_overlap() -> None:
    faults = [fault for fault in a_plan(seconds=600).faults if fault.fault_kind in OF_NODE]
    assert all(one.at_s + one.for_s <= next.at_s for one, next in pairwise(faults))


def test_every_subject_is_published_on_and_the_busy_ones_most() -> None:
    plan = a_plan()
    subjects = Counter(plan.subject_of(publisher, number) for publisher in (1, 2) for number in range(1, 1_000))
    assert set(subjects) == set(plan.styles)
    assert {subject for subject, _ in subjects.most_common(2)} == {"/verify/busy/0", "/verify/busy/1"}


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(1_000):
        writer.write(chunk)
    writer.close()


def test_javascript_clients_take_each_way_and_over_http_they_speak_json() -> None:
    subscribers = a_plan().subscribers
    clients = [each for each in subscribers if each.kind is Kind.JAVASCRIPT]
    assert [each.transport for each in clients] == ["auto", "sse", "poll", "auto", "sse", "poll"]
    assert all(each.encoding == "json" for each in clients if each.transport != "auto")
    assert {each.transport for each in subscribers if each.kind is not Kind.JAVASCRIPT} == {"auto"}


async def test_a_lane_passes_bytes_until_it_is_cut_within_them() -> None:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    proxy = Proxy(server.sockets[0].getsockname())
    try:
        lane = await proxy.lane("one")
        reader, writer = await asyncio.open_connection("127.0.0.1", lane.port)
        writer.write(b"whole")
        assert await reader.readexactly(5) == b"whole"
        lane.cut(after_bytes=8)
        writer.write(b"parts")
        assert await reader.readexactly(3) == b"par"
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(2)
        assert proxy.cuts == 1
        writer.close()
    finally:
        await proxy.close()
        server.close()


async def test_a_half_open_connection_carries_nothing_and_tells_nobody_but_a_new_one_does() -> None:
    gone = asyncio.Event()

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await echo(reader, writer)
        gone.set()

    server = await asyncio.start_server(count, "127.0.0.1", 0)
    proxy = Proxy(server.sockets[0].getsockname())
    try:
        lane = await proxy.lane("one")
        reader, writer = await asyncio.open_connection("127.0.0.1", lane.port)
        writer.write(b"1")
        assert await reader.readexactly(1) == b"1"
        lane.half_open()
        writer.write(b"2")
        second_reader, second_writer = await asyncio.open_connection("127.0.0.1", lane.port)
        second_writer.write(b"3")
        assert await second_reader.readexactly(1) == b"3"
        writer.close()
        second_writer.write(b"4")
        assert await second_reader.readexactly(1) == b"4"
        assert not gone.is_set(), "the far side has not heard that the near side left"
        second_writer.close()
    finally:
        await proxy.close()
        server.close()


def test_a_trace_is_bounded_and_says_what_it_left_out() -> None:
    trace = Trace()
    for at_ms in range(EVENTS_MAX + 5):
        trace.gap(at_ms, 1)
    assert (len(trace.gaps), trace.events_left_out) == (EVENTS_MAX, 5)
    trace.up(1)
    trace.down(9)
    assert trace.ups == [[1, 9]]


def test_a_verdict_tells_the_shortest_history_and_how_to_see_it_again() -> None:
    finding = Finding(Guarantee.NO_LOSS, "7.3 never came", "pattern-1", "/a", 5, ["stood at 7.2", "message 7.4"])
    states = {guarantee: "kept" for guarantee in Guarantee} | {Guarantee.NO_LOSS: "broken"}
    counts = Counter({"violations": 1})
    verdict = Verdict("godwit", 9, 60, True, states, counts, [finding], finding, Counter(), {}, {})
    out = StringIO()
    print_verdict(verdict, Console(file=out, width=40), "godwit verify --url ws://[::1]:8800 --seed 9")
    text = out.getvalue()
    assert "BROKEN" in text and "7.3 never came" in text and "message 7.4" in text
    assert "repeat with: godwit verify --url ws://[::1]:8800 --seed 9\n" in text
