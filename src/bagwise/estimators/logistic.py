"""Exact maximum likelihood of the counts behind scikit-learn's door: the recommended learner."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from scipy.special import expit, logit

from bagwise.arrays import FloatArray
from bagwise.bags import Bags, BagSource, is_bag_target
from bagwise.errors import FitWarning, InvalidInputError, NotIdentifiableError
from bagwise.estimators.base import BagEstimator, generator, require_choice, require_positive, warn_all
from bagwise.learn.directions import combined_direction
from bagwise.learn.identifiability import (
    balance_finding,
    direction_findings,
    dispersion_finding,
    gain_finding,
    steady_finding,
    trap_finding,
)
from bagwise.learn.levels import CLEAN, Levels
from bagwise.learn.likelihood import CountModel, Fit, LikelihoodSums, LikelihoodTask, WeightedBags
from bagwise.learn.offsets import n_satisfied_along
from bagwise.learn.penalty import chosen_penalty
from bagwise.learn.starts import Search, trap_bound
from bagwise.learn.steady import steadied, steady_totals
from bagwise.ltf import LTF
from bagwise.stats.fingerprints import kept_fingerprints
from bagwise.stats.moments import BagMoments
from bagwise.stats.poisson_binomial import bag_posterior

__all__ = ["BagLogisticRegression", "BagResiduals"]

# Beyond so many features standard errors would cost more than the fit.
_WIDE = 256


@dataclass(frozen=True, slots=True, eq=False)
class BagResiduals:
    """How far each bag's count is from what the model expects, in the order of the bags.

    Attributes
    ----------
    ids : array of shape (n_bags,)
    expected, spread : float arrays of shape (n_bags,)
        Mean and standard deviation of the count under the model.
    residual : float array of shape (n_bags,)
        (count - expected) / spread; 0 where neither says anything.
    log_likelihood : float array of shape (n_bags,)
        Log-probability of the count: very negative for a bag that contradicts the rest.
    """

    ids: Any
    expected: FloatArray
    spread: FloatArray
    residual: FloatArray
    log_likelihood: FloatArray


class BagLogisticRegression(BagEstimator):
    """Logistic regression from the counts of bags, by exact maximum likelihood: the learner to begin with.

    Each row is positive with probability sigmoid(coef·x + intercept), independently; the count of a bag is then
    Poisson-binomial, and its exact likelihood is maximised from the spectral direction, under a ridge penalty. Bags of
    one row are ordinary labels: alone they give scikit-learn's LogisticRegression, and a table that mixes labelled rows
    and bags just works. Totals that are all alike are no obstacle.

    Parameters
    ----------
    C : "auto" or float
        Inverse strength of the ridge penalty. A number means what it means in scikit-learn's LogisticRegression.
        "auto" takes the best of eight, 0.01 to 100,000, by the likelihood of held-out bags, for features scaled to unit
        variance, so that units of columns do not matter.
    fit_intercept : bool
        Whether to fit an intercept; it is not penalised.
    label_noise : False, "estimate", a rate, or a pair of rates
        Whether reported labels may be wrong: with "estimate" the shares of reported positives among clean negatives and
        clean positives are fitted (``levels_``); a rate r states them as (r, 1 - r), a pair (r0, r1) as (r0, 1 - r1).
        Bags that all share one proportion were chosen for it, which multiplies the odds of both stated levels by one
        constant; it is fitted then.
    standardize : "auto" or bool
        Whether the penalty is on the coefficients of features scaled to unit variance; "auto": if C is chosen.
    tol : float
        The search ends when the penalised log-likelihood still to be gained is below this.
    max_iter : int
        The most steps of a search.
    random_state : int, Generator-compatible or None
        For held-out bags and random starts; an integer makes the fit repeatable.

    Attributes
    ----------
    coef_, intercept_, ltf_, classes_, ambiguous_ : see `BagEstimator`
    coef_standard_errors_ : array of shape (1, n_features)
        By the sandwich over bags, which holds whatever the design of the counts; of the penalised estimate, so without
        the penalty's bias. Absent beyond 256 features, and where the likelihood is not curved downwards.
    intercept_standard_error_ : float
        The same for the intercept; absent without one.
    C_ : float
        The C of the fit.
    C_scores_ : array of shape (8, 2)
        C, and the log-likelihood of held-out bags per bag with it; absent for a given C.
    levels_ : array of shape (2,)
        Pr[reported positive | clean negative], Pr[reported positive | clean positive].
    prevalence_ : float
        Share of clean positives among the rows of the fit, as the model has it.
    log_likelihood_ : float
        Of the counts of the fit.
    overdispersion_, overdispersion_z_ : float
        Mean squared deviation of the counts over what the model expects (1 if it holds, less for bags whose counts were
        fixed beforehand), and how many standard errors it is above 1.
    separated_ : bool
        Whether the boundary meets every total exactly: the size of the coefficients is then the penalty's doing.
    n_starts_, n_iter_ : int
        Starts tried; evaluations of the likelihood by the last search.
    converged_ : bool
    status_ : str
        Why the search ended.

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
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.label_noise = label_noise
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    # ------------------------------------------------------------------ fit

    _learns_from_sums = True
    _reads_releases = True

    def fit(self, X: Any, y: Any = None, *, bags: Any = None, client: Any = None, sample_weight: Any = None) -> Self:
        """Learn from bags, labelled rows, or both.

        Parameters
        ----------
        X, y, bags, client : see `BagEstimator.fit`
        sample_weight : numbers of at least 0, optional
            How often each bag counts: one per bag for ``fit(bags)``, else one per row, the same in all rows of a bag.
            For bags in memory.

        Returns
        -------
        The fitted estimator.
        """
        if sample_weight is None:
            super().fit(X, y, bags=bags, client=client)
            return self
        learnt = self._check_source(X, y, bags, client)
        if not isinstance(learnt, Bags):
            raise InvalidInputError(
                f"sample_weight goes with bags in memory; got a {type(learnt).__name__}. Leave bags out or repeat them."
            )
        weights = self._bag_weights(learnt, y, bags, sample_weight)
        counted = WeightedBags(learnt[weights > 0], weights[weights > 0])
        self._store(self._fit(counted))
        self.bag_fingerprints_ = kept_fingerprints(counted.bags)
        return self

    def _fit(self, bags: BagSource) -> LTF:
        """The fit, from bags wherever they are."""
        self._check_settings()
        outline = bags.reduce(_Outline.of)
        if outline.n_positive in (0, outline.n_rows):
            raise NotIdentifiableError(
                f"totals tell nothing when all rows are of one class; got {outline.n_positive} positives in "
                f"{outline.n_rows} rows. Add bags with the other class."
            )
        for name in ("C_scores_", "coef_standard_errors_", "intercept_standard_error_"):
            if hasattr(self, name):
                delattr(self, name)
        findings = balance_finding(outline)
        search, reported = self._search(bags, findings)
        fit = self._best_fit(search, findings)
        self.ambiguous_ = outline.balanced
        ltf = LTF(fit.model.coef, fit.model.intercept)
        met = n_satisfied_along(ltf.normal, -ltf.offset, search.source)
        self._report(search, fit, findings, separated=met == outline.n_bags)
        self.levels_ = np.array([fit.model.low, fit.model.high] if reported is None else reported)
        warn_all(findings)
        if not fit.converged:
            warn_all([f"the search did not converge: {fit.reason}. Raise max_iter, or tol."], FitWarning)
        return ltf

    def _search(self, bags: BagSource, findings: list[str]) -> tuple[Search, tuple[float, float] | None]:
        """The problem to be solved, and the levels of the reported labels where its counts are not the reported ones.

        What bags leave open is added to the findings.
        """
        levels = self._levels()
        moments = bags.reduce(BagMoments.from_bags).finalize()
        direction = combined_direction(moments)
        reported = None
        if direction.contradiction is not None and levels != CLEAN:
            steady = steady_totals(bags, None if levels.free == "both" else (levels.low, levels.high))
            if steady is not None:
                findings += steady_finding(steady.share, steady.low, steady.high)
                reported = (steady.low, steady.high)
                bags, levels = steadied(bags, steady), CLEAN
                moments = bags.reduce(BagMoments.from_bags).finalize()
                direction = combined_direction(moments)
        if levels.free == "none" and levels != CLEAN and moments.count_scatter <= 0:
            levels = replace(levels, free="shift")  # bags of one reported share were chosen for it
        findings += direction_findings(moments, direction, noise_is_modelled=levels != CLEAN)
        variances = np.diag(moments.cov_bag)
        by_scale = self.C == "auto" if self.standardize == "auto" else self.standardize
        unit = np.where(variances > 0, variances, 1.0) if by_scale else np.ones(len(variances))
        return Search(bags, moments, unit, self.fit_intercept, levels, self.tol, self.max_iter), reported

    def _best_fit(self, search: Search, findings: list[str]) -> Fit:
        """The best maximum at the given C, or at the one that held-out bags choose."""
        rng = generator(self.random_state)
        near = None
        if self.C == "auto":
            choice = chosen_penalty(search, rng)
            self.C_, near = choice.C, choice.near
            findings += gain_finding(choice.gain)
            if choice.scores:
                self.C_scores_ = np.array(list(choice.scores.items()))
        else:
            self.C_ = float(self.C)
            if search.moments.count_scatter <= 0:
                findings += trap_finding(self.C_, trap_bound(search.moments, search.unit))
        path = search.path([self.C_], rng) if near is None or search.weak or search.small else None
        fits = [] if path is None else [path.fits[self.C_]]
        if near is not None:
            fits.append(search.maximise(self.C_, near, near=True))
        self.n_starts_ = 1 if path is None else path.n_starts
        return max(fits, key=lambda fit: fit.objective)

    def _report(self, search: Search, fit: Fit, findings: list[str], *, separated: bool) -> None:
        """Stores what the fit is worth; adds to the findings what must be said of it."""
        model, problem = fit.model, search.problem(self.C_)
        narrow = len(model.coef) <= _WIDE
        sums = problem.source.reduce(LikelihoodTask(model, problem.centre, curvature=narrow, scores=narrow))
        self.log_likelihood_, self.converged_, self.n_iter_ = fit.loglik, fit.converged, fit.n_evaluations
        self.prevalence_ = float((sums.expected / sums.n_rows - model.low) / (model.high - model.low))
        self.separated_ = separated
        self.status_ = ("converged: " if fit.converged else "not converged: ") + fit.reason
        if separated:
            self.status_ += "; every total is met exactly, so that the size of the coefficients is the penalty's doing"
        self.overdispersion_ = 1 + sums.excess / max(sums.variance, 1e-300)
        self.overdispersion_z_ = sums.excess / max(np.sqrt(sums.noise), 1e-300)
        if narrow:
            self._store_errors(search, fit, sums)
        findings += dispersion_finding(self.overdispersion_, self.overdispersion_z_)

    def _store_errors(self, search: Search, fit: Fit, sums: LikelihoodSums) -> None:
        """Sandwich over bags: A^-1 B A^-1 with the penalised Hessian A and the squares B of the bags' gradients."""
        problem, d = search.problem(self.C_), len(fit.model.coef)
        K = problem.jacobian(problem.levels.directions(fit.model.low, fit.model.high))
        A, B = -K.T @ sums.hessian @ K, K.T @ sums.outer @ K
        A[np.arange(d), np.arange(d)] += problem.ridge
        scale = 1 / np.sqrt(np.maximum(np.abs(np.diag(A)), 1e-300))
        values, vectors = np.linalg.eigh(A * np.outer(scale, scale))
        if values[0] <= 1e-13 * values[-1]:
            self.status_ += "; without standard errors, as the likelihood is flat in some direction"
            return
        inverse = scale[:, None] * vectors / np.sqrt(values)
        inverse = inverse @ inverse.T
        covariance = inverse @ B @ inverse
        self.coef_standard_errors_ = np.sqrt(np.maximum(np.diag(covariance)[:d], 0.0)).reshape(1, -1)
        if self.fit_intercept:
            # The intercept of the rows as they are: that of centred rows less coef·centre.
            lever = np.concatenate([-problem.centre, [1.0]])
            self.intercept_standard_error_ = float(np.sqrt(max(lever @ covariance[: d + 1, : d + 1] @ lever, 0.0)))

    # ------------------------------------------------------------------ settings and weights

    def _check_settings(self) -> None:
        if not (isinstance(self.C, str) and self.C == "auto"):
            number = isinstance(self.C, (int, float, np.number)) and not isinstance(self.C, bool)
            if not (number and np.isfinite(self.C) and self.C > 0):
                raise InvalidInputError(
                    f'C of BagLogisticRegression must be "auto" or a positive number; got {self.C!r}.'
                )
        require_choice(self, "standardize", ("auto", True, False))
        require_positive(self, "tol", "max_iter")

    def _levels(self) -> Levels:
        """What ``label_noise`` says of the levels."""
        noise = self.label_noise
        if noise is False:
            return CLEAN
        if noise is True or (isinstance(noise, str) and noise == "estimate"):
            return Levels(0.1, 0.9, "both")
        try:
            low, high = (noise, 1.0 - noise) if np.ndim(noise) == 0 else (noise[0], 1.0 - noise[1])
            if 0 <= low < high <= 1 and np.size(noise) <= 2:
                return Levels(float(low), float(high))
        except (TypeError, IndexError):
            pass
        raise InvalidInputError(
            'label_noise must be False, "estimate", a rate below 0.5, or a pair of rates of clean negatives and clean '
            f"positives reported wrongly, together below 1; got {noise!r}."
        )

    def _bag_weights(self, learnt: Bags, y: Any, ids: Any, sample_weight: Any) -> FloatArray:
        """One weight per bag."""
        weights: FloatArray = np.asarray(sample_weight, dtype=np.float64)
        by_row = y is not None
        expected = learnt.n_rows if by_row else learnt.n_bags
        if weights.ndim == 0:
            weights = np.full(expected, float(weights))
        if weights.shape != (expected,) or not np.isfinite(weights).all() or (weights < 0).any():
            raise InvalidInputError(
                f"sample_weight must be one number of at least 0 per {'row' if by_row else 'bag'}, {expected} of them; "
                f"got shape {weights.shape}. A bag counts as often as its weight says."
            )
        if by_row and (ids is not None or is_bag_target(y)):
            names = ids if ids is not None else y["bag"]
            grouped = Bags.from_arrays(weights.reshape(-1, 1), names, counts=np.zeros(learnt.n_bags, np.int64))
            by_bag: FloatArray = grouped.X[grouped.starts[:-1], 0]
            if (np.repeat(by_bag, grouped.sizes) != grouped.X[:, 0]).any():
                raise InvalidInputError(
                    "sample_weight must be the same in all rows of a bag, as the bag counts as a whole; "
                    "got several weights in one. Average them."
                )
            weights = by_bag
        if not (weights > 0).any():
            raise InvalidInputError("sample_weight must be above 0 for at least one bag; got zeros only.")
        return weights

    # ------------------------------------------------------------------ what goes out

    def predict_proba(self, X: Any, *, prevalence: float | None = None) -> FloatArray:
        """Probabilities of the clean classes of each row, in the order of ``classes_``.

        Parameters
        ----------
        X : Bags, or matrix of shape (n_rows, n_features)
        prevalence : float in (0, 1), optional
            Share of positives where the rows come from, if it differs from that of the bags (``prevalence_``): the
            odds are then multiplied by the ratio of the two prevalences' odds.
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

    def label_posterior(self, bags: Any, y: Any = None) -> FloatArray:
        """Pr[clean label = 1 | row, and the count of its bag] of each row, in the order of the bags' rows.

        What the totals add to `predict_proba`; for bags of one row it is their label, without label noise.

        Parameters
        ----------
        bags : Bags, or matrix with a bag target y
        """
        bags = self._check_bags(bags, y, None, reset=False)
        z = self.decision_function(bags)
        low, high = self.levels_
        up, down = expit(z), expit(-z)
        reported, denied = low + (high - low) * up, 1 - high + (high - low) * down
        with np.errstate(divide="ignore"):
            eta = z if (low, high) == (0.0, 1.0) else np.log(reported) - np.log(denied)
        share = bag_posterior(eta, bags).labels
        if (low, high) == (0.0, 1.0):
            return share
        posterior: FloatArray = share * high * up / reported + (1 - share) * (1 - high) * up / denied
        return posterior

    def bag_residuals(self, bags: Any, y: Any = None) -> BagResiduals:
        """What the model expects of each bag's count, and how far the count is off.

        Parameters
        ----------
        bags : Bags, or matrix with a bag target y
        """
        bags = self._check_bags(bags, y, None, reset=False)
        P = self.predict_reported_proba(bags)
        starts = bags.starts[:-1]
        expected = np.add.reduceat(P[:, 1], starts)
        spread = np.sqrt(np.add.reduceat(P[:, 0] * P[:, 1], starts))
        off = bags.counts - expected
        residual = np.divide(off, spread, out=np.zeros(bags.n_bags), where=spread > 0)
        with np.errstate(divide="ignore"):
            eta = self.decision_function(bags) if tuple(self.levels_) == (0.0, 1.0) else np.log(P[:, 1] / P[:, 0])
        loglik = bag_posterior(eta, bags).loglik
        return BagResiduals(bags.ids, expected, spread, residual, loglik)

    def _bag_score(self, bags: Bags) -> float:
        """Log-likelihood of the bags' counts, per row."""
        model = CountModel(self.coef_[0], float(self.intercept_[0]), *(float(level) for level in self.levels_))
        sums = bags.reduce(LikelihoodTask(model, np.zeros(bags.n_features)))
        return sums.loglik / bags.n_rows


@dataclass(frozen=True, slots=True)
class _Outline:
    """What must be known of the counts before anything else."""

    n_bags: int
    n_rows: int
    n_positive: int
    balanced: bool

    @classmethod
    def of(cls, bags: Bags) -> "_Outline":
        return cls(bags.n_bags, bags.n_rows, int(bags.counts.sum()), bags.balanced)

    def __add__(self, other: "_Outline") -> "_Outline":
        return _Outline(
            self.n_bags + other.n_bags,
            self.n_rows + other.n_rows,
            self.n_positive + other.n_positive,
            self.balanced and other.balanced,
        )
