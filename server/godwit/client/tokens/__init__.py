"""Tokens of one client: where they come from, and how another one is handed over while it is connected."""
