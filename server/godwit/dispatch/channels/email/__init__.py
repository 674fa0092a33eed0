"""The e-mail channel: a message for each receiver, handed to a relay over SMTP."""
