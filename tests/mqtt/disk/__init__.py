"""QoS 2 with a journal, and a node that is killed."""
