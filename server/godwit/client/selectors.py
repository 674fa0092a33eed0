"""Subjects and patterns: which pattern takes which subject, and which two patterns meet.

`*` stands for one segment, `**` (last only) for any number, so that `/a/**` takes `/a` too.  A first segment that begins with
`$` is the server's own and is taken by no leading wildcard.
"""


def is_pattern(selector: str) -> bool:
    return any(segment in ("*", "**") for segment in selector.split("/"))


def meets(one: str, other: str) -> bool:
    """Some subject is taken by both; each may be a subject or a pattern."""
    return _meet(one.split("/")[1:], other.split("/")[1:], leading=True)


def _meet(one: list[str], other: list[str], leading: bool) -> bool:
    for index in range(max(len(one), len(other))):
        first = one[index] if index < len(one) else None
        second = other[index] if index < len(other) else None
        first_is_leading = leading and index == 0
        if first == "**" or second == "**":
            opposite = second if first == "**" else first
            return not (first_is_leading and _is_reserved(opposite))
        if first is None or second is None:
            return False
        if "*" in (first, second):
            opposite = second if first == "*" else first
            if first_is_leading and _is_reserved(opposite):
                return False
        elif first != second:
            return False
    return True


def _is_reserved(segment: str | None) -> bool:
    return segment is not None and segment.startswith("$")
