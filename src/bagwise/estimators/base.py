"""The door of every learner: what ``fit``, ``predict`` and ``score`` accept, and what a fitted linear model
answers.

Owns the three call shapes (bags; rows with a bag target; rows with proportions and ids), the treatment of
plain labels as bags of one row, and the answers that follow from a linear threshold. Learners below it see
`Bags` only.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from bagwise.arrays import AnyArray, FloatArray, IntArray
from bagwise.bags import Bags, BagSource, is_bag_target, is_dask
from bagwise.errors import BagwiseWarning, FitWarning, IdentifiabilityWarning, InvalidInputError, NotIdentifiableError
from bagwise.ltf import LTF
from bagwise.stats.fingerprints import KeptFingerprints, kept_fingerprints
from bagwise.stats.moments import BagMoments, Moments

__all__ = [
    "BagDoor",
    "BagEstimator",
    "MomentsEstimator",
    "SigmoidProbability",
    "generator",
    "require_choice",
    "require_positive",
    "warn_all",
]

_DTYPES = (np.float64, np.float32)

T = TypeVar("T")


class BagDoor(ClassifierMixin, BaseEstimator):
    """A classifier of rows that learns from bags.

    A subclass defines ``_learn(bags)``, which stores what it found, and ``decision_function``. Everything a caller may
    hand over is checked here and nowhere else.
    """

    classes_: AnyArray
    ambiguous_: bool
    bag_fingerprints_: IntArray

    _reads_releases = False  # whether totals released with noise are taken for what they are
    _learns_from_sums = False  # whether _learn asks its bags only for sums over them

    def fit(self, X: Any, y: Any = None, *, bags: Any = None, client: Any = None) -> Self:
        """Learn from bags.

        Parameters
        ----------
        X : Bags, a source of bags (see `scan_bags`), or matrix of shape (n_rows, n_features)
            Learners of sums take sources too, and Dask arrays and data frames.
        y : bag target, proportions or labels, one per row
            A bag target (see `bag_target`) needs nothing else. With ``bags=``, the proportion of each row's
            bag (or a mapping from id to proportion). Without, class labels: each row is then a bag of its
            own.
        bags : one id per row, optional
        client : dask.distributed.Client, optional
            Where to take the sums of a source.

        Returns
        -------
        The fitted estimator.
        """
        learnt = self._check_source(X, y, bags, client)
        if isinstance(learnt, Bags):
            self._warn_of_release(learnt)
            self._learn(learnt)
            self.bag_fingerprints_ = kept_fingerprints(learnt)
            return self
        witness = _Witness(learnt)
        self._learn(witness)
        self.bag_fingerprints_ = witness.fingerprints()
        return self

    def _learn(self, bags: Any) -> None:
        raise NotImplementedError

    def _warn_of_release(self, bags: Bags) -> None:
        if bags.release is not None and not self._reads_releases:
            warnings.warn(
                f"{type(self).__name__} takes totals for exact; these were released with noise and are rounded to "
                "0..size. BagLogisticRegression and BagClassifier sum over the true counts.",
                FitWarning,
                stacklevel=3,
            )

    # ------------------------------------------------------------------ what comes in

    def _check_source(self, X: Any, y: Any, ids: Any, client: Any) -> BagSource:
        """The bags to learn from, in memory or not."""
        if is_dask(X):
            from bagwise.scale.distributed import collection_source

            X, y, ids = collection_source(X, y, ids), None, None
        if isinstance(X, Bags) or not isinstance(X, BagSource):
            if client is not None:
                raise InvalidInputError(
                    f"client= needs bags that the workers can read; got a {type(X).__name__} in memory. Pass "
                    "bagwise.scan_bags(path), or a Dask array or data frame."
                )
            return self._check_bags(X, y, ids)
        if y is not None or ids is not None:
            raise InvalidInputError("a source carries its totals; got y= or bags= besides. Pass fit(source).")
        if not self._learns_from_sums:
            raise InvalidInputError(
                f"{type(self).__name__} needs its bags in memory; got a {type(X).__name__}. Pass scan.read(), or use "
                "BagLogisticRegression, SpectralLTF, MeanLTF or MeanMap."
            )
        self._check_features(X, reset=True)
        self.classes_ = np.array([0, 1])
        return X if client is None else X.on(client)  # type: ignore[attr-defined]

    def _check_bags(self, X: Any, y: Any, ids: Any, *, reset: bool = True) -> Bags:
        """The bags that the arguments of ``fit`` or ``score`` stand for; with ``reset`` what they say of
        features and
        classes is remembered, without it is compared with what was."""
        if isinstance(X, Bags):
            if y is not None or ids is not None:
                raise InvalidInputError(
                    "Bags carry their totals; got y= or bags= besides. Pass fit(bags) or fit(X, y)."
                )
            bags = X
            self._check_features(bags, reset)
        elif y is None:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. Pass Bags, a bag "
                f"target "
                "(see bagwise.bag_target), or proportions with bags=."
            )
        elif is_bag_target(y):
            bags = Bags.from_target(self._matrix(X, reset), y, feature_names=self._names())
        elif ids is not None:
            bags = self._from_proportions(self._matrix(X, reset), y, ids)
        else:
            return self._from_labels(X, y, reset)
        if reset:
            self.classes_ = np.array([0, 1])
        return bags

    def _matrix(self, X: Any, reset: bool) -> FloatArray:
        matrix: FloatArray = validate_data(self, X, reset=reset, dtype=_DTYPES, ensure_min_samples=1)
        return matrix

    def _check_features(self, bags: BagSource, reset: bool) -> None:
        if reset:
            self.n_features_in_ = bags.n_features
            if bags.feature_names is not None:
                self.feature_names_in_ = np.array(bags.feature_names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif bags.n_features != self.n_features_in_:
            raise InvalidInputError(
                f"X has {bags.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} "
                "features as input. Pass the columns of the fit."
            )
        elif bags.feature_names is not None and hasattr(self, "feature_names_in_"):
            if list(bags.feature_names) != list(self.feature_names_in_):
                raise InvalidInputError(
                    f"features must be those of the fit, in the same order: "
                    f"{', '.join(self.feature_names_in_)}; "
                    f"got {', '.join(bags.feature_names)}."
                )

    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names)

    def _from_proportions(self, X: FloatArray, y: Any, ids: Any) -> Bags:
        if isinstance(y, Mapping):
            return Bags.from_arrays(X, ids, proportions=y, feature_names=self._names())
        per_row = np.asarray(y)
        if per_row.shape != (len(X),):
            raise InvalidInputError(
                f"y must hold the proportion of each row's bag, one per row; got shape {per_row.shape} for "
                f"{len(X)} rows. For one value per bag pass a mapping from id to proportion."
            )
        return Bags.from_row_proportions(X, ids, per_row, feature_names=self._names())

    def _from_labels(self, X: Any, y: Any, reset: bool, *, classes: Any = None) -> Bags:
        """Plain labels are bags of one row; they may lack a class only where both are stated."""
        X, labels = validate_data(self, X, y, reset=reset, dtype=_DTYPES, y_numeric=False)
        check_classification_targets(labels)
        classes = np.unique(labels) if classes is None else np.unique(classes)
        if reset:
            if len(classes) > 2:
                raise InvalidInputError(
                    f"Only binary classification is supported. The type of the target is multiclass: "
                    f"{len(classes)} classes. Learn one class against the rest."
                )
            if len(classes) < 2:
                raise NotIdentifiableError(
                    f"labels must be of two classes; got one class, {classes[0]!r}. Nothing separates one "
                    f"class from itself."
                )
            self.classes_ = classes
        if not (known := np.isin(labels, self.classes_)).all():
            row = int(np.argmin(known))
            raise InvalidInputError(
                f"labels must be of the classes {self.classes_.tolist()}; got {labels.tolist()[row]!r} in row {row}. "
                "State both classes at the first call."
            )
        positive = (labels == self.classes_[1]).astype(np.int64)
        return Bags.from_sizes(X, np.ones(len(X), np.int64), positive, feature_names=self._names())

    # ------------------------------------------------------------------ what goes out

    def decision_function(self, X: Any) -> FloatArray:
        """A number for each row; positive on the side of the positive class."""
        raise NotImplementedError

    def _rows(self, X: Any) -> FloatArray:
        """The rows of bags or of a matrix, with the features of the fit."""
        check_is_fitted(self)
        if isinstance(X, Bags):
            self._check_features(X, reset=False)
            return X.X
        return self._matrix(X, reset=False)

    def predict(self, X: Any) -> AnyArray:
        """Class of each row."""
        positive = self.decision_function(X) > 0
        labels: AnyArray = self.classes_[positive.astype(np.intp)]
        return labels

    def score(self, X: Any, y: Any = None, *, bags: Any = None, sample_weight: Any = None) -> float:
        """How well totals (or labels) are met: 1 - bag error for bags, accuracy for labels; higher is
        better."""
        check_is_fitted(self)
        if not isinstance(X, Bags) and y is not None and bags is None and not is_bag_target(y):
            from sklearn.metrics import accuracy_score

            if type_of_target(y) not in ("binary", "multiclass"):
                raise InvalidInputError(
                    "score takes labels, a bag target, or proportions with bags=; got numbers that are no labels. Put "
                    "a bag target in y (see bagwise.bag_target), or route bags= to score with set_score_request."
                )
            return float(accuracy_score(column_or_1d(y), self.predict(X), sample_weight=sample_weight))
        if sample_weight is not None:
            raise InvalidInputError("sample_weight goes with labels; bags are weighted by dropping or repeating them.")
        return self._bag_score(self._check_bags(X, y, bags, reset=False))

    def _bag_score(self, bags: Bags) -> float:
        from bagwise.claims.metrics import bag_error

        return 1.0 - bag_error(self, bags)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class BagEstimator(BagDoor):
    """A linear classifier of rows that learns from bags.

    A subclass defines ``_fit(bags) -> LTF`` and stores what else it found.
    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
    ltf_ : LTF
        The same as a linear threshold function.
    classes_ : array of shape (2,)
        0 and 1, or the labels of the single rows that were given.
    ambiguous_ : bool
        Whether the bags leave open which side of the boundary is positive.
    bag_fingerprints_ : int array
        Hashes of the bags of the fit, by which `certify` refuses them.
    """

    ltf_: LTF

    def _learn(self, bags: Any) -> None:
        self._store(self._fit(bags))

    def _fit(self, bags: Any) -> LTF:
        raise NotImplementedError

    def _store(self, ltf: LTF) -> None:
        self.ltf_ = ltf
        self.coef_ = ltf.normal.reshape(1, -1)
        self.intercept_ = np.array([ltf.offset])

    def decision_function(self, X: Any) -> FloatArray:
        """w·x + b of each row; positive on the side of the positive class."""
        scores: FloatArray = self._rows(X) @ self.coef_[0] + self.intercept_[0]
        return scores

    def _bag_score(self, bags: Bags) -> float:
        from bagwise.claims.metrics import bag_error

        return 1.0 - bag_error(self.ltf_, bags)


class MomentsEstimator(BagEstimator):
    """A linear classifier whose bags are known to it by their moments alone, so that it can learn on.

    A subclass defines ``_along(moments) -> LTF``. The sums, two matrices of d x d, are not part of model files.
    """

    _learns_from_sums = True
    _sums: BagMoments

    def _fit(self, bags: BagSource) -> LTF:
        sums = bags.reduce(BagMoments.from_bags)
        ltf = self._along(sums.finalize())
        self._sums = sums
        return ltf

    def _along(self, moments: Moments) -> LTF:
        raise NotImplementedError

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, *, bags: Any = None) -> Self:
        """Learn from further bags: the model is then that of all bags so far, to rounding.

        No bag may come in two calls: its halves would be taken for two bags. As long as the bags do not tell a boundary
        there is a warning and no prediction.

        Parameters
        ----------
        X, y, bags : as in ``fit``
        classes : the two classes, optional
            Needed at the first call where ``y`` holds labels, as some of the rows may lack one.

        Returns
        -------
        The estimator.
        """
        first = not hasattr(self, "_sums")
        if first and hasattr(self, "coef_"):
            raise InvalidInputError(
                f"partial_fit of {type(self).__name__} goes on from the sums of its bags; this model has none, as it "
                "was loaded or fitted by other than sums. Fit a new one."
            )
        learnt = self._check_part(X, y, classes, bags, first)
        found = learnt.reduce(_Both(BagMoments.from_bags))
        sums = found.sums if first else self._sums + found.sums
        kept = found.kept if first else KeptFingerprints(self.bag_fingerprints_) + found.kept
        try:
            self._store(self._along(sums.finalize()))
        except NotIdentifiableError as error:
            warnings.warn(f"no boundary yet: {error}", IdentifiabilityWarning, stacklevel=2)
        self._sums, self.bag_fingerprints_ = sums, kept.values
        return self

    def _check_part(self, X: Any, y: Any, classes: Any, ids: Any, first: bool) -> BagSource:
        found: BagSource
        if isinstance(X, BagSource) and not isinstance(X, Bags):
            if y is not None or ids is not None:
                raise InvalidInputError("a source carries its totals; got y= or bags= besides. Leave them out.")
            self._check_features(X, reset=first)
            if first:
                self.classes_ = np.array([0, 1])
            found = X
        elif isinstance(X, Bags) or y is None or ids is not None or is_bag_target(y):
            found = self._check_bags(X, y, ids, reset=first)
            self._warn_of_release(found)
        elif first and classes is None:
            raise InvalidInputError(
                "classes must be passed on the first call to partial_fit with labels, as some rows may lack one; got "
                "none. Pass classes=[0, 1], or whatever the two are."
            )
        else:
            found = self._from_labels(X, y, first, classes=classes)
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise InvalidInputError(
                f"classes must stay those of the first call, {self.classes_.tolist()}, and those of totals are 0 and "
                f"1; got {np.unique(classes).tolist()}. Leave classes= out."
            )
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")


@dataclass(frozen=True, slots=True, eq=False)
class _Both:
    """Bags -> the sums of a task, and their fingerprints."""

    task: Callable[[Bags], Any]

    def __call__(self, bags: Bags) -> "_Pair":
        return _Pair(self.task(bags), KeptFingerprints(kept_fingerprints(bags)))


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    sums: Any
    kept: KeptFingerprints

    def __add__(self, other: "_Pair") -> "_Pair":
        return _Pair(self.sums + other.sums, self.kept + other.kept)


class _Witness:
    """A source whose first pass takes the fingerprints of its bags along."""

    def __init__(self, source: BagSource, seen: list[KeptFingerprints] | None = None, fresh: bool = True) -> None:
        self.source, self.fresh = source, fresh
        self.seen: list[KeptFingerprints] = [] if seen is None else seen

    @property
    def n_features(self) -> int:
        return self.source.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return self.source.feature_names

    def reduce(self, task: Callable[[Bags], T]) -> T:
        if not self.fresh:
            return self.source.reduce(task)
        found = self.source.reduce(_Both(task))
        self.fresh = False
        self.seen.append(found.kept)
        sums: T = found.sums
        return sums

    def split(self, fraction: float, rng: np.random.Generator) -> "tuple[_Witness, _Witness]":
        first, second = self.source.split(fraction, rng)
        parts = _Witness(first, self.seen, self.fresh), _Witness(second, self.seen, self.fresh)
        self.fresh = False
        return parts

    def fingerprints(self) -> IntArray:
        """Those of all bags that were asked for."""
        total = KeptFingerprints(np.zeros(0, np.int64))
        for kept in self.seen:
            total = total + kept
        return total.values


class SigmoidProbability:
    """The answer of a logistic model: sigmoid of the decision function."""

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the two classes of each row, in the order of ``classes_``."""
        positive = expit(self.decision_function(X))  # type: ignore[attr-defined]
        return np.column_stack([1 - positive, positive])


def generator(random_state: Any) -> np.random.Generator:
    """A Generator from whatever scikit-learn takes as random_state."""
    if random_state is None or isinstance(random_state, (int, np.integer, np.random.Generator)):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def require_choice(estimator: Any, name: str, choices: tuple[Any, ...]) -> None:
    """Refuse a parameter that is none of the choices."""
    if (value := getattr(estimator, name)) not in choices:
        options = ", ".join(map(repr, choices))
        raise InvalidInputError(f"{name} of {type(estimator).__name__} must be one of {options}; got {value!r}.")


def require_positive(estimator: Any, *names: str) -> None:
    """Refuse parameters that are not positive numbers."""
    for name in names:
        value = getattr(estimator, name)
        if not (isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and value > 0):
            raise InvalidInputError(f"{name} of {type(estimator).__name__} must be a positive number; got {value!r}.")


def warn_all(findings: list[str], kind: type[BagwiseWarning] = IdentifiabilityWarning) -> None:
    """Say each finding as a warning at the caller of fit."""
    for finding in findings:
        warnings.warn(finding, kind, stacklevel=5)
