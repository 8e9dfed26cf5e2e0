"""Accuracy of the semidefinite baselines beside the published column S and beside five random thresholds.

    python benchmarks/sdp_is_chance_where_the_relaxation_is_loose.py [datasets] [m …]

The cells are those of the paper's Tables 1a and 1b that have a column S (no offset, no flips), with 200 bags as there
and with 50 and 100. Accuracy is exact, of the better of the two signs where k = q/2, in percent, mean +- standard error
over the data sets; "S - 5 random" is the mean paired difference, "chance" where it is below two standard errors.
"d|C|^2" is 1 where the matrix of least norm is the identity: S then is the best of five random thresholds.
"""

import sys
import warnings

import numpy as np

import bagwise as bw
from bagwise.lab.runner import data_set
from bagwise.lab.tables import Cell, published

LAWS = ("centred", "general")
SHAPES = [(2, 1, 10), (3, 1, 10), (2, 1, 50), (3, 1, 50)]


def best_of_five(bags: bw.Bags, rng: np.random.Generator) -> bw.LTF:
    """Of five random thresholds, each with its better sign as the roundings of S, the one that satisfies most bags."""
    found = []
    for normal in rng.standard_normal((5, bags.n_features)):
        found += [bw.LTF(normal), bw.LTF(-normal)]
    return min(found, key=lambda ltf: bw.bag_error(ltf, bags))


def accuracies(cell: Cell, number: int) -> tuple[list[float], float, list[str]]:
    """Accuracy in percent of S, S+ and five random thresholds on one data set; d |C|^2 of S; what went wrong."""
    data = data_set(cell, number)
    models = [bw.SDPLTF(variant=variant, fit_intercept=False, random_state=number) for variant in ("S", "S+")]
    ltfs = [model.fit(data.bags).ltf_ for model in models]
    ltfs.append(best_of_five(data.bags, np.random.default_rng([number, 5])))
    found = []
    for ltf in ltfs:
        right = 1 - ltf.disagreement(data.oracle.ltf, data.oracle.mean, data.oracle.cov)
        found.append(100 * (max(right, 1 - right) if cell.balanced else right))
    concerns = [model.result_.concern for model in models if model.result_.concern]
    return found, cell.d * float(np.sum(models[0].result_.matrix ** 2)), concerns


def main() -> None:
    datasets = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    numbers = [int(word) for word in sys.argv[2:]] or [200, 100, 50]
    warnings.simplefilter("ignore")  # of the sign, which is accounted for; concerns are printed
    print(f"accuracy in percent, mean +- standard error of {datasets} data sets")
    print(
        "law      (q, k)   d    m |  paper             S            S+      5 random | S - 5 random         | d |C|^2"
    )
    for m in numbers:
        for law in LAWS:
            for q, k, d in SHAPES:
                cell = Cell(law, False, 0.0, d, q, k, m)
                runs = [accuracies(cell, number) for number in range(datasets)]
                table = np.array([found for found, _, _ in runs])
                gain = table[:, 0] - table[:, 2]
                error = lambda x: x.std(ddof=1) / np.sqrt(datasets)
                told = [f"{column.mean():6.1f} +- {error(column):3.1f}" for column in table.T]
                paper = published(cell, "S")
                verdict = "chance" if gain.mean() < 2 * error(gain) else ""
                norm = np.mean([norm for _, norm, _ in runs])
                print(
                    f"{law:8} ({q}, {k}) {d:3} {m:4} | {paper if paper else '':>6} {' '.join(told)} | "
                    f"{gain.mean():+5.1f} +- {error(gain):3.1f} {verdict:6} | {norm:.2f}",
                    flush=True,
                )
                for concern in {concern for _, _, concerns in runs for concern in concerns}:
                    print(f"    {concern}")


if __name__ == "__main__":
    main()
