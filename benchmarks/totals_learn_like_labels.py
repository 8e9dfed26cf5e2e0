"""Totals learn like labels: BagLogisticRegression against the paper's A2 and against logistic regression that is told
every true label, in exact instance error on the same data.

    python benchmarks/totals_learn_like_labels.py                        # all groups, 25 data sets a cell
    python benchmarks/totals_learn_like_labels.py paper flips --datasets 5 -o build/totals.jsonl

Rows are kept in the file; a run resumes what is there, and the table is made of all that is there. Groups:

    paper   the 24 cells of Tables 1a and 1b; aim: ML error at most 1/5 of the published A2 error
    labels  offsets, large bags, binomial counts; aim: at most 1.2 times labels in hand, the same grid of C for both
    flips   labels flipped before counting, m = 2000; aims against our own A2
    few     m = 2 d and 5 d: the likelihood of the truth's local maximum against the best found

Balanced bags leave the sign open; the better of the two signs is taken there for all, as the paper does.
"""

import argparse
import json
import time
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

import bagwise as bw
from bagwise.data.problems import random_oracle
from bagwise.lab.tables import Cell, published
from bagwise.learn.penalty import GRID
from bagwise.learn.starts import Search, sloped

PAPER = [(2, 1), (3, 1), (10, 5), (10, 8), (50, 25), (50, 35)]


@dataclass(frozen=True)
class Work:
    group: str
    d: int
    q: int
    k: object  # an int, or "binomial"
    m: int
    general: bool  # mean and offset drawn too
    offset: bool = False
    flip: float = 0.0

    @property
    def name(self) -> str:
        kind = "offset" if self.offset else "general" if self.general else "centred"
        return f"{self.group} {kind} d={self.d} q={self.q} k={self.k} m={self.m} flip={self.flip:g}"


WORKS = (
    [Work("paper", d, q, k, 2000, general) for general in (False, True) for d in (10, 50) for q, k in PAPER]
    + [Work("labels", d, q, k, 2000, True, True) for d in (10, 50) for q, k in PAPER]
    + [
        Work("labels", 20, 7, 2, 400, True, True),
        Work("labels", 20, 100, 30, 500, True, True),
        Work("labels", 10, 1000, 300, 200, True, True),
        Work("labels", 20, 16, "binomial", 400, True, True),
    ]
    + [Work("flips", d, q, k, 2000, False, False, flip) for flip in (0.1, 0.25) for d in (10, 50) for q, k in PAPER]
    + [Work("few", d, q, k, r * d, True, True) for r in (2, 5) for d, q, k in ((10, 10, 8), (50, 10, 8), (20, 50, 35))]
)


def error(ltf: bw.LTF, oracle: bw.BagOracle, balanced: bool) -> float:
    wrong = bw.instance_error(ltf, oracle.ltf, oracle.mean, oracle.cov)
    return min(wrong, 1 - wrong) if balanced else wrong


def measured(work: Work, number: int) -> dict:
    rng = np.random.default_rng([crc32(work.name.encode()), number])
    count = binom.pmf(np.arange(work.q + 1), work.q, 0.5) if work.k == "binomial" else work.k
    oracle = random_oracle(
        work.d, size=work.q, count=count, rng=rng, random_mean=work.general,
        offset=rng.standard_normal() if work.offset else 0.0, flip=work.flip,
    )  # fmt: skip
    bags, labels = oracle.sample_labelled(work.m, rng)
    balanced = work.k != "binomial" and 2 * work.k == work.q
    row: dict = {"work": work.name, "group": work.group, "dataset": number}

    a2 = bw.SpectralLTF(fit_intercept=work.offset).fit(bags)
    row["A2"] = error(a2.ltf_, oracle, balanced)
    start = time.perf_counter()
    noise = "estimate" if work.flip else False
    model = bw.BagLogisticRegression(fit_intercept=work.offset, label_noise=noise, random_state=number).fit(bags)
    row |= {"seconds": time.perf_counter() - start, "C": model.C_, "ML": error(model.ltf_, oracle, balanced)}
    row |= {"starts": model.n_starts_, "converged": model.converged_, "levels": list(model.levels_)}
    if work.flip:
        return row
    # Labels in hand: the same penalty on features of unit variance, the same grid, the best of it by true error.
    scale = bags.X.std(axis=0)
    told = []
    for C in GRID:
        fit = LogisticRegression(C=C, fit_intercept=work.offset, max_iter=5000).fit(bags.X / scale, labels)
        ltf = bw.LTF(fit.coef_[0] / scale, float(fit.intercept_[0]) if work.offset else 0.0)
        told.append(error(ltf, oracle, False))
    row |= {"labels": min(told), "labels, same C": told[GRID.index(model.C_)] if model.C_ in GRID else min(told)}
    if work.group == "few":
        moments = bw.BagMoments.from_bags(bags).finalize()
        unit = np.diag(moments.cov_bag)
        search = Search(bags, moments, unit)
        truth = search.maximise(model.C_, sloped(moments, oracle.ltf.normal))
        penalty = float(unit / model.C_ @ model.coef_[0] ** 2) / 2
        row |= {
            "objective": model.log_likelihood_ - penalty, "objective from truth": truth.objective,
            "error from truth": error(bw.LTF(truth.model.coef, truth.model.intercept), oracle, False),
        }  # fmt: skip
    return row


def printed(rows: list[dict]) -> None:
    by_work = defaultdict(list)
    for row in rows:
        by_work[row["work"]].append(row)
    for work in WORKS:
        if not (found := by_work.get(work.name)):
            continue
        mean = lambda name, found=found: 100 * float(np.mean([row[name] for row in found]))
        spread = lambda name, found=found: 100 * float(np.std([row[name] for row in found]) / np.sqrt(len(found)))
        line = f"{work.name:60} n={len(found):2} A2 {mean('A2'):6.2f} ML {mean('ML'):7.3f} ±{spread('ML'):.3f}"
        if "labels" in found[0]:
            ratio = mean("ML") / mean("labels")
            line += f" labels {mean('labels'):6.3f} (same C {mean('labels, same C'):6.3f})  ML/labels {ratio:5.2f}"
        if work.group == "paper":
            law = "general" if work.general else "centred"
            printed_a2 = published(Cell(law, False, 0.0, work.d, work.q, work.k, 2000), "A2")
            if printed_a2 is not None:
                line += f"  ML/published A2 {mean('ML') / (100 - printed_a2):6.3f}"
        else:
            line += f"  ML/A2 {mean('ML') / mean('A2'):6.3f}"
        if work.group == "few":
            lost = [row["objective from truth"] - row["objective"] for row in found]
            line += f"  truth better in {sum(x > 0.5 for x in lost)}; from truth {mean('error from truth'):.2f}"
        line += f"  {np.mean([row['seconds'] for row in found]):.2f} s"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", default=[])
    parser.add_argument("--datasets", type=int, default=25)
    parser.add_argument("--only", default="", help="cells whose name holds this text")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/totals_learn_like_labels.jsonl"))
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in options.output.read_text().splitlines()] if options.output.exists() else []
    done = {(row["work"], row["dataset"]) for row in rows}
    warnings.simplefilter("ignore")
    for number in range(options.datasets):
        for work in WORKS:
            wanted = (not options.groups or work.group in options.groups) and options.only in work.name
            if wanted and (work.name, number) not in done:
                rows.append(measured(work, number))
                with options.output.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    printed(rows)


if __name__ == "__main__":
    main()
