"""Tables: csv, jsonl and parquet, read in order, a batch of rows at a time; every column is an array."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np

from confide.core.errors import InputError, MissingExtra
from confide.data.files.array import Array, Arrays, Values, kind_of, native

Batch: TypeAlias = Mapping[str, Values]
Take: TypeAlias = Callable[[int], Batch]  # the columns of the next rows
FIRST = 256  # rows by which the type of a column is known
DELIMITERS = ",;\t|"


class Table:
    """A cursor over rows. The batch asked for last is kept, since its other columns are asked for next."""

    def __init__(self, path: Path, rows: int, begin: Callable[[], Take]) -> None:
        self.path, self.rows, self._begin = path, rows, begin
        self._take, self._at = begin(), 0
        self._span: tuple[int, int] | None = None
        self._batch: Batch = {}

    def arrays(self) -> Arrays:
        """Every column, with the type that its first rows show."""
        first = self.batch(0, min(FIRST, self.rows))
        return {name: self._column(name, values) for name, values in first.items()}

    def batch(self, start: int, stop: int) -> Batch:
        """All columns of these rows; going back begins anew."""
        if (start, stop) == self._span:
            return self._batch
        if start < self._at:
            self._take, self._at = self._begin(), 0
        if start > self._at:
            self._take(start - self._at)
        self._batch, self._at, self._span = self._take(stop - start), stop, (start, stop)
        short = next((name for name, values in self._batch.items() if len(values) != stop - start), None)
        if short is not None:
            raise InputError(f"{str(self.path)!r} ends before row {stop:,}, of {self.rows:,} that it seemed to have")
        return self._batch

    def _column(self, name: str, first: Values) -> Array:
        def cut(start: int, stop: int, axis: int) -> Values:
            part = self.batch(start, stop if not axis else self.rows)[name]
            return part if not axis else part[:, start:stop]

        return Array(self.path, name, (self.rows, *first.shape[1:]), kind_of(first.dtype), cut, in_order=True)


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return cast(IO[str], gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return path.open(encoding="utf-8-sig", newline="")


def read_csv(path: Path) -> Arrays:
    """A table with a line of names on top; the delimiter is the one of , ; tab | that this line has most of."""
    with _open(path) as file:
        head = file.readline()
        delimiter = max(DELIMITERS, key=head.count)
        names = [name.strip() for name in next(csv.reader([head], delimiter=delimiter), [])]
        rows, quoted = 0, '"' in head
        for line in file:
            rows, quoted = rows + bool(line.strip()), quoted or '"' in line
    if len(set(names)) < len(names) or not all(names):
        raise InputError(f"{str(path)!r} needs a first line that names every column, each name once; it has {names}")
    reader = partial(_csv_rows, path, delimiter)
    rows = sum(1 for _ in reader()) if quoted else rows  # a quoted field may hold a line break
    first = list(islice(reader(), FIRST))
    kinds = [_is_numeric([row[i] for row in first if i < len(row)]) for i in range(len(names))]
    return Table(path, rows, lambda: partial(_take_csv, path, names, kinds, reader(), [1])).arrays()


def _csv_rows(path: Path, delimiter: str) -> Iterator[list[str]]:
    with _open(path) as file:
        rows = csv.reader(file, delimiter=delimiter)
        next(rows, None)
        yield from (row for row in rows if row and (len(row) > 1 or row[0].strip()))


def _is_numeric(texts: Sequence[str]) -> bool:
    try:
        np.asarray([text or "nan" for text in texts], dtype=np.float64)
    except ValueError:
        return False
    return True


def _take_csv(
    path: Path, names: list[str], kinds: list[bool], reader: Iterator[list[str]], at: list[int], n: int
) -> Batch:
    rows = list(islice(reader, n))
    first, at[0] = at[0], at[0] + len(rows)
    for i, row in enumerate(rows):
        if len(row) != len(names):
            raise InputError(
                f"{str(path)!r}, row {first + i:,}: {len(row)} fields, where the first line names {len(names)}"
            )
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return {name: _typed(path, name, c, k) for name, c, k in zip(names, columns, kinds, strict=True)}


def _typed(path: Path, name: str, column: Sequence[str], numeric: bool) -> Values:
    if not numeric:
        return np.asarray(column, dtype=str)
    try:
        return np.asarray([text or "nan" for text in column], dtype=np.float64)
    except ValueError as error:
        raise InputError(f"{str(path)!r}, column {name!r}: {error}, though its first rows are numbers") from error


def read_jsonl(path: Path) -> Arrays:
    """One JSON object a line; a list of numbers is a row of scores."""
    with _open(path) as file:
        rows = sum(1 for line in file if line.strip())
    return Table(path, rows, lambda: partial(_take_json, path, _json_rows(path))).arrays()


def _json_rows(path: Path) -> Iterator[dict[str, Any]]:
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                item = json.loads(line)
                if not isinstance(item, dict):
                    raise InputError(f'{str(path)!r}, line {number:,}, is no JSON object such as {{"logits": [...]}}')
                yield item


def _take_json(path: Path, reader: Iterator[dict[str, Any]], n: int) -> Batch:
    rows = list(islice(reader, n))
    return {name: _json_column(path, name, [row.get(name) for row in rows]) for name in (rows[0] if rows else ())}


def _json_column(path: Path, name: str, items: list[Any]) -> Values:
    """Numbers, or lists of them that are equally long; all else is text."""
    sizes = {len(item) if isinstance(item, list) else None for item in items}
    if len(sizes) > 1:
        raise InputError(f"{str(path)!r}: {name!r} has rows of different length, {sorted(map(str, sizes))}")
    try:
        values = np.asarray(items)
    except ValueError:
        values = np.asarray([json.dumps(item) for item in items])
    if values.dtype == object and all(item is None or isinstance(item, (int, float)) for item in items):
        return values.astype(np.float64)  # null is a missing number
    return values if values.dtype.kind in "fiub" else values.astype(str)


def read_parquet(path: Path) -> Arrays:
    """Columns of numbers, of text, and of lists of numbers that are equally long."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtra("pyarrow", "parquet") from error
    with parquet.ParquetFile(path) as file:
        rows = file.metadata.num_rows
    return Table(path, rows, lambda: _Parquet(path, parquet.ParquetFile(path), pa).take).arrays()


class _Parquet:
    """Its batches end where row groups end; what was not asked for yet waits."""

    def __init__(self, path: Path, file: Any, pa: Any) -> None:
        self.path, self._pa = path, pa
        self._batches = file.iter_batches(batch_size=8192, use_threads=False)
        self._waiting = pa.Table.from_batches([], schema=file.schema_arrow)

    def take(self, n: int) -> Batch:
        parts, have = [self._waiting], len(self._waiting)
        while have < n and (batch := next(self._batches, None)) is not None:
            parts.append(self._pa.Table.from_batches([batch]))
            have += len(batch)
        table = self._pa.concat_tables(parts)
        self._waiting = table.slice(n)
        return {name: self._values(name, table.column(name).slice(0, n)) for name in table.column_names}

    def _values(self, name: str, column: Any) -> Values:
        kind, types = column.type, self._pa.types
        if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            flat = self._pa.chunked_array([chunk.flatten() for chunk in column.chunks], type=kind.value_type)
            widths = self._pa.compute.unique(self._pa.compute.list_value_length(column)).to_pylist()
            if len(widths) > 1 or None in widths:
                raise InputError(f"{str(self.path)!r}: {name!r} has lists of different length")
            return native(np.array(flat.to_numpy())).reshape(len(column), -1)
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
            return native(np.array(column.to_numpy()))
        return np.asarray(column.to_pylist(), dtype=str)
