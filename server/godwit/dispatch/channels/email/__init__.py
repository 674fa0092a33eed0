"""The e-mail channel: one message for each receiver, sent to a relay over SMTP."""
