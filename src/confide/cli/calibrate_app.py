"""The options of `confide calibrate`. What the commands need is imported inside them."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """\
[bold]Examples[/bold]

[green]confide calibrate compare val.npz test.npz[/green]                 which method, and does it help

[green]confide calibrate fit val.npz -o t.safetensors[/green]             learn, by default a temperature

[green]confide calibrate apply t.safetensors test.npz -o out.npz[/green]  use it
"""
COMPARE_EXAMPLES = """\
[bold]Examples[/bold]

[green]confide calibrate compare val.npz test.npz[/green]

[green]confide calibrate compare val.npz[/green]                           one file: 5 folds

[green]confide calibrate compare val.npz test.npz --output report.json[/green]
"""
FIT_EXAMPLES = """\
[bold]Examples[/bold]

[green]confide calibrate fit val.npz -o t.safetensors[/green]

[green]confide calibrate fit masks.npz -o t.safetensors --ignore-index 255 --method EnsembleTemperature[/green]
"""
APPLY_EXAMPLES = """\
[bold]Examples[/bold]

[green]confide calibrate apply t.safetensors test.npz -o out.npz[/green]
"""
WHAT = (
    "Saved logits (or probabilities) and labels: numpy.savez(path, logits=..., labels=...), or another of the formats "
    "that confide doctor reads. Held-out data, not what the network was trained on."
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    epilog=EXAMPLES,
    help="Correct a trained network's confidence, from its saved predictions.",
)
Ignore = Annotated[int, typer.Option(help="Label of samples to leave out.")]
Inputs = Annotated[
    str | None, typer.Option(metavar="logits|probs", help="What the scores are, if name and content leave it open.")
]
Axis = Annotated[int | None, typer.Option(help="The class axis, if the labels' shape leaves it open.")]


@app.command(epilog=FIT_EXAMPLES)
def fit(
    predictions: Annotated[Path, typer.Argument(metavar="VAL.NPZ", help=WHAT)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the calibrator goes: a .safetensors file.")],
    method: Annotated[str, typer.Option(help="A class of confide.posthoc, in any case.")] = "temperature",
    ignore_index: Ignore = -100,
    inputs: Inputs = None,
    dim: Axis = None,
) -> None:
    """Learn a calibrator and save it, with where it comes from."""
    from confide.cli import calibrate as page

    page.fit(predictions, output, method, ignore_index, inputs, dim)


@app.command(epilog=APPLY_EXAMPLES)
def apply(
    calibrator: Annotated[Path, typer.Argument(metavar="T.SAFETENSORS", help="What 'confide calibrate fit' wrote.")],
    predictions: Annotated[Path, typer.Argument(metavar="TEST.NPZ", help="Saved logits; labels, if there are any.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where logits, probs (classes on axis 1) and labels go: a .npz file.")
    ],
    allow_same_data: Annotated[
        bool, typer.Option("--allow-same-data", help="Judge on the data of the fit without a warning.")
    ] = False,
    inputs: Inputs = None,
    dim: Axis = None,
) -> None:
    """Calibrate saved predictions; with labels, say what it changed."""
    from confide.cli import calibrate as page

    page.apply(calibrator, predictions, output, allow_same_data, inputs, dim)


@app.command(epilog=COMPARE_EXAMPLES)
def compare(
    fit_on: Annotated[Path, typer.Argument(metavar="VAL.NPZ", help=WHAT)],
    judge_on: Annotated[
        Path | None, typer.Argument(metavar="TEST.NPZ", help="Other data to judge on; without it, 5 folds.")
    ] = None,
    method: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The numbers as .json, too.")] = None,
    ignore_index: Ignore = -100,
    inputs: Inputs = None,
    dim: Axis = None,
    allow_same_data: Annotated[
        bool, typer.Option("--allow-same-data", help="Fit and judge on the same data without a warning.")
    ] = False,
) -> None:
    """Try every method that suits, and recommend one."""
    from confide.cli import calibrate as page

    page.compare(fit_on, judge_on, method or [], output, ignore_index, inputs, dim, allow_same_data)
