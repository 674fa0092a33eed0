"""The configuration in docs/security/user-notifications.md works as the page says, with the test's own keys instead of the provider's."""

import asyncio
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from godwit import testing
from godwit.client import Client, CommandRefused
from tests.architecture.source import read

BLOCKS = re.findall(r"```toml\n(.*?)```", read(Path("docs/security/user-notifications.md")), re.DOTALL)


def run_godwit(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "godwit", *words], text=True, capture_output=True, check=True)
    return done.stdout.strip()


def with_local_keys(block: str, keys: Path) -> dict[str, Any]:
    settings = tomllib.loads(block)
    for issuer in settings["issuers"].values():
        issuer.pop("keys_url", None)
        issuer |= {"keys_file": str(keys / "public.pem"), "algorithms": ["ES256"]}
    return settings


@pytest.mark.parametrize(("block", "user"), [(BLOCKS[0], "ann"), (BLOCKS[1], "auth0|65f1")])
async def test_a_user_receives_their_own_subjects_and_no_others(block: str, user: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    run_godwit("token", "keys", str(keys))
    settings = with_local_keys(block, keys)
    name, issuer = next(iter(settings["issuers"].items()))
    settings["issuers"].setdefault("backend", with_local_keys(BLOCKS[0], keys)["issuers"]["backend"])
    make = ("token", "make", "--key", str(keys / "private.pem"))
    token = run_godwit(*make, "--issuer", name, "--identity", user, "--audience", issuer["audience"])
    backend = run_godwit(*make, "--issuer", "backend", "--identity", "shop", "--publish", "/users/**")
    async with (
        asyncio.timeout(30),
        testing.node(settings) as node,
        Client(node.url, token=token) as page,
        Client(node.url, token=backend) as shop,
    ):
        await shop.publish(f"/users/user:{user}/orders", {"order": 4711})
        message = await anext(aiter(page.subscribe(f"/users/user:{user}/**")))
        assert message.json() == {"order": 4711}
        others = page.subscribe("/users/user:bob/**")
        with pytest.raises(CommandRefused) as refused:
            await others.joined()
        assert refused.value.code == 4113
