"""The entry point of `confide`. It only turns errors that have an answer into a sentence and exit code 2."""

import sys

from confide.core.errors import InputError, KnobError, MissingExtra

OPTIONS = {"ignore_index=": "--ignore-index ", "region=": "--region "}  # how Python and the command line call the same


def main() -> None:
    """Run the command line; exit code 0 is success, 2 bad input."""
    try:
        _load_and_run()
    except (MissingExtra, InputError, KnobError) as error:
        said = str(error)
        for keyword, option in OPTIONS.items():
            said = said.replace(keyword, option)
        print(f"confide: {said}", file=sys.stderr)
        sys.exit(2)


def _load_and_run() -> None:
    try:
        from confide.cli.app import app

        app(prog_name="confide")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("typer", "rich"):
            raise MissingExtra(package, "cli") from error
        raise
