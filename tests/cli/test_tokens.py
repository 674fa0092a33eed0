"""A node that asks for a token, and a command that shows none: the code, and the option that gives one."""

from __future__ import annotations

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
