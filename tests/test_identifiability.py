"""What bags leave open is said with the numbers, and only where it is so."""

import re
import warnings

import numpy as np
import pytest

import bagwise as bw
from bagwise.errors import IdentifiabilityWarning, NotIdentifiableError

TRUTH = bw.LTF([1.0, 2.0, -1.0], 0.3)


def oracle(size, count, **options):
    return bw.BagOracle(TRUTH, np.zeros(3), np.eye(3), size=size, count=count, **options)


def drawn(size, count, n_bags, seed=0, **options):
    return oracle(size, count, **options).sample(n_bags, np.random.default_rng(seed))


def said(model, bags):
    """The warnings of a fit, in order."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(bags)
    assert all(issubclass(w.category, IdentifiabilityWarning) for w in caught)
    return [str(w.message) for w in caught]


def test_bags_that_leave_nothing_open_are_learnt_in_silence():
    for bags in (drawn(10, 7, 500), drawn(10, np.full(11, 1 / 11), 500), drawn(1, [0.4, 0.6], 500)):
        assert said(bw.SpectralLTF(), bags) == []


def test_balanced_bags_leave_the_sign_open():
    model = bw.SpectralLTF()
    (sentence,) = said(model, drawn(10, 5, 500))
    assert sentence.startswith("all 500 bags are balanced (k = q/2)") and model.ambiguous_
    assert said(bw.RandomLTF(5, random_state=0), drawn(10, 7, 50)) == []
    unbalanced = bw.Bags.concat([renamed(drawn(10, 5, 100), "a"), renamed(drawn(10, 6, 1), "b")])
    assert not any("balanced" in sentence for sentence in said(model, unbalanced)) and not model.ambiguous_


def renamed(bags, prefix):
    return bw.Bags.from_sizes(bags.X, bags.sizes, bags.counts, ids=[f"{prefix}{i}" for i in range(bags.n_bags)])


def test_lost_dimensions_are_counted():
    bags = drawn(10, 7, 300)
    X = np.column_stack([bags.X, np.ones(len(bags.X)), bags.X[:, 0] - bags.X[:, 1]])
    (sentence,) = said(bw.SpectralLTF(), bw.Bags.from_sizes(X, bags.sizes, bags.counts))
    assert sentence.startswith("the features span 3 of 5 dimensions")


def test_fewer_bags_than_dimensions_are_counted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 10))
    (sentence,) = said(bw.SpectralLTF(), bw.Bags.from_sizes(X, np.full(8, 10), np.full(8, 7)))
    assert re.match("8 bags are fewer than the 11 needed to see 10 dimensions", sentence)


def test_fewer_rows_than_features_are_told_with_both_numbers():
    rng = np.random.default_rng(0)
    bags = bw.Bags.from_sizes(rng.standard_normal((12, 30)), [3, 4, 5], [1, 2, 3])
    sentences = said(bw.SpectralLTF(), bags)
    assert any(re.search(r"span \d+ of 30 dimensions .*fewer rows than features", s) for s in sentences)


def test_a_weak_signal_is_told_with_the_sine_and_the_dispersion():
    # The pairs of (200, 1) show a signal of order 1 / q, and 25 bags have a noise of sqrt(3 / 25).
    (sentence,) = said(bw.SpectralLTF(), drawn(200, 1, 25))
    assert re.search(r"^25 bags show hardly any direction \(expected sine .*: (unknown|[01]\.\d\d);", sentence)
    assert "variance of the proportions over that of random bags: 0.00" in sentence


def test_totals_that_vary_by_noise_alone_are_told_with_both_distances():
    # Every bag has 5 of 10; what is reported varies by flips only, and says nothing of the rows.
    bags = drawn(10, 5, 4000, flip=0.3, count_is="true")
    model = bw.SpectralLTF()
    sentences = said(model, bags)
    assert any(
        re.search(r"pairs of rows put the class means \d\.\d\d .* the totals only \d\.\d\d", s) for s in sentences
    )
    normal = model.ltf_.normal / np.linalg.norm(model.ltf_.normal)
    assert abs(normal @ TRUTH.normal) / np.linalg.norm(TRUTH.normal) > 0.98  # taken from the pairs all the same


def test_the_dispersion_tells_random_bags_from_designed_ones():
    from scipy.stats import betabinom, binom

    q = np.arange(11)
    for law, low, high in ((7, 0, 0), (binom.pmf(q, 10, 0.6), 0.85, 1.15), (betabinom.pmf(q, 10, 1, 1), 3, 5)):
        # Relative standard error of a variance of 2000 proportions: below 0.04.
        assert low <= bw.SpectralLTF().fit(drawn(10, law, 2000)).dispersion_ <= high


@pytest.mark.parametrize(
    ("model", "bags", "message"),
    [
        (bw.MeanMap(), drawn(10, 7, 50), r"varies; got 0\.7 in all bags. Use SpectralLTF"),
        (bw.MeanLTF(), drawn(10, 5, 50), r"got k = q/2 in all bags"),
        (bw.SpectralLTF(), drawn(10, 10, 50), r"one share of positives \(1\)"),
        (bw.SpectralLTF(pairs="one"), drawn(10, 0, 50), r"one share of positives \(0\)"),
    ],
)
def test_what_cannot_be_learnt_is_an_error_and_not_a_guess(model, bags, message):
    with pytest.raises(NotIdentifiableError, match=message):
        model.fit(bags)
