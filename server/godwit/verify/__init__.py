"""`godwit verify`: checks the delivery guarantees of a broker. Publishers and subscribers of every kind use a broker while
faults are injected; then the published messages are compared with what each subscriber received. `judge` decides (pure),
`plan` derives everything from a seed (pure), `verify_run` runs it.
"""

from .command import verify

__all__ = ["verify"]
