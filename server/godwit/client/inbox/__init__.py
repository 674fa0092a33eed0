"""A receiver's inbox in Python.

    from godwit.client import Client
    from godwit.client.inbox import Inbox

    async with Client("ws://127.0.0.1:8800", token=token) as client:
        async with Inbox("http://127.0.0.1:8802", token, client=client) as inbox:
            async for item in inbox.follow():
                print(item.content["title"], inbox.unread)

Items arrive from the node. Missed items are fetched from dispatch. Marks appear on all devices of the receiver.
"""

from .inbox import Inbox, Mark, Preferences
from .requests import DispatchRefused, DispatchUnreachable
from .state import Filter, InboxItem

__all__ = ["DispatchRefused", "DispatchUnreachable", "Filter", "Inbox", "InboxItem", "Mark", "Preferences"]
