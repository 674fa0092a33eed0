"""`python -m godwit_pipelines` is the command `godwit-pipelines`."""

from .cli import main

main()
