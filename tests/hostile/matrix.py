"""The node's answer to each kind of misbehaviour in each method of users' code: the second table of docs/security/hostile-inputs.md.

The tests read the expected answer of a cell here, so the guide shows what is tested. Invariant: every async method of the interfaces
has a row, and every kind a column.
"""

from __future__ import annotations

import inspect
from enum import StrEnum

from godwit.access import Authorizer
from godwit.audit import Audit

from .extensions import KINDS

BEGIN = "<!-- hostile extensions: written by tests/hostile/table.py -->"
END = "<!-- end of hostile extensions -->"
ANSWER_KINDS = ("answers the wrong type", "answers something huge")


class Outcome(StrEnum):
    """What the node does."""

    REFUSED = "4204 to that client"
    ENDED = "4204 ends that connection"
    LATER = "4125 to that command"
    NOT_STARTED = "the node does not start"
    STOPPED = "the node stops"
    FAILED = "the batch fails, the next one follows"
    IGNORED = "ignored"


_RAISES = {
    "Authorizer.connect": Outcome.REFUSED,
    "Authorizer.update_token": Outcome.ENDED,
    "Authorizer.subscribe": Outcome.LATER,
    "Authorizer.publish": Outcome.LATER,
    "Authorizer.start": Outcome.NOT_STARTED,
    "Authorizer.stop": Outcome.STOPPED,
    "Audit.take": Outcome.FAILED,
    "Audit.start": Outcome.NOT_STARTED,
    "Audit.stop": Outcome.STOPPED,
}
_WITHOUT_ANSWER = {Outcome.NOT_STARTED, Outcome.FAILED}
"""What comes of a failure of the methods that answer nothing: there a wrong answer is no failure."""


def list_methods() -> list[str]:
    """The async methods that users write, as the interfaces have them."""
    return [
        f"{kind.__name__}.{name}"
        for kind in (Authorizer, Audit)
        for name, method in vars(kind).items()
        if inspect.iscoroutinefunction(method)
    ]


def read_outcome(method: str, kind: str) -> Outcome:
    """What a harm of this kind gets in this method; KeyError for a method without a row."""
    outcome = _RAISES[method]
    return Outcome.IGNORED if kind in ANSWER_KINDS and outcome in _WITHOUT_ANSWER else outcome


def list_cells() -> list[tuple[str, str]]:
    """Every method with every kind."""
    return [(method, kind) for method in list_methods() for kind in KINDS]


def render_matrix() -> str:
    """The guide's second table, with the comments around it."""
    lines = [BEGIN, "", f"| method | {' | '.join(KINDS)} |", "|---" * (len(KINDS) + 1) + "|"]
    lines += [
        f"| `{method}` | {' | '.join(read_outcome(method, kind) for kind in KINDS)} |" for method in list_methods()
    ]
    return "\n".join([*lines, "", END])
