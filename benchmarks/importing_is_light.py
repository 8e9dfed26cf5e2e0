"""Claim: importing the package costs no more than importing numpy, and its main learner no more than scikit-learn.

    python benchmarks/importing_is_light.py

Prints seconds of fresh interpreters (median of several, in turns, less the start of an interpreter that imports
nothing) and the ratios: `import bagwise` at most 2 times `import numpy`; `from bagwise import BagLogisticRegression` at
most 1.1 times `import sklearn.linear_model`.
"""

import subprocess
import sys
from statistics import median
from time import perf_counter

REPEATS = 11
STATEMENTS = (
    "pass",
    "import numpy",
    "import bagwise",
    "import sklearn.linear_model",
    "from bagwise import BagLogisticRegression",
    "from bagwise import SpectralLTF",
)


def main() -> None:
    seconds: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    for _ in range(REPEATS):
        for statement, taken in seconds.items():
            start = perf_counter()
            done = subprocess.run([sys.executable, "-c", statement], stderr=subprocess.DEVNULL)
            if done.returncode == 0:
                taken.append(perf_counter() - start)
    cost = {statement: median(taken) if taken else float("nan") for statement, taken in seconds.items()}
    nothing = cost.pop("pass")
    for statement, taken in cost.items():
        print(f"{statement:44} {taken - nothing:6.3f} s")
    ratio = lambda one, other: (cost[one] - nothing) / (cost[other] - nothing)
    print(f"bagwise / numpy {ratio('import bagwise', 'import numpy'):.2f} (target 2)")
    learner = ratio("from bagwise import BagLogisticRegression", "import sklearn.linear_model")
    print(f"BagLogisticRegression / sklearn.linear_model {learner:.2f} (target 1.1)")


if __name__ == "__main__":
    main()
