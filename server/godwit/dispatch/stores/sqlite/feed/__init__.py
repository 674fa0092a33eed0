"""The event feed and event webhooks in the embedded store."""
