"""Appending items of many notifications to inboxes at once."""
