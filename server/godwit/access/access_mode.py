"""The built-in access modes: the permissions of clients without an authorizer of the user's.

`none`: every client may publish and subscribe. `basic`: every client may subscribe, a token lets its holder publish. `jwt`: a
signed token contains the permissions of its holder (tokens/). `custom`: a user's authorizer decides about every client.
No client may publish on the node's own subjects `/$…`; a client may subscribe to them if a rule names them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from ..codes import Code
from ..config.checks import check_token
from ..config.dispatch import DispatchConfig
from ..config.tls import TlsConfig
from ..config.tree import AccessConfig, IssuerConfig
from ..engine import RuleTuple, Start, WithdrawOrder
from ..errors import ConfigInvalid
from ..extension import ExtensionHost
from ..logs import read_logger
from ..plugins import load_plugin
from .authorizer import Authorizer, ConnectQuestion
from .hosted import HostedAuthorizer
from .lookalikes import list_lookalikes
from .rights import Grant, Refusal, Rule
from .vouching import Configured, Vouching, list_judges

EVERYTHING = (Rule.allow("/**"), Rule.allow("/$node/**", "subscribe"))
"""The node's statistics as well, which no leading wildcard covers: clients that may do everything may read them."""
_JOINED = ("anonymous", "basic", "authorizer")
"""Authorities that a source does not name. The source of a token or certificate is its signer, even if several share a name."""
LISTENING = (Rule.allow("/**", "subscribe"),)


@dataclass(frozen=True, slots=True)
class AccessMode:
    """What the engine receives at start: the rules of clients without a token (None: they need one), and who judges tokens."""

    anonymous: tuple[Rule, ...] | None
    authorizer: Authorizer | None
    judges_tokens: bool
    """False: tokens have no meaning in this mode, and the authorizer is asked about certificates only."""

    @property
    def host(self) -> ExtensionHost | None:
        """The thread of a user's authorizer, if there is one."""
        return self.hosted.host if self.hosted is not None else None

    @property
    def hosted(self) -> HostedAuthorizer | None:
        """A user's authorizer, if there is one."""
        return next((judge for judge in list_judges(self.authorizer) if isinstance(judge, HostedAuthorizer)), None)

    def list_trusted(self, join: Callable[[str], str]) -> list[str]:
        """The authorities that may vouch for a holder in this mode, in the engine's form; `join` gives authorities that
        share names one name.
        """
        return [
            f"{join(authority)}{end}{name}" if authority in _JOINED else authority + end + name
            for authority, end, name in self._list_vouchers()
        ]

    def list_authorities(self, join: Callable[[str], str]) -> set[str]:
        """The authorities of holders in this mode."""
        return {join(authority) for authority, _, _ in self._list_vouchers()}

    def _list_vouchers(self) -> list[tuple[str, str, str]]:
        trusted = ["anonymous"]
        for judge in list_judges(self.authorizer):
            trusted += judge.list_trusted() if isinstance(judge, Vouching) else []
        return [one.partition("\n") for one in trusted]

    def list_anonymous(self) -> list[RuleTuple] | None:
        """The rules of clients without a token, in the engine's form."""
        rules = self.anonymous
        return None if rules is None else [(rule.pattern, str(rule.actions), str(rule.verdict)) for rule in rules]

    def complete(self, start: Start, join: Callable[[str], str]) -> Start:
        """The values of a start, or of a reload, with what this mode decides about clients."""
        trusted, rules = self.list_trusted(join), self.list_rules()
        return replace(start, anonymous=self.list_anonymous(), trusted=trusted, authority_rules=rules)

    def list_rules(self) -> dict[str, list[RuleTuple]]:
        """The rules that the configuration gives the holders of each authority, in the engine's form."""
        judges = [judge for judge in list_judges(self.authorizer) if isinstance(judge, Configured)]
        return {authority: rules for judge in judges for authority, rules in judge.list_rules().items()}

    def adopt(self, other: AccessMode) -> list[str]:
        """Judge like another authorizer of the same kind from now on. Returns the identities that are no longer valid."""
        adopt: Callable[[Authorizer | None], list[str]] | None = getattr(self.authorizer, "adopt", None)
        return adopt(other.authorizer) if adopt is not None else []

    def take_withdrawn(self) -> list[WithdrawOrder]:
        """End the connections whose grants come from a source that `adopt` removed or narrowed."""
        takes = [judge.take_withdrawn for judge in list_judges(self.authorizer) if isinstance(judge, Withdrawing)]
        return [WithdrawOrder(source, int(code)) for take in takes for source, code in take()]


@runtime_checkable
class Withdrawing(Protocol):
    """A judge whose sources may end, or be narrowed, while their holders are connected."""

    def take_withdrawn(self) -> list[tuple[str, Code]]:
        """The sources that ended since the last call, and how the connections of each end."""


class BasicAuthorizer(Authorizer):
    """Tokens that may publish. All are compared in constant time, so that the duration reveals nothing about any token."""

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self._digests = [hashlib.sha256(token.encode()).digest() for token in tokens]

    def list_trusted(self) -> list[str]:
        return [f"basic\n{_name(digest)}" for digest in self._digests]

    def adopt(self, other: BasicAuthorizer) -> list[str]:
        """Take the tokens of another authorizer. Returns the identities whose token is no longer valid."""
        before, self._digests = self._digests, other._digests
        return [_name(digest) for digest in before if digest not in self._digests]

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        if question.token is None:
            return Grant("anonymous", LISTENING, authority="anonymous")
        shown = hashlib.sha256(question.token.encode()).digest()
        matches = [hmac.compare_digest(shown, known) for known in self._digests]
        if not any(matches):
            return Refusal("the token is not a publishing token of this node", Code.TOKEN_INVALID)
        return Grant(_name(shown), EVERYTHING, authority="basic")


def _name(digest: bytes) -> str:
    """An identity that distinguishes tokens without revealing them: 16 of the digest's 64 digits."""
    return f"publisher-{digest.hex()[:16]}"


def build_access_mode(
    access: AccessConfig,
    issuers: tuple[IssuerConfig, ...] = (),
    tls: TlsConfig | None = None,
    dispatch: DispatchConfig | None = None,
    running: AccessMode | None = None,
) -> AccessMode:
    """The configured access mode; raises ConfigInvalid. The user's authorizer of the mode `running` is kept."""
    hosted = running.hosted if running is not None else None
    anonymous, authorizer = (None, hosted) if hosted is not None else _build_judge(access, issuers)
    judges_tokens = authorizer is not None
    if tls is not None and tls.client_identity != "none":
        from .certificate import CertificateAuthorizer, read_authorities  # its library is loaded only in this mode

        basis = EVERYTHING if access.mode == "none" else LISTENING if access.mode == "basic" else ()
        leaves_rights = access.mode == "custom"
        authorities = read_authorities(tls.client_authorities_file)
        authorizer = CertificateAuthorizer(
            authorizer, access, tls.client_identity, basis, leaves_rights=leaves_rights, authorities=authorities
        )
    if dispatch is not None and (dispatch.token_keys_file or dispatch.token_keys_url):
        from .dispatch import DispatchAuthorizer  # its libraries are loaded only if needed

        authorizer = DispatchAuthorizer(authorizer, dispatch, access, anonymous, judges_tokens=judges_tokens)
        judges_tokens = True
    return AccessMode(anonymous, authorizer, judges_tokens)


def _build_judge(
    access: AccessConfig, issuers: tuple[IssuerConfig, ...]
) -> tuple[tuple[Rule, ...] | None, Authorizer | None]:
    if access.mode == "none":
        return EVERYTHING, None
    if access.mode == "basic":
        return LISTENING, BasicAuthorizer(list_tokens(access))
    if access.mode == "jwt":
        from .tokens import TokenAuthorizer  # its libraries are loaded only if needed

        for first, second in list_lookalikes(issuer.identity_prefix for issuer in issuers):
            read_logger().warning("identity_prefixes_ambiguous", first=first, second=second)
        rules = tuple(Rule.allow(pattern, "subscribe") for pattern in access.anonymous_subscribe) or None
        judge = TokenAuthorizer(
            issuers,
            verified_tokens_max=access.verified_tokens_max,
            verified_tokens_bytes_max=access.verified_tokens_bytes_max,
            verified_tokens_ms_max=access.verified_tokens_ms_max,
        )
        return rules, judge
    return None, HostedAuthorizer(load_authorizer(access.authorizer), access)


def list_tokens(access: AccessConfig) -> tuple[str, ...]:
    """All tokens that may publish, from the configuration and its file; raises ConfigInvalid."""
    named = (access.publish_tokens_file,) if access.publish_tokens_file else ()
    return access.publish_tokens + tuple(token for file in named for token in read_tokens(Path(file)))


def read_tokens(path: Path) -> tuple[str, ...]:
    """The tokens of a file, one on each line. Raises ConfigInvalid, also if the file has no token, because no client could publish."""
    key = "access.publish_tokens_file"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid(key, str(path), f"cannot be read: {error}") from error
    tokens = tuple(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))
    if not tokens:
        raise ConfigInvalid(key, str(path), "holds no token", hint="one token a line; # begins a comment")
    for token in tokens:
        check_token(token, key, str(path))
    return tokens


def load_authorizer(name: str) -> Authorizer:
    """Load a user's authorizer by its name; raises ConfigInvalid."""
    verbs = ("connect", "update_token", "subscribe", "publish", "start", "stop")
    return load_plugin("access.authorizer", name, "godwit.authorizers", verbs)  # type: ignore[no-any-return]  # any object with these methods
