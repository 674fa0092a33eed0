"""A will is judged by the configuration that is in force when it is published, wherever the right came from that let it in."""

from __future__ import annotations

import signal
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import jwt
import pytest

from tests.authority import Authority
from tests.mqtt.conftest import Served, serve
from tests.mqtt.packets import V5, Peer, connect
from tests.mqtt.test_restart import DEADLINE_S, await_note, kill

ISSUER, SECRET = "https://login.example", "s" * 64
RETAINED = 0x20
KEPT = b"\x11" + (600).to_bytes(4)
DELAYED = b"\x18" + (600).to_bytes(4)


@dataclass(frozen=True)
class Source:
    """What lets a client publish its will: `given` is what the configuration gives before, and `less` after."""

    topic: str
    given: str
    less: str
    own: tuple[str, ...] = ()
    is_certificate: bool = False
    is_kept: bool = False
    """The right comes from elsewhere as well."""


SOURCES = {
    "issuer": Source("r/state", "/r/**", "/r/other"),
    "issuer, for an identity": Source("r/ann/state", "/r/{identity}/**", "/r/{tenant}/**"),
    "issuer, for a tenant": Source("r/acme/state", "/r/{tenant}/**", "/r/{identity}/**"),
    "issuer, in another form": Source("r/ann/state", "/r/{identity}/**", "/r/*/state", is_kept=True),
    "token": Source("r/state", "/r/other", "/r/another", own=("/r/**",), is_kept=True),
    "token and issuer": Source("r/state", "/r/**", "/r/other", own=("/r/state",), is_kept=True),
    "certificate": Source("r/ann/state", "/r/{identity}/**", "/q/{identity}/**", is_certificate=True),
}


class World:
    """A node's folder, its configuration, and the client whose will it is."""

    def __init__(self, folder: Path, source: Source) -> None:
        self.folder, self.source, self.log = folder, source, folder / "log"
        self.reading = ""
        """More lines of the issuer: how it reads a token."""
        self.identity = "subject_cn"
        """What of a certificate is its holder's identity."""
        self._authority = Authority(folder)
        self._certificate = self._authority.issue("localhost")
        (folder / "secret").write_text(SECRET)

    @property
    def note(self) -> str:
        """The journal's note of the will."""
        return "will c" if self.source.is_certificate else "will acme\x00c"

    def write_config(self, pattern: str) -> None:
        publish = {True: f'certificate_publish = ["{pattern}"]\n', False: ""}
        chain, key = self._certificate
        (self.folder / "node.toml").write_text(
            '[mqtt]\ntls_address = "127.0.0.1:0"\n'
            f'[access]\nmode = "jwt"\nanonymous_subscribe = ["/r/**"]\n{publish[self.source.is_certificate]}'
            f'[tls]\ncertificate_files = ["{chain}"]\nkey_files = ["{key}"]\nclient_certificates = "optional"\n'
            f'client_authorities_file = "{self._authority.file}"\nclient_identity = "{self.identity}"\n'
            f'[issuers."{ISSUER}"]\nkeys_file = "{self.folder}/secret"\nalgorithms = ["HS256"]\n'
            f'tenant_claim = "org"\npublish = ["{"/q" if self.source.is_certificate else pattern}"]\n'
            f"{self.reading}\n"
        )

    @contextmanager
    def serve(self) -> Iterator[Served]:
        flags = ("--config", str(self.folder / "node.toml"))
        with serve(f"node.data_directory={self.folder}", flags=flags, log=self.log) as served:
            yield served

    @contextmanager
    def come(self, served: Served, **said: object) -> Iterator[Peer]:
        """The client connects; its session outlives its connection."""
        if not self.source.is_certificate:
            said |= {"username": "", "password": self._make_token()}
        with Peer(served["mqtt_tls" if self.source.is_certificate else "mqtt"], V5) as peer:
            if self.source.is_certificate:
                made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                made.load_verify_locations(self._authority.file)
                made.load_cert_chain(*self._authority.issue(client="ann", emails=("ann",)))
                peer.socket = made.wrap_socket(peer.socket, server_hostname="localhost")
            assert peer.join(connect("c", properties=KEPT, **said))[3] == 0  # type: ignore[arg-type]  # passed on
            yield peer

    def _make_token(self) -> bytes:
        claims = {"iss": ISSUER, "sub": "ann", "staff": "eve", "org": "acme", "exp": time.time() + 600}
        permissions = {"allow": {"publish": self.source.own}}
        return jwt.encode({**claims, "permissions": permissions}, SECRET, "HS256").encode()

    def await_log(self, event: str) -> None:
        end = time.monotonic() + DEADLINE_S
        while event not in self.log.read_text():
            assert time.monotonic() < end, f"{event} is not in the log"

    def reload(self, served: Served, pattern: str) -> None:
        self.write_config(pattern)
        served.process.send_signal(signal.SIGHUP)
        self.await_log("config_reloaded")

    def is_published(self, served: Served) -> bool:
        """Waits until the node has judged the will."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            if self.has_state(served):
                return True
            if "was not published" in self.log.read_text():
                return False
        raise AssertionError("the will was not judged")

    def has_state(self, served: Served) -> bool:
        try:
            url = f"http://{served.addresses['client']}/v1/snapshot?subject=/{self.source.topic}"
            with urlopen(url) as answer:
                return bool(answer.read() == b"gone")
        except HTTPError as error:
            error.close()
            return False


Change = Callable[[World, str], bool]


def end_by_reload(world: World, pattern: str) -> bool:
    """A connected client is cut by a reload that gives its authority less."""
    with world.serve() as served, world.come(served, will=will_of(world), will_flags=RETAINED) as peer:
        world.reload(served, pattern)
        assert peer.receive()[0] >> 4 == 14 and peer.receive() == b""
        return world.is_published(served)


def end_delay_after_reload(world: World, pattern: str) -> bool:
    """The client is lost, its will waits, the configuration changes, and then the delay ends with the session."""
    with world.serve() as served:
        with world.come(served, will=will_of(world), will_flags=RETAINED, will_properties=DELAYED):
            await_note(world.folder, world.note, says='"due_ms":0')
        await_note(world.folder, world.note, not_yet='"due_ms":0,')
        world.reload(served, pattern)
        with world.come(served, clean=True):
            return world.is_published(served)


def end_by_kill(world: World, pattern: str) -> bool:
    """The node is killed, and begins again with the other configuration."""
    with world.serve() as first, world.come(first, will=will_of(world), will_flags=RETAINED):
        await_note(world.folder, world.note, says='"due_ms":0')
        kill(first)
    world.write_config(pattern)
    with world.serve() as second, world.come(second, clean=True):
        return world.is_published(second)


def will_of(world: World) -> tuple[str, bytes]:
    return (world.source.topic, b"gone")


FAST: list[tuple[str, Change]] = [
    ("issuer", end_by_reload),
    ("token", end_by_reload),
    ("certificate", end_by_reload),
    ("issuer, for an identity", end_delay_after_reload),
    ("token and issuer", end_delay_after_reload),
    ("issuer, for a tenant", end_by_kill),
    ("issuer, in another form", end_by_kill),
]
ALL = [(name, end) for name in SOURCES for end in (end_by_reload, end_delay_after_reload, end_by_kill)]
CASES = [pytest.param(*case, marks=() if case in FAST else pytest.mark.long) for case in ALL]


@pytest.mark.parametrize(("name", "end"), CASES)
def test_a_will_is_published_only_where_its_client_might_publish_now(name: str, end: Change, tmp_path: Path) -> None:
    world = World(tmp_path, SOURCES[name])
    world.write_config(world.source.given)
    assert end(world, world.source.less) is world.source.is_kept


@pytest.mark.parametrize(
    ("name", "before", "after", "end"),
    [
        ("issuer, for an identity", 'identity_claim = "sub"', 'identity_claim = "staff"', end_by_reload),
        ("token", 'permissions_claim = "permissions"', 'permissions_claim = "rights"', end_by_reload),
        ("token", 'permissions_claim = "permissions"', 'permissions_claim = "rights"', end_by_kill),
        pytest.param("issuer", 'identity_prefix = ""', 'identity_prefix = "p:"', end_by_reload, marks=pytest.mark.long),
        pytest.param("issuer", 'audience = ""', 'audience = "us"', end_by_reload, marks=pytest.mark.long),
    ],
)
def test_a_will_is_not_published_where_its_token_would_be_read_in_another_way(
    name: str, before: str, after: str, end: Change, tmp_path: Path
) -> None:
    world = World(tmp_path, SOURCES[name])
    world.reading = before
    world.write_config(world.source.given)
    world.reading = after
    assert not end(world, world.source.given)


def test_a_will_is_not_published_where_its_certificate_would_be_read_in_another_way(tmp_path: Path) -> None:
    world = World(tmp_path, SOURCES["certificate"])
    world.write_config(world.source.given)
    world.identity = "san_email"
    assert not end_by_kill(world, world.source.given)


@pytest.mark.parametrize("end", [end_delay_after_reload, end_by_kill])
@pytest.mark.parametrize("name", ["issuer", pytest.param("certificate", marks=pytest.mark.long)])
def test_a_will_is_published_where_nothing_was_taken_back(name: str, end: Change, tmp_path: Path) -> None:
    world = World(tmp_path, SOURCES[name])
    world.write_config(world.source.given)
    assert end(world, world.source.given)
