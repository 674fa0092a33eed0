"""`python -m godwit` is `godwit`."""

from .cli import main

main()
