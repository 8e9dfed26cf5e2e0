"""The accuracy that the paper reports, in small cells; all of them: benchmarks/spectral_matches_the_paper.py."""

from math import sqrt

import numpy as np
import pytest
from scipy.stats import betabinom, binom

import bagwise as bw
from bagwise.lab.runner import data_set, run
from bagwise.lab.summary import sees_better_of_two
from bagwise.lab.tables import TABLES, Cell, published
from bagwise.learn.offsets import best_threshold
from bagwise.stats.linalg import eigenpairs
from bagwise.theory.asymptotics import mean_direction_error, spectral_direction_error, spectral_instance_error
from bagwise.theory.gaussian import normalise

TABLE_1 = [cell for cell, learner in TABLES["table1"].entries if learner == "A2"]


def accuracies(cell: Cell, learner: str, datasets: int) -> np.ndarray:
    found = np.array([100 * run(cell, learner, i).accuracy for i in range(datasets)])
    return np.maximum(found, 100 - found) if sees_better_of_two(cell, learner) else found


def matches(cell: Cell) -> bool:
    """Within three standard errors of the difference: both sides have the noise of 25 data sets."""
    found = accuracies(cell, "A2", 25)
    return abs(found.mean() - published(cell, "A2")) <= 3 * sqrt(2) * found.std(ddof=1) / sqrt(25)


@pytest.mark.parametrize("key", [(3, 1), (10, 5), (10, 8)])
def test_a_cell_of_table_1_comes_out(key: tuple[int, int]) -> None:
    assert matches(Cell("centred", False, 0.0, 10, *key, 2000))


@pytest.mark.slow
@pytest.mark.parametrize("cell", TABLE_1, ids=[cell.name for cell in TABLE_1])
def test_every_cell_of_table_1_comes_out(cell: Cell) -> None:
    assert matches(cell)


@pytest.mark.parametrize("key", [(10, 8), (50, 35)])
def test_the_crossing_of_a3_and_a2_needs_one_row_per_bag(key: tuple[int, int]) -> None:
    bags = (100, 200, 500, 1000, 2000, 20_000)
    a2 = [spectral_direction_error(50, m, *key).sin2 for m in bags]
    one, every = ([mean_direction_error(50, m, *key, pairs=pairs).sin2 for m in bags] for pairs in ("one", "all"))
    ahead = [a < b for a, b in zip(one, a2, strict=True)]
    assert ahead[0] and not any(ahead[2:])
    assert all(a < b for a, b in zip(every, a2, strict=True))


def test_the_crossing_is_there_in_drawn_bags() -> None:
    # d = 50, (10, 8): 67.9 and 89.7 % with one row against 56.6 and 94.4 %; standard errors of five data sets are
    # about 1.5 and 5 at m = 100, 0.5 and 0.3 at m = 2000, so that three of the difference leave room.
    few, many = (Cell("standard", False, 0.0, 50, 10, 8, m) for m in (100, 2000))
    mean = lambda cell, learner: accuracies(cell, learner, 5).mean()
    assert mean(few, "A3one") > mean(few, "A2")
    assert mean(many, "A3one") < mean(many, "A2")
    for cell in (few, many):
        assert mean(cell, "A3") > max(mean(cell, "A3one"), mean(cell, "A2"))


@pytest.mark.parametrize("law", ["centred", "general"])
def test_thresholds_with_offset_are_learnt_as_well_as_theory_says(law: str) -> None:
    cell = Cell(law, True, 0.0, 10, 3, 1, 2000)
    errors, expected = [], []
    for i in range(25):
        data = data_set(cell, i)
        errors.append(run(cell, "A4", i, data).error)
        l = normalise(data.oracle.ltf, data.oracle.mean, data.oracle.cov).threshold
        expected.append(spectral_instance_error(cell.d, cell.m, cell.q, cell.k, l, offset="satisfied"))
    se = np.std(np.array(errors) - expected, ddof=1) / 5
    assert abs(np.mean(errors) - np.mean(expected)) < 3 * se + 0.1 * np.mean(expected)  # theory is good to 10 %


# ---------------------------------------------------------------------- bags of several sizes and counts


def problem(rng: np.random.Generator) -> tuple[bw.LTF, np.ndarray, np.ndarray]:
    A = rng.standard_normal((10, 10))
    return bw.LTF(rng.standard_normal(10), 0.0), np.zeros(10), A @ A.T / 10 + np.eye(10)


def drawn(kind: str, truth: tuple[bw.LTF, np.ndarray, np.ndarray], rng: np.random.Generator) -> bw.Bags:
    ltf, mean, cov = truth
    if kind == "ragged":  # 600 random bags of 2 to 200 rows
        sizes = rng.integers(2, 201, size=600)
        X = rng.multivariate_normal(mean, cov, size=sizes.sum(), method="cholesky")
        return bw.Bags.from_sizes(X, sizes, np.add.reduceat(ltf.predict(X), np.cumsum(sizes) - sizes))
    law = {"random": binom.pmf(np.arange(11), 10, 0.5), "over-dispersed": betabinom.pmf(np.arange(11), 10, 1, 1)}
    return bw.BagOracle(ltf, mean, cov, size=10, count=law[kind]).sample(500, rng)


@pytest.mark.parametrize(("kind", "pooled_above"), [("random", 0.2), ("over-dispersed", 0.3), ("ragged", 0.2)])
def test_mixed_bags_are_learnt_where_pooled_pairs_are_blind_or_reversed(kind: str, pooled_above: float) -> None:
    ours, pooled = [], []
    for seed in range(5):
        rng = np.random.default_rng([2, seed])
        truth = problem(rng)
        bags = drawn(kind, truth, rng)
        ours.append(bw.instance_error(bw.SpectralLTF().fit(bags).ltf_, *truth))
        moments = bw.BagMoments.from_bags(bags).finalize()
        r = eigenpairs(moments.cov_diff, moments.cov_bag)[1][:, -1]
        found = best_threshold(bags.X @ r, bags)
        pooled.append(bw.instance_error(bw.LTF(found.sign * r, -found.threshold), *truth))
    assert max(ours) < 0.08  # 500 bags in 10 dimensions: about 0.04
    assert np.mean(pooled) > pooled_above
