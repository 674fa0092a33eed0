"""`godwit dispatch check email` asks a real DNS server: each record is there, missing or wrong."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.resolver
import dns.rrset
import pytest
from click.testing import CliRunner

from godwit.cli.check import DnsFailed, check, read_server
from godwit.dispatch.channels.email.dkim import read_dkim_key
from godwit.dispatch.channels.email.records import check_domain, make_dkim_record
from tests.dispatch.email.test_email import make_keys

Zone = dict[tuple[str, str], list[str]]


@contextmanager
def dns_server(zone: Zone) -> Iterator[str]:
    """Answers from `zone` over UDP."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.bind(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            packet, peer = listening.recvfrom(4_096)
            if not packet:
                return
            asked = dns.message.from_wire(packet)
            question = asked.question[0]
            name, kind = question.name.to_text(omit_final_dot=True).lower(), dns.rdatatype.to_text(question.rdtype)
            answer = dns.message.make_response(asked)
            answer.flags |= dns.flags.RA
            if (name, kind) in zone:
                answer.answer.append(dns.rrset.from_text_list(question.name, 60, "IN", kind, zone[name, kind]))
            elif not any(known == name for known, _ in zone):
                answer.set_rcode(dns.rcode.NXDOMAIN)
            listening.sendto(answer.to_wire(), peer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    port = listening.getsockname()[1]
    try:
        yield f"127.0.0.1:{port}"
    finally:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stopping:
            stopping.sendto(b"", ("127.0.0.1", port))
        thread.join()
        listening.close()


def ask(server: str, key_file: Path) -> tuple[int, dict[tuple[str, str], dict[str, Any]]]:
    words = ["email", "Shop.Example.", "--dns", server, "--json"]
    for setting in (
        f"dispatch_email.dkim_key_file={key_file}",
        "dispatch_email.dkim_selector=s1",
        "dispatch_email.relay=smtp.shop.example:587",
        "dispatch_email.bounce_domain=bounces.shop.example",
    ):
        words += ["--set", setting]
    done = CliRunner().invoke(check, words)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return done.exit_code, {(row["name"], row["type"]): row for row in rows}


def make_zone(record: str) -> Zone:
    half = len(record) // 2
    return {
        ("s1._domainkey.shop.example", "TXT"): [f'"{record[:half]}" "{record[half:]}"'],
        ("bounces.shop.example", "TXT"): ['"unrelated"', '"v=spf1 a:smtp.shop.example -all"'],
        ("bounces.shop.example", "MX"): ["10 mx.shop.example."],
        ("_dmarc.shop.example", "TXT"): ['"v=DMARC1; p=reject"'],
    }


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
def test_all_records_are_there(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "dkim.pem"
    file.write_bytes(make_keys(kind)[0])
    with dns_server(make_zone(make_dkim_record(read_dkim_key(str(file))))) as server:
        status, rows = ask(server, file)
    assert status == 0 and {row["state"] for row in rows.values()} == {"ok"} and len(rows) == 4


def test_records_that_are_missing_or_wrong_are_named_with_what_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "dkim.pem"
    file.write_bytes(make_keys("ed25519")[0])
    needed = make_dkim_record(read_dkim_key(str(file)))
    zone = make_zone(needed.replace(needed[-8:-2], "AAAAAA"))
    zone["bounces.shop.example", "TXT"] = ['"v=spf1 -all"', '"v=spf1 +all"']
    del zone["_dmarc.shop.example", "TXT"]
    with dns_server(zone) as server:
        status, rows = ask(server, file)
    assert status == 1
    assert {key: row["state"] for key, row in rows.items()} == {
        ("s1._domainkey.shop.example", "TXT"): "wrong",
        ("bounces.shop.example", "TXT"): "wrong",
        ("bounces.shop.example", "MX"): "ok",
        ("_dmarc.shop.example", "TXT"): "missing",
    }
    assert rows["s1._domainkey.shop.example", "TXT"]["needed"] == needed


def test_a_dns_that_does_not_answer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("godwit.cli.check.DNS_S", 0.2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        done = CliRunner().invoke(check, ["email", "shop.example", "--dns", f"127.0.0.1:{silent.getsockname()[1]}"])
    assert isinstance(done.exception, DnsFailed)


@pytest.mark.parametrize("server", ["localhost:1", "dns.example", "[::1", "1.1.1.1:x", "1.1.1.1:0", "[::1]x", ""])
def test_a_dns_server_that_is_not_an_address_is_a_mistake_of_the_command(server: str) -> None:
    done = CliRunner().invoke(check, ["email", "shop.example", "--dns", server])
    assert done.exit_code == 2 and "IP address" in done.output


@pytest.mark.parametrize(
    ("server", "expected"),
    [("[::1]", ("::1", 53)), ("::1", ("::1", 53)), ("[::1]:5353", ("::1", 5353)), ("1.1.1.1", ("1.1.1.1", 53))],
)
def test_a_dns_server_is_an_address_with_or_without_a_port(server: str, expected: tuple[str, int]) -> None:
    assert read_server(server) == expected


@pytest.mark.parametrize(
    ("spf", "state"),
    [
        ("v=spf1 -all", "wrong"),
        ("v=spf1 ?all", "wrong"),
        ("v=spf1 a:smtp.shop.example ?all", "wrong"),
        ("v=spf1 include:relay.example ~all", "ok"),
        ("v=spf1 redirect=relay.example", "ok"),
    ],
)
def test_a_policy_must_let_the_relay_send_and_forbid_it_to_others(spf: str, state: str) -> None:
    zone = {"bounces.shop.example": [spf]}
    rows = check_domain("shop.example", "bounces.shop.example", "smtp", "s1", None, lambda at, kind: zone.get(at, []))
    assert [row.state for row in rows if row.name == "bounces.shop.example" and row.type == "TXT"] == [state]


def test_what_a_dns_answers_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    file = tmp_path / "dkim.pem"
    file.write_bytes(make_keys("ed25519")[0])
    zone = make_zone(make_dkim_record(read_dkim_key(str(file))))
    zone["bounces.shop.example", "TXT"] = ['"v=spf1 \\027[2J"']
    with dns_server(zone) as server:
        _, rows = ask(server, file)
    assert "\\u001b[2J" in rows["bounces.shop.example", "TXT"]["found"][0]


@pytest.mark.parametrize(
    "domain", ["shop", "shop..example", "shop example.com", "-a.example", "a-.example", "x@shop.example", "ü.example"]
)
def test_a_domain_that_is_not_one_is_a_mistake_of_the_command(domain: str) -> None:
    done = CliRunner().invoke(check, ["email", "--", domain])
    assert done.exit_code == 2 and "expected a domain" in done.output


def test_a_machine_without_a_dns_configuration_is_reported_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(self: Any, f: Any) -> None:
        raise dns.resolver.NoResolverConfiguration("cannot open /etc/resolv.conf")

    monkeypatch.setattr(dns.resolver.Resolver, "read_resolv_conf", read)
    done = CliRunner().invoke(check, ["email", "shop.example"])
    assert isinstance(done.exception, DnsFailed) and "cannot open /etc/resolv.conf" in str(done.exception)
