"""The console of dispatch: its files, and the lists that only the console needs."""
