"""The admin port: the [admin] section. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from .option import Address, option


@dataclass(frozen=True, slots=True)
class AdminConfig:
    """The admin port: health, metrics, statistics, the console. Not for the public."""

    address: Address = option(Address("127.0.0.1", 8801), "Address of the admin port, for operators and monitoring.")
    hosts: tuple[str, ...] = option(
        (), "Additional names that the admin port accepts in the Host header, besides its own address and localhost."
    )
    token: str = option(
        "", "Token that requests need to change something; empty: nothing can be changed.", is_secret=True
    )
    token_file: str = option("", "File with that token.")
    tls: bool = option(False, "The admin port speaks TLS, with the certificates of [tls].")
    token_for_reads: bool = option(False, "Require the token for reading too, except /health.")
    request_ms_max: int = option(
        10_000,
        "Time a client of the admin port has to send a request; a connection without one is closed.",
        minimum=100,
        maximum=600_000,
    )
