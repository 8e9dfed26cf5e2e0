"""Certificates: exact inversion against brute force and closed forms, what is refused, what is said."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bagwise as bw
from bagwise.claims.answers import answers, bags_used_in_fit
from bagwise.claims.certificate import Certificate, _Keys, _Region, certify, upper_bag_error
from bagwise.errors import InvalidInputError
from bagwise.stats.fingerprints import bag_fingerprints
from bagwise.stats.kernels_binomials import mean_satisfied
from bagwise.theory.generalisation import class_error_bounds


def keys_of(*pairs: tuple[int, int]) -> _Keys:
    """Keys (size, count) in equal shares."""
    q, k = np.array(pairs, dtype=np.int64).T
    return _Keys(np.ascontiguousarray(k), np.ascontiguousarray(q - k), np.full(len(pairs), 1 / len(pairs)))


def oracle(size: int = 10, count: int = 8) -> bw.BagOracle:
    return bw.BagOracle(bw.LTF([1.0, -1.0], 0.1), np.zeros(2), np.eye(2), size=size, count=count)


# ---------------------------------------------------------------------- probabilities of satisfied bags


def test_satisfied_probability_is_the_sum_over_equal_binomials() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        k, l = (int(n) for n in rng.integers(0, 60, 2))
        a, b = (rng.choice([0.0, 1.0, rng.random(), 10 ** -rng.uniform(0, 8)]) for _ in range(2))
        out = np.empty(1)
        mean_satisfied(np.array([k]), np.array([l]), np.ones(1), np.array([a]), np.array([b]), out)
        j = np.arange(min(k, l) + 1)
        assert_allclose(out[0], binom.pmf(j, k, a) @ binom.pmf(j, l, b), atol=1e-12)


def test_large_bags_neither_underflow_nor_overflow() -> None:
    out = np.empty(2)
    mean_satisfied(np.array([4000]), np.array([5000]), np.ones(1), np.array([0.5, 0.9]), np.array([0.4, 0.1]), out)
    j = np.arange(4001)
    assert_allclose(out[0], np.exp(binom.logpmf(j, 4000, 0.5) + binom.logpmf(j, 5000, 0.4)).sum(), rtol=1e-8)
    assert out[1] < 1e-300


# ---------------------------------------------------------------------- the inversion


@pytest.mark.parametrize(("size", "count"), [(10, 8), (10, 5), (3, 1), (50, 35), (200, 20), (2, 1)])
@pytest.mark.parametrize("limit", [1e-4, 0.05, 0.3, 0.45])
def test_one_key_has_the_closed_form_of_the_sharpened_theorem(size: int, count: int, limit: float) -> None:
    region, closed = _Region.below(keys_of((size, count)), limit), class_error_bounds(limit, size, count)
    assert_allclose(region.largest(lambda a, b: a), closed.false_negative, rtol=1e-9)
    assert_allclose(region.largest(lambda a, b: b), closed.false_positive, rtol=1e-9)
    assert region.complement == closed.up_to_complement


@pytest.mark.parametrize(
    "pairs", [[(10, 8)], [(10, 5)], [(10, 8), (4, 1), (20, 6)], [(5, 0), (5, 5)], [(6, 3), (7, 2)]]
)
@pytest.mark.parametrize("limit", [0.02, 0.35])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_no_point_of_a_fine_grid_beats_the_bound_and_one_comes_close(
    pairs: list[tuple[int, int]], limit: float, share: float
) -> None:
    keys = keys_of(*pairs)
    region = _Region.below(keys, limit)
    bound = region.largest(lambda a, b: share * a + (1 - share) * b)
    reach = min(1.0, 1.5 * max(region.largest(lambda a, b: a), region.largest(lambda a, b: b)))
    for scale in (1.0, reach):  # the whole square, and the neighbourhood of the corner
        a, b = np.meshgrid(np.linspace(0, scale, 401), np.linspace(0, scale, 401))
        inside = keys.unsatisfied(a, b) <= limit
        if region.complement:
            inside &= a + b <= 1
        best = (share * a + (1 - share) * b)[inside].max()
        assert best <= bound * (1 + 1e-9)
    assert best >= bound - 2 * scale / 400  # within a cell of the fine grid


def test_bags_of_both_classes_apart_are_inverted_one_by_one() -> None:
    # Half the bags have no positives, half no negatives: U = (1 - (1 - a)^5) / 2 at b = 0.
    region = _Region.below(keys_of((5, 0), (5, 5)), 0.2)
    assert_allclose(region.largest(lambda a, b: a), 1 - 0.6**0.2, rtol=1e-9)


def test_a_few_unbalanced_bags_break_the_tie() -> None:
    assert _Region.below(keys_of((10, 5)), 0.1).complement
    assert not _Region.below(keys_of((10, 5), (10, 8)), 0.1).complement  # the complement misses half of them


def test_the_stated_numbers_of_a_perfect_threshold() -> None:
    truth = oracle()
    certificate = certify(truth.ltf, truth.sample(500, np.random.default_rng(0)), prevalence=0.5)
    assert_allclose(certificate.bags_prevalence, 0.00060, rtol=0.02)
    assert_allclose(certificate.error_bound, 0.00149, rtol=0.02)
    assert_allclose(certificate.any_prevalence, 0.00298, rtol=0.02)
    assert_allclose(certificate.bag_error_bound, 1 - 0.05 ** (1 / 500), rtol=1e-12)


def test_bounds_grow_with_unsatisfied_bags_and_confidence_and_fall_with_bags() -> None:
    assert upper_bag_error(0, 500, 0.95) < upper_bag_error(1, 500, 0.95) < upper_bag_error(1, 500, 0.99)
    assert upper_bag_error(5, 1000, 0.95) < upper_bag_error(5, 500, 0.95)
    assert upper_bag_error(500, 500, 0.95) == 1
    # Hoeffding's inequality for unlike bags needs a mean of at least s + 1.
    assert upper_bag_error(3, 10, 0.2) == pytest.approx(0.4)


@pytest.mark.parametrize("pairs", [[(10, 8)], [(10, 8), (10, 5), (4, 1), (20, 6)]])
def test_the_bound_is_violated_as_rarely_as_it_says(pairs: list[tuple[int, int]]) -> None:
    rng, a, b, n_bags, replications = np.random.default_rng(1), 0.01, 0.01, 400, 2000
    q, k = np.array(pairs * (n_bags // len(pairs))).T
    unsatisfied = (rng.binomial(k, a, (replications, n_bags)) != rng.binomial(q - k, b, (replications, n_bags))).sum(1)
    keys, share = keys_of(*pairs), k.sum() / q.sum()
    bound = {
        s: _Region.below(keys, upper_bag_error(int(s), n_bags, 0.95)).largest(lambda a, b: share * a + (1 - share) * b)
        for s in np.unique(unsatisfied)
    }
    violated = np.mean([bound[s] < 0.01 for s in unsatisfied])
    # At most 5 %; 4 standard errors of 2,000 replications is a false alarm in 30,000.
    assert violated <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / replications)


# ---------------------------------------------------------------------- what it says


def test_all_three_prevalences_are_reported_and_the_asked_one_is_the_bound() -> None:
    truth = oracle()
    bags, ltf = truth.sample(300, np.random.default_rng(2)), truth.ltf
    for_any, for_bags, stated = (certify(ltf, bags, prevalence=p) for p in (None, "bags", 0.3))
    assert for_any.error_bound == for_any.any_prevalence == max(for_any.miss_bound, for_any.false_alarm_bound)
    assert for_bags.error_bound == for_bags.bags_prevalence == for_any.bags_prevalence
    assert for_bags.error_bound < stated.error_bound < for_any.error_bound
    assert "at any share" in str(for_any) and "0.3" in str(stated) and "bags' share" in str(for_bags)


def test_the_printed_theorem_stands_beside_it_where_it_applies() -> None:
    truth = oracle()
    certificate = certify(truth.ltf, truth.sample(500, np.random.default_rng(0)))
    assert certificate.paper_bound == 4 * certificate.bag_error_bound
    assert certificate.sharp_bound == certificate.bag_error_bound > certificate.any_prevalence
    few = certify(truth.ltf, truth.sample(50, np.random.default_rng(0)))
    assert few.paper_bound is None and few.sharp_bound == few.bag_error_bound  # 5.8 %: above 1/40, below 1/11


def test_balanced_bags_are_certified_up_to_complement_and_it_is_said() -> None:
    truth = oracle(count=5)
    bags = truth.sample(200, np.random.default_rng(3))
    one, other = certify(truth.ltf, bags), certify(truth.ltf.flipped(), bags)
    assert one.up_to_complement and one.error_bound == other.error_bound
    assert "complement" in str(one)


def test_a_vacuous_certificate_says_so_with_the_reason() -> None:
    truth = oracle(size=100, count=60)
    certificate = certify(bw.LTF([1.0, 1.0]), truth.sample(100, np.random.default_rng(4)))
    assert certificate.vacuous and certificate.error_bound == 1
    assert "vacuous" in str(certificate) and "smaller bags" in str(certificate)


def test_a_certificate_is_plain_json() -> None:
    truth = oracle()
    certificate = certify(truth.ltf, truth.sample(30, np.random.default_rng(5)), prevalence="bags")
    found = json.loads(json.dumps(certificate.to_dict()))
    assert {"error_bound", "confidence", "prevalence", "bag_error", "n_bags", "assumptions"} <= set(found)
    assert isinstance(certificate, Certificate) and found["prevalence"] == "bags"


@pytest.mark.parametrize("wrong", [{"confidence": 1.0}, {"confidence": 0}, {"prevalence": 1.5}, {"prevalence": "all"}])
def test_settings_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    truth = oracle()
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        certify(truth.ltf, truth.sample(5, np.random.default_rng(0)), **wrong)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- bags of the fit


def test_bags_of_the_fit_are_refused_in_any_order_and_under_any_name() -> None:
    rng = np.random.default_rng(6)
    truth = oracle(count=7)
    bags = truth.sample(200, rng)
    model = bw.SpectralLTF().fit(bags[:150])
    certificate = certify(model, bags[150:])
    assert certificate.reuse_checked
    order = np.concatenate([start + rng.permutation(10) for start in bags.starts[100:-1]]) - 1000
    shuffled = bw.Bags.from_sizes(bags.X[1000:][order], bags.sizes[100:], bags.counts[100:], ids=rng.permutation(100))
    with pytest.raises(InvalidInputError, match="50 of 100 were used"):
        certify(model, shuffled)
    used = bags_used_in_fit(model, shuffled)
    assert used is not None
    assert certify(model, shuffled[~used]).error_bound == certificate.error_bound


def test_bags_of_the_fit_are_found_behind_a_pipeline() -> None:
    bags = oracle(count=7).sample(120, np.random.default_rng(7))
    model = make_pipeline(StandardScaler(), bw.SpectralLTF()).fit(*bags[:100].as_rows())
    used = bags_used_in_fit(model, bags)
    assert used is not None and used[:100].all() and not used[100:].any()


@pytest.mark.filterwarnings("ignore::bagwise.errors.IdentifiabilityWarning")  # how well it fits is no matter here
def test_equal_bags_of_discrete_features_are_not_taken_for_reuse() -> None:
    rng = np.random.default_rng(8)
    X = rng.integers(0, 2, (4000, 2)).astype(float)
    bags = bw.Bags.from_sizes(X, np.full(2000, 2), X[:, 0].reshape(-1, 2).sum(axis=1))
    model = bw.MeanMap().fit(bags[:1000])
    used = bags_used_in_fit(model, bags[1000:])
    assert used is not None and not used.any()


def test_a_model_without_memory_is_certified_with_the_assumption_listed() -> None:
    truth = oracle()
    certificate = certify(truth.ltf, truth.sample(50, np.random.default_rng(9)))
    assert not certificate.reuse_checked
    assert any("not checked" in assumption for assumption in certificate.assumptions)


def test_fingerprints_know_a_bag_by_its_rows_and_count_only() -> None:
    rng = np.random.default_rng(10)
    X = rng.standard_normal((12, 3))
    one = bw.Bags.from_sizes(X, [5, 7], [2, 3])
    turned = bw.Bags.from_sizes(np.concatenate([X[5:][::-1], X[:5]]), [7, 5], [3, 2], ids=["b", "a"])
    assert (bag_fingerprints(one) == bag_fingerprints(turned)[::-1]).all()
    other_count, other_row = bw.Bags.from_sizes(X, [5, 7], [2, 4]), X.copy()
    other_row[6, 1] = np.nextafter(other_row[6, 1], 9)
    assert bag_fingerprints(other_count)[1] != bag_fingerprints(one)[1]
    assert bag_fingerprints(bw.Bags.from_sizes(other_row, [5, 7], [2, 3]))[1] != bag_fingerprints(one)[1]
    # Two rows that exchange a feature keep all sums of columns.
    swapped = X.copy()
    swapped[[0, 1], 0] = swapped[[1, 0], 0]
    assert bag_fingerprints(bw.Bags.from_sizes(swapped, [5, 7], [2, 3]))[0] != bag_fingerprints(one)[0]
    small = X.astype(np.float32)
    assert (
        bag_fingerprints(bw.Bags.from_sizes(small, [5, 7], [2, 3]))
        == bag_fingerprints(bw.Bags.from_sizes(small.astype(float), [5, 7], [2, 3]))
    ).all()


def test_fingerprints_of_many_bags_do_not_collide() -> None:
    # 2^52 values: 50,000 bags collide with probability 3e-7.
    rng = np.random.default_rng(11)
    bags = bw.Bags.from_sizes(rng.standard_normal((50_000, 1)), np.ones(50_000, int), np.zeros(50_000, int))
    assert len(np.unique(bag_fingerprints(bags))) == 50_000
    assert -0.0 == 0.0 and bag_fingerprints(bags[:1])[0] < 2**52
    zeros = [bag_fingerprints(bw.Bags.from_sizes([[z]], [1], [1]))[0] for z in (0.0, -0.0)]
    assert zeros[0] == zeros[1]


# ---------------------------------------------------------------------- what a model answers


def test_every_kind_of_model_answers_alike() -> None:
    truth = oracle(count=6)
    bags = truth.sample(60, np.random.default_rng(12))
    ltf = truth.ltf
    labels = ltf.predict(bags.X)
    supervised = LogisticRegression().fit(bags.X, labels)
    for model in (ltf, labels, labels.astype(bool), ltf.scores(bags.X), list(labels)):
        assert (answers(model, bags).positive == labels).all()
    probable = supervised.predict_proba(bags.X)
    for model in (supervised, probable, probable[:, 1]):
        found = answers(model, bags)
        assert (found.positive == supervised.predict(bags.X)).all() and found.probabilities is not None
    assert (answers(ltf, bags, threshold=0.5).positive == (ltf.scores(bags.X) > 0.5)).all()
    named = LogisticRegression().fit(bags.X, np.where(labels == 1, "yes", "no"))
    assert (answers(named, bags).positive == (named.predict(bags.X) == "yes")).all()


def test_features_are_matched_by_name() -> None:
    rng = np.random.default_rng(13)
    bags = bw.Bags.from_sizes(
        rng.standard_normal((40, 2)),
        [4] * 10,
        [1, 2, 3, 2, 1, 3, 1, 2, 3, 3],
    )
    named = bw.Bags(bags.X, bags.sizes, bags.counts, bags.ids, ("u", "v"))
    turned = bw.Bags(np.ascontiguousarray(bags.X[:, ::-1]), bags.sizes, bags.counts, bags.ids, ("v", "u"))
    model = bw.MeanMap().fit(named)
    assert (answers(model, named).positive == answers(model, turned).positive).all()
    with pytest.raises(InvalidInputError, match="'u' is missing"):
        answers(model, bw.Bags(bags.X, bags.sizes, bags.counts, bags.ids, ("v", "w")))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([1.0, 0.0], "one per row"),
        (["a"] * 40, "one number per row"),
        ([np.nan] * 40, "finite"),
        (None, "one per row"),
    ],
)
def test_other_answers_are_refused(wrong: object, words: str) -> None:
    bags = bw.Bags.from_sizes(np.arange(40.0).reshape(-1, 1), [4] * 10, [1] * 10)
    with pytest.raises(InvalidInputError, match=words):
        answers(wrong, bags)
