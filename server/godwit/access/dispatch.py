"""The built-in issuer: tokens that dispatch signs, judged before those of the node's own access mode.

Owns the identities that begin with `godwit-dispatch:`. A token of dispatch grants its own permissions and those of
clients without a token. Every other token is judged by the access mode. Invariant: no other grant has this source or an
identity with this prefix, so that nobody else publishes on `/$inbox/**` and `/$dispatch/**`, which the engine allows to
this source alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..codes import Code
from ..config.dispatch import DISPATCH_ISSUER, DISPATCH_PREFIX, DispatchConfig
from ..config.tree import AccessConfig, IssuerConfig
from .answers import AUTHORITY
from .authorizer import Authorizer, ConnectQuestion, SelectorQuestion
from .rights import Grant, Refusal, Rule
from .templates import RuleTemplate
from .tokens import TokenAuthorizer
from .tokens.verifier import TokenRefused, read_outline


class DispatchAuthorizer(Authorizer):
    """Asked before `inner`. Without `inner`, clients with other tokens get `anonymous`, as those without a token."""

    def __init__(
        self,
        inner: Authorizer | None,
        config: DispatchConfig,
        access: AccessConfig,
        anonymous: tuple[Rule, ...] | None,
        *,
        judges_tokens: bool,
    ) -> None:
        self.inner = inner
        self._judges_tokens = judges_tokens
        self._anonymous = anonymous
        self._withdrawn: list[tuple[str, Code]] = []
        self._tokens = TokenAuthorizer(
            (make_issuer(config),),
            verified_tokens_max=access.verified_tokens_max,
            verified_tokens_bytes_max=access.verified_tokens_bytes_max,
            verified_tokens_ms_max=access.verified_tokens_ms_max,
        )

    @property
    def on_withdrawn(self) -> Callable[[str], None] | None:
        """Called with the source of a key that was withdrawn."""
        return self._tokens.on_withdrawn

    @on_withdrawn.setter
    def on_withdrawn(self, called: Callable[[str], None]) -> None:
        self._tokens.on_withdrawn = called

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        if is_signed_by_dispatch(question.token):
            granted = await self._tokens.connect(question)
            return self._add_anonymous(granted) if isinstance(granted, Grant) else granted
        return await self._ask_inner(question)

    async def update_token(self, question: ConnectQuestion) -> Grant | Refusal:
        if self.inner is None or not self._judges_tokens or is_signed_by_dispatch(question.token):
            return await self.connect(question)
        return await self.inner.update_token(question)

    async def subscribe(self, question: SelectorQuestion) -> bool:
        return self.inner is not None and await self.inner.subscribe(question)

    async def publish(self, question: SelectorQuestion) -> bool:
        return self.inner is not None and await self.inner.publish(question)

    async def start(self) -> None:
        if self.inner is not None:
            await self.inner.start()

    async def stop(self) -> None:
        await self._tokens.stop()
        if self.inner is not None:
            await self.inner.stop()

    def list_trusted(self) -> list[str]:
        return self._tokens.list_trusted()

    def take_withdrawn(self) -> list[tuple[str, Code]]:
        """Dispatch itself, if clients without a token have fewer rights since the last call: receivers had them, too. And keys
        that left its file.
        """
        taken, self._withdrawn = self._withdrawn, []
        return taken + self._tokens.take_withdrawn()

    def list_rules(self) -> dict[str, list[RuleTemplate]]:
        """The rules that the configuration gives receivers: those of clients without a token."""
        rules = [(rule.pattern, str(rule.actions), str(rule.verdict)) for rule in self._anonymous or ()]
        return {AUTHORITY: rules}

    def adopt(self, other: DispatchAuthorizer) -> list[str]:
        """Judge like another authorizer from now on. Returns the identities whose token is no longer valid."""
        if set(self._anonymous or ()) - set(other._anonymous or ()):
            self._withdrawn.append((AUTHORITY, Code.RIGHTS_CHANGED))
        self._anonymous = other._anonymous
        self._tokens.adopt(other._tokens)
        adopt: Callable[[Authorizer | None], list[str]] | None = getattr(self.inner, "adopt", None)
        return adopt(other.inner) if adopt is not None else []

    def _add_anonymous(self, granted: Grant) -> Grant:
        anonymous = self._anonymous or ()
        configured = granted.configured + len(anonymous)
        return replace(granted, rules=(*anonymous, *granted.rules), configured=configured)

    async def _ask_inner(self, question: ConnectQuestion) -> Grant | Refusal:
        """Ask the access mode. A mode that judges no tokens looks only at the certificate, if there is one."""
        if not self._judges_tokens:
            question = replace(question, token=None)
        if self.inner is not None and (self._judges_tokens or question.certificate is not None):
            return await self.inner.connect(question)
        if self._anonymous is None:
            return Refusal("this node requires a token", Code.TOKEN_MISSING)
        return Grant("anonymous", self._anonymous, authority="anonymous")


def make_issuer(config: DispatchConfig) -> IssuerConfig:
    """The issuer of dispatch, in the form of a configured issuer."""
    return IssuerConfig(
        DISPATCH_ISSUER,
        ("EdDSA",),
        keys_file=config.token_keys_file,
        keys_url=config.token_keys_url,
        identity_prefix=DISPATCH_PREFIX,
    )


def is_signed_by_dispatch(token: str | None) -> bool:
    """Whether the token names dispatch as its issuer. Only its signature proves that."""
    try:
        return token is not None and read_outline(token).issuer == DISPATCH_ISSUER
    except TokenRefused:
        return False
