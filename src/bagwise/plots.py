"""Displays of what a model says of bags, after scikit-learn's convention.

Owns four displays, each made by ``from_estimator(model, bags, ax=)`` or the function of the same name, each holding
what it drew as ``ax_`` and ``figure_`` and drawing it again by ``plot(ax=)``. Refuses to compute what another room
owns, and to touch matplotlib before something is drawn.

Vocabulary: the *residual* of a bag is its count minus the expected one, in standard deviations of the model's count.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bagwise.arrays import AnyArray, FloatArray
from bagwise.bags import Bags
from bagwise.claims.answers import answers
from bagwise.claims.assessment import assess
from bagwise.errors import InvalidInputError, MissingExtraError

__all__ = [
    "BagResidualsDisplay",
    "CoefficientsDisplay",
    "ProjectionDisplay",
    "RocDisplay",
    "bag_residuals",
    "coefficients",
    "projection",
    "roc",
]


# ---------------------------------------------------------------------- residuals


@dataclass
class BagResidualsDisplay:
    """Residual of each bag against its expected proportion.

    A model that fits scatters about 0 with 95 % of the bags between the dashed lines, whatever the proportion.

    Attributes
    ----------
    expected : array of shape (n_bags,)
        Proportion that the model expects of each bag.
    residuals : array of shape (n_bags,)
        (count - expected count) / standard deviation of the count. Of a model without probabilities, the difference of
        the proportions.
    standardised : bool
        Which of the two the residuals are.
    name : str
    """

    expected: FloatArray
    residuals: FloatArray
    standardised: bool
    name: str
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, model: Any, bags: Bags, *, ax: Any = None, **kwargs: Any) -> "BagResidualsDisplay":
        """Compute and draw.

        Parameters
        ----------
        model : fitted classifier, bagwise's or any other
        bags : Bags
        ax : matplotlib axes, optional
        **kwargs : passed to ``Axes.scatter``
        """
        _require_bags(bags)
        found = answers(model, bags)
        probabilities = found.probabilities
        if hasattr(model, "predict_reported_proba"):  # the counts are of reported labels
            probabilities = model.predict_reported_proba(bags)[:, 1]
        if probabilities is None:
            expected = found.counts(bags) / bags.sizes
            residuals, standardised = bags.proportions - expected, False
        else:
            count = np.add.reduceat(probabilities, bags.starts[:-1])
            variance = np.add.reduceat(probabilities * (1 - probabilities), bags.starts[:-1])
            expected = count / bags.sizes
            # A bag whose labels are certain to rounding has no variance; a miss there is many deviations.
            residuals, standardised = (bags.counts - count) / np.sqrt(np.maximum(variance, 1e-12)), True
        return cls(expected, residuals, standardised, _name(model)).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "BagResidualsDisplay":
        """Draw on the axes, by default new ones; further arguments go to ``Axes.scatter``."""
        self.ax_, self.figure_ = _axes(ax)
        style = {"s": 12, "alpha": min(1.0, max(0.1, 30 / np.sqrt(len(self.residuals) + 1))), "linewidths": 0}
        self.ax_.scatter(self.expected, self.residuals, **(style | kwargs))
        self.ax_.axhline(0, color="0.4", linewidth=1)
        if self.standardised:
            for level in (-1.96, 1.96):
                self.ax_.axhline(level, color="0.4", linewidth=1, linestyle="--")
            spread = float(np.mean(self.residuals**2))
            self.ax_.set_title(f"{self.name}: mean squared residual {spread:.3g} (1 if the model holds)")
            self.ax_.set_ylabel("Residual count in standard deviations")
        else:
            self.ax_.set_title(f"{self.name}: {100 * np.mean(self.residuals != 0):.3g} % of the bags missed")
            self.ax_.set_ylabel("Proportion, observed − predicted")
        self.ax_.set_xlabel("Expected proportion of positives")
        return self


# ---------------------------------------------------------------------- coefficients


@dataclass
class CoefficientsDisplay:
    """Coefficients with their intervals, the largest on top.

    Attributes
    ----------
    names : list of str
    coef, low, high : arrays of shape (n_features,)
        ``low`` and ``high`` are None where no interval is known.
    confidence : float
    per_sd : bool
        Whether they are per standard deviation of the feature, which makes them comparable.
    name : str
    """

    names: list[str]
    coef: FloatArray
    low: FloatArray | None
    high: FloatArray | None
    confidence: float
    per_sd: bool
    name: str
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        bags: Bags | None = None,
        *,
        confidence: float = 0.95,
        per_sd: bool | None = None,
        n_resamples: int = 100,
        random_state: Any = None,
        max_shown: int = 20,
        ax: Any = None,
        **kwargs: Any,
    ) -> "CoefficientsDisplay":
        """Compute and draw.

        Parameters
        ----------
        model : fitted linear learner of bagwise
        bags : Bags, optional
            The bags of the fit. The learner is fitted again to ``n_resamples`` draws of them with replacement, and the
            intervals are the percentiles (bootstrap over bags). Without bags, the standard errors of the fit are used
            where the learner has them (``coef_se_``), else no interval is drawn.
        confidence : float in (0, 1)
        per_sd : bool, optional
            Whether to multiply each coefficient by the standard deviation of its feature in the bags; by default if
            there are bags.
        n_resamples : int
        random_state : int, Generator or None
        max_shown : int
            Only the largest coefficients, by absolute value, are drawn.
        ax : matplotlib axes, optional
        **kwargs : passed to ``Axes.errorbar``
        """
        if not 0 < confidence < 1:
            raise InvalidInputError(f"confidence must lie strictly between 0 and 1; got {confidence}. Try 0.95.")
        coef = np.asarray(model.coef_, dtype=np.float64)[0]
        known = getattr(model, "feature_names_in_", None)
        names = [str(name) for name in known] if known is not None else [f"x{j}" for j in range(len(coef))]
        low = high = None
        if bags is not None:
            _require_bags(bags)
            low, high = _bootstrap(model, bags, confidence, n_resamples, random_state)
        elif (errors := getattr(model, "coef_se_", None)) is not None:
            from scipy.special import ndtri

            reach = ndtri((1 + confidence) / 2) * np.asarray(errors, dtype=np.float64).reshape(-1)
            low, high = coef - reach, coef + reach
        per_sd = bags is not None if per_sd is None else per_sd
        if per_sd and bags is None:
            raise InvalidInputError("per_sd needs bags, whose standard deviations are meant; pass the bags of the fit.")
        unit = bags.X.std(axis=0, dtype=np.float64) if per_sd and bags is not None else np.ones(len(coef))
        low, high = (None if end is None else end * unit for end in (low, high))
        shown = cls(names, coef * unit, low, high, confidence, per_sd, _name(model))
        return shown.plot(ax, max_shown=max_shown, **kwargs)

    def plot(self, ax: Any = None, *, max_shown: int = 20, **kwargs: Any) -> "CoefficientsDisplay":
        """Draw on the axes, by default new ones; further arguments go to ``Axes.errorbar``."""
        self.ax_, self.figure_ = _axes(ax)
        order = np.argsort(-np.abs(self.coef), kind="stable")[:max_shown][::-1]
        reach = None
        if self.low is not None and self.high is not None:
            # A percentile interval need not hold the estimate itself; a bar has no negative length.
            reach = np.maximum(0, [self.coef[order] - self.low[order], self.high[order] - self.coef[order]])
        self.ax_.errorbar(self.coef[order], np.arange(len(order)), xerr=reach, **({"fmt": "o", "capsize": 3} | kwargs))
        self.ax_.axvline(0, color="0.4", linewidth=1)
        self.ax_.set_yticks(np.arange(len(order)), [self.names[j] for j in order])
        interval = f", {100 * self.confidence:g} % intervals" if reach is not None else ""
        hidden = f", largest {len(order)} of {len(self.coef)}" if len(order) < len(self.coef) else ""
        self.ax_.set_title(f"{self.name}{interval}{hidden}")
        self.ax_.set_xlabel("Coefficient × standard deviation of the feature" if self.per_sd else "Coefficient")
        return self


def _bootstrap(
    model: Any, bags: Bags, confidence: float, n_resamples: int, random_state: Any
) -> tuple[FloatArray, FloatArray]:
    """Percentiles of the coefficients over fits to bags drawn with replacement.

    C is held at what the fit chose: the intervals are those of the coefficients at that penalty.
    """
    import warnings

    from sklearn.base import clone

    from bagwise.errors import BagwiseWarning
    from bagwise.estimators.base import generator

    rng = generator(random_state)
    again = clone(model)
    if hasattr(model, "C_"):
        # "auto" scales the features too; a number alone would not.
        again.set_params(**({"C": model.C_} | ({"standardize": True} if _scaled(model) else {})))
    coefs = np.empty((n_resamples, model.coef_.shape[1]))
    for i in range(n_resamples):
        drawn = bags[rng.integers(0, bags.n_bags, bags.n_bags)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BagwiseWarning)  # said once, by the fit that is shown
            coefs[i] = again.fit(drawn).coef_[0]
    tail = (1 - confidence) / 2
    low, high = np.quantile(coefs, [tail, 1 - tail], axis=0)
    return low, high


def _scaled(model: Any) -> bool:
    return bool(getattr(model, "standardize", False) is True or model.get_params().get("C") == "auto")


# ---------------------------------------------------------------------- projection


@dataclass
class ProjectionDisplay:
    """Histogram of the scores of rows, by the proportion of their bags.

    Where a threshold explains the totals, rows of bags with many positives lie to the right of 0 and the others to the
    left, in these shares.

    Attributes
    ----------
    scores : list of arrays
        normal · x + offset of the rows of each group of bags.
    labels : list of str
        The proportions of each group.
    name : str
    """

    scores: list[FloatArray]
    labels: list[str]
    name: str
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, model: Any, bags: Bags, *, groups: int = 3, bins: int = 60, ax: Any = None, **kwargs: Any
    ) -> "ProjectionDisplay":
        """Compute and draw.

        Parameters
        ----------
        model : fitted classifier with decision_function, or an LTF
        bags : Bags
        groups : int
            Bags are put into so many groups of alike proportions, fewer if there are not so many proportions.
        bins : int
        ax : matplotlib axes, optional
        **kwargs : passed to ``Axes.stairs``
        """
        _require_bags(bags)
        if groups < 1 or bins < 1:
            raise InvalidInputError(f"groups and bins must be at least 1; got {groups} and {bins}.")
        scores = answers(model, bags).scores
        group = _alike(bags.proportions, groups)
        row_group, parts, labels = np.repeat(group, bags.sizes), [], []
        for g in range(int(group.max()) + 1):
            shares = bags.proportions[group == g]
            low, high = shares.min(), shares.max()
            span = f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"
            labels.append(f"{span} ({len(shares):,} bags)")
            parts.append(scores[row_group == g])
        return cls(parts, labels, _name(model)).plot(ax, bins=bins, **kwargs)

    def plot(self, ax: Any = None, *, bins: int = 60, **kwargs: Any) -> "ProjectionDisplay":
        """Draw on the axes, by default new ones; further arguments go to ``Axes.stairs``."""
        self.ax_, self.figure_ = _axes(ax)
        edges = np.histogram_bin_edges(np.concatenate(self.scores), bins)
        for i, (scores, label) in enumerate(zip(self.scores, self.labels, strict=True)):
            heights, _ = np.histogram(scores, edges, density=True)
            style = {"fill": True, "alpha": 0.45, "label": label, "color": _shade(i, len(self.scores))}
            self.ax_.stairs(heights, edges, **(style | kwargs))
        self.ax_.axvline(0, color="0.2", linewidth=1, linestyle="--")
        self.ax_.legend(title="Proportion of the bag", frameon=False)
        self.ax_.set_title(self.name)
        self.ax_.set_xlabel("normal · x + offset (positive right of 0)")
        self.ax_.set_ylabel("Density of rows")
        return self


def _alike(proportions: FloatArray, groups: int) -> AnyArray:
    """Group of each bag, 0 the lowest proportions; equal proportions are never parted."""
    distinct = np.unique(proportions)
    if len(distinct) > groups:
        cuts = np.quantile(proportions, np.arange(1, groups) / groups)
        number = np.searchsorted(cuts, proportions, side="left")
    else:
        number = np.searchsorted(distinct, proportions)
    return np.unique(number, return_inverse=True)[1]


# ---------------------------------------------------------------------- ROC


@dataclass
class RocDisplay:
    """ROC curve that the totals of held-out bags give, with pointwise intervals; no label is needed.

    Attributes
    ----------
    fpr, tpr : arrays
    low, high : arrays
        Interval of tpr at each point.
    auc : Figure
        Area under the curve, with its interval.
    confidence : float
    name : str
    """

    fpr: FloatArray
    tpr: FloatArray
    low: FloatArray
    high: FloatArray
    auc: Any
    confidence: float
    name: str
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, model: Any, bags: Bags, *, confidence: float = 0.95, ax: Any = None, **kwargs: Any
    ) -> "RocDisplay":
        """Assess by `bagwise.assess` and draw.

        Parameters
        ----------
        model : fitted classifier with scores, bagwise's or any other
        bags : Bags
            Held out; of the bags of the fit the curve is too good.
        confidence : float in (0, 1)
        ax : matplotlib axes, optional
        **kwargs : passed to ``Axes.plot``
        """
        _require_bags(bags)
        figures = assess(model, bags, confidence)
        roc = figures.roc
        shown = cls(roc.fpr, roc.tpr, roc.tpr_low, roc.tpr_high, figures.roc_auc, confidence, _name(model))
        return shown.plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "RocDisplay":
        """Draw on the axes, by default new ones; further arguments go to ``Axes.plot``."""
        self.ax_, self.figure_ = _axes(ax)
        label = f"area {self.auc.estimate:.3f} ({self.auc.low:.3f} to {self.auc.high:.3f})"
        (line,) = self.ax_.plot(self.fpr, self.tpr, **({"marker": ".", "label": label} | kwargs))
        self.ax_.fill_between(self.fpr, self.low, self.high, color=line.get_color(), alpha=0.2, linewidth=0)
        self.ax_.plot([0, 1], [0, 1], color="0.4", linewidth=1, linestyle="--")
        self.ax_.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        self.ax_.legend(loc="lower right", frameon=False)
        self.ax_.set_title(f"{self.name}: from totals alone, {100 * self.confidence:g} % intervals")
        self.ax_.set_xlabel("False positive rate")
        self.ax_.set_ylabel("True positive rate")
        return self


# ---------------------------------------------------------------------- in one word


def bag_residuals(model: Any, bags: Bags, **kwargs: Any) -> BagResidualsDisplay:
    """`BagResidualsDisplay.from_estimator`: residual of each bag against its expected proportion.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0]), np.zeros(2), np.eye(2), size=10, count=6)
    >>> bags = oracle.sample(200, np.random.default_rng(0))
    >>> shown = bw.plots.bag_residuals(bw.BagLogisticRegression(C=1.0).fit(bags), bags)
    >>> shown.ax_.get_xlabel()
    'Expected proportion of positives'
    """
    return BagResidualsDisplay.from_estimator(model, bags, **kwargs)


def coefficients(model: Any, bags: Bags | None = None, **kwargs: Any) -> CoefficientsDisplay:
    """`CoefficientsDisplay.from_estimator`: coefficients with intervals.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0]), np.zeros(2), np.eye(2), size=10, count=6)
    >>> bags = oracle.sample(200, np.random.default_rng(0))
    >>> shown = bw.plots.coefficients(bw.SpectralLTF().fit(bags), bags, n_resamples=20, random_state=0)
    >>> bool((shown.low < shown.coef).all() and (shown.coef < shown.high).all())
    True
    """
    return CoefficientsDisplay.from_estimator(model, bags, **kwargs)


def projection(model: Any, bags: Bags, **kwargs: Any) -> ProjectionDisplay:
    """`ProjectionDisplay.from_estimator`: histogram of the scores of rows, by the proportion of their bags.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0]), np.zeros(2), np.eye(2), size=4, count=[0.1, 0.2, 0.4, 0.2, 0.1])
    >>> bags = oracle.sample(200, np.random.default_rng(0))
    >>> bw.plots.projection(oracle.ltf, bags, groups=2).labels
    ['0 to 0.5 (127 bags)', '0.75 to 1 (73 bags)']
    """
    return ProjectionDisplay.from_estimator(model, bags, **kwargs)


def roc(model: Any, bags: Bags, **kwargs: Any) -> RocDisplay:
    """`RocDisplay.from_estimator`: the ROC curve that totals give.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0]), np.zeros(2), np.eye(2), size=4, count=[0.1, 0.2, 0.4, 0.2, 0.1])
    >>> train, heldout = (oracle.sample(200, np.random.default_rng(seed)) for seed in (0, 1))
    >>> bool(bw.plots.roc(bw.SpectralLTF().fit(train), heldout).auc.estimate > 0.9)
    True
    """
    return RocDisplay.from_estimator(model, bags, **kwargs)


# ---------------------------------------------------------------------- axes


def _axes(ax: Any) -> tuple[Any, Any]:
    """The axes to draw on, and their figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "drawing") from None
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    return ax, ax.figure


def _shade(i: int, n: int) -> Any:
    """Colours from low to high proportions that every eye tells apart."""
    from matplotlib import colormaps

    return colormaps["viridis"](0.5 if n == 1 else 0.9 * i / (n - 1))


def _name(model: Any) -> str:
    last: Sequence[Any] | None = getattr(model, "steps", None)
    return type(last[-1][1] if last else model).__name__


def _require_bags(bags: Any) -> None:
    if not isinstance(bags, Bags):
        raise InvalidInputError(
            f"what is drawn must be Bags; got {type(bags).__name__}. "
            "Rows with a bag target become Bags by Bags.from_target(X, y)."
        )
    if bags.n_bags == 0:
        raise InvalidInputError("what is drawn must have at least one bag; got none.")
