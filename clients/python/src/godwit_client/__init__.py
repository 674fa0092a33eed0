"""The Python client of Godwit, for programs that do not run a node.

    from godwit_client import Client

    async with Client("ws://127.0.0.1:8800") as client:
        await client.publish("/greetings/en", {"hello": "world"})
        async for message in client.subscribe("/greetings/**"):
            print(message.subject, message.position, message.json())

The names are those of `godwit.client`, which the package `godwit-server` contains.
"""

from .client import *  # noqa: F403  the public names of the client are named there, once
from .client import __all__ as __all__
