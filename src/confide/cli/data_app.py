"""The options of `confide data`. What the command needs is imported inside it."""

from pathlib import Path
from typing import Annotated

import typer

DATA = (
    "Say what is in a data set: how it is divided, how often each class occurs, what its pictures look like.\n\n"
    "Reads the papers' data sets in the layouts in which they are handed out, and your own: images in folders, images "
    "with masks, arrays in .npz. Nothing is fetched unless you say --download. Without a name it lists all."
)
DATA_EXAMPLES = """\
[bold]Examples[/bold]

[green]confide data[/green]

[green]confide data cifar10 --root ~/data[/green]

[green]confide data fashion-mnist --root ~/data --download[/green]
"""


def data(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A data set; none lists all.")] = None,
    root: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder or file where it is.")] = None,
    sheet: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where the contact sheet goes: a .png or .svg file. \\[default: confide-NAME.png]"
        ),
    ] = None,
    draw: Annotated[bool, typer.Option("--draw/--no-draw", help="Draw a contact sheet of images.")] = True,
    download: Annotated[bool, typer.Option("--download", help="Fetch it into DIR first, checked by sum.")] = False,
) -> None:
    """Say what is in a data set; DATA says how."""
    from confide.cli import data as page

    if name is None:
        page.print_all()
    else:
        page.run(name, root, sheet, draw, download)
