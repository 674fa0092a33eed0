"""Key files and key sets as common tools write them: one odd key spoils itself only."""

import json

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from godwit.access.tokens.keys import read_keys

RSA = rsa.generate_private_key(65_537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
SECRET = b"s" * 64


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_keys_are_read_as_common_tools_write_them() -> None:
    row = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key()))
    weak = pem(rsa.generate_private_key(65_537, 1024))
    commented = b"Bag Attributes\n    friendlyName: login\n" + pem(RSA) + b"\r\ntext of `openssl -text`\r\n" + pem(EC)
    ssh = ED.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b" ann@login\n"
    by_name = json.dumps({"a": pem(RSA).decode(), "b": pem(EC).decode()}).encode()
    for content, count in (
        (b"\xef\xbb\xbf" + json.dumps({"keys": [row]}).encode(), 1),
        (json.dumps([row, {"kty": "strange"}, row]).encode(), 2),
        (commented, 2),
        (commented.replace(b"\n", b"\r\n"), 2),
        (weak + pem(EC), 1),
        (b"-----BEGIN EC PARAMETERS-----\nBgUrgQQACg==\n-----END EC PARAMETERS-----\n" + pem(EC), 1),
        (ssh, 1),
        (by_name, 2),
        (SECRET + b"\r\n\r\n# note\r\n", 1),
    ):
        assert len(read_keys(content).keys) == count, content
    assert [key.key_id for key in read_keys(by_name).keys] == ["a", "b"]
    fingerprints = {
        key.fingerprint for key in (*read_keys(commented).keys, *read_keys(ssh).keys, *read_keys(SECRET).keys)
    }
    assert len(fingerprints) == 4 and {key.fingerprint for key in read_keys(by_name).keys} <= fingerprints
