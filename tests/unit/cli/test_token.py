"""Tokens made by the command are ones a node's verifier takes, of each kind of key; durations and files are checked."""

import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from godwit.access.tokens.claims import read_grant
from godwit.access.tokens.key_source import read_key_file
from godwit.access.tokens.verifier import read_outline, verify
from godwit.cli.token import read_duration_s, token
from godwit.config.tree import IssuerConfig
from godwit.errors import ConfigInvalid


def run(*words: str) -> str:
    ran = CliRunner().invoke(token, words, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return ran.output.strip()


MAKE = ("--issuer", "i", "--identity", "ann", "--subscribe", "/news/**", "--deny", "/news/x")


@pytest.mark.parametrize("algorithm", ["ES256", "RS256", "EdDSA"])
def test_a_token_of_a_new_key_pair_is_verified_by_its_public_half(tmp_path: Path, algorithm: str) -> None:
    run("keys", str(tmp_path), "--algorithm", algorithm)
    private = tmp_path / "private.pem"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    made = run("make", "--key", str(private), "--key-id", "k", *MAKE)
    issuer = IssuerConfig("i", keys_file=str(tmp_path / "public.pem"), algorithms=(algorithm,))
    grant = read_grant(verify(made, read_outline(made), issuer, read_key_file(issuer)), issuer)
    assert grant.identity == "ann" and grant.token_id
    assert [(rule.pattern, rule.actions, rule.verdict) for rule in grant.rules] == [
        ("/news/**", "subscribe", "allow"),
        ("/news/x", "both", "deny"),
    ]
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "FOLDER"):
        run("keys", str(tmp_path))


def test_a_secret_signs_and_a_token_can_be_shown(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(run("secret") + "\n")
    made = run("make", "--key", str(file), "--ttl", "30s", "--audience", "a", "--token-id", "t", *MAKE)
    issuer = IssuerConfig("i", keys_file=str(file), algorithms=("HS256",), audience="a")
    assert read_grant(verify(made, read_outline(made), issuer, read_key_file(issuer)), issuer).token_id == "t"
    shown = json.loads(CliRunner().invoke(token, ["show"], input=made).output)
    assert shown["header"]["alg"] == "HS256" and shown["claims"]["exp"] - shown["claims"]["iat"] == 30


def test_another_claim_is_added_and_none_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(run("secret") + "\n")
    made = run("make", "--key", str(file), *MAKE, "--claim", "org=acme=1", "--claim", "tier=")
    issuer = IssuerConfig("i", keys_file=str(file), algorithms=("HS256",), tenant_claim="org")
    assert read_grant(verify(made, read_outline(made), issuer, read_key_file(issuer)), issuer).tenant == "acme=1"
    for words in (("org",), ("=acme",), ("sub=bob",), ("org=a", "org=b")):
        claims = [word for text in words for word in ("--claim", text)]
        with pytest.raises(ConfigInvalid, check=lambda error: error.key == "--claim"):
            run("make", "--key", str(file), *MAKE, *claims)


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("15m", 900), ("2h", 7200), ("7d", 604_800)])
def test_durations(text: str, seconds: int) -> None:
    assert read_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "0s", "1", "1w", "-1s", "1.5h", "٣s", "9999999999s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "--ttl"):
        read_duration_s(text)


def test_what_is_no_pattern_or_no_key_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s" * 40)
    for words in (("--publish", "news"), ("--algorithm", "RS256"), ("--algorithm", "none")):
        with pytest.raises((ConfigInvalid, SystemExit)):
            run("make", "--key", str(file), *MAKE, *words)
    file.write_text("-----BEGIN nonsense")
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "--key"):
        run("make", "--key", str(file), *MAKE)
