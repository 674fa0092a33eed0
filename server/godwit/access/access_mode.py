"""The access modes that come with Godwit: who may do what before anybody writes an authorizer.

`none`: everybody may publish and subscribe. `basic`: everybody may subscribe, a token lets its holder publish. `jwt`: a signed
token says what its holder may do (tokens/). `custom`: a user's authorizer decides about everybody. The
node's own subjects `/$…` may not be published on by anybody, and are heard by whom a rule names them to.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..codes import Code
from ..config.checks import check_token
from ..config.dispatch import DispatchConfig
from ..config.tls import TlsConfig
from ..config.tree import AccessConfig, IssuerConfig
from ..engine import WithdrawOrder
from ..errors import ConfigInvalid
from ..extension import ExtensionHost
from ..logs import read_logger
from ..plugins import load_plugin
from .authorizer import Authorizer, ConnectQuestion
from .hosted import HostedAuthorizer
from .lookalikes import list_lookalikes
from .rights import Grant, Refusal, Rule

EVERYTHING = (Rule.allow("/**"), Rule.allow("/$node/**", "subscribe"))
"""The node's statistics too, which no leading wildcard holds: whoever may do everything may look."""
LISTENING = (Rule.allow("/**", "subscribe"),)


@dataclass(frozen=True, slots=True)
class AccessMode:
    """What the engine is told at start: the rules of who shows no token (None: they must), and who judges tokens."""

    anonymous: tuple[Rule, ...] | None
    authorizer: Authorizer | None
    judges_tokens: bool
    """False: tokens mean nothing here, and all the authorizer is asked about is certificates."""

    @property
    def host(self) -> ExtensionHost | None:
        """Where a user's authorizer runs, if there is one."""
        judge = self._innermost
        return judge.host if isinstance(judge, HostedAuthorizer) else None

    @property
    def _innermost(self) -> Authorizer | None:
        """The mode's own authorizer, behind those of dispatch and of certificates."""
        judge = self.authorizer
        while judge is not None and not isinstance(judge, HostedAuthorizer) and hasattr(judge, "inner"):
            judge = judge.inner
        return judge

    def adopt(self, other: AccessMode) -> list[str]:
        """Judges as another of the same kind does, from now on; the identities that are none any more."""
        adopt: Callable[[Authorizer | None], list[str]] | None = getattr(self.authorizer, "adopt", None)
        return adopt(other.authorizer) if adopt is not None else []

    def take_withdrawn(self) -> list[WithdrawOrder]:
        """Ends the connections whose grants come from a source that `adopt` has ended or narrowed."""
        judge = self._innermost
        take: Callable[[], list[tuple[str, Code]]] | None = getattr(judge, "take_withdrawn", None)
        return [WithdrawOrder(source, int(code)) for source, code in (take() if take is not None else [])]


class BasicAuthorizer(Authorizer):
    """Tokens that may publish. All are compared, in constant time, so that timing tells nothing about any."""

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self._digests = [hashlib.sha256(token.encode()).digest() for token in tokens]

    def adopt(self, other: BasicAuthorizer) -> list[str]:
        """Takes another's tokens; returns the identities whose token is none any more."""
        before, self._digests = self._digests, other._digests
        return [_name(digest) for digest in before if digest not in self._digests]

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        if question.token is None:
            return Grant("anonymous", LISTENING, authority="anonymous")
        shown = hashlib.sha256(question.token.encode()).digest()
        matches = [hmac.compare_digest(shown, known) for known in self._digests]
        if not any(matches):
            return Refusal("the token is not one that may publish", Code.TOKEN_INVALID)
        return Grant(_name(shown), EVERYTHING, authority="basic")


def _name(digest: bytes) -> str:
    """An identity that tells tokens apart and gives none away: 16 of the digest's 64 digits."""
    return f"publisher-{digest.hex()[:16]}"


def build_access_mode(
    access: AccessConfig,
    issuers: tuple[IssuerConfig, ...] = (),
    tls: TlsConfig | None = None,
    dispatch: DispatchConfig | None = None,
) -> AccessMode:
    """The mode that the configuration asks for; raises ConfigInvalid."""
    anonymous, authorizer = _build_judge(access, issuers)
    judges_tokens = authorizer is not None
    if tls is not None and tls.client_identity != "none":
        from .certificate import CertificateAuthorizer  # its library is loaded by who uses it

        basis = EVERYTHING if access.mode == "none" else LISTENING if access.mode == "basic" else ()
        leaves_rights = access.mode == "custom"
        authorizer = CertificateAuthorizer(authorizer, access, tls.client_identity, basis, leaves_rights=leaves_rights)
    if dispatch is not None and (dispatch.token_keys_file or dispatch.token_keys_url):
        from .dispatch import DispatchAuthorizer  # its libraries are loaded by who uses them

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
        from .tokens import TokenAuthorizer  # its libraries are loaded by who uses them

        for first, second in list_lookalikes(issuer.identity_prefix for issuer in issuers):
            read_logger().warning("identity_prefixes_alike", first=first, second=second)
        rules = tuple(Rule.allow(pattern, "subscribe") for pattern in access.anonymous_subscribe) or None
        judge = TokenAuthorizer(
            issuers,
            verified_tokens_max=access.verified_tokens_max,
            verified_tokens_ms_max=access.verified_tokens_ms_max,
        )
        return rules, judge
    return None, HostedAuthorizer(load_authorizer(access.authorizer), access)


def list_tokens(access: AccessConfig) -> tuple[str, ...]:
    """All tokens that may publish, of the configuration and of its file; raises ConfigInvalid."""
    named = (access.publish_tokens_file,) if access.publish_tokens_file else ()
    return access.publish_tokens + tuple(token for file in named for token in read_tokens(Path(file)))


def read_tokens(path: Path) -> tuple[str, ...]:
    """The tokens of a file, one a line; raises ConfigInvalid also where there is none (a node nobody can publish on)."""
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
    """A user's authorizer by its name; raises ConfigInvalid."""
    verbs = ("connect", "update_token", "subscribe", "publish", "start", "stop")
    return load_plugin("access.authorizer", name, "godwit.authorizers", verbs)  # type: ignore[no-any-return]  # any object with these methods
