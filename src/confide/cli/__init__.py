"""The `confide` command: arguments in, one call, text out."""
