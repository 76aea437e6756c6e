"""How a loss acts on one right prediction that grows more and more sure: f, C and penalty along the logit distance.

f and C are those of the ACLS paper's Eq. 8, drawn as in its Fig. 1; the penalty as in the figure of the MbLS poster.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from confide.core.errors import InputError, KnobError
from confide.core.lens import smoothing
from confide.core.simplex import cross_entropy, softmax
from confide.losses.loss import Loss

CLASSES = 10  # of the logits behind the curves
FARTHEST = 20.0  # their largest distance
POINTS = 401
LEVEL = 1e-12  # a gradient smaller than this is rounding
SATURATED = 1e-3  # nearer to 1 than this, a probability may leave no gradient larger than that
RIGHT, WRONG = 36, 9  # rows of the batch for methods that measure one: 80% are right, one is wrong in each other class


class Side(NamedTuple):
    """f and C of one class along the curve."""

    f: tuple[float, ...]
    acts: tuple[bool, ...]


@dataclass(frozen=True)
class Scene:
    """Where the prediction stands. Its logit is the distance, the others are 0; class 0 is predicted and right."""

    words: str  # what is around it; nothing for a method that looks at a row alone
    first: str  # what may set the second class apart from the other wrong ones
    batch: Callable[[Tensor], tuple[Tensor, Tensor]]  # logits and labels, from one distance or many
    probe: tuple[slice | int, ...]  # where the predictions are among the rows


@dataclass(frozen=True)
class Curve:
    """How a loss softens a right prediction whose logit lies `distance` above all others, which are equal and 0."""

    distance: tuple[float, ...]
    predicted: Side
    first: Side  # of the other classes the first, which a scene may set apart
    other: Side
    penalty: tuple[float, ...]  # loss minus cross-entropy
    rest: float | None  # distance up to which the true logit is pulled up; None if that is past the last one
    confidence: float  # there, or at the last distance
    scene: Scene

    def at(self, distance: float) -> int:
        """The number of the point nearest to a distance."""
        return min(range(len(self.distance)), key=lambda i: abs(self.distance[i] - distance))


def curve(criterion: Loss, farthest: float = FARTHEST, points: int = POINTS) -> Curve:
    """Read everything off the loss itself, by its own `shift` and `loss`."""
    criterion = copy.deepcopy(criterion)  # what it remembers of its training stays as it is
    criterion.validate = "off"  # a distance of 1 and nothing else looks like a probability
    distance, scene = torch.linspace(0, farthest, points, dtype=torch.float64), scene_of(criterion)
    z, shift, penalty = _seen(criterion, scene, distance)
    f, acts = smoothing(shift, z)
    predicted, first, other = (Side(tuple(f[:, k].tolist()), tuple((acts[:, k] != 0).tolist())) for k in (0, 1, -1))
    rest = _rest(criterion, scene, distance, z, shift)
    end = _logits(torch.tensor([farthest if rest is None else rest], dtype=torch.float64))
    return Curve(tuple(distance.tolist()), predicted, first, other, tuple(penalty.tolist()), rest, _sure(end), scene)


def curve_of(method: type[Loss]) -> Curve | str:
    """The curve of a method with its default knobs, or why it has none: it asks for more than logits and labels."""
    try:
        return curve(method.example())
    except (InputError, KnobError) as error:
        return str(error)


def confidence(distance: float) -> float:
    """Of a prediction whose logit lies so far above all others."""
    return _sure(_logits(torch.tensor([distance], dtype=torch.float64)))


def scene_of(criterion: Loss) -> Scene:
    """A fair one for what the method looks at."""
    if criterion.traits.spatial:
        return BORDER
    if not criterion.coupled:
        return ALONE
    ranked = "index" in criterion.example_side((1,))
    return RANKED if ranked else CROWD


def _alone(distance: Tensor) -> tuple[Tensor, Tensor]:
    return _logits(distance), torch.zeros(len(distance), dtype=torch.int64)


def _crowd(distance: Tensor) -> tuple[Tensor, Tensor]:
    wrong = 1 + torch.arange(WRONG) % (CLASSES - 1)
    return _logits(distance.expand(RIGHT + WRONG)), torch.cat((torch.zeros(RIGHT, dtype=torch.int64), wrong))


def _border(distance: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.zeros(len(distance), 3, 3, dtype=torch.int64)
    y[..., 2] = 1
    return _logits(distance)[..., None, None].expand(-1, -1, 3, 3).contiguous(), y


def _logits(distance: Tensor) -> Tensor:
    z = torch.zeros(len(distance), CLASSES, dtype=torch.float64)
    z[:, 0] = distance
    return z


_BATCH = (
    f"Each point stands for a batch, since all of it counts: {RIGHT + WRONG} rows with these same logits, {RIGHT} "
    f"right and {WRONG} wrong, one for each other class (accuracy {RIGHT / (RIGHT + WRONG):.0%}); f is that of a "
    "right row"
)
ALONE = Scene("", "The lowest logit (the first of equals)", _alone, (slice(None),))
CROWD = Scene(f"{_BATCH}.", "The first of the other classes", _crowd, (slice(1),))
RANKED = Scene(
    f"{_BATCH}, which so far was right less often than the rows it is compared with.", CROWD.first, _crowd, CROWD.probe
)
BORDER = Scene(
    "Each point stands for a pixel at a border, since its neighbours count: of these 8, 3 belong to one other class, "
    "and all have these same logits.",
    "The class of those neighbours",
    _border,
    (slice(None), 1, 1),
)


def _seen(criterion: Loss, scene: Scene, distance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Logits and shift (D, C) and penalty (D,) of the prediction at each distance."""
    parts = [
        _seen_at_once(criterion, scene, part) for part in (distance.split(1) if criterion.coupled else (distance,))
    ]
    z, shift, penalty = (torch.cat(each) for each in zip(*parts, strict=True))
    return z, shift, penalty


@torch.no_grad()
def _seen_at_once(criterion: Loss, scene: Scene, distance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    z, y = scene.batch(distance)
    rows, kept, context = criterion.prepare(z, y, **criterion.example_side(tuple(y.shape)))
    penalty = criterion.loss(kept.z, kept.y, *context) - cross_entropy(kept.z, kept.y)
    shift = rows.restore(criterion.shift(kept.z, kept.y, *context))
    whole = (scene.probe[0], slice(None), *scene.probe[1:])  # with the classes on axis 1
    return z[whole], shift[whole], penalty.reshape(rows.shape)[scene.probe]


def _rest(criterion: Loss, scene: Scene, distance: Tensor, z: Tensor, shift: Tensor) -> float | None:
    """Where the loss stops pulling the true logit up; None where the pull only fades, as the logits saturate."""
    gradient = _gradient(z, shift)
    stopped = gradient >= -LEVEL
    first = int(stopped.to(torch.int64).argmax())
    turned = bool((gradient[first:] > LEVEL).any())
    if not stopped.any() or not (turned or 1 - softmax(z)[first, 0] > SATURATED):
        return None
    low, high = distance[max(first - 1, 0)], distance[first]
    for _ in range(30):
        middle = (low + high) / 2
        pulled = bool(_gradient(*_seen(criterion, scene, middle[None])[:2]) < -LEVEL)
        low, high = (middle, high) if pulled else (low, middle)
    return high.item()


def _gradient(z: Tensor, shift: Tensor) -> Tensor:
    """On the true logit: its probability minus the label trained toward, 1 + shift."""
    return softmax(z)[:, 0] - 1 - shift[:, 0]


def _sure(z: Tensor) -> float:
    return softmax(z)[0, 0].item()
