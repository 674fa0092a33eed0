"""The admin port (app.py): health, metrics, statistics, lists and the console, for operators and their monitoring."""
