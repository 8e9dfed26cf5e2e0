"""Files and tables as pieces: what one thread or worker reads at a time, batch by batch.

Owns reading: which columns, from which row groups, and whether a file is still the one that was listed. Refuses, in one
sentence that names the file, whatever cannot be read, has other columns, or changed since. A piece knows no bags; it
gives batches of columns. Only its description travels to a worker, never its rows.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    folder_keys,
    format_of,
    is_table,
    listed,
    naming,
    numeric_columns,
    refuse_missing,
    source_files,
    source_text,
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
    "files_with_rows",
    "pieces_of",
    "schema_of",
]

# Row groups are taken together up to so many bytes: enough to hide the cost of opening, little enough to spread.
_PIECE_BYTES = 1 << 26
# A page that is larger is read past the buffer; a larger one would be filled only to be copied.
_BUFFER = 1 << 16
# The types of the columns of a CSV file are taken from so many bytes.
_CSV_BLOCK = 1 << 23
# What stores call the mark by which a change of a file shows.
_MARKS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
# Files that are looked into at a time before any is read.
_AT_ONCE = 16


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
    keys: Mapping[str, str | int] = field(default_factory=dict, compare=False)  # columns that its folders state
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
            now = _stamp(self.path, self.storage, fresh=True)
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
    text = source_text(path)
    if "://" not in text:
        paths = [os.path.abspath(file) for file in source_files(text)]
    else:
        with _reaching(text):
            paths = _remote_paths(text, storage)
    keys = folder_keys(paths)
    files = []
    for one in paths:
        try:
            with _reaching(one):
                files.append(File(one, format_of(Path(one)), _stamp(one, storage), keys[one], dict(storage)))
        except FileNotFoundError:
            raise InvalidInputError(f"file {one} must exist; there is none.") from None
    return tuple(files)


def _remote_paths(url: str, storage: Mapping[str, Any]) -> list[str]:
    system = _filesystem(url, storage)
    inside = system._strip_protocol(url)
    if system.isdir(inside):
        found = sorted(f for f in system.find(inside) if is_table(f[len(inside) :]))
    else:
        found = sorted(system.glob(inside)) if any(c in inside for c in "*?[") else [inside]
    if not found:
        raise InvalidInputError(f"{url} must name at least one table; there is none.")
    return [system.unstrip_protocol(f) for f in found]


@contextmanager
def _reaching(place: str) -> Iterator[None]:
    """Whatever a store answers, no driver for it among it, is said in one sentence that names the place."""
    try:
        yield
    except (BagwiseError, FileNotFoundError):
        raise
    except Exception as error:
        raise InvalidInputError(
            f"{place} must be within reach; {first_line(error)}. Drivers and credentials are fsspec's: see "
            "storage_options."
        ) from None


def _filesystem(url: str, storage: Mapping[str, Any]) -> Any:
    try:
        import fsspec
    except ImportError:
        raise MissingExtraError("dask", "dask", "reading by URL") from None
    return fsspec.core.url_to_fs(url, **storage)[0]


def _stamp(path: str, storage: Mapping[str, Any], fresh: bool = False) -> str:
    """Size and time of change, or what a store has in place of it; ``fresh``: not what a listing said."""
    if "://" not in path:
        found = os.stat(path)
        return f"{found.st_size} {found.st_mtime_ns}"
    system = _filesystem(path, storage)
    if fresh:
        system.invalidate_cache(path)
    info = system.info(path)
    mark = next((info[name] for name in _MARKS if info.get(name)), "")
    size = info.get("size")
    return f"{-1 if size is None else size} {str(mark).strip(chr(34))}"


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


def files_with_rows(path: str | os.PathLike[str], storage: Mapping[str, Any]) -> tuple[File, ...]:
    """The files of a source that have rows: an empty one says nothing, not even the types of a CSV file."""
    files = files_of(path, storage)
    for file in files:
        if not file.n_bytes:
            raise InvalidInputError(f"{file.path} must hold a table; it is empty (0 bytes).")
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # footers are small and stores far
        have = list(pool.map(_has_rows, files))
    if not any(have):
        columns = columns_of(schema_of(files[0]), files[0].path)
        raise InvalidInputError(f"{files[0].path} must have rows; it has only columns ({listed(columns)}).")
    return tuple(file for file, has_rows in zip(files, have, strict=True) if has_rows)


def _has_rows(file: File) -> bool:
    names = list(columns_of(schema_of(file), file.path))
    return any(
        piece.n_rows or any(batch.num_rows for batch in piece.batches(names[:1], 1))
        for piece in pieces_of([file], len(names) or 1)
    )


def chosen_columns(
    files: Sequence[File], bag: str, total: str, is_proportion: bool, features: Sequence[str] | None
) -> Columns:
    """The columns to read, by the first file; each other file must have them too."""
    if bag == total:
        raise InvalidInputError(f"the bag and its total must be two columns; got {bag!r} for both.")
    names: tuple[str, ...] = ()
    id_type: Any = None
    single = True
    for file in files:
        schema = schema_of(file)
        columns = columns_of(schema, file.path)
        of_folders = {name: isinstance(value, int) for name, value in file.keys.items() if name not in columns}
        columns |= of_folders
        if not names:
            refuse_missing([bag, total, *(features or ())], columns, Path(file.path))
            with naming(file.path):
                numeric = numeric_columns(columns, of_folders, features)
                names = feature_columns(list(columns), numeric, bag, total, features)
        refuse_missing([bag, total, *names], columns, Path(file.path))
        if text := [name for name in names if not columns[name]]:
            raise InvalidInputError(
                f"{file.path}: all files must have columns of the same types; {text[0]!r} is not numeric here. "
                f"There are {listed(columns)}."
            )
        single = single and all(name in schema.names and str(schema.field(name).type) == "float" for name in names)
        own = _id_type(schema.field(bag).type if bag not in of_folders else _key_type(file.keys[bag]), bag, file.path)
        id_type = own if id_type is None else _common_type(id_type, own, bag, file.path)
    return Columns(bag, total, is_proportion, names, single, id_type)


def _key_type(value: str | int) -> Any:
    arrow = arrow_module("pyarrow")
    return arrow.int64() if isinstance(value, int) else arrow.string()


def _id_type(kind: Any, bag: str, where: str) -> Any:
    """The type that ids of a column are read as: plain values, however they are encoded."""
    arrow = arrow_module("pyarrow")
    if isinstance(kind, arrow.BaseExtensionType):
        kind = kind.storage_type
    if arrow.types.is_dictionary(kind):
        kind = kind.value_type
    if arrow.types.is_nested(kind):
        raise InvalidInputError(f"{where}: ids must be numbers, text or dates; column {bag!r} holds {kind}.")
    views = {"string_view": arrow.large_string, "binary_view": arrow.large_binary}
    return views[str(kind)]() if str(kind) in views else kind


def _common_type(kind: Any, other: Any, bag: str, where: str) -> Any:
    """The type that holds the ids of both, if they are of one kind."""
    arrow = arrow_module("pyarrow")
    try:
        schemas = [arrow.schema([(bag, one)]) for one in (kind, other)]
        return arrow.unify_schemas(schemas, promote_options="permissive").field(bag).type
    except arrow.ArrowException:
        raise InvalidInputError(
            f"{where}: all files must have columns of the same types; {bag!r} is {other} here and {kind} before."
        ) from None


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
        read = {"Parquet": self._parquet, "CSV": self._csv, "Arrow": self._arrow}[self.file.kind]
        of_folders = [name for name in self.file.keys if name in names and name not in schema_of(self.file).names]
        with self.file.reading(), self.file.open() as stream:
            for batch in read(stream, [name for name in names if name not in of_folders], rows, threads):
                for name in of_folders:
                    value = arrow_module("pyarrow").scalar(self.file.keys[name])
                    batch = batch.append_column(name, arrow_module("pyarrow").repeat(value, batch.num_rows))
                yield batch

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
        _, batches = _arrow_batches(stream, names)
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


def _arrow_batches(stream: Any, names: Sequence[str] | None = None) -> tuple[Any, Iterator[Any]]:
    """Schema and batches of an Arrow file or stream; of some columns only, if these are named."""
    ipc = arrow_module("pyarrow.ipc")
    head = stream.read(8)
    is_file = bytes(head).startswith(b"ARROW1")

    def opened(**options: Any) -> Any:
        stream.seek(0)
        return ipc.open_file(stream, **options) if is_file else ipc.open_stream(stream, **options)

    found = opened()
    if names is not None:
        found = opened(options=ipc.IpcReadOptions(included_fields=[found.schema.names.index(name) for name in names]))
    batches = (found.get_batch(i) for i in range(found.num_record_batches)) if is_file else iter(found)
    return found.schema, batches


def _sliced(batch: Any, rows: int) -> Iterator[Any]:
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)
