"""The same sums on a Dask cluster: files that its workers read, and Dask data frames and arrays.

Owns the way from pieces to a cluster and back: neighbouring pieces become a span where they are read, spans are merged
in a tree, and only what a task adds up to travels. Refuses nothing that one machine accepts, and computes
nothing differently; a worker that dies costs its pieces' time, not the result.
"""

import importlib
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from bagwise.bags import Bags, feature_columns, is_bag_target, is_dask
from bagwise.data.io import arrow_module, columns_of, naming, refuse_missing
from bagwise.errors import BagwiseError, InvalidInputError, MissingExtraError
from bagwise.scale.pieces import Columns, Piece, TablePiece
from bagwise.scale.spans import Job, Kept, Share, Span, all_merged, span_of, total_of
from bagwise.scale.streaming import KEPT_NUMBERS, Layout, Progress, layout_of

__all__ = ["ClusterBags", "collection_source", "frame_source"]

T = TypeVar("T")

# Spans merged at a time: the depth of the tree is log_8 of their number.
_FAN_IN = 8
# Tasks per thread and pass: what travels, and what the scheduler has to do, grow with the workers and not with the
# rows. A sixteenth of a worker's work is at stake where others wait for it, and where it dies.
_TASKS = 16


class ClusterBags:
    """Bags that the workers of a Dask cluster read, as a `BagSource`; made by ``scan.on(client)`` or from a Dask frame.

    Attributes
    ----------
    n_passes : int
        How often the rows were read so far.
    """

    def __init__(
        self,
        handles: Sequence[Any],
        columns: Columns,
        client: Any,
        progress: Progress | None,
        *,
        shares: tuple[Share, ...] = (),
        named: bool = True,
        frame: Any = None,
        origin: "ClusterBags | None" = None,
    ) -> None:
        # A handle is a piece, or a Delayed that becomes one on a worker.
        self._handles, self.columns, self._client, self._progress = tuple(handles), columns, client, progress
        self._shares, self._named, self._frame, self._origin = shares, named, frame, origin
        self._layout: Layout | None = None
        self._kept: Bags | None = None
        self._n_passes = 0

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return len(self.columns.features)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if they have any."""
        return self.columns.features if self._named else None

    @property
    def n_passes(self) -> int:
        """How often the rows were read so far."""
        return (self._origin or self)._n_passes

    def reduce(self, task: Callable[[Bags], T]) -> T:
        """The sum of ``task(part)`` over parts that hold each bag once: one pass by all workers."""
        if self._is_small():
            if self._kept is None:
                self._kept = self._sum(Kept.of).bags()
            return task(self._kept)
        return self._sum(task)

    def _is_small(self) -> bool:
        """Whether this is a share that memory can hold: it is then read once, with one pass, and kept here."""
        rows = [None if is_dask(handle) else handle.n_rows for handle in self._handles]
        n = None if None in rows else sum(n for n in rows if n is not None)
        share = float(np.prod([share.high - share.low for share in self._shares]))
        return bool(self._shares) and n is not None and n * share * self.n_features <= KEPT_NUMBERS

    def _sum(self, task: Callable[[Bags], T]) -> T:
        job = Job(task, self.columns, self._shares)
        root = self._origin or self
        handles = self.layout().pieces
        root._n_passes += 1
        spans = self._mapped(partial(_span_over, job=job), handles, root._n_passes)
        while len(spans) > 1:
            groups = [spans[i : i + _FAN_IN] for i in range(0, len(spans), _FAN_IN)]
            spans = [self._submitted(all_merged, group, job) for group in groups]
        total = total_of(self._result(spans)[0], job)
        if total is None:
            raise InvalidInputError("the source must hold bags to sum over; it holds none. Take a larger share.")
        return cast(T, total)

    def split(self, fraction: float, rng: np.random.Generator) -> tuple["ClusterBags", "ClusterBags"]:
        """Two random parts by bags, the first with about the given fraction of them; each reads all rows."""
        salt = int(rng.integers(2**63))
        return self._share(Share(salt, 0.0, fraction)), self._share(Share(salt, fraction, 1.0))

    def on(self, client: Any) -> "ClusterBags":
        """The same bags on another cluster."""
        return ClusterBags(
            self._handles, self.columns, client, self._progress,
            shares=self._shares, named=self._named, frame=self._frame,
        )  # fmt: skip

    def layout(self) -> Layout:
        """How the rows lie; found out at first use by reading the ids. Scattered rows are shuffled by Dask."""
        if self._origin is not None:
            return self._origin.layout()
        if self._layout is None:
            found = layout_of(self._handles, self.columns, self._each)
            if not found.grouped:
                found = Layout(False, found.how, tuple(self._shuffled()))
            self._layout = found
        return self._layout

    def _share(self, share: Share) -> "ClusterBags":
        return ClusterBags(
            self._handles, self.columns, self._client, self._progress,
            shares=(*self._shares, share), named=self._named, origin=self._origin or self,
        )  # fmt: skip

    def _shuffled(self) -> list[Any]:
        """Handles of whole bags: Dask brings the rows of a bag together, and the cluster keeps them."""
        frame = self._frame
        if frame is None:
            some = next(piece for piece in self._handles if piece.n_rows != 0)
            meta = _frame_of(some, self.columns, rows=1)
            frame = _dask("dask.dataframe").from_map(partial(_frame_of, chosen=self.columns), self._handles, meta=meta)
        moved = frame.shuffle(on=self.columns.bag)
        moved = moved.persist() if self._client is None else self._client.persist(moved)
        return _partitions(moved, self.columns, whole=True)

    # ------------------------------------------------------------------ the cluster, or Dask without one

    def _each(self, function: Callable[[Piece], T], handles: Sequence[Any]) -> Iterable[T]:
        """function of the piece of each handle, in order."""
        return chain.from_iterable(self._result(self._mapped(partial(_each, function=function), handles)))

    def _mapped(self, function: Callable[[Sequence[Piece]], Any], handles: Sequence[Any], n_pass: int = 0) -> list[Any]:
        """function of the pieces of some neighbouring handles at a time: futures on a cluster, else delayed."""
        dask = _dask()
        threads = os.cpu_count() or 1 if self._client is None else sum(self._client.nthreads().values())
        groups = np.array_split(np.arange(len(handles)), min(len(handles), _TASKS * max(threads, 1)))
        delayed = [dask.delayed(function, pure=False)([handles[i] for i in group]) for group in groups]
        if self._client is None:
            return delayed
        futures: list[Any] = self._client.compute(delayed)
        if self._progress is not None and n_pass:
            report, count = self._progress, iter(range(1, len(futures) + 1))
            for future in futures:
                future.add_done_callback(lambda _: report(n_pass, next(count), len(futures)))
        return futures

    def _submitted(self, function: Callable[..., Any], group: list[Any], job: Job[T]) -> Any:
        if self._client is None:
            return _dask().delayed(function, pure=False)(group, job)
        return self._client.submit(function, group, job, pure=False)

    def _result(self, waiting: list[Any]) -> list[Any]:
        if self._client is None:
            return list(_dask().compute(*waiting))
        try:
            results: list[Any] = self._client.gather(waiting)
        except BagwiseError:
            raise
        except Exception as error:
            if type(error).__name__ in ("KilledWorker", "CancelledError", "FutureCancelledError"):
                raise BagwiseError(
                    f"the workers of the cluster must outlive the sums they take; several died over one ({error})."
                    " Give each more memory, or write smaller row groups."
                ) from None
            raise
        return results


def _span_over(pieces: Sequence[Piece], job: Job[T]) -> Span[T]:
    """The span of some neighbouring pieces, read one after the other."""
    return all_merged((span_of(piece, job) for piece in pieces), job)


def _each(pieces: Sequence[Piece], function: Callable[[Piece], T]) -> list[T]:
    return [function(piece) for piece in pieces]


# ---------------------------------------------------------------------- data frames and arrays


def frame_source(
    frame: Any,
    bag: str,
    total: str,
    is_proportion: bool,
    features: Sequence[str] | None = None,
    *,
    progress: Progress | None = None,
    named: bool = True,
) -> ClusterBags:
    """Bags of a Dask data frame. Its partitions are computed anew for each sum: persist the frame where it fits."""
    arrow = arrow_module("pyarrow")
    schema = arrow.Table.from_pandas(frame._meta_nonempty, preserve_index=False).schema
    found = columns_of(schema, "the data frame")
    refuse_missing([bag, total, *(features or ())], found, Path("the data frame"))
    with naming("the data frame"):
        numeric = [name for name, is_number in found.items() if is_number]
        names = feature_columns(list(found), numeric, bag, total, features)
    single = {str(schema.field(name).type) for name in names} == {"float"}
    id_type = schema.field(bag).type
    columns = Columns(bag, total, is_proportion, names, single, getattr(id_type, "value_type", id_type))
    frame = frame[columns.names]
    return ClusterBags(_partitions(frame, columns, whole=False), columns, None, progress, named=named, frame=frame)


def collection_source(X: Any, y: Any, ids: Any) -> ClusterBags:
    """Bags of the arguments of ``fit``: rows, and proportions with ids or a bag target, some of them Dask's."""
    if y is None:
        raise InvalidInputError(
            "a Dask array needs its totals; y is None. Pass proportions with bags=, or a bag target; of a data frame "
            "with all columns, bagwise.scan_bags(frame, bag=…, count=…)."
        )
    if is_bag_target(y):
        ids, totals, total = y["bag"], y["count"], "count"
    elif ids is not None:
        totals, total = y, "proportion"
    else:
        raise InvalidInputError(
            "bags from Dask need ids: pass proportions as y with bags=, or a bag target as y. Plain labels of rows are "
            "learnt from in memory."
        )
    named = hasattr(X, "columns")
    frame = X if named else _frame_of_array(X)
    taken = {"bag": ids, total: totals}
    names = {key: f"__{key}" for key in taken}
    frame = frame.assign(**{names[key]: _series(value, frame, key) for key, value in taken.items()})
    return frame_source(frame, names["bag"], names[total], total == "proportion", named=named)


def _frame_of_array(X: Any) -> Any:
    if X.ndim != 2:
        raise InvalidInputError(f"X must have two dimensions (rows, features); got {X.ndim} of shape {X.shape}.")
    X = X.rechunk({1: -1})
    if any(np.isnan(n) for n in X.chunks[0]):
        X = X.compute_chunk_sizes()
    return _dask("dask.dataframe").from_dask_array(X, columns=[f"x{j}" for j in range(X.shape[1])])


def _series(value: Any, frame: Any, what: str) -> Any:
    """One value per row as a Dask series that is cut like the frame."""
    if is_dask(value) and not hasattr(value, "chunks"):
        return value
    array, frames = _dask("dask.array"), _dask("dask.dataframe")
    lengths = tuple(int(n) for n in frame.map_partitions(len).compute())
    if len(value) != sum(lengths):
        raise InvalidInputError(f"{what} must be one per row; got {len(value)} for {sum(lengths)} rows.")
    value = value.rechunk((lengths,)) if is_dask(value) else array.from_array(np.asarray(value), chunks=(lengths,))
    series = frames.from_dask_array(value)
    # The same cut, whatever the index says: rows belong together by their place.
    return series.clear_divisions() if not frame.known_divisions else series


def _partitions(frame: Any, columns: Columns, whole: bool) -> list[Any]:
    dask = _dask()
    return [
        dask.delayed(_table_piece, pure=False)(part, columns, f"partition {i}", whole)
        for i, part in enumerate(frame.to_delayed())
    ]


def _table_piece(frame: Any, columns: Columns, name: str, whole: bool) -> TablePiece:
    """A pandas partition as a piece, on the worker that has it."""
    table = arrow_module("pyarrow").Table.from_pandas(frame[columns.names], preserve_index=False)
    return TablePiece(table, name, whole)


def _frame_of(piece: Piece, chosen: Columns, rows: int | None = None) -> Any:
    """The rows of a piece, or the first of them, as a pandas frame."""
    arrow = arrow_module("pyarrow")
    batches: Iterable[Any] = piece.batches(chosen.names, rows or 1 << 20)
    batches = [next(iter(batches))] if rows else list(batches)
    return arrow.Table.from_batches(batches).to_pandas()


def _dask(module: str = "dask") -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError("dask", "dask", "a cluster, or a Dask data frame,") from None
