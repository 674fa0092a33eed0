"""Rules between values, which no single option can check.

Pure. Files and modules are opened elsewhere, before any port is opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from urllib.parse import urlsplit

from ..errors import ConfigInvalid
from .dispatch import DISPATCH_ISSUER, DISPATCH_PREFIX
from .forms import TENANT
from .mistakes import Mistakes
from .tree import Config, read_value

_RISING = [
    ("ping_interval_ms", "idle_ms_max"),
    ("conflate_ms_min", "conflate_ms_max"),
]


def check_config(config: Config) -> None:
    """Raises ConfigInvalid with all values that contradict others."""
    mistakes = Mistakes()
    for check in (_check_access, _check_data_directory, _check_issuers, _check_tls, _check_journal, _check_owed):
        mistakes.add(check(config))
    mistakes.add(_check_dispatch(config))
    for token in config.access.publish_tokens:
        with mistakes.gather():
            check_token(token, "access.publish_tokens", config.sources.get("access.publish_tokens", ""))
    mistakes.add(_check_limits(config))
    mistakes.raise_found()


def _check_access(config: Config) -> Iterator[ConfigInvalid]:
    access = config.access
    has_tokens = bool(access.publish_tokens or access.publish_tokens_file)
    if access.mode == "basic" and not has_tokens:
        yield _refuse(config, "access.mode", "basic", "needs access.publish_tokens or access.publish_tokens_file")
    if access.mode == "custom" and not access.authorizer:
        yield _refuse(config, "access.authorizer", "", "must name the authorizer as module:attribute")
    of_certificates = access.certificate_subscribe or access.certificate_publish
    everybody = "; in modes none and basic everybody may subscribe to everything"
    for modes, is_set, bound, remedy in (
        (("basic",), has_tokens, "publishing tokens, yet some are set", "remove them"),
        (("jwt",), access.anonymous_subscribe, f"access.anonymous_subscribe, yet it is set{everybody}", "remove it"),
        (
            ("basic", "jwt"),
            of_certificates,
            "access.certificate_subscribe and access.certificate_publish, yet one is set",
            "remove them",
        ),
        (("custom",), access.authorizer, "access.authorizer, yet it is set", "remove access.authorizer"),
    ):
        if is_set and access.mode not in modes:
            wanted = " or ".join(f'"{mode}"' for mode in modes)
            hint = f"set it to {wanted}, or {remedy}"
            yield _refuse(config, "access.mode", access.mode, f"does not use {bound}", hint=hint)
    if access.authorizer.count(":") > 1:
        yield _refuse(
            config, "access.authorizer", access.authorizer, "must be module:attribute, or an entry point's name"
        )


def _check_limits(config: Config) -> Iterator[ConfigInvalid]:
    for lower, upper in _RISING:
        if config.limits[lower] > config.limits[upper]:
            bound = f"must not exceed limits.{upper} ({config.limits[upper]})"
            yield _refuse(config, f"limits.{lower}", config.limits[lower], bound)
    if config.client.address == config.admin.address and config.client.address.port:
        yield _refuse(
            config,
            "admin.address",
            str(config.admin.address),
            "is also the client port's address",
            hint="choose another port",
        )


def _check_tls(config: Config) -> Iterator[ConfigInvalid]:
    tls = config.tls
    if len(tls.certificate_files) != len(tls.key_files):
        bound = f"must have one file for each of tls.certificate_files ({len(tls.certificate_files)})"
        yield _refuse(config, "tls.key_files", tls.key_files, bound)
    for key in ("client.tls_address", "mqtt.tls_address", "admin.tls", "dispatch.tls"):
        if read_value(config, key) and not tls.certificate_files:
            yield _refuse(config, key, read_value(config, key), "needs tls.certificate_files and tls.key_files")
    if tls.client_identity != "none" and tls.client_certificates == "none":
        bound = "needs tls.client_certificates optional or required"
        yield _refuse(config, "tls.client_identity", tls.client_identity, bound)
    if (tls.client_certificates != "none") != bool(tls.client_authorities_file):
        bound = "goes with tls.client_certificates optional or required, and with nothing else"
        yield _refuse(config, "tls.client_authorities_file", tls.client_authorities_file, bound)


def _check_data_directory(config: Config) -> Iterator[ConfigInvalid]:
    directory = config.node.data_directory
    try:
        directory.encode()
    except UnicodeEncodeError:  # bytes of the command line that are not UTF-8
        yield _refuse(config, "node.data_directory", directory, "must be UTF-8", hint="rename the directory")


def _check_owed(config: Config) -> Iterator[ConfigInvalid]:
    owed, logs = config.limits["mqtt_owed_node_bytes_max"], config.limits["logs_bytes_max"]
    if owed > logs // 2:
        yield _refuse(
            config, "limits.mqtt_owed_node_bytes_max", owed, f"must be at most half of logs_bytes_max, {logs}"
        )


def _check_journal(config: Config) -> Iterator[ConfigInvalid]:
    if config.node.data_directory and config.journal.enabled:
        return
    for pattern in config.patterns:
        for name, value, needs in (("mqtt_ack", pattern.mqtt_ack, "disk"), ("visible", pattern.visible, "journaled")):
            if value == needs:
                key = f'patterns."{pattern.pattern}".{name}'
                yield ConfigInvalid(key, value, "needs a journal", hint="set node.data_directory, or --data DIR")


def _check_issuers(config: Config) -> Iterator[ConfigInvalid]:
    mode = config.access.mode
    if mode == "jwt" and not config.issuers:
        yield _refuse(config, "access.mode", mode, 'needs a table [issuers."ISSUER"] for each issuer of tokens')
    if mode != "jwt" and config.issuers:
        hint = 'set it to "jwt", or remove the issuers'
        yield _refuse(config, "access.mode", mode, "does not use issuers of tokens, yet some are set", hint=hint)
    for issuer in config.issuers:
        key = f'issuers."{issuer.issuer}"'
        if bool(issuer.keys_file) == bool(issuer.keys_url):
            yield ConfigInvalid(key, issuer.keys_file, "needs exactly one of keys_file and keys_url")
        if issuer.issuer == DISPATCH_ISSUER or issuer.identity_prefix.startswith(DISPATCH_PREFIX):
            yield ConfigInvalid(
                key, issuer.identity_prefix, f"must not use {DISPATCH_ISSUER}: the name is reserved for dispatch"
            )
        if not issuer.tenant_claim and any(TENANT in pattern for pattern in (*issuer.subscribe, *issuer.publish)):
            yield ConfigInvalid(f"{key}.tenant_claim", "", f"must name the claim that {TENANT} stands for")
        yield from _check_keys_url(f"{key}.keys_url", issuer.keys_url)
        url = urlsplit(issuer.keys_url)
        if issuer.keys_authorities_file and url.scheme != "https":
            problem = "needs a keys_url that begins with https"
            yield ConfigInvalid(f"{key}.keys_authorities_file", issuer.keys_authorities_file, problem)
        if issuer.keys_url and issuer.algorithms[0].startswith("HS"):
            yield ConfigInvalid(f"{key}.algorithms", issuer.algorithms, "are for secrets, which a URL must not publish")
    prefixes = sorted(issuer.identity_prefix for issuer in config.issuers)
    if any(longer.startswith(shorter) for shorter, longer in pairwise(prefixes)):
        hint = "otherwise one issuer could name identities of another"
        yield ConfigInvalid(
            "issuers", prefixes, "need an identity_prefix each, of which none is the beginning of another", hint=hint
        )


def _check_dispatch(config: Config) -> Iterator[ConfigInvalid]:
    dispatch = config.dispatch
    if dispatch.token_keys_file and dispatch.token_keys_url:
        yield _refuse(
            config,
            "dispatch.token_keys_url",
            dispatch.token_keys_url,
            "must be empty if dispatch.token_keys_file is set",
        )
    yield from _check_keys_url("dispatch.token_keys_url", dispatch.token_keys_url)
    email = config.dispatch_email
    for name in ("relay", "bounce_domain"):
        if email.bounce_address and not getattr(email, name):
            bound = f"needs dispatch_email.{name}: without it, bounces cannot be matched to e-mails"
            yield _refuse(config, "dispatch_email.bounce_address", email.bounce_address, bound)


def _check_keys_url(key: str, text: str) -> Iterator[ConfigInvalid]:
    url = urlsplit(text)
    is_safe = url.scheme == "https" or (url.scheme == "http" and url.hostname in ("localhost", "127.0.0.1", "::1"))
    if text and not (is_safe and url.hostname):
        yield ConfigInvalid(key, text, "must be https, or http on this machine")


def check_token(token: str, key: str, source: str) -> None:
    """A publishing token must be hard to guess: at least 16 characters of printable ASCII, without blanks."""
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigInvalid(
            key,
            "(secret)",
            "must be at least 16 printable ASCII characters without blanks",
            source=source,
            hint="make one with: godwit token secret",
        )


def _refuse(config: Config, key: str, value: object, bound: str, *, hint: str = "") -> ConfigInvalid:
    return ConfigInvalid(key, value, bound, hint=hint, source=config.sources.get(key, ""))
