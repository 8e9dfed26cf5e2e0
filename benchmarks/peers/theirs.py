"""llp-learn 1.6.0 in its own environment: methods on one problem, called as its README calls it.

Ids are 0, 1, 2, …, proportions one per bag; the networks want float32. EM and alter-SVM are tuned over C, alter-SVM
over C_p as well if time allows one more value; the networks run with the settings of their README.
"""

import importlib
import sys
import warnings

import numpy as np
from measure import serve
from tuning import GRID, tuned


def em(problem, seed):
    """EM with logistic regression, started from the majority of each bag (the random start stops at once)."""
    from llp_learn.em import EM
    from sklearn.linear_model import LogisticRegression

    def fit(X, sizes, counts, C):
        model = EM(LogisticRegression(C=C, max_iter=1000), init_y="majority", random_state=seed)
        model.fit(X, np.repeat(np.arange(len(sizes)), sizes), counts / sizes)
        return lambda X: np.asarray(model.predict(X))

    return tuned(fit, problem["X"], problem["sizes"], problem["counts"], seed, GRID)[0]


def alter_svm(problem, seed):
    """Alternating SVM with a linear kernel."""
    from llp_learn.alter import alterSVM

    def fit(X, sizes, counts, C):
        model = alterSVM(C=C, random_state=seed)
        model.fit(X, np.repeat(np.arange(len(sizes)), sizes), counts / sizes)
        return lambda X: np.asarray(model.predict(X))

    return tuned(fit, problem["X"], problem["sizes"], problem["counts"], seed, (0.1, 1.0, 10.0))[0]


def network(name, epochs, **settings):
    """A multilayer perceptron with 100 hidden units (a linear network is refused by the package)."""

    def run(problem, seed):
        module = importlib.import_module(f"llp_learn.{name.lower()}")
        model = getattr(module, name)(
            lr=1e-3, n_epochs=epochs, model_type="simple-mlp", hidden_layer_sizes=(100,), n_jobs=0, device="cpu",
            random_state=seed, **settings,
        )  # fmt: skip
        ids = np.repeat(np.arange(len(problem["sizes"])), problem["sizes"])
        model.fit(problem["X"].astype("float32"), ids, problem["counts"] / problem["sizes"])
        return lambda X: np.asarray(model.predict(X.astype("float32")))

    return run


METHODS = {
    "llp-learn EM": em,
    "llp-learn alter-SVM": alter_svm,
    "llp-learn DLLP": network("DLLP", 100),
    "llp-learn LLP-VAT": network("LLPVAT", 40, xi=1e-6, eps=6.0, ip=1),
    "llp-learn MixBag": network("MixBag", 60, consistency="none", choice="uniform", confidence_interval=0.005),
}

if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    serve(METHODS, sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
