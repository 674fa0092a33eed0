"""`godwit verify`: proof of delivery as a product.

Publishers and subscribers of every kind work against a broker while it is disturbed; the record of publishes is held
against what everybody was told. `judge` decides (pure), `plan` draws everything from a seed (pure), `run` runs it.
"""

from .command import verify

__all__ = ["verify"]
