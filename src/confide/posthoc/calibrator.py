"""The contract of a post-hoc calibrator, and all that is common to them: the only file a contributor must read.

A calibrator is a dataclass of settings with a card and two verbs on rows of logits z (K, C) and labels y (K,):

    learn(z, y)       what the data say, as tensors
    map(z, values)    those tensors applied: new logits, or the logarithm of scores that need only be normalised

Layout, tasks, ignored rows, checks, memory, before and after, saving and deploying are done here, once for all.
"""

from __future__ import annotations

import datetime
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from confide.core.errors import CalibrationWarning, InputError, NotFitted
from confide.posthoc import artefact, deploy, layout, settings, state, streaming
from confide.posthoc.card import Card as Card
from confide.posthoc.guard import blend, nll, share_of
from confide.posthoc.layout import BINARY, MULTICLASS, MULTILABEL, Batch
from confide.posthoc.settings import setting as setting

if TYPE_CHECKING:
    from typing_extensions import Self

Values = dict[str, Tensor]


class Learnt(NamedTuple):
    """What `learn` found."""

    values: Values
    converged: bool = True
    note: str = ""  # what stood in the way; becomes a warning
    nll: tuple[float, float] | None = None  # before and after, where the method has them at no cost


@dataclass(eq=False, kw_only=True)
class Calibrator(ABC):
    """A post-hoc map on logits, in the manners of scikit-learn: `fit` returns self, learnt things end in `_`.

    Logits are (N,) or (N, 1) with labels 0 and 1; (N, C) or (N, C, d1, ..., dk) with class numbers (N, d1, ..., dk);
    or (N, L) with as many labels of 0 and 1. Tensors or arrays, and the same kind comes back.
    """

    card: ClassVar[Card]

    ignore_index: int = setting(-100, doc="label of rows to leave out")
    dim: int = setting(1, doc="class axis")
    from_probs: bool = setting(False, choices=(False, True), doc="the input holds probabilities")

    converged_: bool = field(init=False, repr=False)
    nll_before_: float = field(init=False, repr=False)
    nll_after_: float = field(init=False, repr=False)
    task_: str = field(init=False, repr=False)
    classes_: int = field(init=False, repr=False)
    n_: int = field(init=False, repr=False)
    data_hash_: str = field(init=False, repr=False)
    date_: str = field(init=False, repr=False)
    parts_: list[Values] = field(init=False, repr=False)  # one, or one a label

    @abstractmethod
    def learn(self, z: Tensor, y: Tensor) -> Learnt:
        """What rows of logits (K, C) and labels (K,) say. With a spatial card: (N, C, H, W), (N, H, W), -1 unknown."""

    @abstractmethod
    def map(self, z: Tensor, values: Values) -> Tensor:
        """New logits shaped like z, in its dtype."""

    def guarded(self) -> bool:
        """Whether a worse NLL on the data of the fit is mended; not where the user asked for something else."""
        return getattr(self, "objective", "nll") == "nll"

    def fit(self, logits: Any, target: Any) -> Self:
        """Learn from held-out logits and labels, never from those that the network was trained on."""
        settings.check(self)
        with torch.inference_mode(False), torch.no_grad():
            self._fit(layout.read(logits, target, self))
        return self

    def fit_loader(
        self,
        model: nn.Module,
        loader: Iterable[Any],
        *,
        memory: int = 1 << 30,
        seed: int = 0,
        forward: Callable[[nn.Module, Any], tuple[Tensor, Tensor]] | None = None,
    ) -> Self:
        """Learn from a model's outputs on a loader of (input, target), in eval mode and leaving the model as it was.

        Of more logits than `memory` bytes a random sample of rows is kept. `forward(model, batch)` gives (logits,
        target) where a batch is not such a pair.
        """
        settings.check(self)
        with torch.inference_mode(False), torch.no_grad():
            self._fit(streaming.gather(self, model, loader, memory, seed, forward))
        return self

    def transform(self, logits: Any) -> Any:
        """Calibrated log-probabilities (logits, where the map is affine or there is one output a label)."""
        return self._apply(logits, probabilities=False)

    def predict_proba(self, logits: Any) -> Any:
        """Calibrated probabilities, shaped like the logits."""
        return self._apply(logits, probabilities=True)

    def fit_transform(self, logits: Any, target: Any) -> Any:
        return self.fit(logits, target).transform(logits)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """The settings; `deep` is scikit-learn's and changes nothing."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def set_params(self, **params: Any) -> Self:
        if unknown := sorted(params.keys() - self.get_params().keys()):
            raise InputError(
                f"{type(self).__name__} has no {', '.join(unknown)}; it takes {', '.join(self.get_params())}"
            )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def save(self, path: str | Path) -> None:
        """One safetensors file that holds all there is to know about this fit."""
        artefact.save(self, Path(path))

    def to_module(self) -> nn.Module:
        """The map alone, as a module on logits, for deployment."""
        return deploy.Calibrated(self)

    def fold_into(self, layer: nn.Module) -> nn.Module:
        """A copy of a last linear or convolutional layer that gives calibrated logits by itself."""
        return deploy.folded(self, layer)

    def __sklearn_is_fitted__(self) -> bool:
        return "parts_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))

    def require_fitted(self) -> None:
        """Raise NotFitted before `fit`."""
        if not self.__sklearn_is_fitted__():
            raise NotFitted(f"this {type(self).__name__} is not fitted yet: call fit(logits, target) first")

    def _fit(self, batch: Batch) -> None:
        parts = self._parts(batch)
        found = [self._learn_part(*part) for part in parts]
        weight = [len(y) if y.dim() == 1 else int((y != layout.SKIP).sum()) for _, y in parts]
        state.forget(self)
        self.task_, self.classes_, self.n_ = batch.task, batch.z.shape[1], sum(weight)
        self.data_hash_ = state.digest(batch)
        self.date_ = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        self.parts_ = [values for values, _, _ in found]
        self.converged_ = all(converged for _, _, converged in found)
        self.nll_before_, self.nll_after_ = (
            math.fsum(n * pair[i] for n, (_, pair, _) in zip(weight, found, strict=True)) / sum(weight) for i in (0, 1)
        )
        state.expose(self)

    def _parts(self, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        """Multi-label data are one binary problem a label, or one in all where a single map serves them."""
        z, y = batch.z, batch.y
        parts = [(z, y)]
        if batch.task == MULTILABEL:
            pooled = [(z.reshape(-1), y.reshape(-1))]
            columns = pooled if self.card.pooled else list(zip(z.unbind(1), y.unbind(1), strict=True))
            parts = [(layout.two(s[known]), t[known]) for s, t in columns for known in [t != layout.SKIP]]
        fewest = min(int((y != layout.SKIP).sum()) for _, y in parts)
        if fewest < 2:
            raise InputError(f"{fewest} labelled rows: a calibrator needs two or more" + " a label" * (len(parts) > 1))
        return parts

    def _learn_part(self, z: Tensor, y: Tensor) -> tuple[Values, tuple[float, float], bool]:
        learnt = self.learn(z, y)
        values = {name: value.detach().cpu() for name, value in learnt.values.items()}
        before, after = learnt.nll or (nll(z, y), nll(self.log_probs(z, values), y))
        if not after <= before:
            share = share_of(self.log_probs(z, values), z, y) if self.guarded() else torch.ones(())
            self._warn(
                f"{type(self).__name__} alone would raise the NLL of its own data from {before:.6g} to {after:.6g}; "
                + (f"it is mixed in with weight {float(share):.3g}" if self.guarded() else "as asked for, it is kept")
            )
            if self.guarded():
                values["share"] = share
                after = nll(self.log_probs(z, values), y)
        if learnt.note:
            self._warn(f"{type(self).__name__}: {learnt.note}")
        return values, (before, after), learnt.converged

    def log_probs(self, z: Tensor, values: Values) -> Tensor:
        """Normalised, in float64, mixed with the uncalibrated ones where that was needed."""
        return self._in_pieces(z, values, lambda part, own: blend(self.map(part, own), part, own.get("share")))

    def logits(self, z: Tensor, values: Values) -> Tensor:
        """The map itself, in float64."""
        return self._in_pieces(z, values, self.map)

    def _in_pieces(self, z: Tensor, values: Values, run: Callable[[Tensor, Values], Tensor]) -> Tensor:
        values = {name: value.to(z.device) for name, value in values.items()}
        parts = [run(part.double(), values) for part in ((z,) if self.card.spatial else layout.pieces(z))]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _apply(self, logits: Any, probabilities: bool) -> Any:
        self.require_fitted()
        view = layout.view(logits, self)
        affine = self.card.affine and not probabilities and all("share" not in part for part in self.parts_)
        run = self.logits if affine else self.log_probs
        if self.task_ == MULTICLASS:
            out = run(view.z, self.parts_[0])
            return view.back(out.softmax(1) if probabilities else out)
        columns = [view.z] if self.task_ == BINARY else list(view.z.unbind(1))
        parts = self.parts_ * len(columns) if self.card.pooled else self.parts_
        pairs = [run(layout.two(s), values) for s, values in zip(columns, parts, strict=True)]
        s = torch.stack([pair[:, 1] - pair[:, 0] for pair in pairs], 1)
        return view.back(s.sigmoid() if probabilities else s)

    def _warn(self, text: str) -> None:
        warnings.warn(text, CalibrationWarning, stacklevel=6)
