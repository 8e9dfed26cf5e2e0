"""One table of all learners: a new learner is a row here, and inherits every test of test_learners.py.

(The common checks of scikit-learn run on whatever is exported, in test_sklearn.py.)

A row says how to make the learner, on which bags, which pure function it is, and which of the symmetries it keeps. What
it does not keep has its reason in the row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

import bagwise as bw
from bagwise.bags import Bags
from bagwise.learn.alternating import alternate
from bagwise.learn.bag_loss import bag_loss_logistic
from bagwise.learn.debiased import debiased_logistic
from bagwise.learn.directions import (
    combined_direction,
    fisher_ltf,
    mean_direction,
    one_row_mean_direction,
    spectral_direction,
)
from bagwise.learn.offsets import best_threshold, matching_threshold, scores_along
from bagwise.learn.random_ltf import best_random_ltf, class_ratio_ltf
from bagwise.learn.sdp import sdp_ltf
from bagwise.learn.starts import Search
from bagwise.stats.moments import key_moments, one_draw_moments

N_FEATURES = 3


@dataclass(frozen=True)
class Row:
    """A learner and what is promised of it.

    ``keeps`` names the largest group of maps X -> X A' + b that the learner commutes with: "affine" (any), "linear"
    (b = 0), "rigid" (A orthogonal), "rotations" (both), "scalings" (A = a I, b = 0).
    """

    model: Any
    function: Callable[[Bags], bw.LTF]  # the same as pure functions of `learn`
    draw: Callable[[np.random.Generator], Bags]
    keeps: str = "affine"
    ordered: bool = False  # draws rows or bags at random, so that their order matters
    mirrors: bool = True  # k -> q - k sends (r, c) to (-r, -c)


def moments(bags: Bags) -> Any:
    return bw.BagMoments.from_bags(bags).finalize()


def rng() -> np.random.Generator:
    """What random_state=0 gives."""
    return np.random.default_rng(0)


def along(normal: Any, bags: Bags, *, offset: str = "satisfied") -> bw.LTF:
    """Sign by satisfied bags, and an offset of the named kind."""
    scores = scores_along(normal, bags)
    found = best_threshold(scores, bags)
    if offset == "count":
        return bw.LTF(found.sign * normal, -matching_threshold(found.sign * scores, int(bags.counts.sum())))
    return bw.LTF(found.sign * normal, -found.threshold if offset == "satisfied" else 0.0)


def amm(bags: Bags) -> bw.LTF:
    normal = combined_direction(moments(bags)).normal
    sign = best_threshold(scores_along(normal, bags), bags).sign
    fit = alternate(bags, sign * normal, 10.0, fit_intercept=True, max_rounds=200).fit
    return bw.LTF(fit.coef, fit.intercept)


def most_likely(bags: Bags) -> bw.LTF:
    model = Search(bags, moments(bags), np.ones(bags.n_features), tol=1e-8).path([10.0], rng()).fits[10.0].model
    return bw.LTF(model.coef, model.intercept)


def of_soft(fit: Any) -> bw.LTF:
    return bw.LTF(fit.coef, fit.intercept)


def largest_key(bags: Bags) -> Bags:
    size, count = next(iter(key_moments(bags)))
    return bags[(bags.sizes == size) & (bags.counts == count)]


def drawn(size: int, count: Any, n_bags: int = 300, offset: float = 0.4) -> Callable[[np.random.Generator], Bags]:
    """Bags of a correlated Gaussian."""
    cov = np.array([[1.0, 0.3, 0.0], [0.3, 2.0, -0.2], [0.0, -0.2, 0.5]])
    oracle = bw.BagOracle(bw.LTF([1.0, -0.5, 2.0], offset), np.array([0.2, 0.0, -0.3]), cov, size, count)
    return lambda rng: oracle.sample(n_bags, rng)


def mixed(rng: np.random.Generator) -> Bags:
    """Bags of two sizes, of counts by chance and of one count."""
    parts = [drawn(6, binom.pmf(np.arange(7), 6, 0.4), 200)(rng), drawn(9, 6, 150)(rng)]
    first, second = ([f"{name}{i}" for i in range(part.n_bags)] for name, part in zip("ab", parts, strict=True))
    return Bags.concat(
        [
            Bags.from_sizes(part.X, part.sizes, part.counts, ids=ids)
            for part, ids in zip(parts, (first, second), strict=True)
        ]
    )


centred = drawn(5, 4, offset=0.0)
small = drawn(3, 1, 60, offset=0.0)

LEARNERS: dict[str, Row] = {
    "A4": Row(
        bw.SpectralLTF(),
        lambda bags: along(combined_direction(moments(bags)).normal, bags),
        mixed,
    ),
    "A4, total count": Row(
        bw.SpectralLTF(offset="count"),
        lambda bags: along(combined_direction(moments(bags)).normal, bags, offset="count"),
        drawn(5, 4),
    ),
    "A2": Row(
        bw.SpectralLTF(fit_intercept=False),
        lambda bags: along(spectral_direction(moments(bags)).normal, bags, offset="none"),
        drawn(5, 4),
        keeps="linear",
    ),
    "A4, largest key": Row(
        bw.SpectralLTF(keys="largest"),
        lambda bags: along(spectral_direction(moments(largest_key(bags))).normal, bags),
        mixed,
    ),
    "A4, one draw": Row(
        bw.SpectralLTF(pairs="one", random_state=0),
        lambda bags: along(spectral_direction(one_draw_moments(bags, rng())).normal, bags),
        drawn(5, 4),
        ordered=True,
    ),
    "A3": Row(
        bw.MeanLTF(),
        lambda bags: bw.LTF(mean_direction(moments(bags)), 0.0),
        mixed,
        keeps="rotations",
    ),
    "A3, one row": Row(
        bw.MeanLTF(pairs="one", random_state=0),
        lambda bags: bw.LTF(one_row_mean_direction(bags, rng()), 0.0),
        centred,
        keeps="rotations",
        ordered=True,
    ),
    "MeanMap": Row(bw.MeanMap(), lambda bags: fisher_ltf(moments(bags)), mixed),
    "R": Row(
        bw.RandomLTF(20, random_state=0),
        lambda bags: best_random_ltf(bags, 20, rng(), with_offset=False).ltf,
        centred,
        keeps="scalings",
        mirrors=False,  # the opposite of a candidate is none
    ),
    "R with offset": Row(
        bw.RandomLTF(20, fit_intercept=True, random_state=0),
        lambda bags: best_random_ltf(bags, 20, rng(), with_offset=True).ltf,
        mixed,
        keeps="scalings",
    ),
    "class ratio": Row(
        bw.ClassRatioLTF(random_state=0),
        lambda bags: class_ratio_ltf(bags, rng()),
        lambda rng: drawn(40, 10, 1)(rng),
        keeps="scalings",
        mirrors=False,  # the normal is drawn before the bag is seen
    ),
    "S": Row(
        bw.SDPLTF(fit_intercept=False, random_state=0),
        lambda bags: sdp_ltf(bags, rng(), variant="S", with_offset=False).ltf,
        small,
        keeps="scalings",  # the roundings are drawn in the coordinates of the features
        mirrors=False,  # bags of three count as split or not, so that the draw is kept as it is
    ),
    "EasyLLP": Row(
        bw.EasyLLP(C=10.0),
        lambda bags: of_soft(debiased_logistic(bags, 10.0, fit_intercept=True)),
        mixed,
        keeps="rigid",
    ),
    "bag loss": Row(
        bw.BagLossRegression(C=10.0),
        lambda bags: of_soft(bag_loss_logistic(bags, 10.0, fit_intercept=True, max_steps=1000)),
        mixed,
        keeps="rigid",
    ),
    "ML": Row(bw.BagLogisticRegression(C=10.0, tol=1e-8, random_state=0), most_likely, mixed, keeps="rigid"),
    "AMM": Row(bw.AlternatingMeanMap(C=10.0), amm, mixed, keeps="rigid"),
}
