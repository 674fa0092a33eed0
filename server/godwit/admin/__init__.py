"""The admin port (app.py): health, metrics, statistics and the page, for operators and their monitoring."""
