"""Rows of pieces -> what a task makes of their bags, exactly as if they lay in one table.

Owns the runs: rows with one id, one after the other. A run inside of a piece is a bag; the first and the last of a
piece may go on in its neighbours. `Span` keeps these two open and `merged` closes them, so that sums over pieces are
associative: any tree over neighbouring pieces gives the same bags.

Refuses totals that differ within a bag, missing values, and numbers that are not finite, each in the name of the piece.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import reduce
from typing import Any, Generic, TypeVar

import numpy as np

from bagwise.arrays import AnyArray, BoolArray, FloatArray, IntArray
from bagwise.bags import Bags
from bagwise.data.io import arrow_module, first_line, naming
from bagwise.errors import InvalidInputError
from bagwise.scale.pieces import Columns, Piece
from bagwise.stats.fingerprints import id_hashes
from bagwise.stats.parallel import bag_parts

__all__ = [
    "Job",
    "Kept",
    "Runs",
    "Share",
    "Span",
    "all_merged",
    "bags_of",
    "batch_rows",
    "id_runs",
    "merged",
    "runs_of",
    "span_of",
    "total_of",
]

T = TypeVar("T")

# Numbers read at a time: enough to make the cost of a call small, and the few dozen megabytes of a row group.
_BATCH_NUMBERS = 1 << 22
# Numbers of a part that a task is given: it stays in a cache until its sums are taken.
_PART_NUMBERS = 1 << 18


def batch_rows(columns: Columns) -> int:
    """Rows of a batch."""
    return int(min(max(_BATCH_NUMBERS // len(columns.features), 1 << 10), 1 << 17))


def part_rows(columns: Columns) -> int:
    """Rows of a part, where no bag is larger."""
    return max(_PART_NUMBERS // len(columns.features), 1)


# ---------------------------------------------------------------------- runs


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Consecutive rows, run by run; totals as they stand in the file, unchecked."""

    X: FloatArray
    sizes: IntArray
    ids: AnyArray
    totals: AnyArray
    name: str  # of the piece that they begin in

    def __len__(self) -> int:
        return len(self.sizes)

    def part(self, first: int, stop: int, *, copy: bool = False) -> "Runs":
        """Some consecutive runs."""
        start, rows = int(self.sizes[:first].sum()), int(self.sizes[first:stop].sum())
        X = self.X[start : start + rows]
        X = X.copy() if copy else X
        return Runs(X, self.sizes[first:stop], self.ids[first:stop], self.totals[first:stop], self.name)

    def joined(self, other: "Runs") -> "Runs":
        """These and then the others; the last of these and the first of the others are one where the ids are."""
        ids, sizes = np.concatenate([self.ids, other.ids]), np.concatenate([self.sizes, other.sizes])
        totals, n = np.concatenate([self.totals, other.totals]), len(self)
        if n and len(other) and self.ids[-1] == other.ids[0]:
            _refuse_two_totals(other.totals[:1], self.totals[-1:], self.ids[-1:], np.ones(1, np.int64))
            sizes[n - 1] += sizes[n]
            ids, sizes, totals = np.delete(ids, n), np.delete(sizes, n), np.delete(totals, n)
        return Runs(np.concatenate([self.X, other.X]), sizes, ids, totals, self.name)


def runs_of(piece: Piece, columns: Columns, threads: bool = False) -> Iterator[Runs]:
    """The runs of a piece in order, some at a time. All but the last that comes have ended; the last is one, open."""
    open_: Runs | None = None
    for batch in piece.batches(columns.names, batch_rows(columns), threads):
        if batch.num_rows == 0:
            continue
        with naming(piece.name):
            found = _Batch.of(batch, columns, piece.name, open_)
        last = len(found.sizes) - 1
        for part in (*bag_parts(found.starts[:-1], part_rows(columns)), slice(last, last + 1)):
            with naming(piece.name):
                open_ = found.runs(part)
            if part.start < last:
                yield open_
    if open_ is not None:
        yield open_


def id_runs(column: Any, columns: Columns) -> tuple[IntArray, AnyArray]:
    """Length and id of each run of an Arrow column of ids."""
    if column.null_count:
        raise InvalidInputError(
            f"column {columns.bag!r} must have no missing values; got {column.null_count}. Fill them or drop such rows."
        )
    try:
        column = column if column.type == columns.id_type else column.cast(columns.id_type)
        encoded = arrow_module("pyarrow.compute").run_end_encode(column)
    except arrow_module("pyarrow").ArrowException as error:
        raise InvalidInputError(
            f"ids must be of one kind in all files (numbers, text, dates); column {columns.bag!r} is read as "
            f"{columns.id_type}, and {first_line(error)}."
        ) from None
    ends = encoded.run_ends.to_numpy().astype(np.int64)
    return np.diff(ends, prepend=0), encoded.values.to_numpy(zero_copy_only=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """The runs of a batch, and of an open run before it, with the features still column by column."""

    before: FloatArray | None  # rows of the open run
    features: list[AnyArray]  # of the rows that follow
    names: tuple[str, ...]
    sizes: IntArray
    ids: AnyArray
    totals: AnyArray
    starts: IntArray  # of the runs, and the number of rows
    name: str

    @classmethod
    def of(cls, batch: Any, columns: Columns, name: str, open_: Runs | None) -> "_Batch":
        """Checked, but for the finiteness of the features."""
        sizes, ids = id_runs(batch.column(columns.bag), columns)
        is_decimal = arrow_module("pyarrow").types.is_decimal
        totals = _numbers(batch, columns.total, is_decimal)
        first = totals[np.cumsum(sizes) - sizes]
        _refuse_two_totals(totals, np.repeat(first, sizes), ids, sizes)
        dtype = np.float32 if columns.single else np.float64
        features = [np.ascontiguousarray(_numbers(batch, name, is_decimal), dtype) for name in columns.features]
        no_rows = np.empty((0, len(features)), dtype)
        runs = Runs(no_rows, sizes, ids, first, name)
        if open_ is not None:
            runs = replace(open_, X=no_rows).joined(runs)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(runs.sizes)])
        before = None if open_ is None else open_.X
        return cls(before, features, columns.features, runs.sizes, runs.ids, runs.totals, starts, runs.name)

    def runs(self, part: slice) -> Runs:
        """Some of the runs, with their rows together."""
        start, stop = int(self.starts[part.start]), int(self.starts[part.stop])
        X = np.empty((stop - start, len(self.features)), self.features[0].dtype)
        n_before = 0 if self.before is None else len(self.before)
        inside = max(n_before - start, 0)  # rows of the open run, which is the first
        if self.before is not None and inside:
            X[:inside] = self.before[start:]
        total = _put(self.features, max(start - n_before, 0), stop - n_before, X[inside:])
        runs = Runs(X, self.sizes[part], self.ids[part], self.totals[part], self.name)
        if not np.isfinite(total):
            _refuse_infinite(runs, self.names)
        return runs


def _put(columns: list[AnyArray], first: int, stop: int, X: FloatArray) -> float:
    """Write the numbers first:stop of each column as rows; their sum, which is finite only if all are."""
    from bagwise.stats.kernels import EIGHT, eight_columns

    d = len(columns)
    if d < EIGHT:
        for j, column in enumerate(columns):
            X[:, j] = column[first:stop]
        with np.errstate(over="ignore", invalid="ignore"):
            return float(X.sum(dtype=np.float64))
    total = 0.0
    for j in (*range(0, d - EIGHT, EIGHT), d - EIGHT):  # the last eight may be written in part for the second time
        total += eight_columns(tuple(columns[j : j + EIGHT]), first, stop, X, j)
    return total


def _refuse_infinite(runs: Runs, names: Sequence[str]) -> None:
    """Refuse rows with a number that is none; a sum may have overflowed by itself."""
    if (finite := np.isfinite(runs.X)).all():
        return
    row, column = np.argwhere(~finite)[0]
    bag = _shown(runs.ids[int(np.searchsorted(np.cumsum(runs.sizes), row, side="right"))])
    raise InvalidInputError(
        f"the features must be finite; got {runs.X[row, column]} in column {names[column]!r} of bag {bag}. Impute or "
        "drop such rows (then correct the counts of their bags)."
    )


def _numbers(batch: Any, name: str, is_decimal: Callable[[Any], bool]) -> AnyArray:
    column = batch.column(name)
    if column.null_count:
        raise InvalidInputError(
            f"column {name!r} must have no missing values; got {column.null_count}. Fill them or drop their bags."
        )
    if is_decimal(column.type):
        column = column.cast(arrow_module("pyarrow").float64())
    values: AnyArray = column.to_numpy(zero_copy_only=False)
    return values


def _refuse_two_totals(totals: AnyArray, wanted: AnyArray, ids: AnyArray, sizes: IntArray) -> None:
    """One total per run; NaN in all rows has an error of its own later."""
    differs = (totals != wanted) & ((totals == totals) | (wanted == wanted))
    if differs.any():
        row = int(np.argmax(differs))
        bag = _shown(ids[int(np.searchsorted(np.cumsum(sizes), row, side="right"))])
        raise InvalidInputError(
            f"the total must be the same in all rows of a bag; got {wanted[row]} and {totals[row]} in bag {bag}. It "
            "is the total of the bag, not of a row."
        )


def _shown(bag: Any) -> str:
    return repr(bag.item() if isinstance(bag, np.generic) else bag)


def bags_of(runs: Runs, columns: Columns) -> Bags:
    """Whole bags from runs that have ended."""
    with naming(runs.name):
        return Bags.from_runs(
            runs.X, runs.sizes, runs.totals, runs.ids,
            are_proportions=columns.is_proportion, feature_names=columns.features,
        )  # fmt: skip


# ---------------------------------------------------------------------- jobs and spans


@dataclass(frozen=True, slots=True)
class Share:
    """A random part of the bags: those whose id, mixed with the salt, falls into [low, high)."""

    salt: int
    low: float
    high: float

    def __call__(self, bags: Bags) -> BoolArray:
        """Which bags belong to it."""
        place = (id_hashes(bags.ids, self.salt) >> np.uint64(11)) * 2.0**-53
        chosen: BoolArray = (place >= self.low) & (place < self.high)
        return chosen


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """Bags as a sum: those of a small share, to be held in memory."""

    parts: tuple[Bags, ...]

    @classmethod
    def of(cls, bags: Bags) -> "Kept":
        """The task."""
        return cls((bags,))

    def __add__(self, other: "Kept") -> "Kept":
        return Kept(self.parts + other.parts)

    def bags(self) -> Bags:
        """All of them."""
        return Bags.concat(self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Job(Generic[T]):
    """A task on the bags of some shares (all of them must apply)."""

    task: Callable[[Bags], T]
    columns: Columns
    shares: tuple[Share, ...] = ()

    def of_bags(self, bags: Bags) -> T | None:
        """The task's result, or None where no bag is left."""
        for share in self.shares:
            bags = bags[share(bags)]
        return self.task(bags) if bags.n_bags else None

    def __call__(self, runs: Runs | None) -> T | None:
        return None if runs is None or len(runs) == 0 else self.of_bags(bags_of(runs, self.columns))


@dataclass(frozen=True, slots=True, eq=False)
class Span(Generic[T]):
    """What a job makes of neighbouring pieces: the sum over the bags inside, and the open runs at both ends.

    Without a tail all rows are of the one run ``head``; without a head nothing is open.
    """

    head: Runs | None
    total: T | None
    tail: Runs | None

    def __sizeof__(self) -> int:
        """Its bytes, arrays included: by it a cluster decides what to send where."""
        return _n_bytes((self.head, self.total, self.tail))


def _n_bytes(value: Any) -> int:
    if is_dataclass(value) and not isinstance(value, type):
        value = tuple(getattr(value, one.name) for one in fields(value))
    if isinstance(value, (tuple, list)):
        return sum(map(_n_bytes, value))
    return int(getattr(value, "nbytes", None) or sys.getsizeof(value))


def span_of(piece: Piece, job: Job[T], threads: bool = False) -> Span[T]:
    """The span of one piece, read batch by batch."""
    if piece.whole:
        return Span(None, _of_whole(piece, job), None)
    head: Runs | None = None
    total: T | None = None
    open_: Runs | None = None
    for runs in runs_of(piece, job.columns, threads):
        if open_ is not None:
            total = _sum(total, job(open_))
        if head is None:
            head = runs.part(0, 1, copy=True)
            runs = runs.part(1, len(runs))
        open_ = runs
    # What comes last is one open run: the tail, or the head itself where the piece has no other.
    return Span(head, total, open_ if open_ is not None and len(open_) else None)


def _of_whole(piece: Piece, job: Job[T]) -> T | None:
    """The job on all bags of a piece, whose rows are grouped in memory."""
    columns = job.columns
    batches = [batch for batch in piece.batches(columns.names, 1 << 20) if batch.num_rows]
    if not batches:
        return None
    table = arrow_module("pyarrow").Table.from_batches(batches)
    total: dict[str, Any] = {"proportion" if columns.is_proportion else "count": columns.total}
    return job.of_bags(Bags.from_frame(table, columns.bag, features=columns.features, **total))


def merged(left: Span[T], right: Span[T], job: Job[T]) -> Span[T]:
    """The span of two neighbours: the run between them is closed, as one bag or as two."""
    total = _sum(left.total, right.total)
    if left.head is None or right.head is None:  # an empty piece, or pieces of whole bags
        kept = right if left.head is None else left
        return Span(kept.head, total, kept.tail)
    last = left.head if left.tail is None else left.tail
    with naming(right.head.name):
        between = last.joined(right.head)
    if len(between) == 1:  # one bag goes over the border
        if left.tail is None:
            return Span(between, total, right.tail)
        if right.tail is None:
            return Span(left.head, total, between)
        return Span(left.head, _sum(total, job(between)), right.tail)
    ended, begun = between.part(0, 1), between.part(1, 2)
    if left.tail is not None:
        total = _sum(total, job(ended))
    if right.tail is None:
        return Span(left.head, total, begun)
    return Span(left.head, _sum(total, job(begun)), right.tail)


def all_merged(spans: Iterable[Span[T]], job: Job[T]) -> Span[T]:
    """The span of some neighbours, one after the other."""
    return reduce(lambda left, right: merged(left, right, job), spans)


def total_of(span: Span[T], job: Job[T]) -> T | None:
    """The sum over all bags of a span that has no neighbours left."""
    total: T | None = _sum(_sum(job(span.head), span.total), job(span.tail))
    return total


def _sum(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return left + right
