"""The inbox channel: the store keeps items, and the node delivers them to connected clients."""
