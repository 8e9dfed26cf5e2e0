"""Learning on from further bags: the model of all bags, whatever the parts, by scikit-learn's rules."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import bagwise as bw
from bagwise.errors import IdentifiabilityWarning, InvalidInputError

LAW = np.full(7, 1 / 7)
LEARNERS = [bw.MeanLTF(), bw.MeanMap()]


def some_bags(n_bags: int = 300) -> bw.Bags:
    oracle = bw.BagOracle(bw.LTF([1.0, 2.0, 3.0], 0.5), np.zeros(3), np.eye(3), size=6, count=LAW)
    return oracle.sample(n_bags, np.random.default_rng(0))


def same(one: Any, other: Any) -> None:
    # Sums of 1800 rows in another order, through the inverse of a 3 x 3 matrix that is nearly the identity.
    assert_allclose(one.coef_, other.coef_, rtol=1e-10)
    assert_allclose(one.intercept_, other.intercept_, rtol=1e-10, atol=1e-12)
    assert_array_equal(one.bag_fingerprints_, other.bag_fingerprints_)


@pytest.mark.parametrize("learner", LEARNERS)
def test_parts_teach_what_the_whole_does(learner: Any, tmp_path: Path) -> None:
    bags = some_bags()
    whole = clone(learner).fit(bags)
    parts = clone(learner)
    for first in range(0, 300, 100):
        assert parts.partial_fit(bags[first : first + 100]) is parts
    same(parts, whole)
    same(clone(learner).fit(bags[:200]).partial_fit(bags[200:]), whole)  # fit begins, partial_fit goes on
    same(pickle.loads(pickle.dumps(clone(learner).partial_fit(bags[:50]))).partial_fit(bags[50:]), whole)
    same(parts.fit(bags), whole)  # fit begins anew
    mixed = clone(learner).partial_fit(*bags[:100].as_rows())
    bw.write_bags(bags[100:], tmp_path / "b.parquet")
    same(mixed.partial_fit(bw.scan_bags(tmp_path / "b.parquet", features=["x0", "x1", "x2"])), whole)
    with pytest.raises(InvalidInputError, match=r"certificate must be held out; 300 of 300"):
        bw.certify(mixed, bags)


@pytest.mark.parametrize("learner", LEARNERS)
def test_labels_may_lack_a_class_once_both_are_stated(learner: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = np.where(X @ [1.0, 2.0, 3.0] > 0, "yes", "no")
    X, y = X[np.argsort(y)], np.sort(y)
    parts = clone(learner)
    for first in range(0, 200, 50):
        rows = slice(first, first + 50)
        if first == 0 and isinstance(learner, bw.MeanMap):
            with pytest.warns(IdentifiabilityWarning, match="no boundary yet"):
                parts.partial_fit(X[rows], y[rows], classes=["no", "yes"])
            with pytest.raises(NotFittedError):
                parts.predict(X)
        else:
            parts.partial_fit(X[rows], y[rows], classes=["no", "yes"])
    same(parts, clone(learner).fit(X, y))
    assert set(parts.predict(X)) == {"no", "yes"}


def test_what_does_not_go_on_is_refused(tmp_path: Path) -> None:
    bags = some_bags()
    model = bw.MeanMap().partial_fit(bags[:100])
    before = model.coef_.copy()
    with pytest.raises(InvalidInputError, match="X has 2 features, but MeanMap is expecting 3"):
        model.partial_fit(bw.Bags.from_sizes([[0.0, 1.0]], [1], [1]))
    with pytest.raises(InvalidInputError, match=r"labels must be of the classes \[0, 1\]; got 2 in row 1"):
        model.partial_fit(np.zeros((2, 3)), [1, 2])
    with pytest.raises(InvalidInputError, match=r"classes must stay those of the first call, \[0, 1\]"):
        model.partial_fit(bags[100:], classes=["no", "yes"])
    same(model.partial_fit(bags[100:]), bw.MeanMap().fit(bags))  # nothing of these was learnt
    assert not np.array_equal(before, model.coef_)
    with pytest.raises(InvalidInputError, match="classes must be passed on the first call to partial_fit"):
        bw.MeanMap().partial_fit([[0.0], [1.0]], [0, 1])
    bw.save(model, tmp_path / "m.json")
    with pytest.raises(InvalidInputError, match="this model has none, as it was loaded"):
        bw.load(tmp_path / "m.json").partial_fit(bags)
    with pytest.raises(InvalidInputError, match='partial_fit needs sums over all rows; got pairs="one"'):
        bw.MeanLTF(pairs="one").partial_fit(bags)
    assert not hasattr(bw.SpectralLTF(), "partial_fit")
