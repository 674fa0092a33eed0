"""Measures a reconnect storm's tokens: how many are verified a second, how fast known ones are known again, what they hold.

python -m benchmarks.tokens [COUNT]         writes benchmarks/results/access/tokens.json
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from godwit.access import ConnectQuestion, Grant
from godwit.access.tokens import TokenAuthorizer
from godwit.bench.result import describe_machine, find_commit
from godwit.config.tree import IssuerConfig

RESULT = Path(__file__).parent / "results" / "access" / "tokens.json"
ISSUER = "https://login.example"
KEYS: dict[str, Any] = {
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "RS256": rsa.generate_private_key(65_537, 2048),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
    "HS256": "s" * 64,
}
PERMISSIONS = {"allow": {"subscribe": ["/news/**"], "both": ["/rooms/1/**"]}, "deny": {"both": ["/news/internal/**"]}}


async def measure(algorithm: str, count: int, folder: Path) -> dict[str, float]:
    """Each of `count` clients sends a token of its own, all at once; then all reconnect with the same one."""
    key = KEYS[algorithm]
    file = folder / algorithm
    pem = (
        key.encode()
        if isinstance(key, str)
        else key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    file.write_bytes(pem)
    issuer = IssuerConfig(ISSUER, algorithms=(algorithm,), keys_file=str(file))
    authorizer = TokenAuthorizer((issuer,), verified_tokens_max=count)
    end = int(time.time()) + 3600
    claims = [
        {"iss": ISSUER, "sub": f"user-{n}", "jti": f"t-{n}", "exp": end, "permissions": PERMISSIONS}
        for n in range(count)
    ]
    tokens = [jwt.encode(one, key, algorithm) for one in claims]

    async def storm() -> float:
        began = time.perf_counter()
        answers = await asyncio.gather(
            *(authorizer.connect(ConnectQuestion(n, token, None, "127.0.0.1:1")) for n, token in enumerate(tokens))
        )
        took = time.perf_counter() - began
        assert all(isinstance(answer, Grant) for answer in answers)
        return count / took

    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    await storm()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    authorizer.adopt(TokenAuthorizer((issuer,)))  # forgets all
    new = await storm()
    known = await storm()
    await authorizer.stop()
    return {"verified_per_second": new, "known_per_second": known, "bytes_a_remembered_token": held / count}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        found = {name: asyncio.run(measure(name, count, Path(folder))) for name in KEYS}
    outcome = {
        "tokens": count,
        "commit": find_commit(),
        "machine": describe_machine(),
        "algorithms": {name: {key: round(value) for key, value in one.items()} for name, one in found.items()},
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(outcome, indent=1) + "\n")
    print(json.dumps(outcome["algorithms"], indent=1))


if __name__ == "__main__":
    main()
