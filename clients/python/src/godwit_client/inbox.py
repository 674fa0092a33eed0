"""A receiver's inbox: `godwit_client.inbox` has what `godwit.client.inbox` has. It needs the extra `inbox` of this package."""

from .client.inbox import *  # noqa: F403  the public names of the inbox are named there, once
from .client.inbox import __all__ as __all__
