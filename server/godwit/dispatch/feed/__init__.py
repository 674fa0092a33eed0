"""Reports of deliveries: the event feed, event webhooks, and live counts on the node."""
