"""TLS as Python speaks it: the admin and dispatch ports."""
