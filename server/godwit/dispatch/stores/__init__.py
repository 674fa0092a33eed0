"""Where dispatch keeps its state: the ports (ports.py), and one folder for each store."""
