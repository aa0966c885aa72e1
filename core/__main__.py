"""`python -m core` is `winnow`."""

from core.cli import main

main(prog_name="winnow")
