"""The HTTP API of dispatch, for applications and receivers."""
