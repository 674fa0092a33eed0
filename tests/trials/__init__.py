"""Trials: a node under random load and faults, and what everybody received, held to what was published, by code of their own."""
