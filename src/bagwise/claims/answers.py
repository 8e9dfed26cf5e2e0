"""What a model says of the rows of bags: hard labels, scores, probabilities.

Owns the one place where any classifier (a bagwise learner, an LTF, a scikit-learn estimator or pipeline, an array of
labels, scores or probabilities) becomes plain arrays, and the check whether it has met the bags before. Refuses
answers that are not one per row.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from bagwise.arrays import AnyArray, BoolArray, FloatArray, IntArray
from bagwise.bags import Bags, BagSource, require_exact
from bagwise.errors import InvalidInputError
from bagwise.stats.fingerprints import bag_fingerprints

__all__ = [
    "Answers",
    "answers",
    "bags_used_in_fit",
    "model_answers",
    "model_fingerprints",
    "sum_of_answers",
    "used_in_fit",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers to the rows of some bags, in their order.

    Attributes
    ----------
    positive : bool array of shape (n_rows,)
        The hard labels.
    scores : array of shape (n_rows,)
        Larger is more likely positive; the labels themselves where there is nothing finer.
    probabilities : array of shape (n_rows,), or None
        What the model claims Pr[label = 1] to be.
    """

    positive: BoolArray
    scores: FloatArray
    probabilities: FloatArray | None = None

    def counts(self, bags: Bags) -> IntArray:
        """Predicted positives of each bag."""
        counts: IntArray = np.add.reduceat(self.positive, bags.starts[:-1], dtype=np.int64)
        return counts


def answers(model: Any, bags: Bags, threshold: float | None = None) -> Answers:
    """The answers of a model, or those that an array already holds.

    Parameters
    ----------
    model : anything with predict(X), or an array with one entry per row of ``bags.X``
        An array of only 0 and 1 is hard labels, one within [0, 1] probabilities, any other scores.
    threshold : float, optional
        Scores above it are positive. By default what the model predicts; for an array 1/2 of probabilities and 0 of
        other scores.
    """
    if not hasattr(model, "predict"):
        return _from_array(model, bags, threshold)
    with _names_ignored():
        return model_answers(model, bags, threshold)


def model_answers(model: Any, bags: Bags, threshold: float | None = None) -> Answers:
    """The answers of a model, without its warnings silenced: warnings are not the affair of a thread."""
    X = _rows_for(model, bags)
    probabilities = _column(model.predict_proba(X), bags) if hasattr(model, "predict_proba") else None
    raw = next((getattr(model, name)(X) for name in ("decision_function", "scores") if hasattr(model, name)), None)
    labels = np.asarray(model.predict(X)) if threshold is None else None
    scores = probabilities if raw is None else _one_per_row(np.asarray(raw, dtype=np.float64), bags, "scores")
    if labels is None:
        if scores is None:
            raise InvalidInputError(
                f"a threshold needs scores; {type(model).__name__} only predicts labels. Leave threshold= out."
            )
        return Answers(scores > float(threshold or 0.0), scores, probabilities)
    positive = _positive(_one_per_row(labels, bags, "labels"), getattr(model, "classes_", None))
    return Answers(positive, positive.astype(np.float64) if scores is None else scores, probabilities)


def sum_of_answers(model: Any, bags: BagSource, what: str, task: Callable[[Bags], T]) -> T:
    """The sum of a task that asks the model, over bags in memory or a source of them (see `BagSource`)."""
    if isinstance(bags, Bags):
        require_exact(bags, what)
    elif not isinstance(bags, BagSource):
        raise InvalidInputError(
            f"{what} needs Bags, or a source of them; got {type(bags).__name__}. Pass bagwise.read_bags(path) or "
            "bagwise.scan_bags(path)."
        )
    elif not hasattr(model, "predict"):
        raise InvalidInputError(
            f"bags that are read part by part need a model with predict(X); got {type(model).__name__}. Answers in an "
            "array go with bags in memory: pass scan.read()."
        )
    with _names_ignored():
        return bags.reduce(task)


@contextmanager
def _names_ignored() -> Iterator[None]:
    """No word of missing feature names: they were compared, and bags hold their rows as a plain matrix."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def bags_used_in_fit(model: Any, bags: Bags) -> BoolArray | None:
    """Which of the bags the model was fitted to, or None where it does not know its bags.

    Raises nothing and changes nothing; `certify` refuses such bags. Bags of discrete features may be equal by chance:
    if such matches are no more frequent than among ``bags`` themselves, none is reported.

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 1.0]), np.zeros(2), np.eye(2), size=4, count=3)
    >>> bags = oracle.sample(20, np.random.default_rng(0))
    >>> model = bw.SpectralLTF().fit(bags[:15])
    >>> bags_used_in_fit(model, bags).sum()
    np.int64(15)
    """
    with _names_ignored():
        found = model_fingerprints(model, bags)
    return None if found is None else used_in_fit(model, found)


def model_fingerprints(model: Any, bags: Bags) -> IntArray | None:
    """Fingerprints of bags as the model's last step would see them; None where it kept none of its own."""
    pipeline, kept = _record(model)
    if kept is None:
        return None
    if pipeline is not None:
        bags = Bags(np.ascontiguousarray(_transformed(pipeline, bags)), bags.sizes, bags.counts, bags.ids)
    return bag_fingerprints(bags)


def _record(model: Any) -> tuple[Any, IntArray | None]:
    """The pipeline around the learner, if there is one, and the fingerprints that the learner kept."""
    steps = [step for _, step in getattr(model, "steps", [])]
    last = steps[-1] if steps else model
    last = getattr(last, "best_estimator_", last)
    if getattr(last, "steps", None) is not None:
        return _record(last)
    kept = getattr(last, "bag_fingerprints_", None)
    return model if steps else None, None if kept is None or len(kept) == 0 else kept


def used_in_fit(model: Any, found: IntArray) -> BoolArray:
    """Which of these fingerprints of all bags at hand are of bags of the fit."""
    kept = _record(model)[1]
    assert kept is not None
    used: BoolArray = np.isin(found, kept)
    if not used.any():
        return used
    # Equal bags among those at hand tell how often two unrelated bags are equal.
    _, repeats = np.unique(found, return_counts=True)
    pairs = len(found) * (len(found) - 1) / 2
    by_chance = float(np.sum(repeats * (repeats - 1) / 2)) / pairs * len(found) * len(kept) if pairs else 0.0
    if used.sum() <= by_chance + 3 * np.sqrt(by_chance):
        return np.zeros_like(used)
    return used


def _transformed(pipeline: Any, bags: Bags) -> AnyArray:
    X = _rows_for(pipeline, bags)
    for _, step in pipeline.steps[:-1]:
        X = X if step is None or isinstance(step, str) else step.transform(X)
    return np.asarray(X, dtype=np.float64)


def _rows_for(model: Any, bags: Bags) -> FloatArray:
    """The rows, with columns in the order that the model knows them by."""
    known = getattr(model, "feature_names_in_", None)
    if known is None or bags.feature_names is None or list(known) == list(bags.feature_names):
        return bags.X
    place = {name: j for j, name in enumerate(bags.feature_names)}
    if missing := [name for name in known if name not in place]:
        raise InvalidInputError(
            f"bags must have the features of the fit; {missing[0]!r} is missing, they have "
            f"{', '.join(bags.feature_names)}. Select the same columns."
        )
    return np.ascontiguousarray(bags.X[:, [place[name] for name in known]])


def _from_array(values: Any, bags: Bags, threshold: float | None) -> Answers:
    try:
        array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
        numbers = array.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            "what is assessed must have predict(X) or be one number per row; "
            f"got {type(values).__name__}. Recode labels as 0 and 1."
        ) from None
    if numbers.ndim == 2 and numbers.shape[1] == 2:  # what predict_proba returns
        numbers = numbers[:, 1]
    _one_per_row(numbers, bags, "answers")
    if not np.isfinite(numbers).all():
        i = int(np.argmin(np.isfinite(numbers)))
        raise InvalidInputError(f"answers must be finite; got {numbers[i]} in row {i}. Drop its bag.")
    if array.dtype == bool or (threshold is None and np.isin(numbers, (0.0, 1.0)).all()):
        return Answers(numbers == 1, numbers)
    probable = bool(((numbers >= 0) & (numbers <= 1)).all())
    cut = float(threshold) if threshold is not None else 0.5 if probable else 0.0
    return Answers(numbers > cut, numbers, numbers if probable else None)


def _one_per_row(values: AnyArray, bags: Bags, what: str) -> AnyArray:
    if values.shape != (bags.n_rows,):
        raise InvalidInputError(
            f"{what} must be one per row of the bags, {bags.n_rows} in the order of bags.X; got shape {values.shape}."
        )
    return values


def _column(probabilities: Any, bags: Bags) -> FloatArray:
    """Probability of the second class."""
    array = np.asarray(probabilities, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InvalidInputError(
            f"predict_proba must have two columns, one per class; got shape {array.shape}. Counts are of two."
        )
    return np.ascontiguousarray(_one_per_row(array[:, 1], bags, "probabilities"))


def _positive(labels: AnyArray, classes: Any) -> BoolArray:
    """Which labels are the positive one: 1, or the second of the classes."""
    one: Any = classes[1] if classes is not None and len(classes) == 2 else 1
    zero: Any = classes[0] if classes is not None and len(classes) == 2 else 0
    positive: BoolArray = np.asarray(labels == one, dtype=bool)
    if not (positive | (labels == zero)).all():
        other = labels[np.argmin(positive | (labels == zero))]
        raise InvalidInputError(f"predictions must be {zero!r} or {one!r}; got {other!r}. Recode the labels.")
    return positive
