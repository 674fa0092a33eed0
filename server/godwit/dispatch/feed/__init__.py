"""What became of notifications, on its way out: the event feed, event webhooks, and live counts on the node."""
