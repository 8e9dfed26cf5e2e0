"""Any classifier of scikit-learn behind the door of bags: one that takes weights learns from totals."""

import warnings
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from bagwise.arrays import FloatArray
from bagwise.bags import Bags
from bagwise.errors import FitWarning, InvalidInputError, NotIdentifiableError
from bagwise.estimators.base import BagDoor, generator, require_positive
from bagwise.estimators.logistic import BagLogisticRegression
from bagwise.learn.crossfit import CrossFit, Predict, bag_folds, calibration, cross_fit
from bagwise.stats.poisson_binomial import bag_posterior

__all__ = ["BagClassifier"]

# Forests answer 0 and 1 from a hundred trees; no count of a bag should hang on that.
_LEAST = 0.01
# A row that weighs less in a class says nothing there and only costs time.
_WEIGHTLESS = 1e-4


class BagClassifier(BagDoor):
    """A scikit-learn classifier that learns from bags, by expectation maximisation.

    Alternates between the exact posterior of each row's label given its bag's count, and the classifier fitted to these
    as weights (each row once as positive, once as negative). Begins at a linear learner, predicts each bag by
    classifiers that have not seen it, keeps the round under which such counts are likeliest, and fits the classifier to
    all rows at the end. For boundaries that no linear learner with better features finds; costs ``cv`` fits a round.

    Parameters
    ----------
    estimator : classifier with ``predict_proba`` and ``sample_weight`` in ``fit``, or a Pipeline that ends in one
        By default HistGradientBoostingClassifier.
    start : bagwise estimator
        Learns from the bags what the first posterior is made of; by default BagLogisticRegression. For classes that no
        line tells apart, a pipeline such as ``make_pipeline(PolynomialFeatures(2), BagLogisticRegression())``.
    cv : int
        Folds of bags; 1 predicts in sample, which flexible classifiers turn into agreement with the start.
    max_rounds : int
        Most rounds; fewer if the likelihood of counts out of fold does not rise in three.
    damping : float in [0, 1)
        Weight of the last round's log-odds in the next.
    random_state : int, Generator-compatible or None
        For the folds.

    Attributes
    ----------
    estimator_ : the fitted classifier
    calibration_ : Calibration
        Slope and shift of its log-odds, by the likelihood of the counts out of fold.
    history_ : list of float
        Log-likelihood of the counts per row, out of fold: of the start, then of each round.
    n_iter_ : int
        The round that was kept.
    classes_, ambiguous_ : see `BagEstimator`

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, labels = make_moons(600, noise=0.1, random_state=0)
    >>> bags = bw.Bags.from_sizes(X, [4] * 150, labels.reshape(150, 4).sum(axis=1))
    >>> model = bw.BagClassifier(DecisionTreeClassifier(min_samples_leaf=10), random_state=0).fit(bags)
    >>> bool((model.predict(X) == labels).mean() > 0.95)  # a line gets 0.88
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        start: Any = None,
        cv: int = 5,
        max_rounds: int = 20,
        damping: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.start = start
        self.cv = cv
        self.max_rounds = max_rounds
        self.damping = damping
        self.random_state = random_state

    _reads_releases = True

    def _learn(self, bags: Bags) -> None:
        require_positive(self, "cv", "max_rounds")
        if not 0 <= self.damping < 1:
            raise InvalidInputError(f"damping of BagClassifier must lie in [0, 1); got {self.damping!r}.")
        if bags.counts.sum() in (0, bags.n_rows):
            raise NotIdentifiableError(
                f"totals tell nothing when all rows are of one class; got {bags.counts.sum()} positives in "
                f"{bags.n_rows} rows. Add bags with the other class."
            )
        weight_name = self._weight_name()
        rng = generator(self.random_state)
        folds = bag_folds(bags.n_bags, min(int(self.cv), bags.n_bags), rng)
        found = cross_fit(
            bags,
            lambda X, targets: _log_odds_of(self._fitted(X, targets, weight_name)),
            self._first(bags, folds),
            folds,
            max_rounds=int(self.max_rounds),
            damping=self.damping,
        )
        self.estimator_ = self._fitted(bags.X, found.targets, weight_name)
        self.calibration_, self.history_, self.n_iter_ = found.calibration, list(found.history), found.best
        self.ambiguous_ = bags.balanced
        self._advise(found)

    def _first(self, bags: Bags, folds: Any) -> FloatArray:
        """Log-odds of the rows by the start, calibrated, out of fold where the other folds hold both classes."""
        start = BagLogisticRegression(random_state=0) if self.start is None else self.start
        log_odds = np.empty(bags.n_rows)
        rows = folds[bags.row_bags()]
        for fold in range(int(folds.max()) + 1):
            rest = bags[folds != fold] if folds.max() else bags
            if rest.counts.sum() in (0, rest.n_rows):
                rest = bags
            X, y = rest.as_rows()
            log_odds[rows == fold] = clone(start).fit(X, y).decision_function(bags.X[rows == fold])
        return calibration(log_odds, bags)(log_odds)

    def _fitted(self, X: FloatArray, targets: FloatArray, weight_name: str) -> Any:
        """The classifier fitted to each row twice, weighted by both classes; a class without weight: its number."""
        weights = np.concatenate([1 - targets, targets])
        kept = weights > _WEIGHTLESS
        labels = np.repeat([0, 1], len(X))[kept]
        if labels.min() == labels.max():
            return int(labels[0])
        rows = np.tile(np.arange(len(X)), 2)[kept]
        with config_context(enable_metadata_routing=False):  # the weights are ours, not the caller's to request
            return clone(self._estimator()).fit(X[rows], labels, **{weight_name: weights[kept]})

    def _estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        from sklearn.ensemble import HistGradientBoostingClassifier  # a second to import

        return HistGradientBoostingClassifier()

    def _weight_name(self) -> str:
        """What ``fit`` of the estimator calls the weights."""
        estimator = last = self._estimator()
        prefix = ""
        while hasattr(last, "steps"):  # a pipeline, whose module is heavy to import
            name, last = last.steps[-1]
            prefix += f"{name}__"
        if not has_fit_parameter(last, "sample_weight") or not hasattr(last, "predict_proba"):
            raise InvalidInputError(
                f"estimator of BagClassifier must have predict_proba and take sample_weight in fit; {estimator!r} does "
                "not. Take boosted trees, a forest, or a linear model on better features."
            )
        return f"{prefix}sample_weight"

    def _advise(self, found: CrossFit) -> None:
        start, best = found.history[0], found.history[found.best]
        if best < start:
            warnings.warn(
                f"the classifier should make unseen counts likelier than its start; it has {best:.4f} per row, the "
                f"start {start:.4f}. Use the start, or a smoother classifier.",
                FitWarning,
                stacklevel=4,
            )
        if not found.settled:
            warnings.warn(
                f"the posterior labels had to settle within max_rounds={self.max_rounds}, but still changed. "
                "Raise max_rounds.",
                FitWarning,
                stacklevel=4,
            )

    def decision_function(self, X: Any) -> FloatArray:
        """Log-odds of the positive class of each row."""
        check_is_fitted(self)
        return self.calibration_(_log_odds_of(self.estimator_)(self._rows(X)))

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes of each row, in the order of ``classes_``, at the prevalence of the bags."""
        z = self.decision_function(X)
        return np.column_stack([expit(-z), expit(z)])

    def _bag_score(self, bags: Bags) -> float:
        """Log-likelihood of the bags' counts, per row."""
        found = bag_posterior(self.decision_function(bags), bags)
        return float(found.loglik.sum()) / bags.n_rows


def _log_odds_of(classifier: Any) -> Predict:
    """Rows -> log-odds of class 1, of a fitted classifier or the number of the only class it would have seen."""
    if isinstance(classifier, int):
        constant = float(logit(1 - _LEAST)) * (2 * classifier - 1)
        return lambda X: np.full(len(X), constant)
    return lambda X: logit(np.clip(classifier.predict_proba(X)[:, 1], _LEAST, 1 - _LEAST)).astype(np.float64)
