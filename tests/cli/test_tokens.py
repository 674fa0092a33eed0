"""A node that asks for a token, and a command that shows none: the code, and the option that gives one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_wrong_places import run
from tests.node_process import running_node

TOKEN = "correct-horse-battery-staple"


@pytest.mark.parametrize(
    ("mode", "publish", "tail"), [("basic", "PublishForbidden", None), ("jwt", *["TokenMissing"] * 2)]
)
async def test_without_a_token_the_option_is_named(mode: str, publish: str, tail: str | None, tmp_path: Path) -> None:
    key, token = tmp_path / "key", tmp_path / "token"
    key.write_text(TOKEN * 2)
    token.write_text(TOKEN)
    file = tmp_path / "godwit.toml"
    issuer = f'[issuers."me"]\nkeys_file = "{key}"\nalgorithms = ["HS256"]\naudience = "us"\n'
    tokens = f'publish_tokens = ["{TOKEN}"]\n'
    file.write_text(f'[access]\nmode = "{mode}"\n{tokens if mode == "basic" else issuer}')
    async with running_node(before=("env", f"GODWIT_CONFIG={file}")) as node:
        server = ("--server", node.url)
        for words, name in ((("publish", "/a", "1"), publish), (("tail", "/a"), tail)):
            if name is None:  # everybody may
                continue
            code, output, errors = await run(*words, *server)
            assert (code, output, len(errors)) == (1, [], 1), errors
            assert name in errors[0] and "--token-file FILE, or GODWIT_TOKEN" in errors[0]
            code, _, errors = await run(*words, *server, "--token-file", str(token))
            assert code == (0 if mode == "basic" else 1) and "--token-file" not in "".join(errors)


COMMANDS = {"GODWIT_TOKEN": ("publish", "/a", "1"), "GODWIT_ADMIN_TOKEN": ("reload",)}


@pytest.mark.parametrize("variable", COMMANDS)
@pytest.mark.parametrize("token", [b"to ken", b"a\nb", b"\xff", "ü".encode(), b"a\x1b[31m"])
def test_a_variable_that_is_not_a_token_is_named_and_never_shown(variable: str, token: bytes) -> None:
    environment = {**os.environb, variable.encode(): token}
    command = [sys.executable, "-m", "godwit", *COMMANDS[variable]]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    reason = "is not one token of printable ASCII, and nothing else"
    assert (done.returncode, done.stderr.decode()) == (2, f"godwit: {variable}: '(secret)' {reason}\n")


@pytest.mark.parametrize("words", COMMANDS.values())
@pytest.mark.parametrize(("file", "reason"), [("/dev/null", "holds no token"), ("/dev/zero", "is longer than 65536")])
def test_a_file_without_a_token_is_refused_before_anything_is_sent(
    words: tuple[str, ...], file: str, reason: str
) -> None:
    command = [sys.executable, "-m", "godwit", *words, "--token-file", file]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stderr.decode().startswith(f"godwit: --token-file: '{file}' {reason}"), done
