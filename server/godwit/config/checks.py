"""What values must be to each other: rules that no single option can hold.

Pure; whether a file or module named here exists is found out by who opens it, still before any port.
"""

from __future__ import annotations

from ..errors import ConfigInvalid
from .tree import Config

_RISING = [
    ("ping_interval_ms", "idle_ms_max"),
    ("conflate_ms_min", "conflate_ms_max"),
]


def check_config(config: Config) -> None:
    """Raises ConfigInvalid for the first value that does not fit the others."""
    access = config.access
    has_tokens = bool(access.publish_tokens or access.publish_tokens_file)
    if access.entitlement == "basic" and not has_tokens:
        raise _refuse(
            config, "access.entitlement", "basic", "needs access.publish_tokens or access.publish_tokens_file"
        )
    if access.entitlement != "basic" and has_tokens:
        raise _refuse(
            config,
            "access.entitlement",
            access.entitlement,
            "does not use publishing tokens, yet some are set",
            hint='set it to "basic", or remove them',
        )
    if access.entitlement == "custom" and not access.authorizer:
        raise _refuse(config, "access.authorizer", "", "must name the authorizer as module:attribute")
    if access.entitlement != "custom" and access.authorizer:
        raise _refuse(
            config,
            "access.entitlement",
            access.entitlement,
            "does not use access.authorizer, yet it is set",
            hint='set it to "custom", or remove access.authorizer',
        )
    if access.authorizer and access.authorizer.count(":") != 1:
        raise _refuse(config, "access.authorizer", access.authorizer, "must be module:attribute")
    for token in access.publish_tokens:
        check_token(token, "access.publish_tokens", config.sources.get("access.publish_tokens", ""))
    for lower, upper in _RISING:
        if config.limits[lower] > config.limits[upper]:
            bound = f"must not be above limits.{upper}, {config.limits[upper]}"
            raise _refuse(config, f"limits.{lower}", config.limits[lower], bound)
    if config.client.address == config.admin.address and config.client.address.port:
        raise _refuse(config, "admin.address", str(config.admin.address), "is the client port's address too")


def check_token(token: str, key: str, source: str) -> None:
    """A publishing token must be hard to guess: at least 16 characters of printable ASCII, without blanks."""
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigInvalid(
            key,
            "(secret)",
            "must be at least 16 printable ASCII characters without blanks",
            source=source,
            hint="make one with: python3 -c 'import secrets; print(secrets.token_urlsafe(24))'",
        )


def _refuse(config: Config, key: str, value: object, bound: str, *, hint: str = "") -> ConfigInvalid:
    return ConfigInvalid(key, value, bound, hint=hint, source=config.sources.get(key, ""))
