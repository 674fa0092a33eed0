"""Parses what people and publishers write: paths and numbers. Errors say what was expected. Pure."""
