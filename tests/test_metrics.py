"""Measures of error: on bags, on a Gaussian, and on the bags of an oracle."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose
from scipy.stats import binom

import bagwise as bw
from bagwise.claims.metrics import mismatch_probability, predicted_counts
from bagwise.errors import InvalidInputError
from strategies import bags as any_bags
from strategies import ltf_pairs, oracles

TWO_BAGS = bw.Bags.from_sizes([[1.0], [-1.0], [2.0], [3.0], [-4.0]], sizes=[2, 3], counts=[1, 1])


class Fixed:
    """A model that predicts what it was told."""

    def __init__(self, labels: object) -> None:
        self.labels = labels

    def predict(self, X: object) -> np.ndarray:
        return np.asarray(self.labels)


# ---------------------------------------------------------------------- on bags


def test_bags_are_satisfied_or_not() -> None:
    model = bw.LTF([1.0])
    assert predicted_counts(model, TWO_BAGS).tolist() == [1, 2]
    assert bw.bag_error(model, TWO_BAGS) == 0.5
    assert bw.proportion_error(model, TWO_BAGS) == pytest.approx(1 / 6)


def test_a_model_is_anything_that_predicts() -> None:
    assert bw.bag_error(Fixed([True, False, False, False, True]), TWO_BAGS) == 0
    assert bw.bag_error(Fixed([1.0, 0.0, 1.0, 1.0, 1.0]), TWO_BAGS) == 0.5


@given(any_bags())
def test_measures_agree_with_a_loop_over_bags(bags: bw.Bags) -> None:
    model = bw.LTF(np.ones(bags.n_features), -1.0)
    each = [int(model.predict(bags[i : i + 1].X).sum()) for i in range(len(bags))]
    assert predicted_counts(model, bags).tolist() == each
    assert bw.bag_error(model, bags) == np.mean([n != k for n, k in zip(each, bags.counts, strict=True)])
    shares = [abs(n - k) / q for n, k, q in zip(each, bags.counts, bags.sizes, strict=True)]
    assert bw.proportion_error(model, bags) == pytest.approx(np.mean(shares), abs=1e-15)


@given(any_bags())
def test_complements_on_mirrored_counts_are_as_wrong(bags: bw.Bags) -> None:
    mirrored = bw.Bags.from_sizes(bags.X, bags.sizes, bags.sizes - bags.counts)
    model = bw.LTF(np.ones(bags.n_features), 0.5)  # rows are integers: none lies on the hyperplane
    assert bw.bag_error(model.flipped(), mirrored) == bw.bag_error(model, bags)
    assert bw.proportion_error(model.flipped(), mirrored) == pytest.approx(bw.proportion_error(model, bags), abs=1e-15)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, 2, 0, 1], r"predictions must be 0 or 1.* got .*2"),
        ([0.0, 1.0, np.nan, 0, 1], r"predictions must be 0 or 1.* got .*nan"),
        (["a", "b", "a", "b", "a"], r"predictions must be 0 or 1.* got .*'a'"),
        ([0, 1], r"one label per row, 5; got shape \(2,\)"),
        (np.zeros((5, 2)), r"one label per row, 5; got shape \(5, 2\)"),
    ],
)
def test_predictions_that_are_not_labels_are_refused(labels: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        bw.bag_error(Fixed(labels), TWO_BAGS)


# ---------------------------------------------------------------------- exact errors


@given(ltf_pairs())
def test_instance_error_is_the_disagreement(pair) -> None:
    g, f, h = pair
    assert bw.instance_error(h, f, g.mean, g.cov) == h.disagreement(f, g.mean, g.cov)


def test_two_binomials_agree_with_their_table() -> None:
    sizes = [0, 1, 2, 5, 17, 300]
    for a, b in product([0.0, 1e-9, 0.2, 0.5, 0.97, 1.0], repeat=2):
        n, m = (np.array(x) for x in zip(*product(sizes, sizes), strict=True))
        j = np.arange(301)
        table = 1 - np.sum(binom.pmf(j, n[:, None], a) * binom.pmf(j, m[:, None], b), axis=1)
        assert_allclose(mismatch_probability(n, m, a, b), table, atol=1e-12)


def test_tiny_rates_keep_their_digits() -> None:
    # First order: n a + m b; next order below 100 (n a + m b)^2.
    assert_allclose(mismatch_probability(8, 2, 1e-14, 3e-14), [14e-14], rtol=1e-11)
    assert_allclose(mismatch_probability(700, 300, 1e-14, 0.0), [7e-12], rtol=1e-8)


def test_a_perfect_ltf_errs_only_by_flips() -> None:
    truth = bw.LTF([1.0, 2.0], 0.5)
    design = (truth, np.zeros(2), np.eye(2), 3, 2)
    assert bw.oracle_bag_error(truth, bw.BagOracle(*design)) == 0
    # Three labels flipped by chance: the reported count is 2 if none flips, or one positive and the negative do.
    noisy = bw.BagOracle(*design, flip=0.1, count_is="true")
    assert bw.oracle_bag_error(truth, noisy) == pytest.approx(1 - 0.9**3 - 2 * 0.1 * 0.9 * 0.1, rel=1e-13)


def test_always_positive_satisfies_only_full_bags() -> None:
    always = bw.LTF([0.0], 1.0)
    oracle = bw.BagOracle(bw.LTF([1.0]), [0.0], [[1.0]], 3, [0.1, 0.2, 0.3, 0.4])
    assert bw.oracle_bag_error(always, oracle) == pytest.approx(0.6, rel=1e-14)


@given(oracles())
def test_bag_error_of_the_mirrored_problem_is_the_same(pair) -> None:
    oracle, h = pair
    mirrored = bw.BagOracle(
        oracle.ltf.flipped(),
        oracle.mean,
        oracle.cov,
        oracle.size,
        oracle.size - oracle.count if isinstance(oracle.count, int) else oracle.count_probabilities[::-1],
        flip=oracle.flip,
        count_is=oracle.count_is,
    )
    error = bw.oracle_bag_error(h, oracle)
    assert 0 <= error <= 1
    # Rates to 1e-9 of themselves (see test_ltf_laws), times at most q = 7 rows.
    assert_allclose(bw.oracle_bag_error(h.flipped(), mirrored), error, rtol=1e-8, atol=1e-12)


@given(oracles())
def test_a_mixture_errs_by_the_mean_of_its_parts(pair) -> None:
    oracle, h = pair
    parts = [
        bw.oracle_bag_error(
            h, bw.BagOracle(oracle.ltf, oracle.mean, oracle.cov, oracle.size, k, oracle.flip, oracle.count_is)
        )
        for k in range(oracle.size + 1)
    ]
    assert_allclose(bw.oracle_bag_error(h, oracle), oracle.count_probabilities @ parts, rtol=1e-10, atol=1e-13)


def test_both_kinds_of_count_agree_where_labels_are_not_flipped() -> None:
    # The characteristic function (true counts, a flip of 1e-15) against the sum over binomials.
    truth, guess = bw.LTF([1.0, 2.0], 0.5), bw.LTF([1.0, 1.0], 0.2)
    exact = bw.oracle_bag_error(guess, bw.BagOracle(truth, np.zeros(2), np.eye(2), 50, 35))
    noisy = bw.BagOracle(truth, np.zeros(2), np.eye(2), 50, 35, flip=1e-15, count_is="true")
    assert bw.oracle_bag_error(guess, noisy) == pytest.approx(exact, rel=1e-12)


def test_bags_of_a_thousand_are_quick() -> None:
    oracle = bw.BagOracle(bw.LTF([1.0, 2.0]), np.zeros(2), np.eye(2), 1000, np.full(1001, 1 / 1001))
    error = bw.oracle_bag_error(bw.LTF([1.0, 1.99]), oracle)
    assert 0 < error < 1
