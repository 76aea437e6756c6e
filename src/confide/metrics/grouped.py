"""Grouped: any metric, by the values of one or several columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from confide.metrics.metric import Metric
from confide.metrics.units import Units

if TYPE_CHECKING:
    from typing_extensions import Self

Value = tuple[int | str, ...]


class Grouped:
    """One copy of a metric for every value of a column, or for every combination of values of several.

    grouped = Grouped(ECE())
    grouped.update(logits, target, groups={"site": sites, "sex": sexes})
    grouped.table()

    Groups of fewer than `few` rows are shown, as too few to judge. With many groups some look bad by chance: of twenty
    calibrated ones about one interval misses its truth.
    """

    def __init__(self, metric: Metric[Any], *, few: int = 100) -> None:
        self.metric, self.few = metric.copy(empty=True), few
        self.columns: tuple[str, ...] = ()
        self.parts: dict[Value, Metric[Any]] = {}

    def update(self, input: Tensor, target: Tensor, *, groups: Mapping[str, Any], **side: Any) -> None:
        """Add a batch; `groups` holds columns of one whole number or string a sample, `side` what the metric takes."""
        if self.columns not in ((), tuple(groups)):
            raise ValueError(f"groups must have the columns {', '.join(self.columns)}, got {', '.join(groups)}")
        columns = [Units.of(values) for values in groups.values()]
        keys = list(zip(*([column.names[i] for i in column.codes.tolist()] for column in columns), strict=True))
        fresh = {
            key: self.parts[key].copy() if key in self.parts else self.metric.copy() for key in dict.fromkeys(keys)
        }
        numbers = Units.of([list(fresh).index(key) for key in keys])
        valid = side.pop("valid", None)
        for place, metric in enumerate(fresh.values()):
            inside = numbers.codes == place
            keep = inside if valid is None else valid.cpu() & inside.reshape(-1, *[1] * (valid.dim() - 1))
            metric.update(input, target, valid=keep, **side)
        self.columns, self.parts = tuple(groups), self.parts | fresh

    def table(self) -> list[dict[str, Any]]:
        """One line a group, in the order of their names, with its estimate."""
        lines = []
        for key in sorted(self.parts, key=repr):
            found = self.parts[key].estimate()
            few = found.n < self.few
            line = {**dict(zip(self.columns, key, strict=True)), **found.as_dict(), "too_few": few}
            lines.append(line | ({"verdict": f"Too few to judge: {found.n} of {self.few} rows."} if few else {}))
        return lines

    def merge(self, other: Self) -> Self:
        """Take in what another worker has gathered, and return self."""
        for key, part in other.parts.items():
            self.parts[key] = self.parts[key].merge(part) if key in self.parts else part.copy()
        self.columns = self.columns or other.columns
        return self
