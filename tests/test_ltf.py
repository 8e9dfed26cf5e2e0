"""The noun LTF, and the bivariate normal probabilities between two of them."""

import subprocess
import sys
import time

import numpy as np
import pytest

import bagwise as bw
from bagwise.errors import InvalidInputError
from bagwise.ltf import as_gaussian, error_rates, threshold

EYE = np.eye(2)
ORIGIN = np.zeros(2)

# l1, l2, angle; Pr[h=0 | f=1], Pr[h=1 | f=0], Pr[h != f] for f = [u > l1] and h = [v > l2] with correlation cos(angle).
# One-dimensional quadrature of the conditional in 40-digit arithmetic, rounded to float64.
REFERENCE = [
    (1.0, 1.0, 1e-06, 6.084409449923053e-07, 1.147357882498568e-07, 1.9306470526009976e-07),
    (8.0, 8.0, 1e-06, 3.2399571146663134e-06, 2.0155645472670513e-21, 4.0311290945341004e-21),
    (8.0, 8.000001, 1e-06, 8.797968521281483e-06, 4.209306597331182e-22, 5.894112190190751e-21),
    (8.0, 7.999999, 0.001, 0.0032359023543279447, 2.0180943881401207e-18, 4.031136484986858e-18),
    (30.0, 30.0, 0.01, 0.11936757125807124, 5.857025243418317e-199, 1.1714050486836634e-198),
    (30.0, 29.5, 0.18, 0.3965057387615474, 1.4394742561118094e-191, 1.4394744506658327e-191),
    (5.0, -5.0, 3.1, 0.9140948448873427, 0.9999999753751452, 0.9999999507503045),
    (-10.0, -10.0, 3.14159, 7.619853024160525e-24, 1.0, 1.523970604832105e-23),
    (10.0, -10.0, 3.14159, 0.999989309864008, 1.0, 1.0),
    (1.0, 2.0, 1e-08, 0.8566065013011934, 0.0, 0.13590512198327784),
    (1.0, 1.000000001, 1e-07, 6.160970434948073e-08, 1.1330352496208893e-08, 1.9307435831998812e-08),
    (-1.0, -1.000000001, 1e-09, 2.3961523132441252e-11, 1.6522027447476252e-09, 2.822905476094641e-10),
    (20.0, -20.0, 2.9, 0.01494364337006943, 1.0, 1.0),
    (0.3, -0.2, 0.7, 0.10071772999881758, 0.381372179541293, 0.2741373200592662),
    (13.1934, 13.1934, 1.1132e-05, 5.8925073953264325e-05, 2.821527853145239e-44, 5.643055706290478e-44),
    (7.5, 1.25, 0.0, 0.0, 0.10564977366682343, 0.10564977366682342),
    (
        2.3471668552552143, 4.4674093645473425, 0.07239253482866502,
        0.9995814693007115, 1.8082831306685596e-194, 0.009454432050560877,
    ),
    (
        -6.760682972811821, -6.760682969612119, 0.5975245478435377,
        6.635941961362312e-12, 0.9663329838810863, 1.3271883770961018e-11,
    ),
    (
        7.134449094221792, 7.149372847607032, 0.30355763763779015,
        0.7484262434394585, 3.1364215581398216e-13, 6.772858897501953e-13,
    ),
]  # fmt: skip


def standard_pair(l1: float, l2: float, angle: float) -> tuple[bw.LTF, bw.LTF]:
    """LTFs over N(0, I) of the plane at thresholds l1 and l2."""
    return bw.LTF([1.0, 0.0], -l1), bw.LTF([np.cos(angle), np.sin(angle)], -l2)


def conditioning(l1: float, l2: float, angle: float) -> float:
    """What the rounding of float64 inputs leaves open, relative.

    Thresholds are off by eps |l|. A tail exponent l²/2 turns that into eps l²; the width between the two lines, which
    at any point is of the order of their angle or their gap, into eps |l| / width, and a Gaussian factor
    exp(-(gap / angle)²/2) into eps |l| gap / angle². Normals are off by eps, seen from pi too.
    """
    eps, gap = np.finfo(float).eps, abs(l2 - l1)
    l = max(1.0, abs(l1), abs(l2))
    seen = 1 / max(gap, angle) + (gap / angle**2 if angle else 0) * (gap < 40 * angle) + 1 / (np.pi - angle)
    return float(10 * eps * l * (l + seen))


# ---------------------------------------------------------------------- the noun


def test_labels_are_1_strictly_above_the_hyperplane() -> None:
    ltf = bw.LTF([2.0, -1.0], -1.0)
    X = np.array([[1.0, 1.0], [1.0, 0.5], [0.0, 0.0]])
    assert ltf.scores(X).tolist() == [0.0, 0.5, -1.0]
    assert ltf.predict(X).tolist() == [0, 1, 0]
    assert ltf.predict(X).dtype == np.int64
    assert ltf.flipped().predict(X).tolist() == [0, 0, 1]


def test_the_normal_is_a_read_only_copy() -> None:
    weights = np.array([1.0, 2.0])
    ltf = bw.LTF(weights, 1)
    weights[0] = 5.0
    assert ltf.normal.tolist() == [1.0, 2.0] and isinstance(ltf.offset, float)
    with pytest.raises(ValueError, match="read-only"):
        ltf.normal[0] = 3.0
    with pytest.raises(AttributeError):
        ltf.offset = 2.0  # type: ignore[misc]


def test_equal_values_are_equal_and_hash_alike() -> None:
    one, two = bw.LTF([0.0, 1.0], 0.0), bw.LTF([-0.0, 1.0], -0.0)
    assert one == two and hash(one) == hash(two)
    assert one != bw.LTF([0.0, 1.0], 1.0) and one != bw.LTF([0.0, 1.0, 0.0]) and one != "LTF"


def test_long_normals_are_shortened_in_print() -> None:
    text = repr(bw.LTF(np.arange(20) / 3, 1 / 3))
    assert "… 20 weights" in text and "0.333333" in text and len(text) < 120


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_normalised_keeps_the_function_at_any_scale(scale: float) -> None:
    unit = bw.LTF(scale * np.array([3.0, 4.0]), -10.0 * scale).normalised()
    np.testing.assert_allclose(unit.normal, [0.6, 0.8], rtol=1e-15)
    assert unit.offset == pytest.approx(-2.0, rel=1e-15)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: bw.LTF([[1.0]]), r"normal must be one vector .* shape \(1, 1\)"),
        (lambda: bw.LTF([]), r"normal must be one vector .* shape \(0,\)"),
        (lambda: bw.LTF([1.0, np.nan]), r"normal must be finite; got nan at feature 1"),
        (lambda: bw.LTF([1.0], np.inf), r"offset must be finite; got inf"),
        (lambda: bw.LTF([0.0, 0.0]).normalised(), r"must not be all zeros .* in all 2 features"),
        (lambda: bw.LTF([1.0]).predict(np.zeros((3, 2))), r"one column per weight, 1; got shape \(3, 2\)"),
        (lambda: bw.LTF([1.0]).predict(np.zeros(3)), r"one column per weight, 1; got shape \(3,\)"),
        (lambda: bw.LTF([1.0]).angle(bw.LTF([1.0, 2.0])), r"same features .* got 1 and 2 weights"),
        (lambda: bw.LTF([1.0, 0]).angle(bw.LTF([0.0, 1.0]), np.diag([1.0, 0.0])), r"must have variance under cov"),
        (lambda: bw.LTF([1.0]).disagreement(bw.LTF([1.0, 2.0]), [0.0], EYE), r"same features"),
        (lambda: error_rates(bw.LTF([1.0]), bw.LTF([0.0], 1.0), [0.0], [[1.0]]), r"must give both labels"),
        (lambda: as_gaussian([0.0], EYE), r"cov must be a matrix of 1 by 1, .* got shape \(2, 2\)"),
        (lambda: as_gaussian([0.0], EYE, n_features=2), r"mean must be a vector .* 2; got shape \(1,\)"),
        (lambda: as_gaussian([0.0, np.inf], EYE), r"mean must be finite"),
        (lambda: as_gaussian(ORIGIN, EYE * np.nan), r"cov must be finite"),
        (lambda: as_gaussian(ORIGIN, [[1.0, 0.5], [0.0, 1.0]]), r"cov must be symmetric; got .* 0\.5"),
        (lambda: as_gaussian(ORIGIN, [[1.0, 2.0], [2.0, 1.0]]), r"no negative eigenvalue; got -1"),
    ],
)
def test_what_is_refused_is_said(build, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        build()


# ---------------------------------------------------------------------- angles


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-6, 0.3, np.pi / 2, 3.0, np.pi - 1e-9])
def test_angles_keep_their_digits(angle: float) -> None:
    one, two = standard_pair(0.0, 0.0, angle)
    # cos and sin are rounded to 1e-16 of 1, and so is the angle that they stand for.
    assert one.angle(two) == pytest.approx(angle, rel=1e-14, abs=3e-16)
    assert bw.LTF(5 * one.normal).angle(bw.LTF(3 * two.normal)) == pytest.approx(angle, rel=1e-14, abs=3e-16)


def test_the_angle_under_a_covariance_is_that_of_the_whitened_normals() -> None:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 4))
    a, b = rng.standard_normal((2, 4))
    inner = (root.T @ a) @ (root.T @ b) / np.linalg.norm(root.T @ a) / np.linalg.norm(root.T @ b)
    assert bw.LTF(a).angle(bw.LTF(b), cov=root @ root.T) == pytest.approx(np.arccos(inner), rel=1e-12)


# ---------------------------------------------------------------------- disagreement


@pytest.mark.parametrize(("l1", "l2", "angle", "missed", "false", "apart"), REFERENCE)
def test_probabilities_agree_with_forty_digit_quadrature(l1, l2, angle, missed, false, apart) -> None:
    f, h = standard_pair(l1, l2, angle)
    rel = 1e-13 + conditioning(l1, l2, angle)
    assert f.disagreement(h, ORIGIN, EYE) == pytest.approx(apart, rel=rel, abs=0)
    assert error_rates(h, f, ORIGIN, EYE) == pytest.approx((missed, false), rel=rel, abs=0)


@pytest.mark.parametrize("l", [0.0, 1.0, -4.0])
@pytest.mark.parametrize("angle", [1e-9, 1e-6, 0.02, 1.5])
def test_equal_thresholds_give_four_owens_t(l: float, angle: float) -> None:
    from scipy.special import owens_t

    one, two = standard_pair(l, l, angle)
    assert one.disagreement(two, ORIGIN, EYE) == pytest.approx(4 * owens_t(l, np.tan(angle / 2)), rel=1e-13, abs=0)


@pytest.mark.parametrize("l", [1.0, 12.0, -30.0])
def test_tiny_angles_give_the_density_of_the_line_times_the_angle(l: float) -> None:
    # Here scipy's Owen's T has but 7 digits. Next terms: (angle l)², and l rounding / angle squared.
    angle = 1e-9
    one, two = standard_pair(l, l, angle)
    expected = angle / np.pi * np.exp(-l * l / 2)
    assert one.disagreement(two, ORIGIN, EYE) == pytest.approx(expected, rel=1e-12, abs=0)


def test_parallel_normals_differ_in_the_strip_between() -> None:
    from scipy.stats import norm

    one, two = bw.LTF([1.0], -9.0), bw.LTF([2.0], -20.0)
    expected = norm.sf(9) - norm.sf(10)
    assert one.disagreement(two, [0.0], [[1.0]]) == pytest.approx(expected, rel=1e-13, abs=0)
    assert one.disagreement(one, [0.0], [[1.0]]) == 0
    assert one.disagreement(one.flipped(), [0.0], [[1.0]]) == pytest.approx(1, abs=1e-15)


def test_a_strip_of_1e_12_is_measured() -> None:
    one, two = bw.LTF([1.0], 0.0), bw.LTF([1.0], 2.0**-40)
    assert one.disagreement(two, [0.0], [[1.0]]) == pytest.approx(2.0**-40 / np.sqrt(2 * np.pi), rel=1e-14, abs=0)


def test_a_singular_covariance_is_a_smaller_space() -> None:
    # x = (z, z): the plane holds a line, on which both normals point the same way.
    line = np.ones((2, 2))
    one, two = bw.LTF([1.0, 0.0], -1.0), bw.LTF([0.0, 3.0], -6.0)
    from scipy.stats import norm

    assert one.disagreement(two, ORIGIN, line) == pytest.approx(norm.sf(1) - norm.sf(2), rel=1e-13)


@pytest.mark.parametrize("constant", [bw.LTF([0.0, 0.0], 1.0), bw.LTF([1.0, -1.0], 0.5), bw.LTF([1.0, -1.0], -0.5)])
def test_a_score_without_variance_is_a_constant(constant: bw.LTF) -> None:
    from scipy.stats import norm

    line = np.ones((2, 2))
    truth = bw.LTF([1.0, 1.0], -2.0)  # 2 z > 2
    always_1 = constant.offset > 0
    expected = norm.cdf(1) if always_1 else norm.sf(1)
    assert truth.disagreement(constant, ORIGIN, line) == pytest.approx(expected, rel=1e-14)
    assert constant.disagreement(truth, ORIGIN, line) == pytest.approx(expected, rel=1e-14)
    assert constant.disagreement(bw.LTF([0.0, 0.0], 1.0), ORIGIN, line) == (0.0 if always_1 else 1.0)
    assert error_rates(constant, truth, ORIGIN, line) == ((0.0, 1.0) if always_1 else (1.0, 0.0))
    assert threshold(constant, ORIGIN, line) == (-np.inf if always_1 else np.inf)


@pytest.mark.parametrize("l", [0.0, 8.0, 30.0, 900.0, 1e6, 1e300])
def test_no_threshold_gives_nan_or_a_value_outside_0_1(l: float) -> None:
    values = []
    for l1, l2 in [(l, 0.0), (0.0, l), (l, l), (l, -l), (-l, l), (-l, -l)]:
        for angle in (0.0, 1e-9, 0.5, np.pi / 2, 3.0, np.pi):
            f, h = standard_pair(l1, l2, angle)
            values += [f.disagreement(h, ORIGIN, EYE), *error_rates(h, f, ORIGIN, EYE)]
    assert np.isfinite(values).all() and min(values) >= 0 and max(values) <= 1


def test_one_disagreement_takes_less_than_the_test_set_it_replaces() -> None:
    rng = np.random.default_rng(0)
    cov = np.eye(10)
    truth, other = bw.LTF(rng.standard_normal(10), 0.3), bw.LTF(rng.standard_normal(10), 0.2)
    truth.disagreement(other, np.zeros(10), cov)
    start = time.perf_counter()
    for _ in range(20):
        truth.disagreement(other, np.zeros(10), cov)
    exact = (time.perf_counter() - start) / 20
    start = time.perf_counter()
    X = rng.standard_normal((1_000_000, 10))
    np.mean(truth.predict(X) != other.predict(X))
    assert exact < (time.perf_counter() - start) / 5


def test_the_noun_does_not_load_scipy() -> None:
    code = "import sys, bagwise; bagwise.LTF([1.0]).normalised(); print('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
