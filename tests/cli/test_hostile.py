"""Every command under hostile conditions: a sentence and an exit code, never a traceback, never silence.

The commands are those of the parser: one without words here fails. A node, a journal and a key are there for them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import quote

import click
import pytest

from godwit.children import follow_parent
from godwit.cli import godwit
from godwit.dispatch.channels.email.dkim import read_dkim_key
from godwit.dispatch.channels.email.records import make_dkim_record
from tests.dispatch.email.test_email import make_keys
from tests.dispatch.email.test_records import dns_server, make_zone
from tests.unit.plan.figures import MACHINE

DEADLINE_S = 60
NOT_UTF8 = b"/\xff"
ADMIN_TOKEN = "correct-horse-battery-staple"
LOCALE = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
PORTS = ("--client", "127.0.0.1:0", "--mqtt", "127.0.0.1:0", "--admin", "127.0.0.1:0")

WORDS: dict[str, tuple[str, ...]] = {
    "serve": PORTS,
    "publish": ("--server", "{server}", "/café", '{{"name":"é"}}'),
    "tail": ("--server", "{server}", "/café", "--count", "1"),
    "config show": ("--set", "node.name=é"),
    "config check": (),
    "config doc": (),
    "token secret": (),
    "token keys": ("{new}",),
    "token make": ("--key", "{key}", "--issuer", "é", "--identity", "é"),
    "token show": ("{token}",),
    "health": ("--admin", "{admin}"),
    "top": ("--admin", "{admin}"),
    "revoke": ("--admin", "{admin}", "--token-file", "{admin_token}", "--identity", "é"),
    "purge": ("--admin", "{admin}", "--token-file", "{admin_token}", "{purged}"),
    "reload": ("--admin", "{admin}", "--token-file", "{admin_token}"),
    "send": ("--dispatch", "{dispatch}", "--key-file", "{dispatch_key}", "--to", "user:é", "--text", "é"),
    "inbox": ("--dispatch", "{dispatch}", "--key-file", "{dispatch_key}", "user:é"),
    "receivers import": ("--dispatch", "{dispatch}", "--key-file", "{dispatch_key}", "{receivers}"),
    "groups import": ("--dispatch", "{dispatch}", "--key-file", "{dispatch_key}", "--group", "é", "{members}"),
    "dispatch check email": (
        "shop.example",
        "--dns",
        "{dns}",
        "--set",
        "dispatch_email.dkim_key_file={dkim}",
        "--set",
        "dispatch_email.bounce_domain=bounces.shop.example",
        "--set",
        "dispatch_email.dkim_selector=s1",
    ),
    "dispatch run": ("all", "--set", "dispatch.address=127.0.0.1:0"),
    "dispatch key": ("--dispatch", "{dispatch}", "--key-file", "{dispatch_key}", "--scope", "send"),
    "dispatch rekey": ("--data", "{new}"),
    "dispatch replay": ("--dispatch", "{dispatch}", "--key-file", "{dispatch_key}"),
    "dispatch deliveries": ("--dispatch", "{dispatch}", "--key-file", "{dispatch_key}", "{notification}"),
    "journal show": ("{data}",),
    "journal check": ("{data}",),
    "bench": ("connect", "--size", "0.001", "--rounds", "1", "--compare", ","),
    "plan": ("--figures", "{figures}"),
    "verify": ("--seconds", "5", "--subscribers", "4", "--publishers", "1", "--fault", "none", "--kind", "python"),
}
"""Command → arguments with which it succeeds."""
FILES = ("key", "token", "admin_token", "data", "figures", "receivers", "members", "dkim")
SLOW = {"bench", "verify"}


def leaves(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    with click.Context(command) as context:
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from leaves(found, f"{name} {each}".strip())


LEAVES = dict(leaves(godwit))
SERVING = {"serve", "dispatch run"}
QUICK = [name for name in LEAVES if name not in SERVING and name not in SLOW]
ALL = [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in sorted(SLOW))]


@dataclass(frozen=True)
class Place:
    """What the commands are given."""

    folder: Path
    server: str
    admin: str
    dispatch: str
    notification: str
    dns: str
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def words(self, name: str) -> list[str]:
        files = {each: str(self.folder / each) for each in FILES}
        files["dispatch_key"] = str(self.folder / "data/dispatch/admin.key")
        return [*name.split(), *(word.format(**self._new(name), **files) for word in WORDS[name])]

    def _new(self, name: str) -> dict[str, str]:
        """What can be made, or taken away, once only."""
        number = next(self.numbers)
        subject = f"/purged/é/{number}"
        if name == "purge":
            publish(self.server, subject)
        new = {"new": str(self.folder / f"keys-{number}"), "purged": subject}
        fixed = {"server": self.server, "admin": self.admin, "dispatch": self.dispatch}
        return {**new, **fixed, "notification": self.notification, "dns": self.dns}


def publish(server: str, subject: str) -> None:
    url = f"http{server[2:]}/v1/messages?subject={quote(subject)}"
    request = urllib.request.Request(url, b'{"name":"\xc3\xa9"}', {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=DEADLINE_S).close()


def send(dispatch: str, key_file: Path) -> str:
    """A notification with one delivery; returns its id."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key_file.read_text().strip()}"}
    body = json.dumps({"to": {"receiver": {"id": "user:é"}}, "content": {"body": "é"}}).encode()
    request = urllib.request.Request(f"{dispatch}/v1/notifications", body, headers)
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
        return str(json.loads(answer.read())["id"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving(tmp_path_factory.mktemp("hostile")) as found:
        yield found


@contextlib.contextmanager
def serving(folder: Path, *more: str, errors: int = subprocess.DEVNULL) -> Iterator[Place]:
    """A node with everything that the commands ask it for."""
    (folder / "admin_token").write_text(ADMIN_TOKEN)
    (folder / "key").write_text("a-secret-of-thirty-two-characters-or-more\n")
    (folder / "receivers").write_text('{"id": "user:é"}\n', "utf-8")
    (folder / "members").write_text('{"receiver": "user:é"}\n', "utf-8")
    (folder / "figures").write_text(json.dumps(asdict(MACHINE)))
    command = [sys.executable, "-m", "godwit"]
    making = [*command, "token", "make", "--key", folder / "key", "--issuer", "é", "--identity", "é"]
    (folder / "token").write_bytes(subprocess.run(making, check=True, capture_output=True).stdout)
    words = [*command, "serve", *PORTS, "--data", folder / "data", "--set", f"admin.token={ADMIN_TOKEN}"]
    words += ["--dispatch", "--set", "dispatch.address=127.0.0.1:0", *more]
    node = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, preexec_fn=follow_parent())
    private, _ = make_keys("ed25519")
    (folder / "dkim").write_bytes(private)
    zone = make_zone(make_dkim_record(read_dkim_key(str(folder / "dkim"))))
    with node, contextlib.closing(node.stdout or pytest.fail()) as lines, dns_server(zone) as dns:
        try:
            ports = dict(word.split(b"=", 1) for word in lines.readline().split()[1:])
            found = Place(
                folder,
                f"ws://{ports[b'client'].decode()}",
                ports[b"admin"].decode(),
                dispatch := f"http://{ports[b'dispatch'].decode()}",
                send(dispatch, folder / "data/dispatch/admin.key"),
                dns,
            )
            publish(found.server, "/café")
            yield found
        finally:
            node.kill()


def run(
    words: list[str] | list[str | bytes], *, closed: tuple[int, ...] = (), environment: dict[str, str] | None = None,
    stdout: int = subprocess.PIPE, stdin: int = subprocess.DEVNULL,
) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
    follow = follow_parent()

    def prepare() -> None:
        follow()
        for number in closed:
            os.close(number)

    done = subprocess.run(
        [sys.executable, "-m", "godwit", *words], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})}, preexec_fn=prepare, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr, done.stderr.decode()
    return done


def test_every_command_of_the_parser_is_tried() -> None:
    assert WORDS.keys() == LEAVES.keys()


@pytest.mark.parametrize("name", ALL)
def test_a_full_device_is_a_sentence(name: str, place: Place) -> None:
    with open("/dev/full", "wb") as full:
        done = run(place.words(name), stdout=full.fileno())
    assert done.returncode == 1 and done.stderr.endswith(b"godwit: standard output: No space left on device\n"), done


@pytest.mark.parametrize("name", ALL)
def test_a_closed_output_is_a_sentence(name: str, place: Place) -> None:
    done = run(place.words(name), closed=(1,))
    assert done.returncode == 1 and done.stderr.endswith(b"godwit: standard output: Bad file descriptor\n"), done


@pytest.mark.parametrize("name", ALL)
def test_a_reader_that_has_left_ends_it_with_141(name: str, place: Place) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(place.words(name), stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == 141 and b"Broken pipe" not in done.stderr, done


@pytest.mark.parametrize("name", ALL)
def test_a_locale_of_ascii_shows_everything(name: str, place: Place) -> None:
    done = run(place.words(name), environment=LOCALE)
    assert done.returncode == 0 and done.stdout, done


@pytest.mark.parametrize("name", ALL)
def test_input_and_errors_that_are_closed_change_nothing(name: str, place: Place) -> None:
    done = run(place.words(name), closed=(0, 2))
    assert done.returncode == 0 and done.stdout, done


@pytest.mark.parametrize("name", LEAVES)
def test_an_argument_that_is_not_utf8_is_refused(name: str, place: Place) -> None:
    """A path may be any bytes; everything else is refused before anything is done."""
    done = run([*place.words(name), NOT_UTF8, NOT_UTF8, NOT_UTF8])
    assert done.returncode == 2 and b"\\udcff" in done.stderr, done
    text = os.fsdecode(NOT_UTF8)
    for param in LEAVES[name].params:
        if isinstance(param.type, click.Path | click.File) or (isinstance(param, click.Option) and param.is_flag):
            continue
        with pytest.raises(click.UsageError):
            LEAVES[name].make_context(name, [text] if isinstance(param, click.Argument) else [param.opts[0], text])


WAITING: dict[str, tuple[tuple[str, ...], str]] = {
    "publish": (("--server", "{server}", "/a"), "/a "),
    "tail": (("--server", "{server}", "/a"), "subscribed to"),
    "revoke": (("--admin", "{silent}", "--list"), "accept"),
    "purge": (("--admin", "{silent}", "/a"), "accept"),
    "reload": (("--admin", "{silent}"), "accept"),
    "top": (("--admin", "{silent}"), "accept"),
    "bench": (("idle", "--rounds", "9"), ": round"),
    "verify": (("--seconds", "600", "--subscribers", "4", "--fault", "none", "--kind", "python"), "joining"),
    "serve": (PORTS, "listening"),
    "dispatch run": (("all", "--set", "dispatch.address=127.0.0.1:0"), "listening"),
    "config show": (("--config", "{fifo}"), "fifo"),
    "config check": (("--config", "{fifo}"), "fifo"),
    "token make": (("--key", "{fifo}", "--issuer", "a", "--identity", "b"), "fifo"),
    "token show": (("{fifo}",), "fifo"),
    "plan": (("--figures", "{fifo}"), "fifo"),
}
"""Commands that may wait, and what shows that they do. The others do not."""
GOOD_ORDER = {"tail", *SERVING}  # ^C is how they are meant to end


def heed_interrupts() -> Callable[[], None]:
    """Whoever starts the tests in the background of a shell has them ignore interrupts, and so their children."""
    follow = follow_parent()

    def begin() -> None:
        follow()
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    return begin


@pytest.mark.parametrize("name", WAITING)
def test_an_interrupt_ends_whatever_waits_at_once(name: str, place: Place, tmp_path: Path) -> None:
    words, sign = WAITING[name]
    os.mkfifo(tmp_path / "fifo")
    with socket.create_server(("127.0.0.1", 0)) as silent, contextlib.ExitStack() as stack:
        names = {"server": place.server, "silent": f"127.0.0.1:{silent.getsockname()[1]}", "fifo": tmp_path / "fifo"}
        command = [sys.executable, "-m", "godwit", *name.split(), *(word.format(**names) for word in words)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, preexec_fn=heed_interrupts()) as process:
            output = b""
            if sign == "accept":
                stack.enter_context(silent.accept()[0])
            elif sign == "fifo":
                stack.enter_context((tmp_path / "fifo").open("wb"))  # returns once somebody reads
            else:
                assert process.stdin and process.stdout and process.stderr
                if name == "publish":
                    process.stdin.write(b"1\n")
                    process.stdin.flush()
                stream = process.stdout if name in {"publish", *SERVING} else process.stderr
                while sign.encode() not in output:
                    output += os.read(stream.fileno(), 4_096) or pytest.fail(f"{name} ended: {output!r}")
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=DEADLINE_S)
    assert b"Traceback" not in stderr, stderr.decode()
    if name in GOOD_ORDER:
        assert process.returncode == 0, stderr
    else:
        assert process.returncode == 130 and re.search(rb"godwit: interrupted\n$", output + stderr), (stdout, stderr)
