"""Answers the engine's questions: asks the authorizer in one task for each, and sends the answers back as orders.

Owns time limits and failing closed. If an authorizer is late or raises, nothing is allowed, and nothing is denied
permanently. A connection is refused with AuthorizerUnavailable, and the client may reconnect. A subscribe or publish is
refused with AuthorizerTimeout, and the authorizer is asked again when the client repeats it. A connection that waits for
an answer is not read, so it has at most one such question. In the background it has one for each subscription whose
answer expired.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from ..codes import CODES, Code
from ..engine import (
    Answer,
    AnswerOrder,
    AskAgainOrder,
    AskReport,
    AuthorizeReport,
    GrantOrder,
    RefuseOrder,
    WithdrawOrder,
)
from ..errors import AuthorizerFailed, KeysUnavailable, NodeFailed
from ..logs import FIELD_CHARACTERS_MAX, read_logger
from .answers import check_connect, check_selector, refuse_reserved
from .authorizer import Authorizer, ConnectQuestion, SelectorQuestion
from .chain import split_certificates
from .hidden import hide
from .revocation import Revocations, SeenNames
from .rights import Grant, Rule
from .vouching import is_trusted, list_judges

Question = AuthorizeReport | AskReport
Waiting = tuple[asyncio.Task[Answer], asyncio.TimerHandle, Question]
BACKGROUND_S = 60.0
"""How long a background question may wait in all, in seconds: its turn and its answer."""
ASK_AGAIN_S = 0.1
ASK_AGAIN_MAX = 1_000
"""How many identities an authorizer may name within that time; beyond it, all identities are asked about again."""
RENEWAL_MS = 60_000
"""Within this time the holders of a withdrawn key need another token; requests are spread over its second half."""


class Gate:
    """The gate of one node. `send` takes the orders; the answers of one turn of the event loop are sent as one batch."""

    def __init__(
        self,
        authorizer: Authorizer | None,
        send: Callable[[Sequence[Answer | WithdrawOrder | AskAgainOrder]], None],
        *,
        timeout_ms: int,
        calls_max: int,
        revocations: Revocations | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter(asked=0, granted=0, refused=0, failed=0, revoked=0)
        self._authorizer = authorizer
        self._send = send
        self._revocations = Revocations() if revocations is None else revocations
        self.seen = SeenNames()
        self._timeout_s = timeout_ms / 1000
        self._places = asyncio.Semaphore(calls_max)
        self._waiting: dict[int, dict[str, Waiting]] = {}
        self._answers: list[Answer] = []
        self._outdated: set[AskAgainOrder] = set()
        for judge in list_judges(authorizer):
            if hasattr(judge, "on_withdrawn"):
                judge.on_withdrawn = self._ask_for_renewal
            if hasattr(judge, "on_ask_again"):
                judge.on_ask_again = self._ask_again

    def ask(self, question: Question, within_s: float | None = None) -> None:
        """Begin to answer; returns at once. `within_s`: the remaining time, if the question is repeated."""
        self._drop(question)
        self.counts["asked"] += 1
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._judge_in_turn(question))
        # a timer of its own, and not a cancelled wait: an authorizer that swallows its cancellation is late all the same
        limit_s = self._read_limit_s(question) if within_s is None else within_s
        timer = loop.call_later(limit_s, self._expire, question)
        self._waiting.setdefault(question.connection, {})[question.key] = (task, timer, question)
        task.add_done_callback(lambda done: self._finish(question, done))

    def _read_limit_s(self, question: Question) -> float:
        """The time limit of a background question is longer, because no client waits for it and many may be asked at once."""
        is_background = isinstance(question, AskReport) and question.is_background
        return max(self._timeout_s, BACKGROUND_S) if is_background else self._timeout_s

    def withdraw(self, connection: int) -> None:
        """The connection has ended: its questions need no answer."""
        for task, timer, _ in self._waiting.pop(connection, {}).values():
            task.cancel()
            timer.cancel()

    @property
    def waiting(self) -> int:
        """The number of questions without an answer."""
        return sum(map(len, self._waiting.values()))

    def stop(self) -> None:
        """Drop all questions."""
        for connection in list(self._waiting):
            self.withdraw(connection)

    def judge_again(self) -> None:
        """The configuration of access has changed. Sends what the old one granted, so that the orders that follow concern it,
        and judges waiting connections by the new one.
        """
        self._flush()
        now_s = asyncio.get_running_loop().time()
        waiting = [each for of_connection in self._waiting.values() for each in of_connection.values()]
        for _, timer, question in waiting:
            if isinstance(question, AuthorizeReport):
                self.ask(question, max(0.0, timer.when() - now_s))

    def _ask_for_renewal(self, source: str) -> None:
        """An issuer no longer has a key: ask the holders of tokens signed by it for another token."""
        read_logger().info("key_withdrawn", source=source.partition("\n")[0], within_ms=RENEWAL_MS)
        self._send([WithdrawOrder(source, int(Code.TOKEN_EXPIRED), RENEWAL_MS)])

    def _ask_again(self, identity: str | None, tenant: str | None) -> None:
        """An authorizer's answers have changed. Calls within a short time become one batch."""
        if not self._outdated:
            asyncio.get_running_loop().call_later(ASK_AGAIN_S, self._flush_outdated)
        self._outdated.add(AskAgainOrder(identity, tenant))
        if len(self._outdated) > ASK_AGAIN_MAX:
            self._outdated = {AskAgainOrder()}

    def _flush_outdated(self) -> None:
        outdated, self._outdated = self._outdated, set()
        now_s = asyncio.get_running_loop().time()
        waiting = [each for of_connection in self._waiting.values() for each in of_connection.values()]
        for _, timer, question in waiting:  # its answer may come from what the authorizer read before
            if isinstance(question, AskReport) and any(_concerns(order, question) for order in outdated):
                self.ask(question, max(0.0, timer.when() - now_s))
        try:
            self._send(list(outdated))
        except NodeFailed as error:
            read_logger().error("reauthorization_failed", reason=str(error))

    def _take(self, question: Question) -> Waiting | None:
        """The task of this question, which is removed from the waiting ones."""
        of_connection = self._waiting.get(question.connection, {})
        taken = of_connection.pop(question.key, None)
        if not of_connection:
            self._waiting.pop(question.connection, None)
        return taken

    def _drop(self, question: Question) -> None:
        taken = self._take(question)
        if taken is not None:
            taken[0].cancel()
            taken[1].cancel()

    def _expire(self, question: Question) -> None:
        self._drop(question)
        self._fail(question, f"no answer in {self._read_limit_s(question):g} s")

    def _finish(self, question: Question, done: asyncio.Task[Answer]) -> None:
        waiting = self._waiting.get(question.connection, {}).get(question.key)
        if waiting is None or waiting[0] is not done:
            _ = done.cancelled() or done.exception()  # withdrawn, or refused for being late: its outcome is not needed
            return
        self._take(question)
        waiting[1].cancel()
        error = None if done.cancelled() else done.exception()
        if error is not None or done.cancelled():
            kind = "" if isinstance(error, AuthorizerFailed) else f"{type(error).__name__}: "
            why = f"{kind}{error}" if error else "its call was cancelled"
            self._fail(question, why, are_keys_missing=isinstance(error, KeysUnavailable))
        else:
            self._reply(done.result())

    def _fail(self, question: Question, why: str, *, are_keys_missing: bool = False) -> None:
        """A user's authorizer failed, or a token cannot be judged now: nothing is allowed."""
        self.counts["failed"] += 1
        token = question.token if isinstance(question, AuthorizeReport) else None
        why = hide(f"{_name_method(question)}: {why}"[:FIELD_CHARACTERS_MAX], token)
        read_logger().warning("authorizer_failed", connection=question.connection, reason=why)
        self._reply(_fail_closed(question, Code.KEYS_UNAVAILABLE if are_keys_missing else Code.AUTHORIZER_UNAVAILABLE))

    def _reply(self, order: Answer) -> None:
        self.counts["refused" if _is_no(order) else "granted"] += 1
        if not self._answers:
            asyncio.get_running_loop().call_soon(self._flush)
        self._answers.append(order)

    def _flush(self) -> None:
        answers, self._answers = self._answers, []
        if not answers:
            return
        try:
            self._send([self._refuse_revoked(answer) for answer in answers])
        except NodeFailed as error:  # the engine takes no orders at all: one by one would wait for it again and again
            read_logger().error("authorizer_answers_not_sent", reason=str(error), answers=len(answers))
        except Exception:  # one of them is at fault, and only that one may suffer
            for answer in answers:
                self._send_alone(answer)

    def _refuse_revoked(self, answer: Answer) -> Answer:
        """Refuse revoked identities, checked when the answer is sent, so that no revocation or reload can happen in between."""
        if isinstance(answer, GrantOrder) and self._revocations.covers(
            answer.identity, answer.token_id, answer.tenant, answer.authority
        ):
            self.counts["revoked"] += 1
            return RefuseOrder(answer.connection, int(Code.TOKEN_REVOKED), "this token has been revoked")
        if isinstance(answer, GrantOrder) and not is_trusted(self._authorizer, answer.source):
            self.counts["revoked"] += 1
            return RefuseOrder(answer.connection, int(Code.TOKEN_INVALID), "its issuer or authority has been removed")
        if isinstance(answer, GrantOrder):
            self.seen.add(answer.identity, answer.token_id)
        return answer

    def _send_alone(self, answer: Answer) -> None:
        """Send answers one by one after a batch failed, so that one that the engine cannot compile does not discard the others."""
        try:
            self._send([self._refuse_revoked(answer)])
        except Exception as error:
            self.counts["failed"] += 1
            read_logger().warning("authorizer_failed", connection=answer.connection, reason=str(error))
            if isinstance(answer, GrantOrder) and (answer.source or "").startswith("jwt:"):
                refused = RefuseOrder(answer.connection, int(Code.TOKEN_INVALID), f"the token's rules: {error}")
            elif not isinstance(answer, AnswerOrder):
                refused = RefuseOrder(answer.connection, int(Code.AUTHORIZER_UNAVAILABLE), "the answer is not valid")
            else:
                return
            self._send([refused])

    async def _judge_in_turn(self, question: Question) -> Answer:
        is_background = isinstance(question, AskReport) and question.is_background
        # its own timer leaves one in the background the time to wait for its place
        async with self._places, asyncio.timeout(self._timeout_s if is_background else None):
            return await self._judge(question)

    async def _judge(self, question: Question) -> Answer:
        if self._authorizer is None:
            raise AuthorizerFailed("no authorizer is configured to answer")
        if isinstance(question, AskReport):
            return await self._judge_selector(self._authorizer, question)
        shown = split_certificates(question.certificate)
        put = ConnectQuestion(
            question.connection,
            question.token,
            question.client,
            question.address,
            question.is_renewal,
            shown[0] if shown else None,
            certificate_chain=shown[1:],
        )
        called = self._authorizer.update_token(put) if put.is_renewal else self._authorizer.connect(put)
        answer = refuse_reserved(check_connect(await called))
        if isinstance(answer, Grant):
            rules = _compile(answer.rules)
            authority = self._revocations.join(answer.authority)
            ends = (answer.expires_ms, answer.token_id, answer.tenant, answer.source, authority, answer.configured)
            return GrantOrder(question.connection, answer.identity, rules, *ends)
        return RefuseOrder(question.connection, int(answer.code), hide(answer.reason, question.token))

    async def _judge_selector(self, authorizer: Authorizer, question: AskReport) -> Answer:
        put = SelectorQuestion(question.connection, question.identity, question.selector, question.tenant)
        answer = await (authorizer.subscribe(put) if question.action == "subscribe" else authorizer.publish(put))
        is_allowed = check_selector(answer)
        rule = (question.selector, question.action, "allow" if is_allowed else "deny")
        return AnswerOrder(question.connection, rule, question.is_background)


def _name_method(question: Question) -> str:
    if isinstance(question, AskReport):
        return question.action
    return "update_token" if question.is_renewal else "connect"


def _compile(rules: tuple[Rule, ...]) -> list[tuple[str, str, str]]:
    return [(rule.pattern, str(rule.actions), str(rule.verdict)) for rule in rules]


def _concerns(order: AskAgainOrder, question: AskReport) -> bool:
    return order.identity in (None, question.identity) and order.tenant in (None, question.tenant)


def _fail_closed(question: Question, code: Code) -> Answer:
    if isinstance(question, AskReport):
        return AnswerOrder(question.connection, (question.selector, question.action, "ask"), question.is_background)
    return RefuseOrder(question.connection, int(code), CODES[code].sentence)


def _is_no(order: Answer) -> bool:
    return isinstance(order, RefuseOrder) or (isinstance(order, AnswerOrder) and order.rule[2] != "allow")
