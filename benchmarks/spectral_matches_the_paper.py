"""Claim: the paper's learners give the paper's numbers, and where it prints none, those of the closed forms.

    python benchmarks/spectral_matches_the_paper.py [table1] [crossing] [offset] [--datasets 25]

table1: A2 in the 24 cells of Tables 1a and 1b against the printed mean, in standard errors of the difference (both
sides have noise; theirs is not printed and taken as ours). crossing: A3 of one row per bag and of all rows against A2
over N(0, I); the crossing that the paper describes is that of one row. offset: A4 in all cells of the appendix, whose
tables the article leaves out, against `theory.asymptotics`; instance errors are exact.
"""

import argparse
from math import sqrt

import numpy as np

from bagwise.errors import InvalidInputError
from bagwise.lab.runner import data_set, run
from bagwise.lab.summary import sees_better_of_two
from bagwise.lab.tables import TABLES, Cell, published
from bagwise.theory.asymptotics import spectral_instance_error
from bagwise.theory.gaussian import normalise


def measured(cell: Cell, learners: tuple[str, ...], datasets: int) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Test accuracies and exact errors in per cent, (learner, data set), and the thresholds of the data sets."""
    accuracies, errors = np.empty((2, len(learners), datasets))
    thresholds = []
    for i in range(datasets):
        data = data_set(cell, i)
        thresholds.append(normalise(data.oracle.ltf, data.oracle.mean, data.oracle.cov).threshold)
        for j, learner in enumerate(learners):
            row = run(cell, learner, i, data)
            if row.failure:
                raise RuntimeError(row.failure)
            accuracies[j, i], errors[j, i] = 100 * row.accuracy, 100 * row.error
    for j, learner in enumerate(learners):
        if sees_better_of_two(cell, learner):
            accuracies[j], errors[j] = (
                np.maximum(accuracies[j], 100 - accuracies[j]),
                np.minimum(errors[j], 100 - errors[j]),
            )
    return accuracies, errors, thresholds


def mean_and_se(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / sqrt(len(values)))


def cells_of(table: str, learner: str) -> list[Cell]:
    return list(dict.fromkeys(cell for cell, name in TABLES[table].entries if name == learner))


def table1(datasets: int) -> None:
    print("A2, 2000 bags, no offset: test accuracy in per cent")
    print(f"{'':10}{'d':>3} {'q':>3} {'k':>3}  {'measured':>8} {'se':>5}  {'printed':>7}  {'z':>5}")
    within = 0
    cells = cells_of("table1", "A2")
    for cell in cells:
        accuracy, se = mean_and_se(measured(cell, ("A2",), datasets)[0][0])
        printed = published(cell, "A2")
        z = (accuracy - printed) / (se * sqrt(1 + datasets / 25))
        within += abs(z) <= 3
        place = f"{cell.law:10}{cell.d:3} {cell.q:3} {cell.k:3}"
        print(f"{place}  {accuracy:8.2f} {se:5.2f}  {printed:7.2f}  {z:5.1f}", flush=True)
    print(f"{within} of {len(cells)} cells within 3 standard errors of the difference\n")


def crossing(datasets: int) -> None:
    learners = ("A3one", "A3", "A2")
    print("N(0, I), no offset: test accuracy in per cent, standard error")
    print(f"{'d':>3} {'q':>3} {'k':>3} {'m':>5}  {'A3, one row':>13}  {'A3, all rows':>13}  {'A2':>13}")
    for cell in cells_of("standard", "A3"):
        found = [mean_and_se(row) for row in measured(cell, learners, datasets)[0]]
        place = f"{cell.d:3} {cell.q:3} {cell.k:3} {cell.m:5}"
        print(place + "".join(f"  {accuracy:7.2f} ±{se:4.2f}" for accuracy, se in found), flush=True)
    print()


def offset(datasets: int) -> None:
    print("A4, with offset: exact instance error in per cent; expected by theory at the data sets' thresholds")
    print(f"{'':10}{'d':>3} {'q':>3} {'k':>3} {'m':>5}  {'measured':>8} {'se':>5}  {'expected':>8}")
    for cell in cells_of("offset", "A4"):
        _, errors, thresholds = measured(cell, ("A4",), datasets)
        error, se = mean_and_se(errors[0])
        place = f"{cell.law:10}{cell.d:3} {cell.q:3} {cell.k:3} {cell.m:5}"
        print(f"{place}  {error:8.2f} {se:5.2f}  {expected(cell, thresholds)}", flush=True)
    print()


def expected(cell: Cell, thresholds: list[float]) -> str:
    """Mean over the data sets; nothing where theory says that some of them show no direction."""
    try:
        errors = [spectral_instance_error(cell.d, cell.m, cell.q, cell.k, l, offset="satisfied") for l in thresholds]
    except InvalidInputError:
        return f"{'-':>8}"
    return f"{100 * float(np.mean(errors)):8.2f}"


SECTIONS = {f.__name__: f for f in (table1, crossing, offset)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", nargs="*", default=[*SECTIONS], help=", ".join(SECTIONS))
    parser.add_argument("--datasets", type=int, default=25)
    arguments = parser.parse_args()
    for name in arguments.section:
        SECTIONS[name](arguments.datasets)
