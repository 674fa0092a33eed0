"""One line for each event, whatever it contains; no secrets; a storm is limited and counted."""

import io
import json
import logging
import os
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from godwit.config.tree import LoggingConfig
from godwit.logs import (
    EventFlow,
    QueuedOutput,
    Unfailing,
    clean_event,
    read_logger,
    render_console,
    render_json,
    start_logs,
)


def make_event(**fields: Any) -> dict[str, Any]:
    event: dict[str, Any] = {
        "timestamp": "2026-01-02T03:04:05.678901Z",
        "level": "info",
        "event": "client_seen",
        **fields,
    }
    return dict(clean_event(event, "n1"))


@pytest.mark.parametrize("render", [render_json, render_console])
@given(text=st.text(st.characters(codec="utf-8")))
def test_no_text_ends_a_line_or_reaches_a_terminal_as_a_command(render: Any, text: str) -> None:
    line = render(None, "info", make_event(client=text))
    assert line.isascii() and line.isprintable()


def test_a_json_line_holds_every_field_and_can_be_read_back() -> None:
    line = render_json(None, "info", make_event(client="\x1b[31m\n", count=3))
    assert json.loads(line) == {
        "time": "2026-01-02T03:04:05.678901Z", "level": "info", "event": "client_seen", "node": "n1",
        "client": "\x1b[31m\n", "count": 3,
    }  # fmt: skip


def test_a_console_line_quotes_what_is_not_plain() -> None:
    line = render_console(None, "info", make_event(client="a b", address="127.0.0.1:1", count=3))
    assert line == '03:04:05.678 info    client_seen client="a b" address=127.0.0.1:1 count=3'


def test_secrets_are_never_written_and_long_texts_are_cut() -> None:
    event = make_event(token="s3cret", Authorization="Bearer s3cret", client="x" * 10_000, exception="y" * 10_000)
    assert "s3cret" not in json.dumps(event)
    assert len(event["client"]) < 3_000 and len(event["exception"]) == 10_000


def test_a_storm_of_one_event_is_cut_and_counted_and_others_pass() -> None:
    seconds = iter([0.0, 0.1, 0.2, 0.3, 0.4, 1.0])
    flow = EventFlow(2, clock=lambda: next(seconds))
    assert flow.limit_event(None, "", {"event": "a"}) == {"event": "a"}
    assert flow.limit_event(None, "", {"event": "a"}) == {"event": "a"}
    for _ in range(2):
        with pytest.raises(structlog.DropEvent):
            flow.limit_event(None, "", {"event": "a"})
    assert flow.limit_event(None, "", {"event": "b"}) == {"event": "b"}
    assert flow.limit_event(None, "", {"event": "a"}) == {"event": "a", "not_written": 2}


def test_levels_are_obeyed_and_libraries_speak_the_same_way() -> None:
    output = io.StringIO()
    try:
        start_logs(LoggingConfig(level="warning", format="json"), "n1", output=output)
        read_logger().info("quiet_event")
        read_logger().warning("loud_event", detail="x")
        logging.getLogger("some.library").warning("odd %s", "thing")
    finally:
        logging.getLogger().handlers.clear()
        structlog.reset_defaults()
    events = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [event["event"] for event in events] == ["loud_event", "library_spoke"]
    assert (events[1]["said"], events[1]["by"]) == ("odd thing", "some.library")


def test_a_log_that_cannot_be_written_stops_nothing() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    start_logs(LoggingConfig(format="json"), "n1", output=Full())
    read_logger().warning("disk_full")
    closed = io.StringIO()
    closed.close()
    output = Unfailing(closed)
    output.write("a line")
    output.flush()
    assert output.lines_lost == 1


def test_a_pipe_that_nobody_reads_stops_no_one_and_what_is_dropped_is_counted() -> None:
    reading, writing = os.pipe()
    output = QueuedOutput(writing, lines_max=10)
    line = "x" * 10_000 + "\n"
    for _ in range(100):  # the pipe holds 64 KiB, the queue ten lines
        output.write(line)
    assert output.lines_dropped > 0 and not output.finish(0.01)
    text = b""
    while not output.finish(0.001):
        text += os.read(reading, 65_536)
    output.write("last\n")
    assert output.finish(60)
    os.close(writing)
    with os.fdopen(reading, "rb") as left:
        text += left.read()
    lines = text.decode().splitlines()
    dropped = sum(json.loads(one)["count"] for one in lines if one.startswith("{"))
    assert dropped == output.lines_dropped and lines.count("x" * 10_000) + dropped == 100 and "last" in lines
