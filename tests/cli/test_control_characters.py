"""Every command and the node's log escape control characters of clients and of arguments.

One hostile text is used in subjects, contents, names of clients, identities and arguments. Every command runs with it on a terminal and
into a pipe; JSON for programs stays exact.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.sync.client import connect

from godwit.children import follow_parent
from tests.cli.test_hostile import DEADLINE_S, QUICK, WORDS, Place, run, serving

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m[red]\u202egnp.exe\u2066[/x]\u2028\x7fé"
"""Control sequences of both kinds, markup, characters that reorder or break a line, and a letter that is not ASCII."""
OBEYED = ("\x1b]0;owned", "\x07", "\x1b[2J\x9b", "\x9b", "\u202e", "\u2066", "\u2028", "\x7f")
"""What a terminal must not be given. The colours of the commands themselves are none of these."""
MORE: dict[str, tuple[str, ...]] = {
    "publish": ("--server", "{server}", "/{hostile}", "{hostile}", "--text"),
    "tail": ("--server", "{server}", "/shown/**", "--last", "20", "--count", "3"),
    "config check": ("--set", "{hostile}=1"),
    "config doc": ("{hostile}",),
    "token secret": ("{hostile}",),
    "token keys": ("{folder}/{hostile}",),
    "token show": ("{hostile}",),
    "health": ("--data", "/{hostile}", "--admin", "{hostile}"),
    "top": ("--admin", "{hostile}"),
    "reload": ("--admin", "{hostile}"),
    "dispatch key": ("--dispatch", "{dispatch}", "--key-file", "{dispatch_key}", "--scope", "{hostile}"),
    "dispatch deliveries": ("--dispatch", "{dispatch}", "--key-file", "{dispatch_key}", "{hostile}"),
    "dispatch replay": ("--dispatch", "{dispatch}", "--key-file", "{hostile}"),
    "journal show": ("/{hostile}",),
    "journal check": ("/{hostile}",),
    "plan": ("--figures", "/{hostile}"),
}
"""Words of a command that are tried beside those with which it succeeds, in which every é is hostile."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "log"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, log: Path) -> Iterator[Place]:
    """A node to which a client has sent hostile text in every field that takes text."""
    options = ("--set", "logging.sessions=true", "--set", "logging.format=console")
    with log.open("wb") as errors, serving(tmp_path_factory.mktemp("node"), *options, errors=errors.fileno()) as found:
        tell(found)
        yield found


def tell(place: Place) -> None:
    commands = [
        {"publish": "/shown/1", "content": HOSTILE},
        {"publish": "/shown/2", "content": {HOSTILE: [HOSTILE]}},
        {"publish": "/shown/3", "content": "x", "fields": {"name": HOSTILE}, "reply_to": "/replies/é"},
        {"publish": f"/{HOSTILE}", "content": HOSTILE},
        {"subscribe": f"/{HOSTILE}/**"},
        {HOSTILE: HOSTILE},
    ]
    with connect(f"{place.server}/v1/live", user_agent_header="é") as client:
        client.send(json.dumps({"id": 0, "connect": {"client": HOSTILE}}))
        for number, command in enumerate(commands, 1):
            client.send(json.dumps({"id": number, **command}))
        client.send(json.dumps({"id": 99, "ping": True}))
        while json.loads(client.recv(DEADLINE_S)).get("id") != 99:
            pass
    for path in ("/v1/messages?subject=/shown/4", f"/v1/{urllib.request.quote(HOSTILE)}"):
        request = urllib.request.Request(
            f"http{place.server[2:]}{path}", HOSTILE.encode(), {"Content-Type": "text/plain"}
        )
        with contextlib.suppress(urllib.request.HTTPError):
            urllib.request.urlopen(request, timeout=DEADLINE_S).close()


def hostile_words(name: str, place: Place) -> list[list[str]]:
    """The words of a command with hostile text in place of what may be any."""
    plain = [HOSTILE.join(word.split("é")) if "caf" not in word else word for word in place.words(name)]
    names = {"server": place.server, "admin": place.admin, "dispatch": place.dispatch, "hostile": HOSTILE}
    names["folder"] = str(place.folder / str(next(place.numbers)))
    names["dispatch_key"] = str(place.folder / "data/dispatch/admin.key")
    more = [*name.split(), *(word.format(**names) for word in MORE[name])] if name in MORE else None
    return [plain, *([more] if more else [])]


def on_terminal(words: list[str]) -> str:
    """All that a command writes to a terminal; one that goes on is ended after its first lines."""
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "godwit", *words]
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, preexec_fn=follow_parent()
    ) as process:
        os.close(terminal)
        written = b""
        with contextlib.suppress(OSError), open(controller, "rb", buffering=0) as output:  # closed: it has ended
            while piece := output.read(65_536):
                written += piece
                if b"connections" in written and words[0] == "top":
                    process.terminate()
        process.wait(DEADLINE_S)
    return written.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("name", QUICK)
def test_no_command_hands_a_terminal_what_it_would_obey(name: str, place: Place) -> None:
    for words in hostile_words(name, place):
        if name != "top":
            done = run(words)
            shown = done.stdout.decode("utf-8", "surrogateescape") + done.stderr.decode("utf-8", "surrogateescape")
            assert not [each for each in OBEYED if each in shown], (words, shown)
        shown = on_terminal(words)
        assert not [each for each in OBEYED if each in shown], (words, shown)


def test_exact_output_stays_exact(place: Place) -> None:
    done = run(["tail", "--server", place.server, "/shown/1", "--last", "1", "--count", "1", "--json"])
    (line,) = done.stdout.decode("utf-8").splitlines() or pytest.fail(done.stderr.decode())
    assert json.loads(line)["content"] == HOSTILE


def test_the_log_of_the_node_obeys_nobody(place: Place, log: Path) -> None:
    for words in hostile_words("revoke", place):
        run(words)
    written = log.read_text("utf-8")
    assert "owned" in written, "the identity stands in the log"
    assert not [each for each in OBEYED if each in written], written


def test_every_word_that_is_tried_is_of_a_command() -> None:
    assert MORE.keys() <= WORDS.keys()
