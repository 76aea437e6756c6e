"""The division that classification papers share: an official test set, and a tenth of the training set to choose on."""

from __future__ import annotations

import torch

from confide.data.split import Part, Split
from confide.data.splitting import held_out, shuffled


def official(
    train: Part, test: Part, classes: tuple[str, ...], seed: int = 1, val: float = 0.1, resplit: bool = False
) -> Split:
    """Hold `val` of the training rows out. With `resplit`, draw the test rows anew from all rows, as label relaxation.

    With seed 1 these are the very rows that the released code of MbLS holds out of CIFAR-10.
    """
    source = "official test set"
    if resplit:
        everything = Part(torch.cat((train.inputs, test.inputs)), torch.cat((train.targets, test.targets)))
        order = shuffled(len(everything), seed)
        train, test = everything.take(order[len(test) :]), everything.take(order[: len(test)])
        source = f"test set drawn from all rows with seed {seed}"
    stay, held = held_out(len(train), val, seed)
    how = f"{source}; {val:g} of the other rows, shuffled with seed {seed}, held out for validation"
    return Split(train.take(stay), train.take(held), test, classes, how)
