"""Exact moments against simulation, against the paper's identity, and in the far tails."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

import bagwise as bw
from bagwise.errors import InvalidInputError
from bagwise.theory.gaussian import inverse_mills_ratio, normalise, thresholded_gaussian
from bagwise.theory.kappas import bag_profile, gamma, kappa1, kappa2, kappa3, rho, theta
from bagwise.theory.population import population_moments
from gaussian_problems import Problem, problems, sample_bags

# Every simulated check below compares means of independent bags with their exact values at Z standard errors.
# The largest test makes about 40 comparisons; at Z = 5 the false-alarm rate of a comparison is 6e-7.
Z = 5.0

CASES = {
    "centred": Problem(bw.LTF([1.0, 2.0], 0.0), np.zeros(2), np.array([[2.0, 0.5], [0.5, 1.0]]), 3, 1),
    "far mean": Problem(bw.LTF([1.0, -1.0], 0.3), np.array([7.0, 6.5]), np.array([[1.0, 0.9], [0.9, 2.0]]), 6, 4),
    "deep tail": Problem(bw.LTF([1.0, 0.0], -8.0), np.zeros(2), np.eye(2), 5, 2),
    "mixture": Problem(bw.LTF([1.0, 1.0], 0.5), np.ones(2), np.eye(2), 2, np.array([0.1, 0.2, 0.7])),
    "over-dispersed": Problem(bw.LTF([1.0, 1.0], -1.0), np.ones(2), np.eye(2), 4, np.array([0.5, 0, 0, 0, 0.5])),
    "one row": Problem(bw.LTF([1.0, 1.0], -1.0), np.ones(2), np.eye(2), 1, np.array([0.5, 0.5])),
}


def assert_means(samples, expected):
    """The means of independent samples (axis 0) are the expected ones within Z standard errors."""
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    gap = np.abs(samples.mean(axis=0) - expected)
    assert (gap <= Z * error + 1e-12 * (1 + np.abs(expected))).all(), (samples.mean(axis=0), expected, error)


@pytest.mark.parametrize("name", CASES)
def test_population_moments_are_the_limits_of_sampled_ones(name):
    problem = CASES[name]
    exact = population_moments(problem.ltf, problem.mean, problem.cov, problem.size, problem.count)
    x, counts = sample_bags(problem, 40_000, np.random.default_rng(1))
    q, p = problem.size, counts / problem.size
    means = x.mean(axis=1)
    assert_means(means, exact.mean)
    centred = x - exact.mean
    assert_means(np.einsum("mqi,mqj->mij", centred, centred) / q, exact.cov_bag)
    assert_means(p, exact.proportion)
    assert_means(q * (p - exact.proportion) ** 2, exact.count_scatter)
    if q > 1:
        within = x - means[:, None]
        assert_means(2 / (q - 1) * np.einsum("mqi,mqj->mij", within, within), exact.cov_diff)
        assert_means(q * p * (1 - p) / (q - 1), exact.pair_weight)
    else:
        assert not exact.cov_diff.any() and exact.pair_weight == 0
    if exact.count_scatter > 0:
        # E[(p - pbar) bag mean] = Var p D.
        covariances = (p - exact.proportion)[:, None] * (means - exact.mean)
        assert_means(covariances, exact.count_scatter / q * exact.slope)
    else:
        assert not exact.slope.any()


@pytest.mark.parametrize("name", CASES)
def test_population_moments_are_what_bag_moments_of_data_approach(name):
    problem = CASES[name]
    exact = population_moments(problem.ltf, problem.mean, problem.cov, problem.size, problem.count)
    m = 20_000
    x, counts = sample_bags(problem, m, np.random.default_rng(2))
    bags = bw.Bags.from_sizes(x.reshape(-1, 2), sizes=np.full(m, problem.size), counts=counts)
    found = bw.BagMoments.from_bags(bags).finalize()
    # Means of m bags: relative errors of a few / sqrt(m); 0.1 is 14 of these. That the two mean the same, not
    # accuracy.
    scale = np.abs(np.diag(problem.cov)).max() + 1
    for field in ("mean", "cov_bag", "cov_diff", "slope", "proportion", "pair_weight"):
        assert_allclose(getattr(found, field), getattr(exact, field), atol=0.1 * scale, err_msg=field)
    assert_allclose(found.count_scatter / m, exact.count_scatter, atol=0.1)
    assert_allclose(found.cov_residual, exact.cov_residual, atol=0.1 * scale * problem.size)
    assert (found.size, found.count) == (exact.size, exact.count)


@given(problems())
def test_pairs_differ_by_the_class_means_beyond_two_draws(problem):
    q, p = problem.size, problem.count / problem.size
    exact = population_moments(problem.ltf, problem.mean, problem.cov, q, problem.count)
    normalised = normalise(problem.ltf, problem.mean, problem.cov)
    D = thresholded_gaussian(normalised.threshold).separation * normalised.image
    expected = 2 * exact.cov_bag + 2 / (q - 1) * p * (1 - p) * np.outer(D, D)
    assert_allclose(exact.cov_diff, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@given(problems(mixtures=True))
def test_regression_on_the_proportion_frees_the_bags_of_their_counts(problem):
    exact = population_moments(problem.ltf, problem.mean, problem.cov, problem.size, problem.count)
    normalised = normalise(problem.ltf, problem.mean, problem.cov)
    profile = bag_profile(problem.size, problem.count, normalised.threshold)
    G = np.outer(normalised.image, normalised.image)
    within_class = problem.cov + (profile.variance_within - 1) * G
    atol = 1e-9 * problem.size * np.abs(problem.cov).max()
    assert_allclose(exact.cov_residual, within_class, atol=atol)
    pairs = within_class + exact.pair_weight * profile.separation**2 * G
    assert_allclose(exact.cov_within, pairs, atol=atol)


@given(problems(mixtures=True))
def test_swapping_the_classes_mirrors_the_moments(problem):
    exact = population_moments(problem.ltf, problem.mean, problem.cov, problem.size, problem.count)
    swapped = population_moments(problem.ltf.flipped(), problem.mean, problem.cov, problem.size, problem.count[::-1])
    for field in ("mean", "cov_bag", "cov_diff"):
        assert_allclose(getattr(swapped, field), getattr(exact, field), rtol=1e-9, atol=1e-9)
    assert_allclose(swapped.slope, -exact.slope, rtol=1e-9, atol=1e-12)
    assert_allclose(swapped.proportion, 1 - exact.proportion, atol=1e-12)


@pytest.mark.parametrize("l", [-40.0, -8.5, -3.0, 0.0, 0.7, 3.0, 8.5, 19.9, 20.1, 40.0, 1000.0])
def test_thresholded_moments_agree_with_quadrature_in_both_tails(l):
    found = thresholded_gaussian(l)
    for side, mean, variance in ((l, found.mean_above, found.var_above), (-l, -found.mean_below, found.var_below)):
        # Scaled density of g - side given g > side; never underflows.
        if side >= 0:
            density = lambda y, side=side: np.exp(-side * y - y * y / 2)
            upper = 40 / (1 + side)
            moment = lambda n, f=density, b=upper: quad(lambda y: y**n * f(y), 0, b, epsabs=0, epsrel=1e-13)[0]
            m0, m1, m2 = moment(0), moment(1), moment(2)
            assert_allclose(mean, side + m1 / m0, rtol=1e-12)
            assert_allclose(variance, m2 / m0 - (m1 / m0) ** 2, rtol=1e-9)
        else:
            # Almost nothing is cut off: E = phi / Phi, Var = 1 - E (E + |side|).
            ratio = np.exp(norm.logpdf(side) - norm.logsf(side))
            assert_allclose(mean, ratio, rtol=1e-12)
            assert_allclose(variance, 1 - ratio * (ratio - side), rtol=1e-12)
    log_t = norm.logpdf(l) - norm.logcdf(l) - norm.logsf(l)
    if np.isfinite(log_t):
        assert_allclose(found.separation, np.exp(log_t), rtol=1e-9)
    assert found.separation >= max(abs(l), np.sqrt(8 / np.pi) * (1 - 1e-15))
    assert_allclose(found.square_above - found.mean_above**2, found.var_above, atol=1e-9 * max(1, l * l))


@pytest.mark.parametrize("l", [-1000.0, -38.0, -8.0, 8.0, 38.0, 1000.0])
@pytest.mark.parametrize("k", [0, 1, 5, 9, 10])
def test_far_tails_stay_finite_and_positive(l, k):
    exact = population_moments(bw.LTF([0.0, 2.0], -2.0 * l), np.zeros(2), np.eye(2), 10, k)
    profile = bag_profile(10, k, l)
    assert 0 < profile.variance < np.inf
    for field in ("mean", "cov_bag", "cov_diff"):
        assert np.isfinite(getattr(exact, field)).all()
    assert (np.linalg.eigvalsh(exact.cov_bag) > -1e-9).all()
    # a^2 - l a, the printed form, where it does not cancel.
    printed = profile.shift**2 - l * profile.shift
    assert_allclose(profile.kappa1, printed, rtol=1e-9, atol=1e-9 * max(1, l * l))


def test_the_paper_table_of_kappas_at_the_origin():
    for q, k in ((2, 1), (3, 1), (10, 5), (10, 8), (50, 25), (50, 35)):
        p = k / q
        assert_allclose(kappa1(q, k), (2 * p - 1) ** 2 * 2 / np.pi, atol=1e-15)
        assert_allclose(kappa2(q, k), 16 / np.pi * p * (1 - p) / (q - 1), rtol=1e-14)
        assert_allclose(kappa3(q, k), kappa2(q, k) / (1 - kappa1(q, k)), rtol=1e-14)
        printed = 2 * 5 / 2 * (1 / (2 - max(0, 2 * kappa1(q, k) - kappa2(q, k))) + 1 / (1 - kappa1(q, k)))
        assert_allclose(theta(q, k, lambda_min=2.0, lambda_max=5.0), printed, rtol=1e-14)


def test_normalisation_gives_the_same_labels():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((4, 4))
    cov, mean, ltf = A @ A.T, rng.standard_normal(4), bw.LTF(rng.standard_normal(4), 0.7)
    values, vectors = np.linalg.eigh(cov)
    root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    u = root @ ltf.normal / np.linalg.norm(root @ ltf.normal)
    z = rng.standard_normal((1000, 4))
    normalised = normalise(ltf, mean, cov)
    assert_allclose(normalised.image, root @ u, rtol=1e-9)
    assert ((z @ u > normalised.threshold) == ltf.predict(z @ root + mean).astype(bool)).all()


@given(problems(mixtures=True))
def test_rho_is_the_variance_ratio_of_every_direction(problem):
    exact = population_moments(problem.ltf, problem.mean, problem.cov, problem.size, problem.count)
    l = problem.threshold
    rng = np.random.default_rng(4)
    for r in rng.standard_normal((5, len(problem.mean))):
        cosine = gamma(r, problem.ltf.normal, problem.cov)
        ratio = (r @ exact.cov_diff @ r) / (r @ exact.cov_bag @ r)
        assert_allclose(rho(cosine, problem.size, problem.count, l), ratio, rtol=1e-7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bag_profile(0, 0), "size must be an integer of at least 1"),
        (lambda: bag_profile(3, 4), r"count must be an integer in 0\.\.3"),
        (lambda: bag_profile(3, [0.5, 0.5]), "must be 4 numbers"),
        (lambda: bag_profile(1, [0.5, 0.6]), "sum to 1"),
        (lambda: kappa2(1, 1), "at least two rows"),
        (lambda: theta(3, 1, lambda_min=2.0, lambda_max=1.0), "lambda_max must be at least"),
        (lambda: theta(3, 1, lambda_min=0.0), "lambda_min must lie strictly"),
        (lambda: rho(1.5, 3, 1), "cosine must lie"),
        (lambda: kappa1(3, 1, float("nan")), "threshold must be a finite number"),
        (lambda: gamma([0.0], [1.0], [[1.0]]), "positive variances"),
        (lambda: normalise(bw.LTF([1.0], 0.0), [0.0], [[0.0]]), "variance of normal.x under cov must be positive"),
        (lambda: normalise(bw.LTF([1.0], 0.0), [0.0, 1.0], np.eye(2)), "must have shapes"),
        (lambda: normalise(bw.LTF([1.0, 0.0], 0.0), [0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]), "must be symmetric"),
        (lambda: normalise(bw.LTF([1.0], 0.0), [np.nan], [[1.0]]), "must be finite"),
    ],
)
def test_what_lies_outside_the_conditions_is_refused(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_inverse_mills_ratio_obeys_its_differential_equation():
    # h' = h (h - x), by a central difference of step e: error e^2 h'''/6 + rounding / e, both below 1e-8.
    for x in np.linspace(-6, 6, 25):
        e = 1e-5
        slope = (inverse_mills_ratio(x + e) - inverse_mills_ratio(x - e)) / (2 * e)
        assert_allclose(slope, inverse_mills_ratio(x) * (inverse_mills_ratio(x) - x), atol=1e-8)
