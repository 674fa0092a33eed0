"""Hands e-mail to the relay over SMTP, on connections that are kept.

Owns the pool. Each step is its own command, so that it is known how far a message came: before DATA nothing was sent, and a connection
that is lost after it leaves the message in doubt.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import aiosmtplib

from ....config.dispatch_email import DispatchEmailConfig, is_email
from ....errors import ConfigInvalid
from ...model import Outcome, Result, Shipment
from ...pure.sandbox import read_result
from ...pure.verp import BOUNCE, COMPLAINT, MakeMac, make_token
from ..letter import Letter, Letters, ReadLetter
from ..outcomes import make_outcome
from .classes import GREYLIST_MS, classify, hide_addresses
from .dkim import read_dkim_key, sign
from .message import make_message

IDLE_MAX = 16
INLINE_BYTES_MAX = 65_536
"""An e-mail of this size is signed in less time than another thread takes to get the interpreter's lock."""
MakeLink = Callable[[Shipment, str], str]
"""The link with which a shipment's address unsubscribes from a category."""


class EmailSender:
    """The channel's way out. Raises ConfigInvalid where a file of the configuration cannot be used."""

    def __init__(
        self,
        read_letter: ReadLetter,
        config: DispatchEmailConfig,
        now_ms: Callable[[], int],
        make_link: MakeLink | None = None,
        make_mac: MakeMac = lambda content: b"",
    ) -> None:
        if not config.sender:
            raise ConfigInvalid("dispatch_email.sender", "", "must name the From address where a relay is set")
        self._letters = Letters(read_letter)
        self._config, self._now_ms, self._make_link = config, now_ms, make_link
        self._make_mac = make_mac
        self._host, _, port = config.relay.rpartition(":")
        self._port = int(port)
        self._password = _read_password(config)
        self._key = read_dkim_key(config.dkim_key_file) if config.dkim_key_file else None
        self._idle: list[aiosmtplib.SMTP] = []

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def send(self, batch: Sequence[Shipment]) -> Sequence[Outcome]:
        """Raises nothing but cancellation."""
        return [await self._send(shipment) for shipment in batch]

    async def _send(self, shipment: Shipment) -> Outcome:
        if (sandbox := read_result("email", shipment.target.value)) is not None:
            return self._tell(shipment, sandbox, "sandbox")
        letter = await self._letters.find(shipment)
        if letter is None:
            return self._tell(shipment, Result.CONTENT, "the notification is gone")
        if not is_email(shipment.target.value):
            return self._tell(shipment, Result.ADDRESS, "not an e-mail address")
        bounce = quoted = link = ""
        is_copy = bool(shipment.target.copy_of)  # what comes back about a copy says nothing about the receiver
        if self._config.bounce_domain and not is_copy:
            bounce = make_token(shipment.key, shipment.target.value, self._make_mac)
            quoted = make_token(shipment.key, shipment.target.value, self._make_mac, COMPLAINT)
        try:
            if self._make_link is not None and not letter.is_required and not is_copy:
                link = self._make_link(shipment, letter.category)
            message = await self._make(shipment, letter, link, quoted)
        except ValueError as error:
            return self._tell(shipment, Result.CONTENT, f"{error!s:.200}")
        sender = f"{BOUNCE}{bounce}@{self._config.bounce_domain}" if bounce else self._config.sender
        return await self._hand_over(shipment, sender, message)

    async def _make(self, shipment: Shipment, letter: Letter, link: str, token: str) -> bytes:
        """The message with its signature; in a thread where attachments take a while."""
        if len(letter.email) <= INLINE_BYTES_MAX:
            return self._make_signed(shipment, letter, link, token)
        return await asyncio.to_thread(self._make_signed, shipment, letter, link, token)

    def _make_signed(self, shipment: Shipment, letter: Letter, link: str, token: str) -> bytes:
        message = make_message(shipment, letter, self._config.sender, link, token)
        if self._key is None:
            return message
        domain = self._config.sender.rpartition("@")[2]
        return sign(message, domain, self._config.dkim_selector, self._key, self._now_ms() // 1_000)

    async def _hand_over(self, shipment: Shipment, sender: str, message: bytes) -> Outcome:
        relay: aiosmtplib.SMTP | None = None
        is_sent = False
        try:
            relay = await self._take_relay()
            await relay.mail(sender)
            await relay.rcpt(shipment.target.value)
            is_sent = True
            answered = await relay.data(message)
        except aiosmtplib.SMTPResponseException as refused:
            if not 200 <= refused.code <= 599:  # no answer of SMTP: a line too long, or without a code
                return self._break_off(shipment, relay, refused, is_sent=is_sent)
            await self._give_back(relay)
            is_ours = relay is None or isinstance(refused, aiosmtplib.SMTPSenderRefused)  # the login, or MAIL FROM
            result = Result.TEMPORARY if is_ours else classify(refused.code, refused.message)
            detail = f"{refused.code} {refused.message!s:.200}"
            return self._tell(shipment, result, detail, GREYLIST_MS if result is Result.TEMPORARY else 0)
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            return self._break_off(shipment, relay, error, is_sent=is_sent)
        self._idle.append(relay)
        return self._tell(shipment, Result.OK, f"{answered.code} {answered.message!s:.200}")

    def _break_off(
        self, shipment: Shipment, relay: aiosmtplib.SMTP | None, error: Exception, *, is_sent: bool
    ) -> Outcome:
        """A connection that is of no more use: after DATA the message may have been taken."""
        if relay is not None:
            relay.close()
        result = Result.DOUBT if is_sent else Result.TEMPORARY
        return self._tell(shipment, result, f"{type(error).__name__}: {error!s:.200}")

    async def _take_relay(self) -> aiosmtplib.SMTP:
        """A connection that is ready for a message: one that was kept, if it still answers, or a new one."""
        while self._idle:
            kept = self._idle.pop()
            try:
                await kept.rset()
                return kept
            except (aiosmtplib.SMTPException, OSError):
                kept.close()
        relay = aiosmtplib.SMTP(
            hostname=self._host,
            port=self._port,
            timeout=self._config.timeout_ms / 1_000,
            use_tls=self._config.security == "tls",
            start_tls=self._config.security == "starttls",
        )
        try:
            await relay.connect()
            if self._config.user:
                await relay.login(self._config.user, self._password)
        except BaseException:
            relay.close()
            raise
        return relay

    async def _give_back(self, relay: aiosmtplib.SMTP | None) -> None:
        """After a refusal the connection is as good as before, unless the relay is leaving (421)."""
        if relay is None:
            return
        if relay.is_connected and len(self._idle) < IDLE_MAX:
            self._idle.append(relay)
        else:
            relay.close()

    def _tell(self, shipment: Shipment, result: Result, detail: str, after_ms: int = 0) -> Outcome:
        return make_outcome(shipment, result, hide_addresses(detail), self._now_ms(), random.random(), after_ms)


def _read_password(config: DispatchEmailConfig) -> str:
    if not config.user:
        return ""
    try:
        return Path(config.password_file).read_text("utf-8").strip()
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        raise ConfigInvalid("dispatch_email.password_file", config.password_file, reason) from error


def domain_of(shipment: Shipment) -> tuple[str, str]:
    """The lane of an e-mail: its tenant and the receiver's domain."""
    return shipment.tenant, shipment.target.value.rpartition("@")[2].lower()
