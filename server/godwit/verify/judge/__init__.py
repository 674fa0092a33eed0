"""Compares what was published with what each subscriber received. Pure: no socket, no clock, no randomness. `content` makes
and recognizes contents, `expected_history` records publishes, `checker` follows one subscription, `finding` describes
violations.
"""
