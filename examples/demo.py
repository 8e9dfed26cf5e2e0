"""The main job end to end: bags in a file, a model from their totals, predictions for new rows, how good they are.

The data are drawn from an oracle whose labels are known, so that learning from totals can be compared with learning
from the label of every single row. Run it as ``make demo``, or ``python examples/demo.py FOLDER``.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.linear_model import LogisticRegression

import bagwise as bw
from bagwise.data.problems import random_oracle

FEATURES, SIZE, COUNT, BAGS = 10, 10, 8, 2000


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    train, rows, model_file, predicted = (
        folder / name for name in ("train.parquet", "rows.parquet", "model.json", "predicted.parquet")
    )
    rng = np.random.default_rng(0)

    # Someone else's data: each row has features and a bag, each bag has one total.
    oracle = random_oracle(FEATURES, size=SIZE, count=COUNT, rng=rng)
    drawn, true_labels = oracle.sample_labelled(BAGS, rng)
    bw.write_bags(drawn, train)
    X_new, y_new = oracle.sample_instances(5000, rng)
    bw.write_bags(bw.Bags.from_sizes(X_new, [len(X_new)], [int(y_new.sum())]), rows)
    print(f"{train}: {drawn}")

    # Our job: from the file to a model, and from the model to rows.
    bags = bw.read_bags(train)
    heldout = oracle.sample(1000, rng)
    table = []
    for learner in (bw.SpectralLTF(), bw.BagLogisticRegression(random_state=0)):
        start = time.perf_counter()
        learner.fit(bags)
        table.append((type(learner).__name__, "totals of bags", learner, learner.ltf_, time.perf_counter() - start))
    bw.save(learner, model_file)
    model = bw.load(model_file)
    bw.write_predictions(model, rows, predicted)
    labels = pq.read_table(predicted)["prediction"].to_numpy()

    # The comparison that real data never allow: the same rows with all their labels.
    start = time.perf_counter()
    supervised = LogisticRegression(C=1e4, max_iter=1000).fit(drawn.X, true_labels)
    ltf = bw.LTF(supervised.coef_[0], supervised.intercept_[0])
    table.append(("LogisticRegression", "label of each row", ltf, ltf, time.perf_counter() - start))

    print(f"\n{'learner':24}{'learns from':20}{'wrong rows':>12}{'wrong bags':>12}{'seconds':>10}")
    for name, source, learner, ltf, seconds in table:
        wrong_rows = bw.instance_error(ltf, oracle.ltf, oracle.mean, oracle.cov)
        wrong_bags = bw.bag_error(learner, heldout)
        print(f"{name:24}{source:20}{100 * wrong_rows:10.2f} %{100 * wrong_bags:10.1f} %{seconds:10.2f}")
    print(
        "\nWrong rows: exact, under the oracle's Gaussian. Wrong bags: of 1,000 new bags, those whose count is missed."
    )
    print("Seconds: the very first run compiles the kernels as well, once for an installation.")
    print(f"Of {len(y_new):,} new rows, {100 * (labels == y_new).mean():.1f} % were labelled as they should be.")
    print("\nFiles:")
    for file, what in {
        train: "rows with bag and total, no labels",
        rows: "new rows",
        model_file: "the model, readable",
        predicted: f"new rows with {' and '.join(pq.read_schema(predicted).names[-2:])}",
    }.items():
        print(f"  {file}  ({what})")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
