"""The door of every learner and the words of its refusals; what the paper's learners promise beside the shared laws."""

import numpy as np
import pytest

import bagwise as bw
from bagwise.errors import InvalidInputError, NotIdentifiableError
from bagwise.learn.directions import spectral_direction

ORACLE = bw.BagOracle(bw.LTF([1.0, 2.0], 0.5), np.zeros(2), np.eye(2), size=4, count=3)
BAGS = ORACLE.sample(200, np.random.default_rng(0))
X, Y = BAGS.as_rows()
ROWS = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((BAGS, Y), "Bags carry their totals; got y= or bags= besides"),
        ((X,), r"SpectralLTF requires y to be passed.*bag_target"),
        ((X[:-1], Y), "(inconsistent|one record per row)"),
        ((X[:-1], Y[:-1]), r"rows of a bag must stay together; got 3 of the 4 rows of bag 199"),
        ((ROWS, [0, 1, 2, 1]), "Only binary classification is supported.*3 classes"),
        ((ROWS, [1, 1, 1, 1]), "labels must be of two classes; got one class"),
        ((ROWS, [0.1, 0.5, 0.2, 0.4]), "Unknown label type"),
        ((np.full((4, 2), np.nan), [0, 1, 0, 1]), "contains NaN"),
        (([["a", "b"]] * 4, [0, 1, 0, 1]), "convert|numeric|string"),
    ],
)
def test_what_fit_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        bw.SpectralLTF().fit(*arguments)


@pytest.mark.parametrize(
    ("y", "ids", "message"),
    [
        ([0.5, 0.5], [1, 1, 2, 2], r"one per row; got shape \(2,\) for 4 rows"),
        ([0.5, 0.5, 0.5, 1.0], [1, 1, 2, 2], "the same in all rows of a bag; got 0.5 and 1.0 in bag 2"),
        ([1, 1, 3, 3], [1, 1, 2, 2], r"proportions must lie in \[0, 1\]; got 3.0 in bag 2.*bag_target"),
        ([0.3, 0.3, 0.5, 0.5], [1, 1, 2, 2], "multiples of 1/size; got 0.3 in bag 1.*nearest count is 1"),
        ({1: 0.5}, [1, 1, 2, 2], "each bag must have an entry in proportions; none for bag 2"),
        ({1: 0.5, 2: 0.5, 3: 1.0}, [1, 1, 2, 2], "must belong to a bag with rows; 3 has none"),
        ([0.5] * 4, [1, 1, 2], "ids must be one per row; got 3 for 4"),
    ],
)
def test_what_fit_refuses_of_proportions(y, ids, message):
    with pytest.raises(InvalidInputError, match=message):
        bw.SpectralLTF().fit(ROWS, y, bags=ids)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (bw.SpectralLTF(pairs="some"), "pairs of SpectralLTF must be one of 'all', 'one'; got 'some'"),
        (bw.SpectralLTF(keys="few"), "keys of SpectralLTF must be one of 'all', 'largest'; got 'few'"),
        (bw.SpectralLTF(offset="best"), "offset of SpectralLTF must be one of 'satisfied', 'count'; got 'best'"),
        (bw.SpectralLTF(holdout=1.0), r"holdout must lie in \[0, 1\); got 1.0"),
        (bw.MeanLTF(pairs="two"), "pairs of MeanLTF must be one of"),
        (bw.RandomLTF(0), "n_candidates must be at least 1; got 0"),
    ],
)
def test_parameters_are_refused_by_name(model, message):
    with pytest.raises(InvalidInputError, match=message):
        model.fit(BAGS)


def test_rows_of_another_width_and_of_other_names_are_refused():
    model = bw.SpectralLTF().fit(BAGS)
    with pytest.raises(ValueError, match="X has 3 features, but SpectralLTF is expecting 2"):
        model.predict(np.zeros((1, 3)))
    named = lambda names: bw.Bags.from_sizes(BAGS.X, BAGS.sizes, BAGS.counts, feature_names=names)
    model.fit(named(["age", "dose"]))
    with pytest.raises(InvalidInputError, match="in the same order: age, dose; got dose, age"):
        model.predict(named(["dose", "age"]))


def test_score_is_bags_met_or_labels_right():
    model = bw.SpectralLTF().fit(BAGS)
    assert model.score(BAGS) == model.score(X, Y) == 1 - bw.bag_error(model, BAGS)
    labels = ORACLE.ltf.predict(X)
    assert model.score(X, labels) == np.mean(model.predict(X) == labels)
    with pytest.raises(InvalidInputError, match="sample_weight goes with labels"):
        model.score(X, Y, sample_weight=np.ones(len(X)))


# ---------------------------------------------------------------------- the paper's learners


def error_of(model, oracle, bags):
    return bw.instance_error(model.fit(bags).ltf_, oracle.ltf, oracle.mean, oracle.cov)


def test_a2_keeps_the_boundary_at_the_origin_and_a4_finds_it():
    oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 1.5), np.zeros(2), np.eye(2), size=10, count=7)
    bags = oracle.sample(1000, np.random.default_rng(1))
    assert bw.SpectralLTF(fit_intercept=False).fit(bags).intercept_ == [0.0]
    assert error_of(bw.SpectralLTF(), oracle, bags) < 0.03 < error_of(bw.SpectralLTF(fit_intercept=False), oracle, bags)


def test_an_offset_by_count_predicts_the_total():
    model = bw.SpectralLTF(offset="count").fit(BAGS)
    assert model.predict(BAGS.X).sum() == BAGS.counts.sum()


def test_held_out_bags_judge_and_the_others_teach():
    model = bw.SpectralLTF(holdout=0.4, random_state=0).fit(BAGS)
    learnt, judged = BAGS.split(0.6, np.random.default_rng(0))
    normal = spectral_direction(bw.BagMoments.from_bags(learnt).finalize()).normal
    assert abs(abs(normal @ model.coef_[0]) - 1) < 1e-12
    assert model.satisfied_ == pytest.approx(1 - bw.bag_error(model, judged))


def test_the_largest_key_is_the_remarks_subsample():
    rng = np.random.default_rng(2)
    most, few = ORACLE.sample(300, rng), bw.BagOracle(ORACLE.ltf, ORACLE.mean, ORACLE.cov, 5, 1).sample(100, rng)
    named = [bw.Bags.from_sizes(b.X, b.sizes, b.counts, ids=[f"{n}{i}" for i in range(len(b))]) for n, b in
             (("m", most), ("f", few))]  # fmt: skip
    both = bw.Bags.concat(named)
    found = bw.SpectralLTF(keys="largest").fit(both)
    alone = bw.SpectralLTF().fit(most)
    assert abs(found.coef_[0] @ alone.coef_[0]) == pytest.approx(1, abs=1e-12)
    assert found.satisfied_ == pytest.approx(1 - bw.bag_error(found, both))  # sign and offset by all bags


def test_algorithm_1_to_the_letter_learns_less_than_all_pairs():
    oracle = bw.BagOracle(bw.LTF(np.eye(5)[0]), np.zeros(5), np.eye(5), size=3, count=1)
    bags = oracle.sample(2000, np.random.default_rng(3))
    errors = [error_of(bw.SpectralLTF(pairs=pairs, random_state=0), oracle, bags) for pairs in ("all", "one")]
    assert errors[0] < errors[1] < 0.2


def test_the_mean_map_knows_the_class_means():
    law = np.full(11, 1 / 11)
    oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 0.5), np.array([3.0, -1.0]), np.eye(2), size=10, count=law)
    model = bw.MeanMap().fit(oracle.sample(2000, np.random.default_rng(4)))
    X, y = oracle.sample_instances(200_000, np.random.default_rng(5))
    truth = np.stack([X[y == label].mean(axis=0) for label in (0, 1)])
    # 20,000 rows; the ends of the regression have a standard error of about 2 / sqrt(20,000).
    assert np.abs(model.means_ - truth).max() < 5 * 2 / np.sqrt(20_000)


def test_single_labelled_rows_are_bags_of_one():
    X, y = ORACLE.sample_instances(400, np.random.default_rng(6))
    model = bw.SpectralLTF().fit(X, np.where(y == 1, "spam", "ham"))
    assert model.classes_.tolist() == ["ham", "spam"]
    assert model.score(X, np.where(y == 1, "spam", "ham")) > 0.95
    with pytest.raises(NotIdentifiableError, match="one class"):
        bw.SpectralLTF().fit(X, ["ham"] * 400)
