"""The state of dispatch: the ports (ports.py), and one folder for each store."""
