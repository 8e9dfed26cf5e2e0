"""What maximum likelihood from totals costs beside logistic regression from labels, on the same rows, in one run.

    python benchmarks/likelihood_costs_like_labels.py [--rows 200000] [--features 50] [--auto]

Aims, with compiled code in memory and default tolerances: a fit with C = 1000 at most 2 times LogisticRegression(lbfgs)
for q <= 64, 4 times at q = 1000; C="auto" at most 10 times. The best of two fits each. The first fit of a process,
which compiles or loads the kernels, is printed apart, and the memory that a fit takes, in copies of the features.
"""

import argparse
import resource
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression

import bagwise as bw
from bagwise.data.problems import random_oracle


def seconds(model, *data, repeats=2):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        model.fit(*data)
        times.append(time.perf_counter() - start)
    return min(times)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--bags", nargs="*", default=["2,1", "10,8", "50,35", "1000,300"])
    parser.add_argument("--auto", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    small = random_oracle(3, size=4, count=1, rng=np.random.default_rng(0)).sample(50, np.random.default_rng(0))
    one = bw.BagLogisticRegression(C=1.0)
    print(f"first fit of the process: {seconds(one, small, repeats=1):.2f} s; the next: {seconds(one, small):.4f} s")
    for key in options.bags:
        q, k = map(int, key.split(","))
        rng = np.random.default_rng(q)
        oracle = random_oracle(options.features, size=q, count=k, rng=rng, random_mean=True, offset=0.3)
        bags, labels = oracle.sample_labelled(options.rows // q, rng)
        told = seconds(LogisticRegression(C=1000.0, max_iter=1000), bags.X, labels)
        before = peak()
        ours = seconds(bw.BagLogisticRegression(C=1000.0, random_state=0), bags)
        line = f"q={q:5} k={k:4}: labels {told:.2f} s, totals {ours:.2f} s, ratio {ours / told:.2f}"
        if options.auto:
            auto = seconds(bw.BagLogisticRegression(random_state=0), bags, repeats=1)
            line += f'; C="auto" {auto:.2f} s, ratio {auto / told:.2f}'
        print(f"{line}; peak memory grew by {(peak() - before) / bags.X.nbytes:.2f} copies of X", flush=True)


if __name__ == "__main__":
    main()
