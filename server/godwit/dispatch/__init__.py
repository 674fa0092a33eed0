"""Dispatch: one API for notifications, delivered over inbox, webhook and e-mail.

Start reading at `part.py`, which starts and stops the roles, and `model.py`, which defines their shared types. `pure`
decides without I/O, `fanout` works through `stores/ports.py`, and `channels` send. Nothing here imports the node:
dispatch reaches it as a client.
"""
