"""Tokens of one client: where they come from, and how a new one replaces them while the client is connected."""
