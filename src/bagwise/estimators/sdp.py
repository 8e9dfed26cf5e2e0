"""The paper's semidefinite baselines (column S) behind scikit-learn's door."""

import warnings
from typing import Any

import numpy as np

from bagwise.bags import Bags
from bagwise.errors import FitWarning, InvalidInputError
from bagwise.estimators.base import BagEstimator, generator, require_choice, warn_all
from bagwise.learn.identifiability import balance_finding
from bagwise.learn.sdp import Variant, sdp_ltf
from bagwise.ltf import LTF

__all__ = ["SDPLTF"]


class SDPLTF(BagEstimator):
    """Linear threshold from a semidefinite relaxation, for bags of one to four rows: the baseline of the paper.

    The unknown normal r becomes a matrix C for r r', each bag a convex constraint on C, and random vectors with
    covariance C compete for the most bags [S21, S22]. It proves something for any distribution of the rows (two
    fifths of the bags up to two rows, an eighth up to three), and in practice learns less than `SpectralLTF`: the
    relaxation is loose. In high dimension or with three rows the least-norm C is often the identity, and "S" then the
    best of five random thresholds.

    Parameters
    ----------
    variant : "S" or "S+"
        "S": the C of least norm and 5 roundings, as in the paper's tables. "S+": the C deepest inside the constraints
        (log barrier), its top eigenvector and 100 roundings; ours, not to be reported as S.
    n_roundings : int, optional
        Random vectors to try; by default those of the variant.
    fit_intercept : bool
        Whether to look for an offset, by adding a feature that is always 1.
    tol : float
        Relative residuals at which the solver stops.
    max_iter : int
        Iterations after which it gives up, with a `FitWarning`.
    random_state : int, Generator-compatible or None
        For the roundings.

    Attributes
    ----------
    coef_, intercept_, ltf_, classes_, ambiguous_ : see `BagEstimator`
    n_iter_ : int
        Iterations of the solver; at least 1, as scikit-learn expects, also where nothing had to be solved.
    result_ : SDPResult
        Feasible or not, residuals, iterations, bags satisfied by each candidate, what is proven and what was achieved.

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0]), np.zeros(2), np.eye(2), size=3, count=1)
    >>> bags = oracle.sample(200, np.random.default_rng(0))
    >>> model = bw.SDPLTF(variant="S+", fit_intercept=False, random_state=0).fit(bags)
    >>> model.result_.guarantee, model.result_.achieved > 0.9
    (0.125, True)
    """

    def __init__(
        self,
        *,
        variant: Variant = "S",
        n_roundings: int | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        random_state: Any = None,
    ) -> None:
        self.variant = variant
        self.n_roundings = n_roundings
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, bags: Bags) -> LTF:
        require_choice(self, "variant", ("S", "S+"))
        self._require_positive_integer("max_iter")
        if self.n_roundings is not None:
            self._require_positive_integer("n_roundings")
        if not 0 < self.tol < 1:
            raise InvalidInputError(f"tol of SDPLTF must lie strictly between 0 and 1; got {self.tol!r}.")
        self.ambiguous_ = bags.balanced
        self.result_ = sdp_ltf(
            bags,
            generator(self.random_state),
            variant=self.variant,
            with_offset=self.fit_intercept,
            n_roundings=self.n_roundings,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        self.n_iter_ = max(self.result_.iterations, 1)
        warn_all(balance_finding(bags))
        if self.result_.concern is not None:
            warnings.warn(self.result_.concern, FitWarning, stacklevel=3)
        return self.result_.ltf

    def _require_positive_integer(self, name: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise InvalidInputError(f"{name} of SDPLTF must be an integer of at least 1; got {value!r}.")
