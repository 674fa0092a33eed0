"""MQTT clients of other people, as their ordinary users have them, against a node: what they expect is what it must do."""
