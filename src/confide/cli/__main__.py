"""`python -m confide.cli` does what `confide` does."""

from confide.cli.main import main

main()
