"""The inbox channel: items wait in the store and reach connected clients over the node."""
