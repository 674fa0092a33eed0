"""`godwit token make|keys|secret|show`: signed tokens for tests, and their keys.

In production an identity provider should sign tokens. Only its owner may read the file of a private key; tokens are
printed and not stored.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from pathlib import Path
from typing import Any

import click

from ..errors import ConfigInvalid, SubjectInvalid
from ..subject import check_pattern
from ..words import printable

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
SECRET_BYTES = 48


@click.group()
def token() -> None:
    """Make and show signed tokens, for tests and small installations."""


@token.command()
def secret() -> None:
    """Print a new secret: for publishing tokens, the admin token, or tokens signed with HS256 and HS384."""
    click.echo(secrets.token_urlsafe(SECRET_BYTES))


@token.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--algorithm", type=click.Choice(["ES256", "RS256", "EdDSA"]), default="ES256", help="Algorithm of the key (ES256)."
)
def keys(folder: Path, algorithm: str) -> None:
    """Write a new key pair: FOLDER/private.pem to sign, FOLDER/public.pem for a node's keys_file."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = _make_key(algorithm)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    folder.mkdir(parents=True, exist_ok=True)
    _write_new(folder / "private.pem", private, 0o600)
    _write_new(folder / "public.pem", public, 0o644)
    public_file, private_file = (printable(str(folder / name)) for name in ("public.pem", "private.pem"))
    click.echo(f"configure {public_file} on the node; keep {private_file} secret, it signs tokens")


@token.command()
@click.option(
    "--key",
    "key_file",
    type=click.Path(path_type=Path),
    required=True,
    help="File with the private key (PEM) or the secret.",
)
@click.option("--issuer", required=True, help='Claim iss: the name of the node\'s table [issuers."…"].')
@click.option("--identity", required=True, help="Claim sub: the identity.")
@click.option("--subscribe", multiple=True, metavar="PATTERN", help="Allow subscribing to this pattern. Repeatable.")
@click.option("--publish", multiple=True, metavar="PATTERN", help="Allow publishing on this pattern. Repeatable.")
@click.option("--both", multiple=True, metavar="PATTERN", help="Allow both on this pattern. Repeatable.")
@click.option(
    "--deny",
    multiple=True,
    metavar="PATTERN",
    help="Deny publish and subscribe on this pattern unless a more specific rule allows it. Repeatable.",
)
@click.option(
    "--ttl", "lives", default="1h", metavar="TIME", help="Lifetime of the token, such as 30s, 15m, 1h, 7d (1h)."
)
@click.option("--audience", help="Claim aud.")
@click.option("--token-id", help="Claim jti, which a revocation can name. Default: random.")
@click.option(
    "--claim",
    multiple=True,
    metavar="NAME=TEXT",
    help="Add this claim, such as org=acme for a tenant_claim. Repeatable.",
)
@click.option("--key-id", help="Header kid.")
@click.option("--algorithm", help="Algorithm of the signature. Default: the one of the key.")
def make(key_file: Path, lives: str, algorithm: str | None, key_id: str | None, **given: Any) -> None:
    """Print a signed token."""
    import jwt

    key, fitting = _read_key(key_file)
    claims = make_claims(given, read_duration_s(lives), int(time.time()))
    headers = {"kid": key_id} if key_id else None
    try:
        click.echo(jwt.encode(claims, key, algorithm or fitting, headers=headers))
    except (jwt.PyJWTError, TypeError, NotImplementedError) as error:
        raise ConfigInvalid("--algorithm", algorithm, f"does not go with the key: {error}") from error


@token.command()
@click.argument("file", type=click.File(), default="-")
def show(file: Any) -> None:
    """Print the claims of a token from FILE or standard input. The signature is not checked."""
    import jwt

    try:
        text = file.read().strip()
        header = jwt.get_unverified_header(text)
        claims = jwt.decode(text, options={"verify_signature": False})
    except (jwt.PyJWTError, UnicodeError, RecursionError) as error:
        hint = "expected three parts separated by dots; it may have been cut or changed"
        raise ConfigInvalid("token", "(secret)", "is not a signed token", hint=hint) from error
    click.echo(printable(json.dumps({"header": header, "claims": claims}, indent=2, ensure_ascii=False), kept="\n"))


def make_claims(given: dict[str, Any], lives_s: int, now_s: int) -> dict[str, Any]:
    """The claims of the options; raises ConfigInvalid for an invalid pattern, and for a claim that cannot be added."""
    allow = {name: list(given[name]) for name in ("subscribe", "publish", "both") if given[name]}
    permissions = {"allow": allow, "deny": {"both": list(given["deny"])} if given["deny"] else {}}
    for pattern in [*(one for many in allow.values() for one in many), *given["deny"]]:
        try:
            check_pattern(pattern)
        except SubjectInvalid as error:
            raise ConfigInvalid("pattern", pattern, error.reason, hint="e.g. /news/**") from error
    claims = {
        "iss": given["issuer"],
        "sub": given["identity"],
        "iat": now_s,
        "exp": now_s + lives_s,
        "jti": given["token_id"] or secrets.token_urlsafe(12),
        "permissions": {verdict: actions for verdict, actions in permissions.items() if actions},
    }
    if given["audience"]:
        claims["aud"] = given["audience"]
    for text in given["claim"]:
        name, sign, value = text.partition("=")
        if not (name and sign):
            raise ConfigInvalid("--claim", text, "must be a name, an equals sign and a text", hint="e.g. org=acme")
        if name in claims:
            raise ConfigInvalid("--claim", text, "is given twice, or is a claim of another option")
        claims[name] = value
    return claims


def read_duration_s(text: str) -> int:
    """30s, 15m, 1h or 7d in seconds; raises ConfigInvalid."""
    found = re.fullmatch(r"([1-9][0-9]{0,8})([smhd])", text, re.ASCII)
    if found is None:
        raise ConfigInvalid("--ttl", text, "must be a number and s, m, h or d, such as 15m")
    return int(found[1]) * UNITS_S[found[2]]


def _make_key(algorithm: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if algorithm == "RS256":
        return rsa.generate_private_key(65_537, 3072)
    return ed25519.Ed25519PrivateKey.generate() if algorithm == "EdDSA" else ec.generate_private_key(ec.SECP256R1())


def _read_key(file: Path) -> tuple[Any, str]:
    """A signing key and its algorithm."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        content = file.read_bytes()
        if not content.lstrip().startswith(b"-----BEGIN"):
            return content.strip().splitlines()[0], "HS256"
        key = load_pem_private_key(content, None)
    except (OSError, ValueError, TypeError, IndexError) as error:
        raise ConfigInvalid("--key", str(file), f"is not a key that can sign: {error}") from error
    if isinstance(key, rsa.RSAPrivateKey):
        return key, "RS256"
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key, {256: "ES256", 384: "ES384"}.get(key.curve.key_size, "ES512")
    return key, "EdDSA"


def _write_new(file: Path, content: bytes, mode: int) -> None:
    """Write a new file; never replace an existing one, because a lost key cannot sign again."""
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
            opened.write(content)
    except OSError as error:
        raise ConfigInvalid("FOLDER", str(file), f"cannot be written: {error.strerror}") from error
