"""The will of a client that a node lost with itself is judged when the node begins again: as its client would be judged then."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import jwt
import pytest

from tests.mqtt.conftest import Served, serve
from tests.mqtt.packets import V5, Peer, connect
from tests.mqtt.test_restart import DEADLINE_S, await_note, kill

ISSUER, SECRET = "https://login.example", "s" * 64
RETAINED = 0x20


def write_config(folder: Path, issuer: str, secret: str) -> Path:
    (folder / "secret").write_text(secret)
    file = folder / "node.toml"
    file.write_text(
        f'[access]\nmode = "jwt"\nanonymous_subscribe = ["/r/**"]\n'
        f'[issuers."{issuer}"]\nkeys_file = "{folder}/secret"\nalgorithms = ["HS256"]\n'
    )
    return file


def make_token() -> bytes:
    rights = {"allow": {"both": ["/r/**"]}}
    claims = {"iss": ISSUER, "sub": "ann", "exp": time.time() + 600, "permissions": rights}
    return jwt.encode(claims, SECRET, "HS256").encode()


def read_state(served: Served) -> bytes | None:
    try:
        with urlopen(f"http://{served.addresses['client']}/v1/snapshot?subject=/r/state") as answer:
            return bytes(answer.read())
    except HTTPError as error:
        error.close()
        return None


CHANGES = {
    "nothing": (ISSUER, SECRET, (), True),
    "addresses that hold its own": (ISSUER, SECRET, ("access.publisher_addresses=127.0.0.0/8",), True),
    "addresses that do not": (ISSUER, SECRET, ("access.publisher_addresses=127.0.0.9/32",), False),
    "a listener for subscribers": (ISSUER, SECRET, ("mqtt.role=subscribe",), False),
    "another key of its issuer": (ISSUER, "t" * 64, (), False),
    "another issuer": ("https://other.example", SECRET, (), False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_will_is_published_after_a_restart_where_its_client_might_publish_now(change: str, tmp_path: Path) -> None:
    issuer, secret, more, is_published = CHANGES[change]
    settings = (f"node.data_directory={tmp_path}",)
    flags = ("--config", str(write_config(tmp_path, ISSUER, SECRET)))
    with serve(*settings, flags=flags) as first, Peer(first.mqtt, V5) as device:
        device.join(connect("c", will=("r/state", b"gone"), will_flags=RETAINED, password=make_token(), username=""))
        await_note(tmp_path, "will c", says='"due_ms":0')
        kill(first)
    log = tmp_path / "log"
    flags = ("--config", str(write_config(tmp_path, issuer, secret)))
    with serve(*settings, *more, flags=flags, log=log) as second:
        await_note(tmp_path, "will c", is_over=True)
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end and not (read_state(second) or "was not published" in log.read_text()):
            pass
        assert read_state(second) == (b"gone" if is_published else None)
        assert ("was not published" in log.read_text()) is not is_published
