"""How long to wait before connecting again: full jitter, or the server's own wish.

A pure function of the try and a random number in [0, 1).  The first try comes within `first_ms`; the bound doubles with each
failure up to `max_ms`.  Waits are drawn from the whole range, so that clients cut together do not come back together.
"""

DOUBLINGS_MAX = 30  # beyond it the bound is `max_ms` anyway


def reconnect_wait_ms(tries: int, random: float, first_ms: int, max_ms: int, wish_ms: int | None = None) -> int:
    """The wait before the next try, after `tries` failed ones.  A server's wish is obeyed while tries have not failed since."""
    if wish_ms is not None and tries == 0:
        return wish_ms
    bound = min(max_ms, first_ms << min(tries, DOUBLINGS_MAX))
    return int(random * bound)
