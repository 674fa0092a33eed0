"""`godwit dispatch check email DOMAIN`: the DNS records that a From domain needs, and whether they are there.

Exit codes: 0 all are there, 1 some are missing or wrong, or the DNS does not answer, 2 a mistake of the command.
"""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

import click

from ..config.dispatch_email import is_domain
from ..errors import GodwitError
from ..words import printable
from .options import config_options, read_config

DNS_S = 5.0


class DnsFailed(GodwitError):
    """The DNS could not be asked."""


@click.group()
def check() -> None:
    """Check what dispatch needs from other systems, such as DNS records."""


@check.command()
@click.argument("domain")
@config_options
@click.option("--dns", "server", metavar="HOST[:PORT]", help="Ask this DNS server; by default the machine's.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object a line.")
def email(domain: str, file: Path | None, settings: tuple[str, ...], server: str | None, is_json: bool) -> None:
    """Print the DNS records that e-mail from DOMAIN needs, and test them."""
    from ..dispatch.channels.email.dkim import read_dkim_key
    from ..dispatch.channels.email.records import check_domain

    name = domain.rstrip(".").lower()
    if not is_domain(name):
        raise click.UsageError(f"{domain!r:.100} is not valid: expected a domain, such as shop.example")
    if server is not None:
        read_server(server)
    config = read_config(file, settings, {}).dispatch_email
    key = read_dkim_key(config.dkim_key_file) if config.dkim_key_file else None
    relay_host = config.relay.rpartition(":")[0] or "RELAY"
    records = check_domain(
        name, config.bounce_domain, relay_host, config.dkim_selector, key, lambda at, kind: look_up(at, kind, server)
    )
    for record in records:
        if is_json:
            row = {"name": record.name, "type": record.type, "state": record.state, "needed": record.needed}
            click.echo(json.dumps({**row, "found": record.found, "hint": record.hint}))
            continue
        click.echo(f"{record.state:<8} {record.type:<4} {record.name}")
        if record.state != "ok":
            for label, text in (
                ("needed", record.needed),
                *(("found", text) for text in record.found),
                ("", record.hint),
            ):
                if text:
                    click.echo(f"         {label:<7} {text}")
    raise SystemExit(0 if all(record.state == "ok" for record in records) else 1)


def read_server(server: str) -> tuple[str, int]:
    """Address and port of a DNS server; raises UsageError."""
    if server.startswith("["):
        host, _, after = server[1:].partition("]")
        is_whole = "]" in server and after[:1] in ("", ":")
        port = after.removeprefix(":")
    else:
        host, _, port = server.partition(":") if server.count(":") == 1 else (server, "", "")
        is_whole = True
    try:
        ipaddress.ip_address(host)
        number = int(port or 53)
    except ValueError:
        is_whole, number = False, 0
    if not is_whole or not 1 <= number <= 65_535:
        raise click.UsageError(
            f"--dns {server!r:.100} is not valid: expected an IP address, such as 1.1.1.1 or [::1]:53"
        )
    return host, number


def look_up(name: str, kind: str, server: str | None) -> list[str]:
    """The texts of a name's records; raises DnsFailed."""
    try:
        import dns.exception
        import dns.resolver
    except ModuleNotFoundError as error:
        raise DnsFailed("this command needs the extra `dispatch`: pip install 'godwit-server[dispatch]'") from error
    try:
        resolver = dns.resolver.Resolver(configure=server is None)  # reads /etc/resolv.conf, which may be missing
        if server is not None:
            host, port = read_server(server)
            resolver.nameservers, resolver.port = [host], port
        answers = resolver.resolve(name, kind, lifetime=DNS_S, search=False)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return []
    except (dns.exception.DNSException, ValueError, OSError) as error:
        raise DnsFailed(f"the DNS does not answer for {name} ({kind}): {error!s:.200}") from error
    if kind == "TXT":
        return [printable(b"".join(answer.strings).decode("utf-8", "replace")) for answer in answers]
    return [printable(answer.to_text()) for answer in answers]
