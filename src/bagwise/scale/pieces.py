"""Files and tables as pieces: what one thread or worker reads at a time, batch by batch.

Owns reading: which columns, from which row groups, and whether a file is still the one that was listed. Refuses, in one
sentence that names the file, whatever cannot be read, has other columns, or changed since. A piece knows no bags; it
gives batches of columns. Only its description travels to a worker, never its rows.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from bagwise.bags import feature_columns
from bagwise.data.io import (
    arrow_module,
    columns_of,
    first_line,
    format_of,
    listed,
    naming,
    refuse_missing,
    source_files,
)
from bagwise.errors import BagwiseError, InvalidInputError, MissingExtraError

__all__ = [
    "Columns",
    "File",
    "FilePiece",
    "FolderPiece",
    "Piece",
    "TablePiece",
    "chosen_columns",
    "files_of",
    "pieces_of",
    "schema_of",
]

# Row groups are taken together up to so many bytes: enough to hide the cost of opening, little enough to spread.
_PIECE_BYTES = 1 << 26
_BUFFER = 1 << 20
# The types of the columns of a CSV file are taken from so many bytes.
_CSV_BLOCK = 1 << 23


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns hold what."""

    bag: str
    total: str
    is_proportion: bool
    features: tuple[str, ...]
    single: bool  # all features are float32 and stay so
    id_type: Any  # Arrow's; ids of all files are read as this

    @property
    def names(self) -> list[str]:
        return [self.bag, self.total, *self.features]


class Piece(Protocol):
    """Rows that are read together."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def whole(self) -> bool:
        """Whether all rows of its bags are in it, in any order; otherwise the rows of a bag follow each other."""
        ...

    def batches(self, names: Sequence[str], rows: int, threads: bool = False) -> Iterator[Any]:
        """Its record batches of at most so many rows, with these columns."""
        ...


# ---------------------------------------------------------------------- files


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was listed."""

    path: str  # absolute, or a URL that fsspec knows
    kind: str
    stamp: str  # size and time of change
    storage: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_local(self) -> bool:
        return "://" not in self.path

    @property
    def n_bytes(self) -> int:
        return int(self.stamp.split()[0])

    def open(self) -> Any:
        """Its bytes, as pyarrow reads them."""
        if self.is_local:
            return arrow_module("pyarrow").OSFile(self.path)
        return _filesystem(self.path, self.storage).open(self.path, "rb")

    def refuse_changed(self) -> None:
        """Refuse to read a file that is no longer the one that was listed."""
        try:
            now = _stamp(self.path, self.storage)
        except FileNotFoundError:
            raise InvalidInputError(
                f"{self.path} must stay where it is while it is read; it vanished. Restore it (on a cluster: where "
                "every worker sees it) and start again."
            ) from None
        if now != self.stamp:
            raise InvalidInputError(
                f"{self.path} must stay as it is while it is read; it changed since it was listed. Start again."
            )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Whatever goes wrong inside is said in one sentence that names the file."""
        try:
            yield
        except BagwiseError:
            raise
        except Exception as error:  # of a damaged file a reader may raise anything
            self.refuse_changed()
            raise InvalidInputError(f"{self.path} must be a readable {self.kind} file; {first_line(error)}.") from None


def files_of(path: str | os.PathLike[str], storage: Mapping[str, Any]) -> tuple[File, ...]:
    """The files of a source, local or on a filesystem of fsspec, in the order of their names."""
    text = os.fspath(path)
    if "://" not in text:
        paths = [os.path.abspath(file) for file in source_files(text)]
    else:
        system = _filesystem(text, storage)
        inside = system._strip_protocol(text)
        if system.isdir(inside):
            found = sorted(f for f in system.find(inside) if not Path(f).name.startswith((".", "_")))
        else:
            found = sorted(system.glob(inside)) if any(c in inside for c in "*?[") else [inside]
        if not found:
            raise InvalidInputError(f"{text} must name at least one file; there is none.")
        paths = [system.unstrip_protocol(f) for f in found]
    files = []
    for one in paths:
        try:
            files.append(File(one, format_of(Path(one)), _stamp(one, storage), dict(storage)))
        except FileNotFoundError:
            raise InvalidInputError(f"file {one} must exist; there is none.") from None
    return tuple(files)


def _filesystem(url: str, storage: Mapping[str, Any]) -> Any:
    try:
        import fsspec
    except ImportError:
        raise MissingExtraError("dask", "dask", "reading by URL") from None
    return fsspec.core.url_to_fs(url, **storage)[0]


def _stamp(path: str, storage: Mapping[str, Any]) -> str:
    if "://" not in path:
        found = os.stat(path)
        return f"{found.st_size} {found.st_mtime_ns}"
    info = _filesystem(path, storage).info(path)
    return f"{info.get('size')} {info.get('ETag') or info.get('mtime') or info.get('LastModified') or ''}"


@lru_cache(maxsize=1024)
def _footer(file: File) -> Any:
    """Metadata of a Parquet file, parsed once per process."""
    with file.open() as stream:
        return arrow_module("pyarrow.parquet").read_metadata(stream)


def schema_of(file: File) -> Any:
    """Names and types of a file's columns, from its first bytes or its last."""
    with file.reading():
        if file.kind == "Parquet":
            return _footer(file).schema.to_arrow_schema()
        with file.open() as stream:
            if file.kind == "CSV":
                return _csv_reader(stream).schema
            return _arrow_batches(stream)[0]


def chosen_columns(
    files: Sequence[File], bag: str, total: str, is_proportion: bool, features: Sequence[str] | None
) -> Columns:
    """The columns to read, by the first file; each other file must have them too."""
    if bag == total:
        raise InvalidInputError(f"the bag and its total must be two columns; got {bag!r} for both.")
    chosen: Columns | None = None
    for file in files:
        schema = schema_of(file)
        columns = columns_of(schema, file.path)
        if chosen is None:
            refuse_missing([bag, total, *(features or ())], columns, Path(file.path))
            with naming(file.path):
                numeric = [name for name, is_number in columns.items() if is_number]
                names = feature_columns(list(columns), numeric, bag, total, features)
            types = {str(schema.field(name).type) for name in names}
            id_type = schema.field(bag).type
            chosen = Columns(
                bag, total, is_proportion, names, types == {"float"}, getattr(id_type, "value_type", id_type)
            )
        refuse_missing(chosen.names, columns, Path(file.path))
        if text := [name for name in chosen.features if not columns[name]]:
            raise InvalidInputError(
                f"{file.path}: all files must have columns of the same types; {text[0]!r} is not numeric here. "
                f"There are {listed(columns)}."
            )
    assert chosen is not None
    return chosen


# ---------------------------------------------------------------------- pieces


@dataclass(frozen=True, slots=True)
class FilePiece:
    """Some row groups of a Parquet file in order, or a whole file of another format."""

    file: File
    row_groups: tuple[int, ...] = ()
    n_rows: int | None = None
    whole: bool = False
    numbers_as_float: bool = True  # of a CSV file; else each column has the type that its first block shows

    @property
    def name(self) -> str:
        return self.file.path

    def batches(self, names: Sequence[str], rows: int, threads: bool = False) -> Iterator[Any]:
        """Its record batches."""
        self.file.refuse_changed()
        with self.file.reading(), self.file.open() as stream:
            read = {"Parquet": self._parquet, "CSV": self._csv, "Arrow": self._arrow}[self.file.kind]
            yield from read(stream, list(names), rows, threads)

    def _parquet(self, stream: Any, names: list[str], rows: int, threads: bool) -> Iterator[Any]:
        local = self.file.is_local  # object stores want few large requests, disks a small memory
        opened = arrow_module("pyarrow.parquet").ParquetFile(
            stream, metadata=_footer(self.file), pre_buffer=not local, buffer_size=_BUFFER if local else 0
        )
        yield from opened.iter_batches(rows, row_groups=list(self.row_groups), columns=names, use_threads=threads)

    def _csv(self, stream: Any, names: list[str], rows: int, threads: bool) -> Iterator[Any]:
        arrow = arrow_module("pyarrow")
        known = columns_of(schema_of(self.file), self.name) if self.numbers_as_float else {}
        # Types are taken from the first block; a number that only later shows a fraction must not surprise.
        numbers = {name: arrow.float64() for name, is_number in known.items() if is_number}
        with _csv_reader(stream, include_columns=names, column_types=numbers) as opened:
            yield from (part for batch in opened for part in _sliced(batch, rows))

    def _arrow(self, stream: Any, names: list[str], rows: int, threads: bool) -> Iterator[Any]:
        _, batches = _arrow_batches(stream)
        for batch in batches:
            yield from _sliced(batch.select(names), rows)


@dataclass(frozen=True, slots=True)
class FolderPiece:
    """All rows of some bags, in the files of a folder and in any order."""

    folder: str
    whole: bool = True

    @property
    def name(self) -> str:
        return self.folder

    def batches(self, names: Sequence[str], rows: int, threads: bool = False) -> Iterator[Any]:
        """Its record batches."""
        table = arrow_module("pyarrow.dataset").dataset(self.folder, format="parquet").to_table(columns=list(names))
        yield from table.to_batches(max_chunksize=rows)


@dataclass(frozen=True, slots=True)
class TablePiece:
    """A table in memory: what a partition of a data frame becomes where it lies."""

    table: Any
    name: str
    whole: bool

    def batches(self, names: Sequence[str], rows: int, threads: bool = False) -> Iterator[Any]:
        """Its record batches."""
        yield from self.table.select(list(names)).to_batches(max_chunksize=rows)


def pieces_of(files: Sequence[File], n_columns: int) -> tuple[FilePiece, ...]:
    """All rows of the files, in order; row groups of a file are taken together while so many columns are small."""
    pieces: list[FilePiece] = []
    for file in files:
        if file.kind != "Parquet":
            pieces.append(FilePiece(file))
            continue
        footer = _footer(file)
        group: list[int] = []
        group_rows = 0
        at_once = max(_PIECE_BYTES // (8 * n_columns), 1)
        for i in range(footer.num_row_groups):
            n = footer.row_group(i).num_rows
            if group and group_rows + n > at_once:
                pieces.append(FilePiece(file, tuple(group), group_rows))
                group, group_rows = [], 0
            group.append(i)
            group_rows += n
        if group_rows:
            pieces.append(FilePiece(file, tuple(group), group_rows))
    return tuple(pieces)


def _csv_reader(stream: Any, **conversion: Any) -> Any:
    csv = arrow_module("pyarrow.csv")
    return csv.open_csv(
        stream,
        read_options=csv.ReadOptions(block_size=_CSV_BLOCK),
        convert_options=csv.ConvertOptions(**conversion),
    )


def _arrow_batches(stream: Any) -> tuple[Any, Iterator[Any]]:
    """Schema and batches of an Arrow file or stream."""
    ipc = arrow_module("pyarrow.ipc")
    head = stream.read(8)
    stream.seek(0)
    if bytes(head).startswith(b"ARROW1"):
        opened = ipc.open_file(stream)
        return opened.schema, (opened.get_batch(i) for i in range(opened.num_record_batches))
    opened = ipc.open_stream(stream)
    return opened.schema, iter(opened)


def _sliced(batch: Any, rows: int) -> Iterator[Any]:
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)
