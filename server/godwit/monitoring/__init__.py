"""What operators can know of the node: its condition (health.py), its figures (figures.py), and their exposition (metrics.py)."""
