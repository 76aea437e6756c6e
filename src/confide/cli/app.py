"""The commands and their options. What they need is imported inside them, so that --help answers at once."""

from pathlib import Path
from typing import Annotated

import typer

from confide.cli import check_app, data_app
from confide.cli.calibrate_app import app as calibrate_app

EXAMPLES = """\
[bold]Examples[/bold]

[green]confide methods[/green]               what there is

[green]confide show acls[/green]             one method: formula, knobs, plots

[green]confide check preds.npz[/green]       how far its confidence can be believed

[green]confide doctor preds.npz[/green]      the traps in a file of predictions

[green]confide suggest logits.npz[/green]    a margin for your data, from saved logits

[green]confide calibrate compare val.npz test.npz[/green]    correct a trained network's confidence

[green]confide data cifar10 --root .[/green]  what is in a data set on your disk

[green]confide demo[/green]                  train and compare five methods, in two minutes
"""
DEMO_EXAMPLES = """\
[bold]Examples[/bold]

[green]confide demo[/green]

[green]confide demo --seeds 1 --epochs 10 --output quick.svg[/green]
"""
SHOW_EXAMPLES = """\
[bold]Examples[/bold]

[green]confide show mbls[/green]

[green]confide show mbls --save mbls.png[/green]

[green]confide show --compare mbls acls mdca --save three.svg[/green]
"""
SUGGEST = (
    "Propose margin and strength for MbLS and ACLS from the logits of a trained network.\n\n"
    "With labels: were every logit distance cut at a margin, these predictions would, at one margin, be as confident "
    "on average as they are right. The proposal lies half way from there to the papers' margin (6; 10 for 20 classes "
    "or more and for segmentation), if that is larger. Without labels it is the papers', unless hardly a distance "
    "exceeds it.\n\n"
    "It tells how many distances it would act on. What it does to accuracy, only training can tell."
)
SUGGEST_EXAMPLES = """\
[bold]Examples[/bold]

[green]confide suggest logits.npz[/green]

[green]confide suggest segmentation.npz --ignore-index 255[/green]
"""
DOCTOR = (
    "Look for the traps in a file of predictions, before you believe a number that comes from it.\n\n"
    "Probabilities handed on as logits, NaN, labels out of range or of other rows, copies that a sampler left, "
    "confidences rounded to 1, ties of half precision, classes that never occur. Each finding says what it does to the "
    "numbers and what to do.\n\n"
    "Reads .npz, .npy, .pt, .safetensors, .csv, .jsonl, .parquet, and folders with a file a case (labels also in "
    "NIfTI), a part at a time. Exit code: 0 fine, 1 numbers would be wrong, 2 bad input."
)
DOCTOR_EXAMPLES = """\
[bold]Examples[/bold]

[green]confide doctor preds.npz[/green]

[green]confide doctor segmentation.npz --ignore-index 255[/green]

[green]confide doctor predictions/ --labels-from labelsTr/ --json[/green]
"""
EXPLAIN_EXAMPLES = """\
[bold]Examples[/bold]

[green]confide explain ece[/green]

[green]confide explain ignore_index[/green]
"""
# Shown in the help only, which must not import the study to ask; a test compares.
SEEDS, EPOCHS = 3, 40

app = typer.Typer(
    add_completion=False, no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False, epilog=EXAMPLES
)
app.add_typer(calibrate_app, name="calibrate")


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


@app.command(epilog=SHOW_EXAMPLES)
def show(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="A method, as 'confide methods' lists it; any case.")
    ],
    compare: Annotated[bool, typer.Option("--compare", help="Several methods on the same logits.")] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the curves, too: a .png or .svg file.")
    ] = None,
) -> None:
    """Explain one method: formula, knobs, where its sources disagree, and a plot of how it softens labels."""
    from confide.cli import card, methods
    from confide.cli import compare as page

    if compare or len(names) > 1:
        page.print_comparison(names, compare, save)
    else:
        card.print_card(methods.find(names[0]), save)


@app.command(help=SUGGEST, epilog=SUGGEST_EXAMPLES)
def suggest(
    predictions: Annotated[
        Path,
        typer.Argument(
            metavar="LOGITS.NPZ",
            help="An array 'logits' with classes on axis 1 and, better still, 'labels': numpy.savez(path, logits=..., "
            "labels=...). Held-out data, not what the network was trained on.",
        ),
    ],
    ignore_index: Annotated[int, typer.Option(help="Label of samples to leave out.")] = -100,
    dim: Annotated[
        int | None, typer.Option(help="The class axis of the logits. \\[default: what the labels' shape tells]")
    ] = None,
) -> None:
    """Propose a margin; SUGGEST says how."""
    from confide.cli import suggest as page

    page.run(predictions, ignore_index, dim)


app.command(help=check_app.CHECK, epilog=check_app.CHECK_EXAMPLES)(check_app.check)
app.command(epilog=check_app.MERGE_EXAMPLES)(check_app.merge)


@app.command(help=DOCTOR, epilog=DOCTOR_EXAMPLES)
def doctor(
    predictions: Annotated[Path, typer.Argument(metavar="PREDS", help="A file of predictions, or a folder of them.")],
    inputs: check_app.Kind = None,
    ignore_index: check_app.Ignored = None,
    dim: check_app.Axis = None,
    scores: check_app.Scores = None,
    labels: check_app.Labels = None,
    labels_from: check_app.LabelsFrom = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Look for traps; DOCTOR says which."""
    from confide.cli import doctor as page

    page.run(
        predictions, ignore_index, json, inputs=inputs, dim=dim, scores=scores, labels=labels, labels_from=labels_from
    )


@app.command(epilog=EXPLAIN_EXAMPLES)
def explain(
    term: Annotated[str | None, typer.Argument(metavar="[TERM]", help="Such as ece; none lists all.")] = None,
) -> None:
    """Explain a word in plain words: what it is, how it misleads, what to do."""
    from confide.cli import explain as page

    if term is None:
        page.print_all()
    else:
        page.print_term(term)


app.command(help=data_app.DATA, epilog=data_app.DATA_EXAMPLES)(data_app.data)


@app.command(epilog=DEMO_EXAMPLES)
def demo(
    seeds: Annotated[int | None, typer.Option(min=1, help=f"How many seeds per method. \\[default: {SEEDS}]")] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help=f"How long each network is trained. \\[default: {EPOCHS}]")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the reliability diagrams go: a .png or .svg file.")
    ] = Path("confide-demo.png"),
) -> None:
    """Train small networks with several losses and compare how well their confidence fits."""
    from confide.cli import demo as page

    page.run(seeds, epochs, output)
