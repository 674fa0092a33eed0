"""Hands e-mail to the relay of a provider over SMTP.

Each step is its own command, so that it is known how far a message came: before DATA nothing was sent, and a connection
that is lost after it leaves the message in doubt.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import aiosmtplib

from ....config.dispatch_email import DispatchEmailConfig, is_email
from ....errors import ConfigInvalid
from ...model import Outcome, Result, Shipment, State
from ...pure.sandbox import read_result
from ...pure.verp import BOUNCE, COMPLAINT, MakeMac, make_token
from ...stores.sqlite.manage.providers import CONFIGURED
from ..letter import Letter, Letters, ReadLetter, preparing
from ..outcomes import make_outcome, make_waiting
from .classes import GREYLIST_MS, SLOW_MS, classify, hide_addresses
from .dkim import read_dkim_key, sign
from .message import make_message, read_sender
from .provider import Provider, ProviderSettings, domain_of_address
from .providers import Providers

INLINE_BYTES_MAX = 65_536
"""An e-mail of this size is signed in less time than another thread takes to get the interpreter's lock."""
ReadEnd = Callable[[Shipment], Awaitable[tuple[State, str] | None]]
"""How a delivery ended that waited for its provider, and why; None: send it."""


async def never_ends(shipment: Shipment) -> tuple[State, str] | None:
    """For senders whose waiting e-mails cannot be cancelled or expire."""


MakeLink = Callable[[Shipment, str], str]
"""The link with which a shipment's address unsubscribes from a category."""


class EmailSender:
    """The channel's way out."""

    def __init__(
        self,
        read_letter: ReadLetter,
        providers: Providers,
        now_ms: Callable[[], int],
        make_link: MakeLink | None = None,
        make_mac: MakeMac = lambda content: b"",
        bounce_domain: str = "",
        read_end: ReadEnd = never_ends,
    ) -> None:
        self._letters = Letters(read_letter)
        self._providers, self._now_ms, self._make_link = providers, now_ms, make_link
        self._make_mac, self._bounce_domain, self._read_end = make_mac, bounce_domain, read_end

    async def close(self) -> None:
        self._providers.close()

    async def send(self, batch: Sequence[Shipment]) -> Sequence[Outcome]:
        """Raises NotSent and cancellation."""
        return [await self._send(shipment) for shipment in batch]

    async def _send(self, shipment: Shipment) -> Outcome:
        if (sandbox := read_result("email", shipment.target.value)) is not None:
            return self._tell(shipment, sandbox, "sandbox")
        letter = await self._letters.find(shipment)
        if letter is None:
            return self._tell(shipment, Result.CONTENT, "the notification is gone")
        if not is_email(shipment.target.value):
            return self._tell(shipment, Result.ADDRESS, "not an e-mail address")
        sender = read_sender(letter) or self._providers.find_sender(shipment.tenant)
        failed: dict[str, Outcome] = {}
        # a provider that fails before it has the message: the next one is tried at once
        while place := self._providers.take(shipment, sender, failed):
            provider = place.provider
            try:
                if await provider.wait_turn(place.turn_ms) and (end := await self._find_end(shipment)):
                    return end
                outcome, is_over = await self._send_over(provider, shipment, letter, sender)
            finally:
                self._providers.end(place)
            if is_over:
                return outcome
            failed[provider.name] = outcome
        return self._wait(shipment, sender, failed)

    def _wait(self, shipment: Shipment, sender: str, failed: dict[str, Outcome]) -> Outcome:
        """Defers an e-mail for which no provider has a slot now. It does not wait here, where it would occupy a slot of others."""
        tenant = shipment.tenant
        reason, wait_ms = self._providers.explain(tenant, sender, failed)
        if reason:
            return self._put_off(shipment, reason, wait_ms)
        if failed:
            return next(reversed(failed.values()))
        if not self._providers.may_send(tenant, sender):
            return self._tell(shipment, Result.TEMPORARY, f"no provider sends from {domain_of_address(sender)!r}")
        rest_ms = self._providers.rest_ms(tenant, sender)
        if self._providers.is_refused(tenant, sender):
            return self._put_off(shipment, "every provider refuses the login", rest_ms, Result.ACCOUNT)
        return self._put_off(shipment, "every provider is paused after errors or its rate limit", rest_ms)

    def _put_off(self, shipment: Shipment, detail: str, after_ms: int, result: Result = Result.THROTTLED) -> Outcome:
        """Defers without counting an attempt; the receiver's host did not ask for the delay."""
        waiting = make_waiting(shipment, result, detail, self._now_ms(), random.random(), after_ms)
        return replace(waiting, spares_host=True)

    async def _find_end(self, shipment: Shipment) -> Outcome | None:
        """The final state of a delivery that ended while it waited here: cancelled, expired, or its address deleted. None: send it."""
        with preparing():
            end = await self._read_end(shipment)
        if end is None:
            return None
        due_ms = self._now_ms() if end[0] is State.DEFERRED else None
        return Outcome(shipment.key, shipment.attempt, *end, retry_at_ms=due_ms, spares_host=True, throttle_ms=1)

    async def _send_over(
        self, provider: Provider, shipment: Shipment, letter: Letter, sender: str
    ) -> tuple[Outcome, bool]:
        """The outcome, and whether it is final: false if another provider may be tried at once."""
        bounce = quoted = link = ""
        is_copy = bool(shipment.target.copy_of)  # reports about a copy do not concern the receiver
        if self._bounce_domain and not is_copy:
            bounce = make_token(shipment.key, shipment.target.value, self._make_mac)
            quoted = make_token(shipment.key, shipment.target.value, self._make_mac, COMPLAINT)
        try:
            if self._make_link is not None and not letter.is_required and not is_copy:
                link = self._make_link(shipment, letter.category)
            with preparing():
                message = await self._make(provider, shipment, letter, sender, link, quoted)
        except ValueError as error:
            return self._tell(shipment, Result.CONTENT, f"{error!s:.200}"), True
        envelope = f"{BOUNCE}{bounce}@{self._bounce_domain}" if bounce else sender
        return await self._hand_over(provider, shipment, envelope, message)

    async def _make(
        self, provider: Provider, shipment: Shipment, letter: Letter, sender: str, link: str, token: str
    ) -> bytes:
        """The message with its signature; signed in a thread if attachments make it slow."""
        given = (provider, shipment, letter, sender, link, token)
        if len(letter.email) <= INLINE_BYTES_MAX:
            return self._make_signed(*given)
        return await asyncio.to_thread(self._make_signed, *given)

    def _make_signed(
        self, provider: Provider, shipment: Shipment, letter: Letter, sender: str, link: str, token: str
    ) -> bytes:
        message = make_message(shipment, letter, sender, link, token)
        if provider.key is None:
            return message
        selector = provider.settings.dkim_selector
        return sign(message, domain_of_address(sender), selector, provider.key, self._now_ms() // 1_000)

    async def _hand_over(
        self, provider: Provider, shipment: Shipment, envelope: str, message: bytes
    ) -> tuple[Outcome, bool]:
        relay: aiosmtplib.SMTP | None = None
        is_sent = False
        try:
            relay = await provider.take_relay()
            await relay.mail(envelope)
            await relay.rcpt(shipment.target.value)
            is_sent = True
            answered = await relay.data(message)
        except aiosmtplib.SMTPResponseException as refused:
            if not 200 <= refused.code <= 599:  # no answer of SMTP: a line too long, or without a code
                return self._break_off(provider, shipment, relay, refused, is_sent=is_sent)
            return self._refuse(provider, shipment, relay, refused)
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            return self._break_off(provider, shipment, relay, error, is_sent=is_sent)
        provider.note_success()
        provider.give_back(relay)
        return self._tell(shipment, Result.OK, f"{answered.code} {answered.message!s:.200}"), True

    def _refuse(
        self,
        provider: Provider,
        shipment: Shipment,
        relay: aiosmtplib.SMTP | None,
        refused: aiosmtplib.SMTPResponseException,
    ) -> tuple[Outcome, bool]:
        """An answer of the relay: about this e-mail, or about us."""
        provider.give_back(relay)
        detail = f"{refused.code} {refused.message!s:.200}"
        is_ours = relay is None or isinstance(refused, aiosmtplib.SMTPSenderRefused)  # the login, or MAIL FROM
        is_leaving = refused.code == 421
        result = classify(refused.code, refused.message)
        if is_ours and result is not Result.THROTTLED:
            result = Result.ACCOUNT if refused.code >= 500 else Result.TEMPORARY
        if isinstance(refused, aiosmtplib.SMTPSenderRefused) and refused.code >= 500:
            pass  # the From address is this e-mail's: the provider works for others
        elif is_ours or is_leaving:
            provider.note_failure(detail, is_final=relay is None and refused.code >= 500)
        else:
            provider.note_success()
        after_ms = {Result.TEMPORARY: GREYLIST_MS, Result.ACCOUNT: GREYLIST_MS, Result.THROTTLED: SLOW_MS}.get(
            result, 0
        )
        return self._tell(shipment, result, detail, after_ms), not (is_ours or is_leaving)

    def _break_off(
        self,
        provider: Provider,
        shipment: Shipment,
        relay: aiosmtplib.SMTP | None,
        error: Exception,
        *,
        is_sent: bool,
    ) -> tuple[Outcome, bool]:
        """A connection that is of no more use: after DATA the message may have been taken."""
        if relay is not None:
            relay.close()
        detail = f"{type(error).__name__}: {error!s:.200}"
        if not isinstance(error, ValueError):
            provider.note_failure(detail)
        return self._tell(shipment, Result.DOUBT if is_sent else Result.TEMPORARY, detail), is_sent

    def _tell(self, shipment: Shipment, result: Result, detail: str, after_ms: int = 0) -> Outcome:
        return make_outcome(shipment, result, hide_addresses(detail), self._now_ms(), random.random(), after_ms)


def read_default(config: DispatchEmailConfig) -> ProviderSettings:
    """The provider of the configuration; raises ConfigInvalid if a file cannot be used."""
    if not config.sender:
        raise ConfigInvalid("dispatch_email.sender", "", "must name the From address where a relay is set")
    key = ""
    if config.dkim_key_file:
        read_dkim_key(config.dkim_key_file)
        key = Path(config.dkim_key_file).read_text("utf-8")
    return ProviderSettings(
        CONFIGURED,
        config.relay,
        config.sender,
        security=config.security,
        user=config.user,
        password=_read_password(config),
        dkim_selector=config.dkim_selector,
        dkim_key=key,
        sends_max=config.sends_max,
        timeout_ms=config.timeout_ms,
    )


def _read_password(config: DispatchEmailConfig) -> str:
    if not config.user:
        return ""
    try:
        return Path(config.password_file).read_text("utf-8").strip()
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        raise ConfigInvalid("dispatch_email.password_file", config.password_file, reason) from error
