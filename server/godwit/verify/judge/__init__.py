"""Judges what was published against what everybody was told. Pure: no socket, no clock, no chance.

`content` makes and knows contents again, `expected` is the truth, `checker` follows one subscription, `finding` says what broke.
"""
