"""Splitting, scoring and learning curves that never cut a bag, for scikit-learn's tools and alone.

Owns the splitters, the scorers of bags and `learning_curve`. Refuses rows without bags where bags are needed. Names for
scorers are understood here and by `make_bag_scorer`, not by scikit-learn, whose list of names is private.

Vocabulary: the *bag target* y (see `bagwise.bag_target`) states the bag of each row; splits are rows for X and y, and
numbers of bags for `Bags`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator

from bagwise.arrays import AnyArray, FloatArray, IntArray
from bagwise.bags import Bags, is_bag_target
from bagwise.claims.answers import answers
from bagwise.errors import InvalidInputError

__all__ = ["BagKFold", "BagScorer", "BagShuffleSplit", "LearningCurve", "learning_curve", "make_bag_scorer"]


# ---------------------------------------------------------------------- splitters


class _BagSplitter(BaseCrossValidator):
    """What the splitters share: from whatever states the bags to folds of rows."""

    n_splits: int
    stratify: bool
    random_state: Any

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Rows to train on and rows to test on, bag by bag.

        Parameters
        ----------
        X : Bags, or rows
            Of Bags, the splits are numbers of bags, for ``bags[train]``.
        y : bag target, or anything per row
        groups : one bag id per row, if y does not state it
        """
        codes, proportions = _bags_of(X, y, groups)
        rng = np.random.default_rng(self.random_state)
        for test_bags in self._test_bags(proportions, rng):
            chosen = np.zeros(len(proportions), bool)
            chosen[test_bags] = True
            of_row = chosen if codes is None else chosen[codes]
            yield np.flatnonzero(~of_row), np.flatnonzero(of_row)

    def _test_bags(self, proportions: FloatArray, rng: np.random.Generator) -> Iterator[IntArray]:
        raise NotImplementedError

    def _ranked(self, proportions: FloatArray, rng: np.random.Generator) -> IntArray:
        """Bags in random order, or by proportion with ties at random."""
        order = rng.permutation(len(proportions))
        return order[np.argsort(proportions[order], kind="stable")] if self.stratify else order


class BagKFold(_BagSplitter):
    """K folds of whole bags, with about the same proportions in each.

    Parameters
    ----------
    n_splits : int
    stratify : bool
        Deal bags out in the order of their proportions, so that folds are alike; otherwise at random.
    random_state : int, Generator or None
        Two of the same integer split alike.

    Examples
    --------
    >>> import bagwise as bw
    >>> from bagwise.model_selection import BagKFold
    >>> bags = bw.Bags.from_sizes([[0.0], [1.0], [2.0], [3.0]], sizes=[2, 1, 1], counts=[1, 0, 1])
    >>> X, y = bags.as_rows()
    >>> [test.tolist() for _, test in BagKFold(3, random_state=0).split(X, y)]
    [[3], [0, 1], [2]]
    """

    def __init__(self, n_splits: int = 5, *, stratify: bool = True, random_state: Any = 0) -> None:
        self.n_splits = n_splits
        self.stratify = stratify
        self.random_state = random_state

    def _test_bags(self, proportions: FloatArray, rng: np.random.Generator) -> Iterator[IntArray]:
        m, n = len(proportions), self.n_splits
        if not (isinstance(n, (int, np.integer)) and 2 <= n <= m):
            raise InvalidInputError(f"n_splits must be an integer in 2..{m}, the number of bags; got {n!r}.")
        # Each run of n_splits bags of like proportions is dealt to the folds in random order.
        ranked = self._ranked(proportions, rng)
        fold = np.concatenate([rng.permutation(n) for _ in range(-(-m // n))])[:m]
        for i in range(n):
            yield ranked[fold == i]


class BagShuffleSplit(_BagSplitter):
    """Random splits into whole bags to train on and to test on, with about the same proportions in both.

    Parameters
    ----------
    n_splits : int
    test_size : float
        Share of the bags to test on.
    stratify : bool
        Take the test bags evenly from the order of proportions; otherwise at random.
    random_state : int, Generator or None

    Examples
    --------
    >>> import bagwise as bw, numpy as np
    >>> from bagwise.model_selection import BagShuffleSplit
    >>> bags = bw.Bags.from_sizes(np.zeros((8, 1)), sizes=[2] * 4, counts=[0, 1, 1, 2])
    >>> [len(test) for _, test in BagShuffleSplit(2, test_size=0.5, random_state=0).split(bags)]
    [2, 2]
    """

    def __init__(
        self, n_splits: int = 10, *, test_size: float = 0.25, stratify: bool = True, random_state: Any = 0
    ) -> None:
        self.n_splits = n_splits
        self.test_size = test_size
        self.stratify = stratify
        self.random_state = random_state

    def _test_bags(self, proportions: FloatArray, rng: np.random.Generator) -> Iterator[IntArray]:
        m = len(proportions)
        n_test = round(self.test_size * m)
        if not 0 < self.test_size < 1 or not 0 < n_test < m:
            raise InvalidInputError(
                f"test_size must leave bags on both sides; got {self.test_size} of {m} bags. Use a share such as 0.25."
            )
        for _ in range(self.n_splits):
            # One at random of each of n_test runs of like proportions.
            runs = np.array_split(self._ranked(proportions, rng), n_test)
            yield np.array([rng.choice(run) for run in runs])


def _bags_of(X: Any, y: Any, groups: Any) -> tuple[IntArray | None, FloatArray]:
    """Bag number of each row (None for Bags themselves) and proportion of each bag."""
    if isinstance(X, Bags):
        return None, X.proportions
    if y is not None and is_bag_target(y):
        y = np.asarray(y)
        _, first, codes = np.unique(y["bag"], return_index=True, return_inverse=True)
        return codes, y["count"][first] / y["size"][first]
    if groups is None:
        raise InvalidInputError(
            "a splitter of bags needs to know the bags; got neither Bags, nor a bag target as y, nor groups. Build y "
            "with bagwise.bag_target."
        )
    names, codes = np.unique(np.asarray(groups), return_inverse=True)
    try:
        values = np.zeros(len(codes)) if y is None else np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):  # labels that are text
        values = np.unique(np.asarray(y), return_inverse=True)[1].astype(np.float64)
    return codes, np.bincount(codes, values, len(names)) / np.bincount(codes, minlength=len(names))


# ---------------------------------------------------------------------- scorers


def _neg_bag_error(model: Any, bags: Bags) -> float:
    return -float(np.mean(answers(model, bags).counts(bags) != bags.counts))


def _neg_proportion_error(model: Any, bags: Bags) -> float:
    return -float(np.mean(np.abs(answers(model, bags).counts(bags) - bags.counts) / bags.sizes))


def _bag_log_likelihood(model: Any, bags: Bags) -> float:
    """Mean log-probability of a row's share in its bag's count."""
    from bagwise.stats.poisson_binomial import bag_posterior, log_odds

    claimed = answers(model, bags).probabilities
    if claimed is None:
        raise InvalidInputError(
            f"the bag log-likelihood needs predict_proba; {type(model).__name__} has none. Score with 'neg_bag_error'."
        )
    odds = log_odds(np.clip(claimed, 1e-15, 1 - 1e-15))
    return float(bag_posterior(odds, bags).loglik.sum()) / bags.n_rows


def _assessed_accuracy(model: Any, bags: Bags) -> float:
    from bagwise.claims.assessment import assessed_accuracy

    return assessed_accuracy(model, bags)


_METRICS: Mapping[str, Callable[[Any, Bags], float]] = {
    "neg_bag_error": _neg_bag_error,
    "neg_proportion_error": _neg_proportion_error,
    "bag_log_likelihood": _bag_log_likelihood,
    "assessed_accuracy": _assessed_accuracy,
}


@dataclass(frozen=True, slots=True)
class BagScorer:
    """A function of (model, X, y) for ``scoring=``: the score of a model on the bags that y states; see
    `make_bag_scorer`."""

    metric: Callable[[Any, Bags], float]
    sign: int
    name: str

    def __call__(self, model: Any, X: Any, y: Any = None) -> float:
        """The score; higher is better."""
        if isinstance(X, Bags):
            bags = X
        elif y is not None and is_bag_target(y):
            names = getattr(X, "columns", None)
            bags = Bags.from_target(X, y, feature_names=None if names is None else list(names))
        else:
            raise InvalidInputError(
                f"the scorer {self.name} needs Bags or a bag target as y; got {type(y).__name__}. Build y with "
                "bagwise.bag_target; for labels use scikit-learn's scorers."
            )
        return self.sign * float(self.metric(model, bags))

    def __repr__(self) -> str:
        return f"BagScorer({self.name})"


def make_bag_scorer(metric: str | Callable[[Any, Bags], float], *, greater_is_better: bool = True) -> BagScorer:
    """A scorer of bags for ``scoring=`` of scikit-learn's searches and validations.

    Parameters
    ----------
    metric : name, or function of (model, bags)
        "neg_bag_error", "neg_proportion_error": minus the share of bags not satisfied, minus the mean difference of
        proportions; "bag_log_likelihood": of the counts, per row; "assessed_accuracy": the estimate of `assess`.
    greater_is_better : bool
        Of a function; otherwise its value is negated.

    Examples
    --------
    >>> import bagwise as bw, numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from bagwise.model_selection import BagKFold, make_bag_scorer
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 1.0]), np.zeros(2), np.eye(2), size=4, count=3)
    >>> X, y = oracle.sample(200, np.random.default_rng(0)).as_rows()
    >>> scores = cross_val_score(bw.SpectralLTF(), X, y, cv=BagKFold(4), scoring=make_bag_scorer("neg_bag_error"))
    >>> scores.shape, bool((scores <= 0).all())
    ((4,), True)
    """
    if isinstance(metric, str):
        if metric not in _METRICS:
            raise InvalidInputError(f"metric must be one of {', '.join(_METRICS)}, or a function; got {metric!r}.")
        return BagScorer(_METRICS[metric], 1, metric)
    if not callable(metric):
        raise InvalidInputError(f"metric must be a name or a function of (model, bags); got {metric!r}.")
    return BagScorer(metric, 1 if greater_is_better else -1, getattr(metric, "__name__", repr(metric)))


# ---------------------------------------------------------------------- learning curves


@dataclass(frozen=True, slots=True, eq=False)
class LearningCurve:
    """Scores by number of bags to learn from.

    Attributes
    ----------
    n_bags : int array of shape (n_sizes,)
    train_scores, test_scores : arrays of shape (n_sizes, n_splits)
        Not a number where a fit was refused.
    """

    n_bags: IntArray
    train_scores: FloatArray
    test_scores: FloatArray


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    train_sizes: Sequence[float] | AnyArray = (0.1, 0.325, 0.55, 0.775, 1.0),
    cv: Any = None,
    scoring: str | Callable[..., float] | None = None,
    random_state: Any = 0,
) -> LearningCurve:
    """How the score grows with the number of bags.

    Parameters
    ----------
    estimator : a learner of bags
    X, y : Bags, or rows and their bag target
    train_sizes : shares of the training bags (floats up to 1) or numbers of bags (integers)
    cv : a splitter of bags, by default BagKFold(5)
    scoring : a name of `make_bag_scorer`, a scorer, or None for the estimator's own score
    random_state : int, Generator or None
        Order in which bags are added; larger training sets contain the smaller ones.

    Examples
    --------
    >>> import bagwise as bw, numpy as np
    >>> from bagwise.model_selection import learning_curve
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 1.0, 0.0]), np.zeros(3), np.eye(3), size=4, count=3)
    >>> bags = oracle.sample(250, np.random.default_rng(0))
    >>> curve = learning_curve(bw.SpectralLTF(), bags, train_sizes=[20, 200])
    >>> curve.n_bags, curve.test_scores.shape
    (array([ 20, 200]), (2, 5))
    """
    bags = X if isinstance(X, Bags) else _from_rows(X, y)
    splits = list((BagKFold(5) if cv is None else cv).split(bags))
    most = min(len(train) for train, _ in splits)
    numbers = _numbers_of_bags(np.asarray(train_sizes), most)
    score: Callable[..., float]
    if scoring is None:
        score = lambda model, part: float(model.score(part))
    else:
        score = make_bag_scorer(scoring) if isinstance(scoring, str) else scoring
    rng = np.random.default_rng(random_state)
    scores = np.full((2, len(numbers), len(splits)), np.nan)
    for j, (train, test) in enumerate(splits):
        order = rng.permutation(train)
        for i, n in enumerate(numbers):
            part = bags[np.sort(order[:n])]
            model = clone(estimator).fit(part)
            scores[:, i, j] = score(model, part), score(model, bags[test])
    return LearningCurve(numbers, scores[0], scores[1])


def _from_rows(X: Any, y: Any) -> Bags:
    if y is None or not is_bag_target(y):
        raise InvalidInputError("learning_curve needs Bags, or rows and a bag target as y (see bagwise.bag_target).")
    return Bags.from_target(X, y)


def _numbers_of_bags(sizes: AnyArray, most: int) -> IntArray:
    shares = sizes.dtype.kind == "f"
    numbers: IntArray = np.unique(np.rint(sizes * most) if shares else sizes).astype(np.int64)
    if len(numbers) == 0 or numbers[0] < 1 or numbers[-1] > most:
        raise InvalidInputError(
            f"train_sizes must be shares in (0, 1] or numbers of bags in 1..{most}, those of a training fold; got "
            f"{sizes.tolist()}."
        )
    return numbers
