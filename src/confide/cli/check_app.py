"""The options of `confide check` and `confide merge`. What the commands need is imported inside them."""

from pathlib import Path
from typing import Annotated

import typer

CHECK = (
    "Say how far the confidence in a file of predictions can be believed: one verdict in words, the numbers behind it "
    "with their intervals, and what to do.\n\n"
    "No option is needed: it prints what it takes the arrays for and why, and refuses where that is open. Reads .npz, "
    ".npy, .pt, .safetensors, .csv, .jsonl, .parquet, and folders with a file a case (labels also in NIfTI), a part at "
    "a time; nothing is unpickled. Statistics saved with --save are read as well. Several inputs are compared with the "
    "first, paired where they hold the same items.\n\n"
    "Exit code: 0 fine, 1 the condition of --fail-if holds, 2 bad input."
)
CHECK_EXAMPLES = """\
[bold]Examples[/bold]

[green]confide check preds.npz[/green]

[green]confide check preds.npz --group site --report report.html[/green]

[green]confide check before.npz after.npz[/green]

[green]confide check masks/ --ignore-index 255 --region boundary:3 --report report.html --images pictures/[/green]

[green]confide check preds.npz --fail-if "ece_low > 3% or accuracy < 90%"[/green]
"""
MERGE_EXAMPLES = """\
[bold]Examples[/bold]

[green]confide check shard1.npz --save shard1.stats.npz[/green]

[green]confide merge *.stats.npz -o all.stats.npz[/green]

[green]confide check all.stats.npz --report report.html[/green]
"""


Inputs = Annotated[
    list[Path], typer.Argument(metavar="PREDS...", help="A file or folder of predictions, or saved statistics.")
]
Groups = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Also by the values of this column; may be repeated.")
]
Unit = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="What is independent, such as a patient: intervals are by its values. \\[default: rows; of pixels, "
        "images]",
    ),
]
Ignored = Annotated[int | None, typer.Option(help="Label of what to leave out.")]
Region = Annotated[str, typer.Option(help="Pixels to look at: all, foreground, boundary:3, class:2.")]
Kind = Annotated[
    str | None, typer.Option(metavar="logits|probs", help="What the scores are, if name and content leave it open.")
]
Axis = Annotated[int | None, typer.Option(help="The class axis, if the labels' shape leaves it open.")]
Scores = Annotated[str | None, typer.Option(metavar="NAME", help="The array of scores, if several could be.")]
Labels = Annotated[str | None, typer.Option(metavar="NAME", help="The array of labels.")]
LabelsFrom = Annotated[
    Path | None, typer.Option(metavar="PATH", help="A file or folder with the labels, if they are elsewhere.")
]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="All numbers as JSON; - prints them.")]
Report = Annotated[Path | None, typer.Option(metavar="FILE", help="One page that holds everything: .html.")]
Save = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The statistics, small files that confide merge adds up.")
]
Figures = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Every figure as .svg, .pdf and .png into this folder.")
]
Images = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Pictures for the report's maps, named like the cases.")
]
Cases = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Show maps of this case, not of the worst; repeatable.")
]
FailIf = Annotated[
    str | None, typer.Option(metavar="CONDITION", help="Exit code 1 if this holds, such as 'ece_low > 0.03'.")
]


def check(
    predictions: Inputs,
    group: Groups = None,
    unit: Unit = None,
    ignore_index: Ignored = None,
    region: Region = "all",
    inputs: Kind = None,
    dim: Axis = None,
    scores: Scores = None,
    labels: Labels = None,
    labels_from: LabelsFrom = None,
    json: Json = None,
    report: Report = None,
    save: Save = None,
    figures: Figures = None,
    images: Images = None,
    case: Cases = None,
    fail_if: FailIf = None,
) -> None:
    """Judge; CHECK says how."""
    from confide.cli import check as page
    from confide.report.check.gathering import Options

    options = Options(tuple(group or ()), unit, ignore_index, region, inputs, dim, scores, labels, labels_from)
    page.run(predictions, options, page.Outputs(json, report, save, figures, images, tuple(case or ()), fail_if))


def merge(
    statistics: Annotated[list[Path], typer.Argument(metavar="STATS...", help="Files of confide check --save.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the sum of them goes: .npz.")],
) -> None:
    """Add up saved statistics, exactly; a shard given twice is refused."""
    from confide.cli import check as page

    page.merge(statistics, output)
