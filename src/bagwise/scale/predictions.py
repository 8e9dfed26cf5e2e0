"""Predictions for rows that stay in files, written part by part.

Owns the way from files of rows, which need no bags and no totals, to one file with what a model says of each row.
Refuses rows that lack the model's features, in the name of their file; what was written until then is thrown away.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bagwise.arrays import AnyArray, FloatArray, as_matrix
from bagwise.data.io import arrow_module, columns_of, first_line, listed, naming, refuse_missing, write_tables
from bagwise.errors import InvalidInputError
from bagwise.scale.pieces import File, FilePiece, files_with_rows, pieces_of, schema_of

__all__ = ["PredictedRows", "write_predictions"]

# Never taken for features where the model has no names for them.
_ADDED = ("prediction", "probability")
_NO_FEATURES = ("bag", "positives", "label", *_ADDED)
# Numbers of a part: rows enough to be worth a call, in a few dozen megabytes.
_PART_NUMBERS = 1 << 21


@dataclass(frozen=True, slots=True)
class PredictedRows:
    """What was predicted.

    Attributes
    ----------
    n_rows, n_positive : int
        Rows, and those among them that are predicted positive.
    """

    n_rows: int
    n_positive: int


def write_predictions(
    model: Any,
    rows: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> PredictedRows:
    """Rows of files with a model's ``prediction`` and ``probability``, to a Parquet, CSV or Arrow file.

    Rows keep their order and all their columns, and are read, predicted and written part by part, in constant memory.
    The output is complete or absent.

    Parameters
    ----------
    model : a fitted classifier with predict(X)
        Its features are found by name. If it has no names for them, they are all numeric columns but ``bag``,
        ``positives``, ``label`` and earlier predictions.
    rows : file, folder or glob, or a URL that fsspec knows
    output : the file; its ending says the format
    storage_options : for fsspec

    Returns
    -------
    PredictedRows

    Examples
    --------
    >>> import bagwise as bw, numpy as np, tempfile, pathlib
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 0.5), np.zeros(2), np.eye(2), size=10, count=6)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> bw.write_bags(oracle.sample(500, np.random.default_rng(0)), folder / "bags.parquet")
    >>> model = bw.SpectralLTF().fit(bw.scan_bags(folder / "bags.parquet"))
    >>> bw.write_predictions(model, folder / "bags.parquet", folder / "predicted.parquet").n_rows
    5000
    """
    source = _Source.of(rows, model, storage_options or {})
    classes = getattr(model, "classes_", None)
    positive = 1 if classes is None else classes[1]
    n_rows = n_positive = 0

    def predicted() -> Iterator[Any]:
        nonlocal n_rows, n_positive
        for table, X in source.parts():
            labels = np.asarray(model.predict(X))
            columns = {"prediction": labels}
            if hasattr(model, "predict_proba"):
                columns["probability"] = model.predict_proba(X)[:, 1]
            n_rows, n_positive = n_rows + len(labels), n_positive + int((labels == positive).sum())
            yield _with_columns(table, columns)

    write_tables(predicted(), output)
    return PredictedRows(n_rows, n_positive)


@dataclass(frozen=True, slots=True)
class _Source:
    """Files of rows: what all columns are, and the features among them."""

    files: tuple[File, ...]
    schema: Any
    features: tuple[str, ...]
    by_name: bool  # the model knows its features by name

    @classmethod
    def of(cls, path: str | os.PathLike[str], model: Any, storage: Mapping[str, Any]) -> "_Source":
        """The files with rows; the first says which columns there are."""
        arrow = arrow_module("pyarrow")
        known = getattr(model, "feature_names_in_", None)
        names: Sequence[str] = []
        features: tuple[str, ...] = () if known is None else tuple(map(str, known))
        schemas: list[Any] = []
        files = files_with_rows(path, storage)
        for file in files:
            schema = schema_of(file)
            columns = columns_of(schema, file.path)
            if not schemas:
                names = list(columns)
                features = features or _numeric(columns, path, model)
            refuse_missing([*features, *names], columns, Path(file.path))
            if text := [name for name in features if not columns[name]]:
                raise InvalidInputError(
                    f"{file.path}: features must be numeric; column {text[0]!r} is not. Encode it as numbers."
                )
            schemas.append(arrow.schema([schema.field(name) for name in names]))
        try:
            merged = arrow.unify_schemas(schemas, promote_options="permissive")
        except arrow.ArrowException as error:
            raise InvalidInputError(
                f"{os.fspath(path)}: all files must have columns of the same types; {first_line(error)}."
            ) from None
        return cls(files, merged, features, known is not None)

    def parts(self) -> Iterator[tuple[Any, Any]]:
        """Some rows at a time: the table as it came, and what the model takes."""
        width = len(self.schema.names)
        rows = int(min(max(_PART_NUMBERS // width, 1 << 10), 1 << 17))
        file, before = "", 0
        for piece in pieces_of(self.files, width):
            file, before = piece.name, before if piece.name == file else 0
            for table in _tables(piece, self.schema, rows):
                with naming(f"{file}, from row {before:,} on" if before else file):
                    X = self._matrix(table)
                before += len(X)
                yield table, table.select(list(self.features)) if self.by_name else X

    def _matrix(self, table: Any) -> FloatArray:
        arrays = []
        for name in self.features:
            if nulls := table[name].null_count:
                raise InvalidInputError(
                    f"column {name!r} must have no missing values; got {nulls}. Fill them or drop those rows."
                )
            arrays.append(table[name].to_numpy())
        single = all(array.dtype == np.float32 for array in arrays)
        X = np.empty((table.num_rows, len(arrays)), np.float32 if single else np.float64)
        for j, array in enumerate(arrays):
            X[:, j] = array
        return as_matrix(X, what="the features", column_names=self.features)


def _numeric(columns: Mapping[str, bool], path: str | os.PathLike[str], model: Any) -> tuple[str, ...]:
    """The features of a model that has no names for them."""
    found = tuple(name for name, is_number in columns.items() if is_number and name not in _NO_FEATURES)
    if not found:
        raise InvalidInputError(f"{os.fspath(path)} must have numeric columns; it has {listed(columns)}.")
    wanted = getattr(model, "n_features_in_", len(found))
    if len(found) != wanted:
        raise InvalidInputError(
            f"{os.fspath(path)}: rows must have the {wanted} features of the model; got {len(found)} numeric columns. "
            "Leave the others out."
        )
    return found


def _tables(piece: FilePiece, schema: Any, rows: int) -> Iterator[Any]:
    """The rows of a piece as tables of this schema."""
    arrow = arrow_module("pyarrow")
    exact = FilePiece(piece.file, piece.row_groups, piece.n_rows, numbers_as_float=False)
    for batch in exact.batches(schema.names, rows, threads=True):
        if batch.num_rows:
            with piece.file.reading():
                table = arrow.Table.from_batches([batch]).select(schema.names).cast(schema)
                table.validate(full=True)  # text that is not UTF-8 would only fail later, far from here
            yield table


def _with_columns(table: Any, columns: Mapping[str, AnyArray]) -> Any:
    """The table with further columns on the right; those of the same name are replaced."""
    arrow = arrow_module("pyarrow")
    table = table.drop_columns([name for name in columns if name in table.column_names])
    for name, values in columns.items():
        table = table.append_column(name, arrow.array(values))
    return table
