"""Prior shift: undo class weights or re-sampling by a bias on each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from confide.core.errors import KnobError
from confide.posthoc import multinomial
from confide.posthoc.calibrator import Calibrator, Card, Learnt, Values


@dataclass(eq=False, kw_only=True)
class PriorShift(Calibrator):
    """z + log(target prior / train prior)."""

    train_prior: Sequence[float] | float | None = field(
        default=None, metadata={"doc": "class frequencies as seen in training, weights included; one number if binary"}
    )
    target_prior: Sequence[float] | float | None = field(
        default=None, metadata={"doc": "class frequencies in use; by default those of the labels"}
    )
    card = Card(
        title="Prior shift",
        cite="Saerens, Latinne and Decaestecker, Neural Computation 2002",
        formula="z + log(target prior / train prior)",
        when="trained with class weights, on re-sampled data, or to be used where classes are more or less frequent",
        differs=(
            "Exact where only the class frequencies changed. Without `train_prior` the bias is that of the highest "
            "likelihood. For class weights w the train prior is proportional to w times the frequencies."
        ),
        affine=True,
        exempt={"recovers_a_planted_map": "it moves classes against each other and cannot undo a temperature"},
    )

    bias_: Tensor = field(init=False, repr=False)

    def guarded(self) -> bool:
        return self.train_prior is None and self.target_prior is None

    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        classes = z.shape[1]
        known = self._prior("target_prior", classes)
        counts = torch.bincount(y, minlength=classes).double().cpu()
        target = known if known is not None else (counts + 0.5) / (counts + 0.5).sum()
        train = self._prior("train_prior", classes)
        if train is not None:
            return Learnt({"bias": (target / train).log()})
        ridge = torch.full((classes, 1), 1 / len(z), dtype=torch.float64, device=z.device) * 1e-2
        d, converged = multinomial.fit(z[:, :0].double(), y, z.double(), ridge)
        bias = d[:, 0].cpu() if known is None else d[:, 0].cpu() + (known / (counts + 0.5) * (counts + 0.5).sum()).log()
        return Learnt({"bias": bias - bias.mean()}, converged)

    def map(self, z: Tensor, values: Values) -> Tensor:
        return z + values["bias"].to(z.dtype)

    def _prior(self, name: str, classes: int) -> Tensor | None:
        given = getattr(self, name)
        if given is None:
            return None
        prior = torch.as_tensor(given, dtype=torch.float64).reshape(-1)
        prior = torch.cat((1 - prior, prior)) if len(prior) == 1 and classes == 2 else prior
        if len(prior) != classes or not bool((prior > 0).all()):
            raise KnobError(f"{name} must be {classes} positive numbers, one a class, got {given!r}")
        return prior / prior.sum()
