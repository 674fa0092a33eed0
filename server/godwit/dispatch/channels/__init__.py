"""The channels: how a delivery leaves, one folder for each."""
