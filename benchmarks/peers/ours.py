"""Our learners, the published alternating mean map, and the ceiling: methods on one problem."""

import sys
import warnings

import numpy as np
from measure import serve
from scipy.optimize import minimize
from tuning import GRID, tuned

import bagwise as bw
from bagwise.learn.alternating import alternate


def estimator(make, *, tune):
    """A learner of ours, tuned over C like a peer, or with what it chooses itself."""

    def run(problem, seed):
        X, sizes, counts = problem["X"], problem["sizes"], problem["counts"]
        if not tune:
            return make(bool(problem["noisy"]), seed).fit(bw.Bags.from_sizes(X, sizes, counts)).decision_function

        def fit(X, sizes, counts, C):
            return make(C).fit(bw.Bags.from_sizes(X, sizes, counts)).decision_function

        return tuned(fit, X, sizes, counts, seed)[0]

    return run


def published_amm(start, *, constant):
    """The alternating mean map of Patrini et al. as its R package has it: no intercept, started from MM or from ones.

    MM solves for the two class means by least squares over the bags, and fits the logistic loss, whose labels enter
    through the mean operator only. A constant column is how its users get an intercept.
    """

    def widen(X):
        return np.column_stack([X, np.ones(len(X))]) if constant else X

    def mean_map(bags, C):
        p = bags.proportions
        means = np.add.reduceat(bags.X, bags.starts[:-1], axis=0) / bags.sizes[:, None]
        weight = np.sqrt(bags.sizes)[:, None]
        design = np.column_stack([p, 1 - p]) * weight
        if np.linalg.matrix_rank(design) < 2:
            raise ValueError("singular: all bags have one proportion")
        operator = bags.counts.sum() * np.linalg.lstsq(design, means * weight, rcond=None)[0][0]

        def loss(w):
            s = bags.X @ w
            return (
                np.logaddexp(0, s).sum() - operator @ w + w @ w / (2 * C),
                bags.X.T @ (1 / (1 + np.exp(-np.clip(s, -700, 700)))) - operator + w / C,
            )

        return minimize(loss, np.zeros(bags.n_features), jac=True, method="L-BFGS-B").x

    def fit(X, sizes, counts, C):
        bags = bw.Bags.from_sizes(widen(X), sizes, counts)
        first = mean_map(bags, C) if start == "MM" else np.ones(bags.n_features)
        found = alternate(bags, first, C, fit_intercept=False, max_rounds=50)
        return lambda X: widen(X) @ found.fit.coef

    return lambda problem, seed: tuned(fit, problem["X"], problem["sizes"], problem["counts"], seed)[0]


def ceiling(problem, seed):
    """Logistic regression told the true label of each row; C by cross-validation over the same values."""
    from sklearn.linear_model import LogisticRegressionCV

    model = LogisticRegressionCV(Cs=list(GRID), cv=4, max_iter=2000, random_state=seed)
    return model.fit(problem["X"], problem["labels"]).decision_function


METHODS = {
    "bagwise logistic": estimator(
        lambda noisy, seed: bw.BagLogisticRegression(label_noise="estimate" if noisy else False, random_state=seed),
        tune=False,
    ),
    "bagwise spectral": estimator(lambda noisy, seed: bw.SpectralLTF(), tune=False),
    "bagwise mean map": estimator(lambda noisy, seed: bw.MeanMap(), tune=False),
    "bagwise AMM": estimator(lambda C: bw.AlternatingMeanMap(C=C), tune=True),
    "bagwise EasyLLP": estimator(lambda C: bw.EasyLLP(C=C), tune=True),
    "bagwise bag loss": estimator(lambda C: bw.BagLossRegression(C=C), tune=True),
    "AMM(MM), published": published_amm("MM", constant=False),
    "AMM(MM), constant column": published_amm("MM", constant=True),
    "AMM(1), published": published_amm("1", constant=False),
    "true labels": ceiling,
}

if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    serve(METHODS, sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
