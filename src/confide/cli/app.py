"""The commands and their options. What they need is imported inside them, so that --help answers at once."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """\
[bold]Examples[/bold]

[green]confide methods[/green]      what there is

[green]confide show acls[/green]    one method: formula, knobs, and a plot of what it does

[green]confide demo[/green]         train and compare five methods on a small image set that ships with confide
"""
DEMO_EXAMPLES = """\
[bold]Examples[/bold]

[green]confide demo[/green]

[green]confide demo --seeds 1 --epochs 10 --output quick.svg[/green]
"""
# Shown in the help only, which must not import the study to ask; a test compares.
SEEDS, EPOCHS = 3, 40

app = typer.Typer(
    add_completion=False, no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False, epilog=EXAMPLES
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from confide.cli.console import version

        typer.echo(f"confide {version()}")
        raise typer.Exit


@app.callback()
def confide(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Make a network's confidence trustworthy: losses, and the numbers that tell whether they helped."""


@app.command()
def methods() -> None:
    """List all training losses with their knobs and defaults."""
    from confide.cli import methods as page

    page.print_all()


@app.command(epilog="[bold]Example[/bold]\n\n[green]confide show mbls[/green]")
def show(
    name: Annotated[str, typer.Argument(help="Name of a method, as 'confide methods' lists it; any case.")],
) -> None:
    """Explain one method: formula, knobs, where its sources disagree, and a plot of how it softens labels."""
    from confide.cli import card, methods

    card.print_card(methods.find(name))


@app.command(epilog=DEMO_EXAMPLES)
def demo(
    seeds: Annotated[int | None, typer.Option(min=1, help=f"How many seeds per method. \\[default: {SEEDS}]")] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help=f"How long each network is trained. \\[default: {EPOCHS}]")
    ] = None,
    output: Annotated[Path, typer.Option(help="Where the reliability diagrams go: a .png or .svg file.")] = Path(
        "confide-demo.png"
    ),
) -> None:
    """Train small networks with several losses and compare how well their confidence fits."""
    from confide.cli import demo as page

    page.run(seeds, epochs, output)
