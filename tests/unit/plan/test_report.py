"""godwit.plan.report: the answer comes first, the binding limit is named, and the JSON is valid."""

from __future__ import annotations

import io
import json

from rich.console import Console

from godwit.plan.check import Compared
from godwit.plan.report import describe_plan, show_plan
from godwit.plan.workload import Budget, Workload

from .figures import MACHINE, machine


def show(workload: Workload, budget: Budget, compared: list[Compared] | None = None) -> str:
    out = io.StringIO()
    show_plan(describe_plan(workload, budget, MACHINE, compared), Console(file=out, width=120, no_color=True))
    return out.getvalue()


def test_the_answer_comes_first_and_names_what_binds() -> None:
    text = show(Workload(connections=50_000), Budget())
    assert "It fits. The bottleneck is cpu" in text
    assert text.index("It fits") < text.index("limit") < text.index("this workload") < text.index("this machine")
    assert "not part of the prediction" in text


def test_what_does_not_fit_says_what_helps_and_what_to_set() -> None:
    text = show(Workload(connections=3_000_000, messages_per_second=0.0), Budget(memory_mb=4_000))
    assert "It does not fit. The bottleneck is memory" in text
    assert "Possible remedy: more memory" in text
    assert "Set limits.connections_max = 3000000." in text


def test_what_tls_takes_is_told_where_it_was_measured() -> None:
    known = machine(tls_connect_us=65.0, tls_send_us=0.2, tls_byte_us=0.0005, tls_kb=4.0)
    out = io.StringIO()
    show_plan(describe_plan(Workload(), Budget(), known), Console(file=out, width=120, no_color=True))
    text = out.getvalue()
    assert "10,000" in text and "0.32 µs" in text and "4.00 kB" in text and "not part of the prediction" not in text


def test_what_is_endless_is_null() -> None:
    described = describe_plan(Workload(messages_per_second=1e9), Budget(), MACHINE)
    assert described["prediction"]["delay_ms"] is None
    assert json.loads(json.dumps(described, allow_nan=False)) == json.loads(json.dumps(described))
    assert "never: it falls behind" in show(Workload(messages_per_second=1e9), Budget())


def test_sends_a_second_are_told_by_the_size_of_the_content() -> None:
    described = describe_plan(Workload(), Budget(), MACHINE)
    assert described["sends_per_second_a_core"] == {"144": 200_000, "1024": 166_667, "8192": 125_000}


def test_what_was_played_stands_beside_what_was_predicted() -> None:
    compared = [Compared("the workload", "cores", 0.5, 0.45), Compared("memory", "MB", 10.0, 30.0)]
    assert [one["is_near"] for one in describe_plan(Workload(), Budget(), MACHINE, compared)["check"]] == [True, False]
    assert "1.11" in show(Workload(), Budget(), compared)
