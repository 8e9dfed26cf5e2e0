"""Bags in files: Parquet, CSV and Arrow in, the same out.

Owns every byte that the house reads or writes as a table, and `whole_file`, by which any output appears
complete or not at all. Refuses to guess: a missing, repeated or non-numeric column, an empty file and a
file that is not what its name says are each one sentence that names the file. Only the columns that are
needed are read.

Vocabulary: a *source* is a file, a folder or a glob; its *files* have the same columns and are read in the
order of their names, so the rows of one bag may lie in several of them.
"""

import difflib
import glob
import itertools
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from bagwise.arrays import AnyArray
from bagwise.bags import Bags, feature_columns, require_exact
from bagwise.errors import InvalidInputError, MissingExtraError

__all__ = [
    "arrow_module",
    "bags_table",
    "columns_of",
    "first_line",
    "folder_keys",
    "format_of",
    "is_table",
    "listed",
    "naming",
    "numeric_columns",
    "read_bags",
    "refuse_missing",
    "refuse_unwritable",
    "source_files",
    "source_text",
    "whole_file",
    "write_bags",
    "write_table",
    "write_tables",
]

_FORMATS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
    ".csv": "CSV",
}
_MAGIC = {"Parquet": b"PAR1", "Arrow": b"ARROW1"}
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_KNOWN = "Known are .parquet, .pq, .arrow, .feather, .ipc and .csv"
# The row numbers that pandas leaves in files; a row number is never meant as a feature.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__|Unnamed: 0")


# ---------------------------------------------------------------------- bags


def read_bags(
    path: str | os.PathLike[str],
    *,
    bag: str = "bag",
    count: str | None = None,
    proportion: str | None = None,
    features: Sequence[str] | None = None,
) -> Bags:
    """Bags from a Parquet, CSV or Arrow file, a folder of them, or a glob.

    Parameters
    ----------
    path : file, folder or glob
    bag : column with the bag ids
    count, proportion : column with each bag's total, the same in all its rows; by default ``positives``
    features : columns to learn from; by default the numeric ones but the bag, the total and ``label``

    Examples
    --------
    >>> import bagwise as bw, tempfile, pathlib
    >>> wards = pathlib.Path(tempfile.mkdtemp(), "wards.csv")
    >>> _ = wards.write_text("ward,relapsed,age\\na,1,61\\na,1,44\\nb,0,52\\n")
    >>> bw.read_bags(wards, bag="ward", count="relapsed")
    Bags(2 bags, 3 rows, 1 feature; sizes 1 to 2, 33.3 % positive)
    """
    if count is None and proportion is None:
        count = "positives"
    if count is not None and proportion is not None:
        raise InvalidInputError(f"bags are read with one of count= and proportion=; got {count!r} and {proportion!r}.")
    total = count if count is not None else str(proportion)

    def wanted(columns: Mapping[str, bool], keys: Mapping[str, Any], file: Path) -> list[str]:
        if bag == total:
            raise InvalidInputError(f"the bag and its total must be two columns; got {bag!r} for both.")
        refuse_missing([bag, total, *(() if features is None else features)], columns, file)
        numeric = numeric_columns(columns, keys, features)
        with naming(file):
            return [bag, total, *feature_columns(list(columns), numeric, bag, total, features)]

    table = _read(path, wanted)
    with naming(path):
        return Bags.from_frame(table, bag, count, proportion=proportion, features=table.column_names[2:])


def write_bags(
    bags: Bags,
    path: str | os.PathLike[str],
    *,
    bag: str = "bag",
    count: str = "positives",
    labels: AnyArray | None = None,
) -> None:
    """Bags to a Parquet, CSV or Arrow file: the features, the bag's id and its total in each row.

    Parameters
    ----------
    bags : Bags
    path : the file; its ending says the format, and an existing file is replaced only by a complete one
    bag, count : names of the two columns
    labels : a further column ``label``, never a feature by default; optional

    Examples
    --------
    >>> import bagwise as bw, tempfile, pathlib
    >>> bags = bw.Bags.from_sizes([[0.0], [1.0]], sizes=[2], counts=[1])
    >>> file = pathlib.Path(tempfile.mkdtemp(), "bags.parquet")
    >>> bw.write_bags(bags, file)
    >>> bw.read_bags(file)
    Bags(1 bag, 2 rows, 1 feature; size 2, 50.0 % positive)
    """
    require_exact(bags, "a file of bags")
    write_table(bags_table(bags, bag=bag, count=count, labels=labels), path)


def bags_table(bags: Bags, *, bag: str = "bag", count: str = "positives", labels: AnyArray | None = None) -> Any:
    """The Arrow table that `write_bags` writes."""
    arrow = arrow_module("pyarrow")
    names = bags.feature_names or tuple(f"x{j}" for j in range(bags.n_features))
    extra = [bag, count, *(["label"] if labels is not None else [])]
    if clash := [name for name in extra if (*names, *extra).count(name) > 1]:
        raise InvalidInputError(
            f"column names must be distinct; {clash[0]!r} stands more than once. Pass other names as bag= and count=."
        )
    of_row = bags.row_bags()
    columns: dict[str, AnyArray] = {name: bags.X[:, j] for j, name in enumerate(names)}
    columns |= {bag: bags.ids[of_row], count: bags.counts[of_row]}
    if labels is not None:
        columns["label"] = labels
    try:
        return arrow.table(columns)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        raise InvalidInputError(
            f"ids that go into a file must be all text or all integers; {first_line(error)}."
        ) from None


# ---------------------------------------------------------------------- files


def source_text(path: Any) -> str:
    """What names a source, as text."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(text := os.fspath(path), str):
        raise InvalidInputError(
            f"a source must be the path of a file, a folder or a glob; got a {type(path).__name__}. Several files are "
            "one glob, or one folder."
        )
    return text


def is_table(path: str) -> bool:
    """Whether a file inside of a folder counts: by its ending, and neither hidden nor ``_…``, nor its folders."""
    return Path(path).suffix.lower() in _FORMATS and not re.search(r"(^|/)[._]", path)


def source_files(path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The files of a source in the order of their names; hidden ones and ``_…`` are left out."""
    text = source_text(path)
    if "://" in text:
        raise InvalidInputError(
            f"{text} must be a local path to be read into memory. Stream from a URL: bagwise.scan_bags, or --stream."
        )
    place = Path(text)
    if place.is_file():
        found = [place]
    elif place.is_dir():
        inside = (file for file in place.rglob("*") if file.is_file())
        found = sorted(file for file in inside if is_table(file.relative_to(place).as_posix()))
        if not found:
            raise InvalidInputError(f"folder {text} must hold tables; it has none. {_KNOWN}.")
    elif glob.has_magic(text):
        found = sorted(file for file in map(Path, glob.glob(text, recursive=True)) if file.is_file())
        if not found:
            raise InvalidInputError(f"pattern {text} must match at least one file; it matches none.")
    else:
        raise InvalidInputError(f"file {text} must exist; there is none.{_near_files(place)}")
    for file in found:
        format_of(file)
    return tuple(found)


def folder_keys(paths: Iterable[str]) -> dict[str, dict[str, str | int]]:
    """Columns that folders state by their names, ``ward=7/part-0.parquet``, of each file: Hive's way to cut a table.

    Values are integers where all of a column are, else text.
    """
    stated: dict[str, dict[str, str]] = {}
    for path in paths:
        pairs = (folder.partition("=") for folder in Path(path).parts[:-1] if "=" in folder)
        stated[path] = {name: unquote(value) for name, _, value in pairs if name and value not in ("", _NO_VALUE)}
    are_integers = {
        name: all(re.fullmatch(r"0|-?[1-9]\d{0,17}", one[name]) for one in stated.values() if name in one)
        for name in set().union(*stated.values())
    }
    return {
        path: {name: int(value) if are_integers[name] else value for name, value in pairs.items()}
        for path, pairs in stated.items()
    }


def numeric_columns(columns: Mapping[str, bool], keys: Mapping[str, Any], features: Sequence[str] | None) -> list[str]:
    """The numeric columns; of those that folders state, only the ones that are asked for."""
    asked = () if features is None else tuple(features)
    return [name for name, is_number in columns.items() if is_number and (name not in keys or name in asked)]


def write_table(table: Any, path: str | os.PathLike[str]) -> None:
    """An Arrow table to a file whose ending says the format, complete or not at all."""
    write_tables([table], path)


def write_tables(tables: Iterable[Any], path: str | os.PathLike[str], *, noise: Sequence[str] = ()) -> None:
    """Arrow tables of one schema to one file, one after the other, complete or not at all.

    Each becomes a row group (Parquet) or a batch (Arrow). Columns of ``noise`` neither repeat nor compress and are
    written as they are, which is faster to write and to read. Nothing is kept in memory but the table at hand.
    """
    file = Path(path)
    kind = format_of(file)
    refuse_unwritable(file)
    tables = iter(tables)
    first = next(tables)
    with whole_file(file) as draft, _writer(kind, draft, first.schema, noise) as write:
        for table in itertools.chain([first], tables):
            write(table)


@contextmanager
def _writer(kind: str, draft: Path, schema: Any, noise: Sequence[str]) -> Iterator[Callable[[Any], None]]:
    if kind == "Parquet":
        packed = [name for name in schema.names if name not in noise]
        codec = {name: "snappy" if name in packed else "none" for name in schema.names}
        writer = arrow_module("pyarrow.parquet").ParquetWriter(draft, schema, use_dictionary=packed, compression=codec)
        with writer:
            yield lambda table: writer.write_table(table, row_group_size=max(table.num_rows, 1))
    elif kind == "Arrow":
        ipc = arrow_module("pyarrow.ipc")
        with open(draft, "wb") as stream, ipc.new_file(stream, schema, options=_feather_options(ipc)) as writer:
            yield writer.write_table
    else:
        with arrow_module("pyarrow.csv").CSVWriter(draft, schema) as writer:
            yield writer.write_table


def _feather_options(ipc: Any) -> Any:
    """LZ4 where this build of pyarrow has it, as write_feather does."""
    codec = arrow_module("pyarrow").Codec
    return ipc.IpcWriteOptions(compression="lz4" if codec.is_available("lz4") else None)


def refuse_unwritable(path: str | os.PathLike[str]) -> None:
    """Refuse a place where no file can be made, before work is done whose result would be lost."""
    file = Path(path)
    if file.is_dir():
        raise InvalidInputError(f"{file} must be a file to write; it is a folder. Add a file name.")
    if not file.parent.is_dir():
        raise InvalidInputError(f"folder {file.parent} must exist to write {file.name}; make it first.")
    if not os.access(file.parent, os.W_OK):
        raise InvalidInputError(f"{file} must be writable; its folder is read-only. Choose another place.")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A draft beside the file that takes its place at the end; after an error nothing has changed."""
    file = Path(path)
    refuse_unwritable(file)
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}.tmp")
    try:
        draft.touch(exist_ok=False)
        yield draft
        os.replace(draft, file)
    except OSError as error:
        raise InvalidInputError(
            f"{file} must be writable; {error.strerror or first_line(error)}. Choose another place."
        ) from None
    finally:
        draft.unlink(missing_ok=True)


def _read(
    path: str | os.PathLike[str], wanted: Callable[[Mapping[str, bool], Mapping[str, Any], Path], list[str]]
) -> Any:
    """The columns that ``wanted`` picks, of all files of a source, as one Arrow table with rows."""
    arrow = arrow_module("pyarrow")
    tables: list[Any] = []
    empty: list[str] = []
    files = source_files(path)
    keys = folder_keys(map(str, files))
    for file in files:
        try:
            opened = _open(file)
            columns = columns_of(opened.schema, file)
            of_folders = {name: value for name, value in keys[str(file)].items() if name not in columns}
            if opened.n_rows == 0:  # an empty part of a folder says nothing, not even the types of a CSV file
                empty.append(f"{file} must have rows; it has only columns ({listed(columns)}).")
                continue
            columns |= {name: isinstance(value, int) for name, value in of_folders.items()}
            names = tables[0].column_names if tables else wanted(columns, of_folders, file)
            refuse_missing(names, columns, file)
            table = opened.read([name for name in names if name not in of_folders])
            table.validate(full=True)  # text that is not UTF-8 would only fail later, far from here
            for name in names:
                if name in of_folders:
                    table = table.append_column(name, arrow.repeat(arrow.scalar(of_folders[name]), table.num_rows))
            tables.append(table.select(names))
        except InvalidInputError:
            raise
        except Exception as error:  # of a damaged file a reader may raise anything, UnicodeDecodeError among it
            raise InvalidInputError(f"{file} must be a readable {format_of(file)} file; {first_line(error)}.") from None
    if not tables:
        raise InvalidInputError(empty[0])
    if len(tables) == 1:
        return tables[0]
    try:
        return arrow.concat_tables(map(_decoded, tables), promote_options="permissive")
    except arrow.ArrowException as error:
        raise InvalidInputError(
            f"{path}: all files must have columns of the same types; {first_line(error)}."
        ) from None


def _decoded(table: Any) -> Any:
    """The table with the values that dictionaries stand for."""
    is_coded = arrow_module("pyarrow").types.is_dictionary
    fields = [field.with_type(field.type.value_type) if is_coded(field.type) else field for field in table.schema]
    return table.cast(arrow_module("pyarrow").schema(fields))


@dataclass(frozen=True, slots=True)
class _Opened:
    """A file whose columns are known before its rows are read."""

    file: Path
    schema: Any
    n_rows: int
    read: Callable[[list[str]], Any]


def columns_of(schema: Any, file: str | os.PathLike[str]) -> dict[str, bool]:
    """Name of each column, and whether it is numeric; the row numbers of pandas are left out."""
    types = arrow_module("pyarrow").types
    columns: dict[str, bool] = {}
    for field in schema:
        if field.name in columns:
            raise InvalidInputError(
                f"{file}: column names must be distinct; {field.name!r} stands more than once. Rename one of them."
            )
        if field.name.strip() == "":
            raise InvalidInputError(
                f"{file}: each column must have a name; column {len(columns) + 1} has none. "
                "Name it, or drop it if it holds row numbers (in pandas: index=False)."
            )
        if _PANDAS_INDEX.fullmatch(field.name):
            continue
        kind = field.type
        columns[field.name] = bool(
            types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)
        )
    return columns


def _open(file: Path) -> _Opened:
    """A file by its ending, after a look at its first bytes."""
    kind = format_of(file)
    with open(file, "rb") as stream:
        head = stream.read(8)
    if not head:
        raise InvalidInputError(f"{file} must hold a table; it is empty (0 bytes).")
    if kind == "Parquet":
        if not head.startswith(_MAGIC[kind]):
            raise InvalidInputError(f"{file} must be a Parquet file; it begins with {head[:4]!r}, not b'PAR1'.")
        parquet = arrow_module("pyarrow.parquet").ParquetFile(file)
        read = lambda names: parquet.read(columns=names).select(names)
        return _Opened(file, parquet.schema_arrow, parquet.metadata.num_rows, read)
    if kind == "Arrow":
        ipc = arrow_module("pyarrow.ipc")
        if head.startswith(_MAGIC[kind]):
            table = ipc.open_file(str(file)).read_all()
        else:
            with open(file, "rb") as stream:
                table = ipc.open_stream(stream).read_all()
        return _Opened(file, table.schema, table.num_rows, table.select)
    csv = arrow_module("pyarrow.csv")
    table = csv.read_csv(file)
    return _Opened(file, table.schema, table.num_rows, table.select)


def format_of(file: Path) -> str:
    if file.suffix.lower() not in _FORMATS:
        raise InvalidInputError(f"the ending of {file} must say its format; got {file.suffix or 'none'!r}. {_KNOWN}.")
    return _FORMATS[file.suffix.lower()]


def arrow_module(module: str) -> Any:
    """A module of pyarrow, on first use."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError("pyarrow", "files", "reading and writing tables") from None


def refuse_missing(wanted: Sequence[str], columns: Mapping[str, bool], file: Path) -> None:
    for name in wanted:
        if name not in columns:
            near = difflib.get_close_matches(name, columns, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InvalidInputError(f"{file}: column {name!r} must exist; there are {listed(columns)}.{hint}")


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever is refused inside is refused in the name of the source."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{os.fspath(path)}: {_one_line(str(error))}") from None


def listed(names: Sequence[str] | Mapping[str, bool]) -> str:
    """Names with commas; of many, the first dozen."""
    names = list(names)
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return _one_line(", ".join(names[:12])) + more


def _near_files(place: Path) -> str:
    if not place.parent.is_dir():
        return f" Its folder {place.parent} does not exist either."
    near = difflib.get_close_matches(place.name, [file.name for file in place.parent.iterdir()], n=1)
    return f" Did you mean {place.with_name(near[0])}?" if near else ""


def first_line(error: BaseException) -> str:
    return _one_line((str(error).strip().splitlines() or [type(error).__name__])[0].rstrip("."))


def _one_line(text: str) -> str:
    """Text from a file, whose names may hold anything, fit for a message."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
