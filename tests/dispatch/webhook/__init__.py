"""Webhooks that answer in unusual ways."""
