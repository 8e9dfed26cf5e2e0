"""BagLogisticRegression: what it reaches, what it equals, what it refuses."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

import bagwise as bw
from bagwise.data.problems import random_oracle
from bagwise.errors import BagwiseWarning, IdentifiabilityWarning, InvalidInputError, NotIdentifiableError
from bagwise.learn.likelihood import CountModel, LikelihoodTask


def drawn(d, q, k, m, seed=0, **more):
    rng = np.random.default_rng(seed)
    oracle = random_oracle(d, size=q, count=k, rng=rng, **more)
    bags, labels = oracle.sample_labelled(m, rng)
    return oracle, bags, labels


def error(model, oracle):
    return bw.instance_error(model.ltf_, oracle.ltf, oracle.mean, oracle.cov)


@pytest.mark.parametrize(("d", "q", "k", "m"), [(10, 10, 8, 500), (10, 3, 1, 1000), (20, 50, 35, 400)])
def test_totals_learn_as_well_as_labels(d, q, k, m):
    oracle, bags, labels = drawn(d, q, k, m, random_mean=True, offset=0.3)
    model = bw.BagLogisticRegression(C=1000.0).fit(bags)
    told = LogisticRegression(C=1000.0, max_iter=1000).fit(bags.X, labels)
    ltf = bw.LTF(told.coef_[0], told.intercept_[0])
    # Either error varies by about a third of itself from data set to data set; they share the data.
    assert error(model, oracle) < 2 * bw.instance_error(ltf, oracle.ltf, oracle.mean, oracle.cov) < 0.02
    assert model.converged_


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_single_rows_are_logistic_regression(C, fit_intercept):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 4)) * [1, 10, 0.1, 1] + [0, 5, 0, 1]
    y = (X @ [1.0, -0.2, 2.0, 0.0] + rng.logistic(size=300) > 0.3).astype(int)
    ours = bw.BagLogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-8).fit(X, y)
    theirs = LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, rtol=2e-4, atol=2e-4)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=2e-4, atol=2e-4)


def test_levels_absorb_flipped_labels():
    oracle, bags, _ = drawn(10, 10, 8, 2000, flip=0.1)
    model = bw.BagLogisticRegression(C=100.0, label_noise="estimate").fit(bags)
    # Reported k fixed: 0.8 * 0.1 / (0.8 * 0.1 + 0.2 * 0.9) and 0.8 * 0.9 / (0.8 * 0.9 + 0.2 * 0.1)
    assert_allclose(model.levels_, [0.308, 0.973], atol=0.03)
    assert error(model, oracle) < 0.01


def test_probabilities_shift_with_the_prevalence():
    _, bags, _ = drawn(3, 10, 8, 300)
    model = bw.BagLogisticRegression(C=1.0).fit(bags)
    assert_allclose(model.prevalence_, 0.8, atol=1e-3)  # the intercept's score equation
    assert_allclose(model.predict_proba(bags), model.predict_proba(bags, prevalence=model.prevalence_))
    odds = [np.divide(*model.predict_proba(bags.X, prevalence=p).T) for p in (0.5, 0.2)]
    assert_allclose(odds[1] / odds[0], 4.0, rtol=1e-6)
    with pytest.raises(InvalidInputError, match="prevalence must lie strictly"):
        model.predict_proba(bags, prevalence=1.0)


def test_balanced_bags_leave_the_sign_open():
    _, bags, _ = drawn(3, 4, 2, 300)
    with pytest.warns(IdentifiabilityWarning, match="balanced"):
        assert bw.BagLogisticRegression(C=1.0).fit(bags).ambiguous_


def test_bags_of_one_class_are_refused():
    bags = bw.Bags.from_sizes(np.arange(6.0).reshape(-1, 1), [3, 3], [3, 3])
    with pytest.raises(NotIdentifiableError, match="all rows are of one class"):
        bw.BagLogisticRegression().fit(bags)


@pytest.mark.parametrize(("setting", "value"), [("C", -1.0), ("C", "best"), ("label_noise", 0.6), ("label_noise", "x")])
def test_settings_are_checked(setting, value):
    _, bags, _ = drawn(3, 4, 1, 30)
    with pytest.raises(InvalidInputError, match=setting):
        bw.BagLogisticRegression(**{setting: value}).fit(bags)


def test_a_weight_is_a_repetition_and_no_weight_is_absence():
    _, bags, _ = drawn(4, 6, 2, 200, offset=0.2)
    weights = np.random.default_rng(0).integers(0, 4, 200)
    repeated = bw.Bags.from_sizes(
        np.concatenate([bags[i].X for i in np.repeat(np.arange(200), weights)]),
        np.full(weights.sum(), 6),
        np.repeat(bags.counts, weights),
    )
    model = bw.BagLogisticRegression(C=1.0, tol=1e-10)
    weighted = model.fit(bags, sample_weight=weights).coef_
    assert_allclose(weighted, model.fit(repeated).coef_, rtol=1e-4)
    X, y = bags.as_rows()
    by_rows = model.fit(X, y, sample_weight=np.repeat(weights, 6)).coef_
    assert_allclose(by_rows, weighted, rtol=1e-6)
    with pytest.raises(InvalidInputError, match="same in all rows of a bag"):
        model.fit(X, y, sample_weight=np.arange(1200))
    with pytest.raises(InvalidInputError, match="one number of at least 0 per bag, 200"):
        model.fit(bags, sample_weight=-weights)


def test_the_hessian_is_the_slope_of_the_gradient():
    rng = np.random.default_rng(5)
    for q, k, slope, low, high in [(4, 2, 1, 0, 1), (10, 8, 3, 0, 1), (10, 8, 3, 0.1, 0.9), (60, 20, 5, 0.05, 0.97)]:
        bags = bw.Bags.from_sizes(rng.standard_normal((20 * q, 3)), np.full(20, q), np.full(20, k))
        theta = np.concatenate([slope * rng.standard_normal(3), [0.3, low, high]])

        def sums(at, curvature=False, bags=bags):
            model = CountModel(at[:3], at[3], at[4], at[5])
            return bags.reduce(LikelihoodTask(model, np.zeros(3), curvature))

        H = sums(theta, True).hessian
        free = 6 if low else 4
        step = 1e-5
        slopes = [(sums(theta + e).gradient - sums(theta - e).gradient) / (2 * step) for e in step * np.eye(6)[:free]]
        # step^2 / 6 times a third derivative of the size of the Hessian times slope^2
        assert_allclose(H[:free, :free], np.array(slopes)[:, :free], atol=1e-6 * np.abs(H).max())


# ---------------------------------------------------------------------- hard cases


def quiet(bags, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BagwiseWarning)
        return bw.BagLogisticRegression(random_state=0, **settings).fit(bags)


def hard_cases():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 3))
    size, count = np.full(30, 4), np.add.reduceat((X[:, 0] > 0.3).astype(int), np.arange(0, 120, 4))
    count[:2] = 1, 3
    wide = rng.standard_normal((48, 60))
    yield "separable", bw.Bags.from_sizes(X, size, np.add.reduceat((X[:, 0] > 0).astype(int), np.arange(0, 120, 4)))
    yield "one proportion", bw.Bags.from_sizes(X, size, np.ones(30, int))
    yield "balanced", bw.Bags.from_sizes(X, size, np.full(30, 2))
    yield "constant and repeated columns", bw.Bags.from_sizes(np.c_[X, np.ones(120), X[:, :1]], size, count)
    yield "fewer rows than features", bw.Bags.from_sizes(wide, size[:12], count[:12])
    yield "one bag", bw.Bags.from_sizes(X[:8], [8], [3])
    yield "two bags", bw.Bags.from_sizes(X[:8], [4, 4], [3, 1])
    yield "contradicting bags", bw.Bags.from_sizes(np.tile(X[:4], (30, 1)), size, count)
    yield "float32", bw.Bags.from_sizes(X.astype(np.float32), size, count)
    yield "not contiguous", bw.Bags.from_sizes(np.asfortranarray(X)[:, ::-1], size, count)
    yield "huge", bw.Bags.from_sizes(1e8 * X + 1e9, size, count)
    yield "tiny", bw.Bags.from_sizes(1e-8 * X, size, count)
    mixed = [1, 1, 1, 1, 16, *size[5:]]
    yield "labels among bags", bw.Bags.from_sizes(X, mixed, [0, 1, 1, 0, 6, *count[5:]])


@pytest.mark.parametrize("bags", [pytest.param(bags, id=name) for name, bags in hard_cases()])
def test_hard_cases_end_in_finite_models_that_say_how_they_ended(bags):
    for settings in ({"C": 10.0}, {}, {"C": 10.0, "label_noise": "estimate"}):
        model = quiet(bags, **settings)
        assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
        assert model.status_.startswith("converged: ") == model.converged_
        assert np.isfinite(model.log_likelihood_) and 0 < model.prevalence_ < 1
        assert np.isfinite(model.predict_proba(bags)).all()
        again = quiet(bags, **settings)
        assert (again.coef_ == model.coef_).all()


def test_units_of_the_features_do_not_matter_when_C_is_chosen():
    _, bags, _ = drawn(4, 6, 2, 150, offset=0.2, random_mean=True)
    units = np.array([1e8, 1e-6, 1.0, 30.0])
    moved = bw.Bags.from_sizes(bags.X * units + 5 * units, bags.sizes, bags.counts)
    one, two = quiet(bags), quiet(moved)
    assert one.C_ == two.C_
    # Searches end within 1e-4 of the best log-likelihood, a hundredth of a standard error.
    assert_allclose(two.coef_ * units, one.coef_, atol=0.03 * one.coef_standard_errors_.max())


def test_separable_data_say_so_and_contradictions_are_seen_in_the_residuals():
    cases = dict(hard_cases())
    separable = quiet(cases["separable"], C=1e4)
    assert separable.separated_ and "every total is met exactly" in separable.status_
    bags = drawn(4, 10, 4, 300)[1]
    wrong = bw.Bags.from_sizes(bags.X, bags.sizes, np.append(bags.counts[:-1], 10))
    residuals = quiet(wrong, C=10.0).bag_residuals(wrong)
    assert np.argmin(residuals.log_likelihood) == 299
    assert residuals.residual[299] == np.abs(residuals.residual).max() > 3


def test_a_penalty_that_traps_is_named():
    _, bags, _ = drawn(5, 10, 8, 100)
    with pytest.warns(IdentifiabilityWarning, match="makes coef = 0 a local maximum"):
        bw.BagLogisticRegression(C=1e-4).fit(bags)


def test_the_bound_of_the_trap_is_where_the_hessian_at_zero_changes_sign():
    from bagwise.learn.starts import trap_bound

    _, bags, _ = drawn(4, 10, 8, 4000)
    moments = bw.BagMoments.from_bags(bags).finalize()
    null = CountModel(np.zeros(4), float(np.log(0.8 / 0.2)))
    H = bags.reduce(LikelihoodTask(null, moments.mean, True)).hessian[:4, :4]
    # The two differ by sampling of the fourth moments: relative standard error about 2 / sqrt(4000)
    assert trap_bound(moments, np.ones(4)) == pytest.approx(1 / np.linalg.eigvalsh(H)[-1], rel=0.15)


def test_flipped_labels_without_levels_are_called_over_dispersed():
    rng = np.random.default_rng(2)
    _, bags, _ = drawn(4, 20, np.full(21, 1 / 21), 400)
    noisy = bw.Bags.from_sizes(bags.X, bags.sizes, np.clip(bags.counts + rng.integers(-6, 7, 400), 0, 20))
    with pytest.warns(IdentifiabilityWarning, match="over-dispersed"):
        model = bw.BagLogisticRegression(C=10.0).fit(noisy)
    assert model.overdispersion_ > 2


def test_posteriors_of_a_bag_add_up_to_its_count():
    _, bags, _ = drawn(4, 10, 4, 100)
    model = quiet(bags, C=1.0)
    posterior = model.label_posterior(bags)
    assert_allclose(np.add.reduceat(posterior, bags.starts[:-1]), bags.counts, rtol=1e-9)
    noisy = quiet(bags, C=1.0, label_noise=(0.1, 0.2))
    low, high = noisy.levels_
    assert_allclose(np.diff(np.log(noisy.levels_ / (1 - noisy.levels_))), np.log(4 * 9))  # stated up to a common odds
    reported = noisy.predict_reported_proba(bags)[:, 1]
    assert_allclose(reported, low + (high - low) * noisy.predict_proba(bags)[:, 1])
    assert ((noisy.label_posterior(bags) > 0) & (noisy.label_posterior(bags) < 1)).all()


def test_sparse_features_are_refused_in_one_sentence():
    from scipy.sparse import csr_matrix

    with pytest.raises(TypeError, match=r"[Dd]ense data is required"):
        bw.BagLogisticRegression().fit(csr_matrix(np.eye(4)), [0, 1, 0, 1])


def test_the_score_is_the_log_likelihood_per_row():
    _, bags, _ = drawn(4, 6, 2, 150)
    model = quiet(bags, C=1.0)
    assert model.score(bags) == pytest.approx(model.log_likelihood_ / bags.n_rows)
    assert model.score(bags) == pytest.approx(model.bag_residuals(bags).log_likelihood.sum() / bags.n_rows)


def test_standard_errors_are_the_spread_over_data_sets():
    estimates, errors = [], []
    for seed in range(60):
        rng = np.random.default_rng([7, seed])
        X = rng.standard_normal((1200, 2))
        y = (X @ [1.0, -0.5] + 0.3 + rng.logistic(size=1200) > 0).astype(int)
        bags = bw.Bags.from_sizes(X, np.full(400, 3), y.reshape(400, 3).sum(axis=1))
        model = quiet(bags, C=1e4)
        estimates.append([*model.coef_[0], model.intercept_[0]])
        errors.append([*model.coef_standard_errors_[0], model.intercept_standard_error_])
    spread = np.std(estimates, axis=0, ddof=1)
    # A standard deviation from 60 draws has a relative error of 1 / sqrt(118) = 9 %; four of these.
    assert_allclose(np.mean(errors, axis=0), spread, rtol=0.37)


@pytest.mark.parametrize("seed", [100, 106])
def test_free_levels_of_clean_labels_end_beside_zero_and_one(seed: int) -> None:
    # With high at 1 to rounding and rows far out, curvatures overflowed: LinAlgError from the eigenvalues.
    rng = np.random.default_rng(seed)
    bags = random_oracle(20, size=10, count=8, rng=rng).sample(3000, rng)
    model = bw.BagLogisticRegression(C=1e3, label_noise="estimate", random_state=0).fit(bags)
    assert model.levels_[0] < 0.01 and model.levels_[1] > 0.99
