"""Bags in files that need not fit into memory: a source that is read anew for each sum.

Owns `scan_bags`, the way the rows of a bag lie in the files (found out, never assumed), and the threads that decode
pieces while others are summed. Memory holds a few batches per thread, whatever the number of rows.

Vocabulary: rows are *grouped* when those of each bag follow each other, over the borders of row groups and files; else
they are *scattered*. Each sum is a *pass* over the files.
"""

import os
import shutil
import sys
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from typing import Any, TypeVar

import numpy as np

from bagwise.arrays import AnyArray
from bagwise.bags import Bags
from bagwise.data.io import arrow_module, first_line, naming
from bagwise.errors import InvalidInputError
from bagwise.scale.pieces import Columns, FilePiece, FolderPiece, Piece, chosen_columns, files_with_rows, pieces_of
from bagwise.scale.spans import (
    Job,
    Kept,
    Share,
    Span,
    all_merged,
    id_runs,
    runs_of,
    span_of,
    total_of,
)
from bagwise.stats.fingerprints import id_hashes
from bagwise.stats.parallel import n_threads

__all__ = ["BagScan", "Layout", "Progress", "layout_of", "scan_bags", "total_columns"]

#: Numbers of the largest share that is kept in memory: 64 MiB.
KEPT_NUMBERS = 1 << 23

S = TypeVar("S")
T = TypeVar("T")
Progress = Callable[[int, int, int], None]

# Bytes of one part when scattered rows are regrouped; at most so many parts, each of which needs a buffer.
_PART_BYTES, _MOST_PARTS = 1 << 26, 512
_BUFFERS = 1 << 28
_ID_ROWS = 1 << 18


def scan_bags(
    path: Any,
    *,
    bag: str = "bag",
    count: str | None = None,
    proportion: str | None = None,
    features: Sequence[str] | None = None,
    threads: int | None = None,
    scratch: str | os.PathLike[str] | None = None,
    progress: bool | Progress = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Bags that stay in their files: learners read them as often as they need, in constant memory.

    The list of files is that of the call. A file that changes or vanishes afterwards is refused by name; one that
    appears is not part of the scan.

    Parameters
    ----------
    path : file, folder or glob, a URL that fsspec knows (``s3://bucket/*.parquet``), or a Dask data frame
    bag : column with the bag ids
    count, proportion : column with each bag's total, the same in all its rows; by default ``positives``
    features : columns to learn from; by default the numeric ones but the bag, the total and ``label``
    threads : threads that read and sum; by default one per processor
    scratch : folder for a regrouped copy of the rows, made only if the rows of a bag are scattered
    progress : True for a line on standard error, or a function of (pass, pieces done, pieces)
    storage_options : for fsspec

    Returns
    -------
    BagScan

    Examples
    --------
    >>> import bagwise as bw, numpy as np, tempfile, pathlib
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 0.5), np.zeros(2), np.eye(2), size=10, count=6)
    >>> file = pathlib.Path(tempfile.mkdtemp(), "bags.parquet")
    >>> bw.write_bags(oracle.sample(500, np.random.default_rng(0)), file)
    >>> scan = bw.scan_bags(file)
    >>> streamed, in_memory = bw.SpectralLTF().fit(scan), bw.SpectralLTF().fit(bw.read_bags(file))
    >>> bool(np.allclose(streamed.coef_, in_memory.coef_))
    True
    """
    total, is_proportion = total_columns(count, proportion)
    if type(path).__module__.startswith("dask"):
        from bagwise.scale.distributed import frame_source

        return frame_source(path, bag, total, is_proportion, features, progress=_shown(progress))
    if threads is not None and not (isinstance(threads, int) and threads >= 1):
        raise InvalidInputError(f"threads must be a whole number above 0, or None; got {threads!r}.")
    files = files_with_rows(path, storage_options or {})
    columns = chosen_columns(files, bag, total, is_proportion, features)
    pieces = pieces_of(files, len(columns.names))
    return BagScan(pieces, columns, threads=threads, scratch=scratch, progress=_shown(progress))


def total_columns(count: str | None, proportion: str | None) -> tuple[str, bool]:
    """The column with the totals, and whether they are proportions."""
    if count is not None and proportion is not None:
        raise InvalidInputError(f"bags are read with one of count= and proportion=; got {count!r} and {proportion!r}.")
    return (proportion, True) if proportion is not None else (count or "positives", False)


class BagScan:
    """Bags in files, as a `BagSource`: what `scan_bags` returns.

    Iterating gives all bags once, as `Bags` of some at a time; each iteration reads the files again.

    Attributes
    ----------
    n_passes : int
        How often the rows were read so far.
    """

    def __init__(
        self,
        pieces: tuple[FilePiece, ...],
        columns: Columns,
        *,
        threads: int | None = None,
        scratch: Any = None,
        progress: Progress | None = None,
        shares: tuple[Share, ...] = (),
        origin: "BagScan | None" = None,
    ) -> None:
        self.columns = columns
        self.files = tuple(dict.fromkeys(piece.file for piece in pieces))
        self._pieces, self._threads, self._scratch, self._progress = pieces, threads, scratch, progress
        self._shares = shares
        self._origin = origin  # parts of a split share the layout and the count of passes of the whole
        self._layout: Layout | None = None
        self._kept: Bags | None = None
        self._n_passes = 0

    # ------------------------------------------------------------------ a source of bags

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return len(self.columns.features)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return self.columns.features

    @property
    def n_passes(self) -> int:
        """How often the rows were read so far."""
        return self._origin.n_passes if self._origin is not None else self._n_passes

    @property
    def n_rows(self) -> int | None:
        """Rows of all files, where the files say so (Parquet)."""
        rows = [piece.n_rows for piece in self._pieces]
        return None if None in rows else sum(n for n in rows if n is not None)

    def reduce(self, task: Callable[[Bags], T]) -> T:
        """The sum of ``task(part)`` over parts that hold each bag once: one pass over the files."""
        if self._is_small():
            if self._kept is None:
                self._kept = self._sum(Kept.of).bags()
            return task(self._kept)
        return self._sum(task)

    def _is_small(self) -> bool:
        """Whether this is a share that memory can hold: it is then read once, with one pass, and kept."""
        share = float(np.prod([share.high - share.low for share in self._shares]))
        return bool(self._shares) and (self.n_rows or np.inf) * share * self.n_features <= KEPT_NUMBERS

    def _sum(self, task: Callable[[Bags], T]) -> T:
        job = Job(task, self.columns, self._shares)
        pieces = self.layout().pieces
        threads = self._threads or n_threads(1 << 30)
        inside = threads > len(pieces)  # too few pieces to share out: let pyarrow decode columns in parallel
        spans = _in_order(partial(_span, job=job, threads=inside), pieces, threads)
        total = total_of(all_merged(self._shown(spans, len(pieces)), job), job)
        if total is None:
            raise InvalidInputError(f"{self!r} must hold bags to sum over; it holds none. Take a larger share.")
        return total

    def split(self, fraction: float, rng: np.random.Generator) -> tuple["BagScan", "BagScan"]:
        """Two random parts by bags, the first with about the given fraction of them; each reads all rows."""
        salt = int(rng.integers(2**63))
        return self._share(Share(salt, 0.0, fraction)), self._share(Share(salt, fraction, 1.0))

    def _share(self, share: Share) -> "BagScan":
        settings = {"threads": self._threads, "scratch": self._scratch, "progress": self._progress}
        return BagScan(
            self._pieces, self.columns, **settings, shares=(*self._shares, share), origin=self._origin or self
        )  # fmt: skip

    # ------------------------------------------------------------------ other ways to the rows

    def on(self, client: Any) -> Any:
        """The same bags, summed by the workers of a Dask cluster; they must see the files at the same place."""
        from bagwise.scale.distributed import ClusterBags

        return ClusterBags(self._pieces, self.columns, client, self._progress, shares=self._shares)

    def read(self) -> Bags:
        """All bags in memory."""
        return Bags.concat(list(self))

    def __iter__(self) -> Iterator[Bags]:
        pieces = self.layout().pieces
        job = Job(lambda bags: bags, self.columns, self._shares)
        open_ = None
        for piece in pieces:
            if piece.whole:
                found = [span_of(piece, job).total]
            else:
                found = []
                for runs in runs_of(piece, self.columns):
                    with naming(piece.name):
                        runs = runs if open_ is None else open_.joined(runs)
                    found.append(job(runs.part(0, len(runs) - 1)))
                    open_ = runs.part(len(runs) - 1, len(runs), copy=True)
            yield from (bags for bags in found if bags is not None)
        last = job(open_)
        if last is not None:
            yield last

    def layout(self) -> "Layout":
        """How the rows lie; found out at first use by reading the ids, and kept."""
        if self._origin is not None:
            return self._origin.layout()
        if self._layout is None:
            found = layout_of(
                self._pieces, self.columns, partial(_in_order, threads=self._threads or n_threads(1 << 30))
            )
            if not found.grouped:
                folder = _regrouped(self._pieces, self.columns, self._scratch)
                weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
                parts = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
                found = Layout(False, found.how, tuple(FolderPiece(part) for part in parts))
            self._layout = found
        return self._layout

    def __repr__(self) -> str:
        rows = "" if self.n_rows is None else f", {self.n_rows:,} rows"
        files = f"{len(self.files):,} files" if len(self.files) > 1 else self.files[0].path
        part = f", a share of {np.prod([s.high - s.low for s in self._shares]):.3g}" if self._shares else ""
        return f"BagScan({files}{rows}, {self.n_features} features{part})"

    def _shown(self, spans: Iterable[S], n: int) -> Iterator[S]:
        root = self._origin or self
        root._n_passes += 1
        yield from shown(spans, n, root._n_passes, self._progress)


def _span(piece: Piece, job: Job[T], threads: bool) -> Span[T]:
    return span_of(piece, job, threads)


# ---------------------------------------------------------------------- how the rows lie


@dataclass(frozen=True, slots=True)
class Layout:
    """Whether the rows of each bag follow each other, how that is known, and the pieces to read."""

    grouped: bool
    how: str
    pieces: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Ids:
    """The ids of a piece: the first and last, and whether they only ascend."""

    first: Any
    last: Any
    ascending: bool


def layout_of(pieces: Sequence[Piece], columns: Columns, mapped: Callable[[Any, Any], Iterable[Any]]) -> Layout:
    """How the rows of some pieces lie. Reads the column of ids; again, and 8 bytes per bag, where they are unsorted.

    ``mapped(function, pieces)`` gives the results in order: in threads, or on a cluster.
    """
    seen = [ids for ids in mapped(partial(_ids_of, columns=columns), pieces) if ids is not None]
    if all(ids.ascending for ids in seen) and all(bool(a.last <= b.first) for a, b in pairwise(seen)):
        return Layout(True, "sorted by bag", tuple(pieces))
    hashes: list[AnyArray] = []
    last: Any = None
    for found in mapped(partial(_run_hashes, columns=columns), pieces):
        if found is None:  # an id comes back within the piece
            return Layout(False, "scattered", tuple(pieces))
        if len(found):
            hashes.append(found[1:] if found[0] == last else found)
            last = found[-1]
    runs = np.concatenate([np.zeros(0, np.uint64), *hashes])
    runs.sort()
    if (runs[1:] == runs[:-1]).any():
        return Layout(False, "scattered", tuple(pieces))
    return Layout(True, "grouped by bag, unsorted", tuple(pieces))


def _id_arrays(piece: Piece, columns: Columns) -> Iterator[AnyArray]:
    """The ids of the runs of a piece; a run that goes over a batch stands once."""
    last: AnyArray | None = None
    for batch in piece.batches([columns.bag], _ID_ROWS):
        if batch.num_rows:
            with naming(piece.name):
                ids = id_runs(batch.column(columns.bag), columns)[1]
            if last is not None and ids[0] == last[0]:
                ids = ids[1:]
            if len(ids):
                yield ids
                last = ids[-1:]


def _ids_of(piece: Piece, columns: Columns) -> _Ids | None:
    first: Any = None
    last: AnyArray | None = None
    ascending = True
    for ids in _id_arrays(piece, columns):
        if last is None:
            first = ids[0]
        else:
            ascending = ascending and bool(last[0] < ids[0])
        ascending = ascending and bool(np.all(ids[:-1] < ids[1:]))
        last = ids[-1:]
    return None if last is None else _Ids(first, last[0], ascending)


def _run_hashes(piece: Piece, columns: Columns) -> AnyArray | None:
    """Hashes of the ids of the runs, or None if two runs share one."""
    found = [id_hashes(ids) for ids in _id_arrays(piece, columns)]
    runs: AnyArray = np.concatenate([np.zeros(0, np.uint64), *found])
    return runs if len(np.unique(runs)) == len(runs) else None


def _regrouped(pieces: Sequence[FilePiece], columns: Columns, scratch: Any) -> str:
    """A folder with all rows again, in parts that each hold whole bags: one more read and one write of the data.

    Bags are dealt to parts by the hash of their id, and pyarrow writes them; a part is later grouped in memory.
    """
    arrow, dataset = arrow_module("pyarrow"), arrow_module("pyarrow.dataset")
    width = 8 * len(columns.names)
    n_bytes = sum(piece.n_rows * width if piece.n_rows else piece.file.n_bytes for piece in pieces)
    n_parts = int(min(max(n_bytes // _PART_BYTES, 1), _MOST_PARTS))
    schema: list[Any] = []

    def dealt() -> Iterator[Any]:
        for piece in pieces:
            for batch in piece.batches(columns.names, _ID_ROWS):
                sizes, ids = id_runs(batch.column(columns.bag), columns)
                part = (id_hashes(ids) % np.uint64(n_parts)).astype(np.int32)
                batch = batch.append_column("__part", arrow.array(np.repeat(part, sizes)))
                schema.append(batch.schema) if not schema else None
                yield batch.cast(schema[0])

    batches = dealt()
    first = next(batches)
    folder = tempfile.mkdtemp(prefix="bagwise-", dir=scratch)
    try:
        dataset.write_dataset(
            chain([first], batches), folder, format="parquet", schema=first.schema, partitioning=["__part"],
            min_rows_per_group=min(max(_BUFFERS // (width * n_parts), 1), 1 << 18), max_rows_per_group=1 << 18,
            max_open_files=_MOST_PARTS + 8,
            file_options=dataset.ParquetFileFormat().make_write_options(compression="none", use_dictionary=False),
        )  # fmt: skip
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise InvalidInputError(
            f"the rows of a bag are scattered over the files, so that a regrouped copy must fit into {folder}; "
            f"{first_line(error)}. Choose a larger place by scratch=, or sort the files by {columns.bag!r}."
        ) from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


# ---------------------------------------------------------------------- threads and progress


def _in_order(function: Callable[[Any], T], items: Sequence[Any], threads: int) -> Iterator[T]:
    """function of each item, in order, a few ahead in threads; BLAS then has one thread in each of ours."""
    if threads == 1 or len(items) == 1:
        yield from map(function, items)
        return
    from threadpoolctl import threadpool_limits

    waiting: deque[Future[T]] = deque()
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def shown(results: Iterable[S], n: int, n_pass: int, progress: Progress | None) -> Iterator[S]:
    """The results, with each reported as it comes."""
    for done, result in enumerate(results, 1):
        if progress is not None:
            progress(n_pass, done, n)
        yield result


def _shown(progress: bool | Progress) -> Progress | None:
    return _line if progress is True else progress or None


def _line(n_pass: int, done: int, n: int) -> None:
    end = "\n" if done == n else ""
    print(f"\rpass {n_pass}: {100 * done // n} % of {n:,} pieces", end=end, file=sys.stderr, flush=True)
