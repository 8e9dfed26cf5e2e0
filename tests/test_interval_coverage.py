"""Coverage of the 95 % intervals: a small cell always, the study of `benchmarks/intervals_cover.py` as slow tests."""

import sys
from math import sqrt
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from intervals_cover import gaussian, study


def test_the_truth_is_covered_as_often_as_stated_in_one_cell() -> None:
    row = study(gaussian(4, fixed=False), 60, 10)
    # 95 % less four standard errors of 60 replications: a false alarm in 30,000.
    assert min(row["covered"].values()) >= 0.95 - 4 * sqrt(0.95 * 0.05 / 60)


@pytest.mark.slow
@pytest.mark.parametrize("q", [2, 4, 16, 64])
@pytest.mark.parametrize("fixed", [False, True])
def test_the_truth_is_covered_as_often_as_stated(q: int, fixed: bool) -> None:
    row = study(gaussian(q, fixed), 1000, 10)
    noise = 2.6 * sqrt(0.95 * 0.05 / 1000)  # one false alarm in 100 on either side
    assert row["covered"]["accuracy"] >= 0.935 - noise
    if row["two_branches"] < 0.01:
        assert row["covered"]["accuracy"] <= 0.975 + noise
