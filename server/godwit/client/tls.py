"""Whom a client believes that it talks to: this machine's authorities, or those of a file."""

from __future__ import annotations

import ssl
from pathlib import Path


def make_tls(ca_file: str | Path | None) -> ssl.SSLContext | None:
    """A context that checks the node's certificate and name against the file alone; None: this machine's authorities.

    Raises OSError where the file cannot be read, ssl.SSLError where it holds no certificate.
    """
    if ca_file is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks host names, asks for a certificate
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cafile=str(ca_file))
    return context
