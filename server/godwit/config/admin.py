"""The admin port: the [admin] section. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from .option import Address, option


@dataclass(frozen=True, slots=True)
class AdminConfig:
    """The admin port: health, metrics, statistics, the console. Not for the public."""

    address: Address = option(Address("127.0.0.1", 8801), "Where operators and monitoring connect.")
    hosts: tuple[str, ...] = option(
        (), "Further names the admin port answers to in the Host header, beside its own address and localhost."
    )
    token: str = option(
        "", "What changes something through this port must show it; empty: nothing can be changed.", is_secret=True
    )
    token_file: str = option("", "A file with that token, instead.")
    tls: bool = option(False, "The admin port speaks TLS, with the certificates of [tls].")
    token_for_reads: bool = option(False, "Reading needs the token too, but for /health.")
    request_ms_max: int = option(
        10_000,
        "Time a client of the admin port has to send a request; a connection without one is closed.",
        minimum=100,
        maximum=600_000,
    )
