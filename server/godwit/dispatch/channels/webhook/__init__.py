"""The webhook channel: an HTTP POST, signed as Standard Webhooks, whose body is a CloudEvent."""
