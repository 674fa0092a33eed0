"""What the API manages in the embedded store and fan-out only reads."""
