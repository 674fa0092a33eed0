"""What the web pages of the admin and dispatch listeners share."""
