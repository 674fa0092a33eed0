"""Third-party MQTT clients, in ordinary use, against a node."""
