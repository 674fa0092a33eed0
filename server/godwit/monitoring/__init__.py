"""What operators can know of the node: its condition (health.py), its metrics (metric_specs.py), and their exposition (metrics.py)."""
