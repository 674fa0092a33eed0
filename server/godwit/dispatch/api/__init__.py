"""The HTTP API of dispatch: what applications and receivers call."""
