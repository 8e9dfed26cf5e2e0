"""Exact maximum likelihood of the counts behind scikit-learn's door: the recommended learner."""

from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit

from bagwise.arrays import FloatArray
from bagwise.bags import Bags
from bagwise.errors import InvalidInputError, NotIdentifiableError
from bagwise.estimators.base import BagEstimator, generator, warn_all
from bagwise.learn.directions import combined_direction
from bagwise.learn.identifiability import balance_finding
from bagwise.learn.likelihood import CountModel, Fit, Problem, flipped, likelihood_sums, maximise, sloped
from bagwise.ltf import LTF
from bagwise.stats.moments import BagMoments, Moments

__all__ = ["BagLogisticRegression"]

_GRID = tuple(10.0**e for e in range(-2, 6))


class BagLogisticRegression(BagEstimator):
    """Logistic regression from the counts of bags, by exact maximum likelihood: the learner to begin with.

    Each row is positive with probability sigmoid(coef·x + intercept), independently; the count of a bag is then
    Poisson-binomial, and its exact likelihood is maximised from the spectral direction, under a ridge penalty. Bags of
    one row are ordinary labels, so that tables of labelled rows and bags just work.

    Parameters
    ----------
    C : "auto" or float
        Inverse strength of the ridge penalty. A number means what it means in scikit-learn's LogisticRegression.
        "auto" takes the best of eight by the likelihood of held-out bags, for features scaled to unit variance.
    fit_intercept : bool
        Whether to fit an intercept; it is not penalised.
    label_noise : False, "estimate", a rate, or a pair of rates
        Whether reported labels may be wrong: with "estimate" the shares of reported positives among clean negatives and
        clean positives are fitted (``levels_``); a rate r states them as (r, 1 - r), a pair (r0, r1) as (r0, 1 - r1).
    standardize : "auto" or bool
        Whether the penalty is on coefficients of features scaled to unit variance; "auto": if C is chosen.
    tol, max_iter : float, int
        When the search ends.
    random_state : int, Generator-compatible or None
        For held-out bags and random starts.

    Attributes
    ----------
    coef_, intercept_, ltf_, classes_, ambiguous_ : see `BagEstimator`
    C_ : float
        The C of the fit.
    levels_ : array of shape (2,)
        Pr[reported positive | clean negative], Pr[reported positive | clean positive].
    prevalence_ : float
        Share of clean positives among the rows of the fit, as the model has it.
    log_likelihood_ : float
        Of the counts of the fit.
    converged_ : bool
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 0.5), np.zeros(2), np.eye(2), size=10, count=6)
    >>> model = bw.BagLogisticRegression(random_state=0).fit(oracle.sample(200, np.random.default_rng(0)))
    >>> bool(bw.instance_error(model.ltf_, oracle.ltf, oracle.mean, oracle.cov) < 0.01)
    True
    """

    def __init__(
        self,
        *,
        C: float | Literal["auto"] = "auto",
        fit_intercept: bool = True,
        label_noise: Any = False,
        standardize: bool | Literal["auto"] = "auto",
        tol: float = 1e-4,
        max_iter: int = 500,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.label_noise = label_noise
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, bags: Bags) -> LTF:
        levels, free = self._levels()
        chosen = self.C == "auto"
        if not chosen and not (isinstance(self.C, (int, float, np.number)) and self.C > 0):
            raise InvalidInputError(f'C of BagLogisticRegression must be "auto" or a positive number; got {self.C!r}.')
        if bags.counts.sum() in (0, bags.n_rows):
            raise NotIdentifiableError(
                f"totals tell nothing when all rows are of one class; got {bags.counts.sum()} positives in "
                f"{bags.n_rows} rows. Add bags with the other class."
            )
        rng = generator(self.random_state)
        moments = BagMoments.from_bags(bags).finalize()
        variances = np.diag(moments.cov_bag)
        by_scale = self.standardize is True or (self.standardize == "auto" and chosen)
        unit = np.where(variances > 0, variances, 1.0) if by_scale else np.ones(bags.n_features)
        self.C_ = self._chosen(bags, unit, levels, free, rng) if chosen else float(self.C)
        found = self._best(bags, moments, unit / self.C_, levels, free)
        self.ambiguous_ = bags.balanced
        warn_all(balance_finding(bags))
        model = found.model
        self.levels_ = np.array([model.low, model.high])
        self.log_likelihood_, self.converged_, self.n_iter_ = found.loglik, found.converged, found.n_steps
        self.prevalence_ = float(np.mean(expit(bags.X @ model.coef + model.intercept)))
        return LTF(model.coef, model.intercept)

    def _levels(self) -> tuple[tuple[float, float], bool]:
        """The levels to start from, and whether they are free."""
        noise = self.label_noise
        if noise is False:
            return (0.0, 1.0), False
        if (isinstance(noise, str) and noise == "estimate") or noise is True:
            return (0.05, 0.95), True
        try:
            low, high = (noise, 1.0 - noise) if np.ndim(noise) == 0 else (noise[0], 1.0 - noise[1])
            if 0 <= low < high <= 1 and np.size(noise) <= 2:
                return (float(low), float(high)), False
        except (TypeError, IndexError):
            pass
        raise InvalidInputError(
            'label_noise must be False, "estimate", a rate below 0.5, or a pair of rates of clean negatives and clean '
            f"positives reported wrongly, together below 1; got {noise!r}."
        )

    def _best(self, source: Any, moments: Moments, ridge: FloatArray, levels: tuple[float, float], free: bool) -> Fit:
        """The better of the two signs of the spectral start."""
        normal = combined_direction(moments).normal
        start = sloped(moments, normal, low=levels[0], high=levels[1])
        problem = Problem(source, moments, ridge, self.fit_intercept, free)
        fits = [
            maximise(problem, one, max_steps=self.max_iter, tol=self.tol) for one in (start, flipped(start, moments))
        ]
        return max(fits, key=lambda fit: fit.objective)

    def _chosen(
        self, bags: Bags, unit: FloatArray, levels: tuple[float, float], free: bool, rng: np.random.Generator
    ) -> float:
        """The C of the grid under which held-out bags are likeliest."""
        if bags.n_bags < 5:
            return 1.0
        train, held = bags.split(0.75, rng)
        if train.counts.sum() in (0, train.n_rows):
            return 1.0
        moments = BagMoments.from_bags(train).finalize()
        scores = []
        for C in _GRID:
            model = self._best(train, moments, unit / C, levels, free).model
            scores.append(held.reduce(likelihood_sums(model, moments.mean)).loglik)
        return _GRID[int(np.argmax(scores))]

    def predict_proba(self, X: Any, *, prevalence: float | None = None) -> FloatArray:
        """Probabilities of the clean classes of each row, in the order of ``classes_``.

        Parameters
        ----------
        X : Bags, or matrix of shape (n_rows, n_features)
        prevalence : float in (0, 1), optional
            Share of positives where the rows come from, if it differs from that of the bags.
        """
        z = self.decision_function(X)
        if prevalence is not None:
            if not 0 < prevalence < 1:
                raise InvalidInputError(
                    f"prevalence must lie strictly between 0 and 1; got {prevalence}. It is the share of positives."
                )
            z = z + float(logit(prevalence) - logit(self.prevalence_))
        return np.column_stack([expit(-z), expit(z)])

    def predict_reported_proba(self, X: Any) -> FloatArray:
        """Probabilities of the reported classes of each row: low + (high - low) sigmoid(coef·x + intercept)."""
        z = self.decision_function(X)
        low, high = self.levels_
        return np.column_stack([1 - high + (high - low) * expit(-z), low + (high - low) * expit(z)])

    def _bag_score(self, bags: Bags) -> float:
        """Log-likelihood of the bags' counts, per row."""
        model = CountModel(self.coef_[0], float(self.intercept_[0]), *self.levels_)
        return likelihood_sums(model, np.zeros(bags.n_features))(bags).loglik / bags.n_rows
