"""The channels, which send deliveries: one folder for each."""
