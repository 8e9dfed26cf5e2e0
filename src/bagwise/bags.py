"""Bags: rows of features in groups, and of each group only the number of positives.

Owns the noun that everything else is a function of, and the bag target that lets scikit-learn carry it. Refuses, once
and in one sentence, whatever does not fit: after the door no other room validates again.

Vocabulary: a *bag* has a *size* (rows), a *count* (positives among them) and an *id*; its *proportion* is count/size.
Counts are canonical, as integers compare exactly. Rows of a bag are kept together, bags in the order of their first
row.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from bagwise.arrays import AnyArray, FloatArray, IntArray, as_array, as_matrix, first_non_number
from bagwise.errors import InvalidInputError, listed, one_line
from bagwise.releases import CountNoise, Release

__all__ = ["BagSource", "Bags", "bag_target", "is_bag_target", "is_dask", "require_exact"]

T = TypeVar("T")


@runtime_checkable
class BagSource(Protocol):
    """Where a learner of sums has its bags from: memory (`Bags`), files, or the workers of a cluster.

    What the rows of all bags come to is asked as a ``task`` on some whole bags whose results add up with ``+``; how the
    bags are cut into parts, and where each part is worked on, is the source's affair.
    """

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        ...

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if they have any."""
        ...

    def reduce(self, task: "Callable[[Bags], T]") -> T:
        """The sum of ``task(part)`` over parts that hold each bag once."""
        ...

    def split(self, fraction: float, rng: np.random.Generator) -> "tuple[BagSource, BagSource]":
        """Two random parts by bags, the first with about the given fraction of them."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Bags:
    """Rows grouped by bag, with the number of positives of each bag.

    Build one with `from_arrays`, `from_sizes` or `from_frame`; these check, the constructor does not.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        Features; the rows of a bag are contiguous. float32 stays float32.
    sizes, counts : int arrays of shape (n_bags,)
        Rows, and positives among them, of each bag.
    ids : array of shape (n_bags,)
        What the caller names the bags.
    feature_names : tuple of str, or None
    release : Release, or None
        Totals as they were released with noise (see `CountNoise`); the counts are then the nearest possible ones.

    Examples
    --------
    >>> import bagwise as bw
    >>> bags = bw.Bags.from_arrays([[0.0], [1.0], [2.0]], ["a", "b", "a"], counts={"a": 1, "b": 0})
    >>> bags
    Bags(2 bags, 3 rows, 1 feature; sizes 1 to 2, 33.3 % positive)
    >>> bags.proportions
    array([0.5, 0. ])
    """

    X: FloatArray
    sizes: IntArray
    counts: IntArray
    ids: AnyArray
    feature_names: tuple[str, ...] | None = None
    release: Release | None = None

    # ------------------------------------------------------------------ constructors

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        ids: Any,
        *,
        counts: Any = None,
        proportions: Any = None,
        noise: CountNoise | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> "Bags":
        """Bags from one id per row; rows of a bag may lie anywhere.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
        ids : one hashable per row
        counts, proportions : mapping from id to value, or one value per distinct id in sorted order
            Exactly one of the two. A proportion must be a multiple of 1 / size.
        noise : CountNoise, optional
            Noise in the counts as they were released; they may then be any real numbers.
        feature_names : names of the columns of X, optional

        Examples
        --------
        >>> import bagwise as bw
        >>> bw.Bags.from_arrays([[0.0], [1.0], [2.0]], [7, 3, 7], proportions=[1.0, 0.5]).counts
        array([1, 1])
        """
        names = _feature_names(X, feature_names)
        X = as_matrix(X, column_names=names)
        group = _group(_id_array(ids, len(X)))
        values = _values_by_bag(group.ids, counts, proportions)
        totals, release = _stated(values, group.sizes, group.ids, noise, are_proportions=counts is None)
        return cls(X if group.order is None else X[group.order], group.sizes, totals, group.ids, names, release)

    @classmethod
    def from_sizes(
        cls,
        X: Any,
        sizes: Any,
        counts: Any = None,
        *,
        proportions: Any = None,
        ids: Any = None,
        noise: CountNoise | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> "Bags":
        """Bags from rows that are already grouped: the first sizes[0] rows are the first bag, and so on.

        Each bag has its total in ``counts`` or ``proportions``, exactly one of the two.

        Examples
        --------
        >>> import bagwise as bw
        >>> bw.Bags.from_sizes([[0.0], [1.0], [2.0]], sizes=[1, 2], counts=[0, 1]).n_bags
        2
        """
        names = _feature_names(X, feature_names)
        X = as_matrix(X, column_names=names)
        sizes = _integers(sizes, "sizes")
        if sizes.ndim != 1:
            raise InvalidInputError(f"sizes must be one per bag; got an array of shape {sizes.shape}.")
        if len(sizes) and sizes.min() < 1:
            at = int(np.argmin(sizes))
            raise InvalidInputError(f"sizes must be at least 1; got {sizes[at]} in bag {at}. Leave empty bags out.")
        if sizes.sum() != len(X):
            raise InvalidInputError(
                f"sizes must add up to the number of rows; got {sizes.sum()} for {len(X)} rows. Each row "
                "belongs to one bag."
            )
        labels = np.arange(len(sizes)) if ids is None else _id_array(ids, len(sizes), per="bag")
        if ids is not None:
            _refuse_repeated(labels)
        if (counts is None) == (proportions is None):
            raise InvalidInputError("exactly one of counts= and proportions= must be given: the total of each bag.")
        by_proportion = counts is None
        values = proportions if by_proportion else counts
        totals, release = _stated(values, sizes, labels, noise, are_proportions=by_proportion)
        return cls(X, sizes, totals, labels, names, release)

    @classmethod
    def from_runs(
        cls,
        X: FloatArray,
        sizes: IntArray,
        totals: AnyArray,
        ids: AnyArray,
        *,
        are_proportions: bool,
        feature_names: tuple[str, ...],
    ) -> "Bags":
        """Bags from grouped rows that their reader has checked, many small parts of them: only totals and ids are
        checked here."""
        labels = _id_array(ids, len(sizes), per="bag")
        counts = _totals(totals, sizes, labels, are_proportions=are_proportions)
        return cls(X, sizes, counts, labels, feature_names)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        bag: str,
        count: str | None = None,
        *,
        proportion: str | None = None,
        noise: CountNoise | None = None,
        features: Sequence[str] | None = None,
    ) -> "Bags":
        """Bags from a pandas, polars or pyarrow table in which each row states its bag and its bag's total.

        Parameters
        ----------
        frame : the table
        bag : name of the column with the bag ids
        count, proportion : name of the column with the total, the same in all rows of a bag; exactly one
        noise : CountNoise, optional
            Noise in the counts as they were released; they may then be any real numbers.
        features : columns to learn from; by default all numeric ones but the bag, the total and ``label``

        Examples
        --------
        >>> import bagwise as bw, pandas as pd
        >>> wards = pd.DataFrame({"ward": ["a", "a", "b"], "relapsed": [1, 1, 0], "age": [61.0, 44.0, 52.0]})
        >>> bw.Bags.from_frame(wards, bag="ward", count="relapsed").feature_names
        ('age',)
        """
        import narwhals.stable.v2 as nw

        if (count is None) == (proportion is None):
            raise InvalidInputError(
                "from_frame needs exactly one of count= and proportion=, the column with each bag's total."
            )
        total = cast(str, count if count is not None else proportion)
        _refuse_odd_columns(frame)
        try:
            table = nw.from_native(frame, eager_only=True)
        except TypeError:
            raise InvalidInputError(
                f"the table must be a pandas, polars or pyarrow one in memory; got a {type(frame).__name__}. "
                "Collect a lazy one first; for arrays use from_arrays."
            ) from None
        names = feature_columns(table.columns, _numeric_columns(table), bag, total, features)
        if len(table) == 0:
            raise InvalidInputError(f"a table of bags must have rows; got none (columns {listed(table.columns)}).")
        for column in (bag, total, *names):
            if (nulls := int(table[column].null_count())) > 0:
                raise InvalidInputError(
                    f"column {column!r} must have no missing values; got {nulls}. Fill them or drop their bags."
                )
        X = as_matrix(_matrix(table, names), what="the features", column_names=names)
        group = _group(_id_array(table[bag].to_numpy(), len(X)))
        values = group.constant(table[total].to_numpy(), total)
        totals, release = _stated(values, group.sizes, group.ids, noise, are_proportions=proportion is not None)
        return cls(X if group.order is None else X[group.order], group.sizes, totals, group.ids, names, release)

    @classmethod
    def from_row_proportions(
        cls, X: Any, ids: Any, proportions: Any, *, feature_names: Sequence[str] | None = None
    ) -> "Bags":
        """Bags from one id and one proportion per row, the same in all rows of a bag."""
        names = _feature_names(X, feature_names)
        X = as_matrix(X, column_names=names)
        group = _group(_id_array(ids, len(X)))
        values = group.constant(_numbers(proportions, "proportions"), "proportion")
        totals = _totals(values, group.sizes, group.ids, are_proportions=True)
        return cls(X if group.order is None else X[group.order], group.sizes, totals, group.ids, names)

    @classmethod
    def from_target(cls, X: Any, y: Any, *, feature_names: Sequence[str] | None = None) -> "Bags":
        """Bags from rows and the bag target that `as_rows` and `bag_target` make.

        A fold that cut a bag is noticed, as each record carries its bag's size.
        """
        names = _feature_names(X, feature_names)
        X = as_matrix(X, column_names=names)
        y = as_array(y, "y")
        if len(y) != len(X):
            raise InvalidInputError(f"X and y must have one record per row; got {len(X)} rows and {len(y)} records.")
        group = _group(_id_array(y["bag"], len(X)))
        sizes, counts = group.constant(y["size"], "size"), group.constant(y["count"], "count")
        if (cut := np.flatnonzero(sizes != group.sizes)).size:
            b = cut[0]
            raise InvalidInputError(
                f"all rows of a bag must stay together; got {group.sizes[b]} of the {sizes[b]} rows of bag "
                f"{_shown(group.ids[b])} ({cut.size} bags are cut). "
                "Split with BagKFold or BagShuffleSplit of bagwise.model_selection."
            )
        totals, release = _totals(counts, group.sizes, group.ids, are_proportions=False), None
        if "released" in (y.dtype.names or ()):
            release = Release(*(group.constant(y[name], name) for name in ("released", "law", "scale")))
        return cls(X if group.order is None else X[group.order], group.sizes, totals, group.ids, names, release)

    @classmethod
    def concat(cls, parts: Iterable["Bags"]) -> "Bags":
        """All bags of the parts in turn; an id that stands in two parts is refused.

        Examples
        --------
        >>> import bagwise as bw
        >>> one, two = (bw.Bags.from_arrays([[0.0]], [name], counts=[1]) for name in "ab")
        >>> bw.Bags.concat([one, two]).ids
        array(['a', 'b'], dtype='<U1')
        """
        parts = list(parts)
        if not parts:
            raise InvalidInputError("concat needs at least one part; got none.")
        first = parts[0]
        for i, part in enumerate(parts):
            if part.n_features != first.n_features or part.feature_names != first.feature_names:
                raise InvalidInputError(
                    f"parts must have the same features; part 0 has {first._feature_text()}, "
                    f"part {i} has {part._feature_text()}. Select common columns first."
                )
        kinds = {part.ids.dtype.kind for part in parts}
        mixed = len(kinds) > 1 and bool(kinds & set("US"))  # numpy would write 1 as "1"
        ids = np.concatenate([part.ids.astype(object) if mixed else part.ids for part in parts])
        _refuse_repeated(ids)
        return cls(
            np.concatenate([part.X for part in parts]),
            np.concatenate([part.sizes for part in parts]),
            np.concatenate([part.counts for part in parts]),
            ids,
            first.feature_names,
            _joined([(part.release, part.counts) for part in parts]),
        )

    # ------------------------------------------------------------------ views

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.sizes)

    @property
    def n_rows(self) -> int:
        """Number of rows in all bags."""
        return len(self.X)

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    @property
    def proportions(self) -> FloatArray:
        """Share of positives of each bag."""
        return self.counts / self.sizes

    @property
    def starts(self) -> IntArray:
        """Row at which each bag starts, and the number of rows at the end: shape (n_bags + 1,)."""
        starts = np.zeros(self.n_bags + 1, np.int64)
        np.cumsum(self.sizes, out=starts[1:])
        return starts

    @property
    def key(self) -> tuple[int, int] | None:
        """The (size, count) that all bags share, or None."""
        if self.n_bags == 0 or (self.sizes != self.sizes[0]).any() or (self.counts != self.counts[0]).any():
            return None
        return int(self.sizes[0]), int(self.counts[0])

    @property
    def balanced(self) -> bool:
        """Whether each bag has as many positives as negatives: totals cannot tell an LTF from its complement."""
        return bool((2 * self.counts == self.sizes).all())

    def __len__(self) -> int:
        return self.n_bags

    def __repr__(self) -> str:
        if self.n_bags == 0:
            return f"Bags(no bags, {_plural(self.n_features, 'feature')})"
        low, high = self.sizes.min(), self.sizes.max()
        sizes = f"size {low}" if low == high else f"sizes {low} to {high}"
        share = 100 * self.counts.sum() / self.sizes.sum()
        return (
            f"Bags({_plural(self.n_bags, 'bag')}, {_plural(self.n_rows, 'row')}, "
            f"{_plural(self.n_features, 'feature')}; {sizes}, {share:.1f} % positive)"
        )

    def __getitem__(self, key: Any) -> "Bags":
        """The bags that a slice, a boolean mask, an integer or an array of integers selects."""
        if isinstance(key, slice) and key.step in (None, 1):
            first, stop, _ = key.indices(self.n_bags)
            starts = self.starts
            rows: Any = slice(int(starts[first]), int(starts[max(first, stop)]))
            chosen: Any = key
        else:
            chosen = self._indices(key)
            # Each chosen bag's first row, repeated, plus 0, 1, 2 … within the bag: all rows without a loop.
            sizes = self.sizes[chosen]
            ends = np.cumsum(sizes)
            rows = np.repeat(self.starts[chosen] - (ends - sizes), sizes) + np.arange(sizes.sum())
        release = None if self.release is None else self.release[chosen]
        return Bags(
            self.X[rows], self.sizes[chosen], self.counts[chosen], self.ids[chosen], self.feature_names, release
        )

    def _indices(self, key: Any) -> IntArray:
        """Bag numbers selected by an integer, a mask or an array of integers."""
        if isinstance(key, slice):
            return np.arange(self.n_bags)[key]
        index = np.atleast_1d(as_array(key, "what selects bags"))
        if index.dtype == bool:
            if index.shape != (self.n_bags,):
                raise InvalidInputError(f"a mask must have one entry per bag ({self.n_bags}); got shape {index.shape}.")
            return np.flatnonzero(index)
        if index.size == 0:
            return np.zeros(0, np.int64)
        if index.dtype.kind not in "iu" or index.ndim != 1:
            raise InvalidInputError(
                f"bags are selected by a slice, a mask or integers; got {index.dtype} of shape {index.shape}."
            )
        if index.min() < -self.n_bags or index.max() >= self.n_bags:
            raise InvalidInputError(f"bag numbers must lie in 0..{self.n_bags - 1}; got {index.min()}..{index.max()}.")
        chosen: IntArray = np.arange(self.n_bags)[index]
        return chosen

    def row_bags(self) -> IntArray:
        """Number of the bag of each row."""
        return np.repeat(np.arange(self.n_bags), self.sizes)

    def target(self) -> AnyArray:
        """The bag target of the rows: one record (bag, size, count) per row."""
        return _target(self.ids, self.sizes, self.counts, self.release)[self.row_bags()]

    def as_rows(self) -> tuple[FloatArray, AnyArray]:
        """Rows and their bag target, as scikit-learn's splitters, pipelines and searches take them.

        Examples
        --------
        >>> import bagwise as bw
        >>> X, y = bw.Bags.from_sizes([[0.0], [1.0]], sizes=[2], counts=[1]).as_rows()
        >>> y["count"]
        array([1, 1])
        """
        return self.X, self.target()

    def reduce(self, task: Callable[["Bags"], T]) -> T:
        """What the task makes of all bags: in memory they are one part. See `BagSource`."""
        return task(self)

    def split(self, fraction: float, rng: np.random.Generator) -> tuple["Bags", "Bags"]:
        """Two random parts, of at least one bag each; the first holds the given fraction of the bags."""
        if not 0 < fraction < 1:
            raise InvalidInputError(f"fraction must lie strictly between 0 and 1; got {fraction}.")
        if self.n_bags < 2:
            raise InvalidInputError(f"a split needs at least two bags; got {self.n_bags}.")
        order = rng.permutation(self.n_bags)
        cut = min(max(round(fraction * self.n_bags), 1), self.n_bags - 1)
        return self[np.sort(order[:cut])], self[np.sort(order[cut:])]

    def _feature_text(self) -> str:
        return f"{self.n_features}" if self.feature_names is None else ", ".join(self.feature_names)


# ---------------------------------------------------------------------- the bag target


def bag_target(ids: Any, *, counts: Any = None, proportions: Any = None, noise: CountNoise | None = None) -> AnyArray:
    """The ``y`` that carries bags through scikit-learn: one record (bag, size, count) per row.

    It is sliced with the rows, so Pipeline, GridSearchCV and cross_validate hand it to ``fit`` and ``score`` alike. As
    it carries each bag's size, a fold that cuts a bag is noticed. An integer ``cv`` always cuts (scikit-learn takes the
    records for classes, and complains of those with too few members): pass a splitter of `bagwise.model_selection`.

    Parameters
    ----------
    ids : one hashable per row
    counts, proportions : mapping from id to value, or one value per distinct id in sorted order
        Exactly one of the two.
    noise : CountNoise, optional
        Noise in the counts as they were released; they may then be any real numbers.

    Examples
    --------
    >>> import bagwise as bw
    >>> y = bw.bag_target(["a", "b", "a"], counts={"a": 1, "b": 0})
    >>> y["size"], y["count"]
    (array([2, 1, 2]), array([1, 0, 1]))
    """
    array = _id_array(ids, None)
    group = _group(array)
    values = _values_by_bag(group.ids, counts, proportions)
    totals, release = _stated(values, group.sizes, group.ids, noise, are_proportions=counts is None)
    return _target(group.ids, group.sizes, totals, release)[group.codes()]


def require_exact(bags: Bags, what: str) -> None:
    """Refuse bags whose totals were released with noise, for what compares exact counts."""
    if bags.release is not None:
        raise InvalidInputError(
            f"{what} needs exact totals; these were released with noise. Judge by the likelihood (score of "
            "BagLogisticRegression), or by bags with exact totals."
        )


def is_bag_target(y: Any) -> bool:
    """Whether y is a bag target: a structured array with the fields bag, size and count."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    return names is not None and {"bag", "size", "count"} <= set(names)


def is_dask(value: Any) -> bool:
    """Whether a value is one of Dask's collections, without loading Dask."""
    return type(value).__module__.split(".")[0] in ("dask", "dask_expr")


def _target(ids: AnyArray, sizes: IntArray, counts: IntArray, release: Release | None) -> AnyArray:
    """One record per bag; what was released with noise stands in three fields more."""
    fields: list[tuple[str, Any]] = [("bag", ids.dtype), ("size", np.int64), ("count", np.int64)]
    if release is not None:
        fields += [("released", np.float64), ("law", np.int64), ("scale", np.float64)]
    records = np.empty(len(ids), dtype=fields)
    records["bag"], records["size"], records["count"] = ids, sizes, counts
    if release is not None:
        records["released"], records["law"], records["scale"] = release.values, release.laws, release.scales
    return records


# ---------------------------------------------------------------------- grouping rows


@dataclass(frozen=True, slots=True)
class _Group:
    """Where the rows of each bag are; bags in the order of their first row."""

    ids: AnyArray  # (m,)
    sizes: IntArray  # (m,)
    order: IntArray | None  # rows bag by bag; None when they lie so already

    def codes(self) -> IntArray:
        """Bag number of each row of the input."""
        by_bag = np.repeat(np.arange(len(self.ids)), self.sizes)
        if self.order is None:
            return by_bag
        codes = np.empty_like(by_bag)
        codes[self.order] = by_bag
        return codes

    def constant(self, values: AnyArray, what: str) -> AnyArray:
        """One value per bag from one per row; refuses a bag with two."""
        grouped = values if self.order is None else values[self.order]
        starts = np.cumsum(self.sizes) - self.sizes
        first: AnyArray = grouped[starts]
        stated = np.repeat(first, self.sizes)
        differs = (grouped != stated) & ((grouped == grouped) | (stated == stated))  # all NaN has an error of its own
        if (clash := np.flatnonzero(differs)).size:
            b = int(np.searchsorted(starts, clash[0], side="right")) - 1
            raise InvalidInputError(
                f"{what!r} must be the same in all rows of a bag; got {first[b]} and {grouped[clash[0]]} in "
                f"bag {_shown(self.ids[b])}. It is the total of the bag, not of a row."
            )
        return first


def _group(ids: AnyArray) -> _Group:
    """Rows by bag. Runs of equal ids come first, as grouped input then costs one comparison per row."""
    if len(ids) == 0:
        raise InvalidInputError("bags must have at least one row; got none.")
    try:
        breaks = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    except (TypeError, ValueError):  # arrays among the ids, whose comparison is not one truth value
        raise InvalidInputError(
            "ids must be hashable; got some that do not compare. Use numbers, text or tuples."
        ) from None
    run_starts = np.concatenate([np.zeros(1, np.int64), breaks])
    run_lengths = np.diff(np.append(run_starts, len(ids)))
    run_codes, distinct = _factorise(ids[run_starts])
    if len(distinct) == len(run_starts):
        return _Group(distinct, run_lengths, None)
    codes = np.repeat(run_codes, run_lengths)
    return _Group(distinct, np.bincount(codes, minlength=len(distinct)), np.argsort(codes, kind="stable"))


def _factorise(values: AnyArray) -> tuple[IntArray, AnyArray]:
    """Code of each value in order of first appearance, and the distinct values."""
    if values.dtype.kind in "OUS":  # hashing beats sorting for text, and any hashable is welcome
        index: dict[Any, int] = {}
        try:
            codes = np.fromiter((index.setdefault(v, len(index)) for v in values.tolist()), np.int64, len(values))
        except TypeError as error:
            raise InvalidInputError(
                f"ids must be hashable; {one_line(str(error))}. Use numbers, text or tuples."
            ) from None
        distinct = np.empty(len(index), dtype=values.dtype)
        distinct[:] = list(index)
        return codes, distinct
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    rank = np.empty_like(by_appearance)
    rank[by_appearance] = np.arange(len(first))
    return rank[inverse], values[first[by_appearance]]


def _id_array(ids: Any, n: int | None, per: str = "row") -> AnyArray:
    """Ids as a one-dimensional array without missing values."""
    values: Any = as_array(ids, "ids") if hasattr(ids, "__array__") else ids
    if not isinstance(values, np.ndarray):
        try:
            values = list(values)
        except TypeError:
            raise InvalidInputError(f"ids must be one per {per}; got {_shown(ids)}.") from None
        try:
            array = np.asarray(values)
        except ValueError:  # ragged: ids are tuples of several lengths
            array = np.empty((0, 0))
        # Tuples are ids like any other, and numpy would turn 1 and "1" into the same text: such ids stay objects.
        mixed = array.dtype.kind in "US" and not all(isinstance(v, (str, bytes)) for v in values)
        if array.ndim != 1 or mixed:
            array = np.empty(len(values), dtype=object)
            array[:] = values
        values = array
    if values.ndim != 1:
        raise InvalidInputError(f"ids must be one per {per}; got an array of shape {values.shape}.")
    if n is not None and len(values) != n:
        raise InvalidInputError(f"ids must be one per {per}; got {len(values)} for {n} {per}s.")
    missing = _missing(values)
    if missing is not None:
        raise InvalidInputError(
            f"each {per} must have a bag id; got {_shown(values[missing])} in {per} {missing}. Drop such rows or "
            "give them a bag."
        )
    return cast(AnyArray, values)


def _missing(values: AnyArray) -> int | None:
    """Position of the first missing id, or None."""
    if values.dtype.kind in "fc":
        lost = np.isnan(values)
    elif values.dtype.kind in "mM":
        lost = np.isnat(values)
    elif values.dtype.kind == "O":
        nothing = {"NAType", "NaTType", "NoneType"}
        lost = np.fromiter(
            (type(v).__name__ in nothing or (isinstance(v, float) and v != v) for v in values),
            bool,
            len(values),
        )
    else:
        return None
    return int(np.argmax(lost)) if lost.any() else None


def _refuse_repeated(ids: AnyArray) -> None:
    codes, distinct = _factorise(ids)
    if len(distinct) != len(ids):
        b = int(np.argmax(np.bincount(codes)))
        raise InvalidInputError(
            f"each bag must have an id of its own; got {_shown(distinct[b])} more than once. Rename one of them."
        )


# ---------------------------------------------------------------------- totals


def _values_by_bag(ids: AnyArray, counts: Any, proportions: Any) -> AnyArray:
    """The given counts or proportions in the order of ``ids``."""
    if (counts is None) == (proportions is None):
        raise InvalidInputError("exactly one of counts= and proportions= must be given: the total of each bag.")
    what, values = ("counts", counts) if counts is not None else ("proportions", proportions)
    if hasattr(values, "index") and hasattr(values, "to_dict") and hasattr(values, "tolist"):  # a pandas Series
        values = _of_series(values, what)
    if isinstance(values, Mapping):
        return _from_mapping(ids, values, what)
    given = as_array(values, what)
    if given.shape != ids.shape:
        raise InvalidInputError(
            f"{what} must be one per distinct id, in sorted order; got shape {given.shape} for {len(ids)} bags. "
            "A mapping from id to value is safer."
        )
    try:
        order = np.argsort(ids, kind="stable")
    except TypeError:
        raise InvalidInputError(f"ids that cannot be sorted need {what} as a mapping from id to value.") from None
    aligned = np.empty_like(given)
    aligned[order] = given
    return aligned


def _of_series(series: Any, what: str) -> dict[Any, Any]:
    """Entry of each id of a pandas Series; an id may stand in it several times, with one value."""
    entries: dict[Any, Any] = {}
    for i, value in zip(series.index, series.tolist(), strict=True):
        if (known := entries.setdefault(i, value)) != value and value == value:
            raise InvalidInputError(
                f"{what} must be the same wherever a bag stands; got {known} and {value} for bag {_shown(i)}."
            )
    return entries


def _from_mapping(ids: AnyArray, values: Mapping[Any, Any], what: str) -> AnyArray:
    wanted = ids.tolist()
    if ids.dtype.kind in "mM":  # the same day has one hash as a numpy, another as a pandas and a Python date
        try:
            keys = np.asarray([*values], dtype=ids.dtype).tolist()
        except (TypeError, ValueError):
            keys = [*values]
        values = dict(zip(keys, values.values(), strict=True))
    absent = [b for b, i in enumerate(wanted) if i not in values]
    if absent:
        raise InvalidInputError(
            f"each bag must have an entry in {what}; none for bag {_shown(ids[absent[0]])} ({len(absent)} of "
            f"{len(wanted)} bags lack one). Leave out rows of bags without a total."
        )
    if len(values) != len(wanted):
        known = set(wanted)
        extra = [i for i in values if i not in known]
        raise InvalidInputError(
            f"each entry of {what} must belong to a bag with rows; {_shown(extra[0])} has none ({len(extra)} "
            "such entries). Remove them."
        )
    return as_array([values[i] for i in wanted], what)


def _stated(
    values: Any, sizes: IntArray, ids: AnyArray, noise: CountNoise | None, *, are_proportions: bool
) -> tuple[IntArray, Release | None]:
    """Counts as stated; or, with noise in them, the nearest possible counts and what was released."""
    if noise is None:
        return _totals(values, sizes, ids, are_proportions=are_proportions), None
    if are_proportions:
        raise InvalidInputError("noise= goes with counts=; got proportions. Multiply them by the sizes of the bags.")
    released = np.atleast_1d(_numbers(values, "counts"))
    if released.shape != sizes.shape:
        raise InvalidInputError(f"counts must be one per bag; got shape {released.shape} for {len(sizes)} bags.")
    if (bad := np.flatnonzero(~np.isfinite(released))).size:
        b = bad[0]
        raise InvalidInputError(f"released counts must be finite; got {released[b]} in bag {_shown(ids[b])}.")
    nearest: IntArray = np.clip(np.rint(released), 0, sizes).astype(np.int64)
    return nearest, Release.of(released, noise)


def _joined(parts: list[tuple[Release | None, IntArray]]) -> Release | None:
    """The releases of all parts, exact counts among them; None if all are exact."""
    if all(release is None for release, _ in parts):
        return None
    all_of = [Release.exact(counts) if release is None else release for release, counts in parts]
    return Release(*(np.concatenate([getattr(one, name) for one in all_of]) for name in ("values", "laws", "scales")))


def _totals(values: Any, sizes: IntArray, ids: AnyArray, *, are_proportions: bool) -> IntArray:
    """Checked integer counts in 0..size."""
    if are_proportions:
        return _counts_of_proportions(values, sizes, ids)
    counts = _integers(values, "counts", ids)
    if counts.shape != sizes.shape:
        raise InvalidInputError(f"counts must be one per bag; got shape {counts.shape} for {len(sizes)} bags.")
    if (bad := np.flatnonzero((counts < 0) | (counts > sizes))).size:
        b = bad[0]
        raise InvalidInputError(
            f"counts must lie in 0..size; got {counts[b]} in bag {_shown(ids[b])} of size {sizes[b]}. "
            "Counts are positives per bag; for fractions pass proportions=."
        )
    return counts


def _counts_of_proportions(values: Any, sizes: IntArray, ids: AnyArray) -> IntArray:
    """The integer counts that proportions stand for; rounding of float32 is forgiven, anything else is not."""
    proportions = _numbers(values, "proportions")
    if proportions.shape != sizes.shape:
        raise InvalidInputError(
            f"proportions must be one per bag; got shape {proportions.shape} for {len(sizes)} bags."
        )
    if (bad := np.flatnonzero(~((proportions >= 0) & (proportions <= 1)))).size:
        b = bad[0]
        raise InvalidInputError(
            f"proportions must lie in [0, 1]; got {proportions[b]} in bag {_shown(ids[b])}. For numbers of "
            "positives pass counts= (in scikit-learn's y: bag_target)."
        )
    exact = proportions * sizes
    counts: IntArray = np.rint(exact).astype(np.int64)
    if (bad := np.flatnonzero(np.abs(exact - counts) > np.minimum(0.01, 1e-6 * sizes))).size:
        b = bad[0]
        raise InvalidInputError(
            f"proportions must be multiples of 1/size; got {proportions[b]} in bag {_shown(ids[b])} of size "
            f"{sizes[b]}. The nearest count is {counts[b]}: pass counts=, or {counts[b]}/{sizes[b]}. If a splitter cut "
            "the bag, split with BagKFold."
        )
    return counts


def _numbers(values: Any, what: str) -> FloatArray:
    array = as_array(values, what)
    if array.dtype.kind == "c":
        raise InvalidInputError(f"{what} must be real numbers; got complex ones.")
    if (at := first_non_number(array)) is not None:
        raise InvalidInputError(f"{what} must be numbers; got {_shown(array[at])}. Convert them first.")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"{what} must be numbers; {one_line(str(error))}.") from None


def _integers(values: Any, what: str, ids: AnyArray | None = None) -> IntArray:
    array = as_array(values, what)
    if array.dtype.kind in "iub":
        return np.atleast_1d(array).astype(np.int64)
    numbers = np.atleast_1d(_numbers(values, what))
    with np.errstate(invalid="ignore"):
        whole = np.isfinite(numbers) & (numbers == np.rint(numbers)) & (np.abs(numbers) < 2**53)
    if not whole.all():
        b = int(np.argmin(whole))
        where = f"bag {_shown(ids[b])}" if ids is not None and b < len(ids) else f"bag {b}"
        advice = "For fractions pass proportions=." if what == "counts" else "They are numbers of rows."
        raise InvalidInputError(f"{what} must be integers; got {numbers.flat[b]} in {where}. {advice}")
    return numbers.astype(np.int64)


# ---------------------------------------------------------------------- tables


def feature_columns(
    columns: Sequence[str], numeric: Sequence[str], bag: str, total: str, features: Sequence[str] | None
) -> tuple[str, ...]:
    """The columns to learn from: those asked for, or the numeric ones but the bag, the total and ``label``."""
    features = None if features is None else tuple(features)  # an array has no truth value
    wanted = [bag, total, *(features or ())]
    if missing := [name for name in wanted if name not in columns]:
        raise InvalidInputError(f"column {missing[0]!r} must be in the table; it has {listed(columns)}.")
    if features is None:
        names = [name for name in numeric if name not in (bag, total, "label")]
        if not names:
            raise InvalidInputError(
                f"a table of bags must have numeric features besides {bag!r}, {total!r} and 'label'; "
                f"got {listed(columns)}. Encode text as numbers."
            )
        return tuple(names)
    if len(set(features)) != len(features) or {bag, total} & set(features) or not features:
        raise InvalidInputError(
            f"features must be distinct columns other than {bag!r} and {total!r}; got {listed(features) or 'none'}."
        )
    if text := [name for name in features if name not in numeric]:
        raise InvalidInputError(
            f"features must be numeric; column {text[0]!r} is not. Encode it as numbers or leave it out."
        )
    return tuple(features)


def _numeric_columns(table: Any) -> list[str]:
    """Names of the numeric and boolean columns of a narwhals frame."""
    import narwhals.stable.v2 as nw

    return [name for name, dtype in table.schema.items() if dtype.is_numeric() or dtype == nw.Boolean]


def _matrix(table: Any, names: tuple[str, ...]) -> AnyArray:
    """The named columns as one matrix; float32 only if all of them are."""
    import narwhals.stable.v2 as nw

    dtypes = {table.schema[name] for name in names}
    if dtypes in ({nw.Float64}, {nw.Float32}):
        return cast(AnyArray, table.select(*names).to_numpy())
    dtype = np.float32 if dtypes == {nw.Float32} else np.float64
    matrix = np.empty((len(table), len(names)), dtype=dtype)
    for j, name in enumerate(names):
        matrix[:, j] = table[name].to_numpy()
    return matrix


def _refuse_odd_columns(frame: Any) -> None:
    """Refuse columns that share a name, or have one that is no text (a number would be a place, not a name)."""
    if hasattr(frame, "collect"):  # a lazy table, whose names cost a pass over it
        return
    columns: Any = getattr(frame, "column_names", None)
    names = tuple(getattr(frame, "columns", ()) if columns is None else columns)
    if odd := [name for name in names if not isinstance(name, str)]:
        raise InvalidInputError(
            f"column names must be text; got {_shown(odd[0])}. In pandas: frame.columns = frame.columns.astype(str)."
        )
    _refuse_duplicates(names)


def _refuse_duplicates(names: Iterable[Any]) -> None:
    seen: set[Any] = set()
    for name in names:
        if isinstance(name, str) and name in seen:
            raise InvalidInputError(
                f"column names must be distinct; {name!r} stands more than once. Rename one of them."
            )
        seen.add(name)


def _feature_names(X: Any, given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Given names, or those of a data frame's columns when all are text."""
    columns = given if given is not None else getattr(X, "columns", None)
    if columns is None:
        return None
    try:
        names = tuple(columns)
    except TypeError:
        names = (columns,)
    if odd := [name for name in names if not isinstance(name, str)]:
        if given is not None:
            raise InvalidInputError(f"feature_names must be texts, one per column; got {_shown(odd[0])}.")
        return None
    _refuse_duplicates(names)
    if given is not None and np.ndim(X) == 2 and len(names) != np.shape(X)[1]:
        raise InvalidInputError(f"feature_names must be one per column; got {len(names)} for {np.shape(X)[1]} columns.")
    return names


def _shown(value: Any) -> str:
    """An id as its owner would write it: 7, not np.int64(7); a date, not its nanoseconds."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return str(value)
    return one_line(repr(value.item() if isinstance(value, np.generic) else value), 80)


def _plural(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
