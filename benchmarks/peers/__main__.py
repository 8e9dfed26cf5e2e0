"""Our learners and their peers on the same bags, in one run.

    python benchmarks/peers run                  # all cells, three data sets each; started again it goes on
    python benchmarks/peers run --cells A B --seeds 0 --methods "bagwise logistic" "AMM(MM), published"
    python benchmarks/peers table                # the tables of docs/peers.md, and a picture

Each method is measured in a process of its own on one thread, under one limit of processor time that includes its
tuning. Failures and time-outs are rows as well. llp-learn is installed at a pinned version into an environment of its
own (4.7 GB; leave it out with --no-llp-learn).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
BUILD = Path("build/peers")
LLP_LEARN = ("llp-learn==1.6.0", "torchvision==0.15.2")  # torchvision is needed, though not declared
OURS = (
    "bagwise logistic", "bagwise spectral", "bagwise mean map", "bagwise AMM", "bagwise EasyLLP", "bagwise bag loss",
    "AMM(MM), published", "AMM(MM), constant column", "AMM(1), published", "true labels",
)  # fmt: skip
THEIRS = ("llp-learn EM", "llp-learn alter-SVM", "llp-learn DLLP", "llp-learn LLP-VAT", "llp-learn MixBag")


def run(options: argparse.Namespace) -> None:
    """Append one row for each (cell, seed, method) that has none yet."""
    from cells import CELLS

    rows = read(options.out)
    done = {(row["cell"], row["seed"], row["method"]) for row in rows}
    late = {(row["cell"], row["method"]) for row in rows if row.get("error", "").startswith("over ")}
    families = [(sys.executable, HERE / "ours.py", OURS)]
    if not options.no_llp_learn:
        families.append((peers_python(), HERE / "theirs.py", THEIRS))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    problems = [(cell, seed) for seed in options.seeds for cell in options.cells or CELLS]
    started = time.time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "problem.npz")
        for number, (cell, seed) in enumerate(problems):
            write_problem(CELLS[cell], seed, path)
            for python, script, methods in families:
                wanted = [
                    method
                    for method in methods
                    if method in (options.methods or methods)
                    and (cell, seed, method) not in done
                    and (cell, method) not in late  # one time-out settles a cell
                ]
                for row in measured(python, script, path, seed, options.limit, wanted) if wanted else ():
                    if row.get("error", "").startswith("over "):
                        late.add((cell, row["method"]))
                    with options.out.open("a") as file:
                        file.write(json.dumps({"cell": cell, "seed": seed, "limit": options.limit} | row) + "\n")
                    figure = row.get("error") or f"{100 * row['accuracy']:.2f} % in {row['seconds']:.2f} s"
                    print(f"{cell} #{seed} {row['method']}: {figure}", file=sys.stderr, flush=True)
            left = (time.time() - started) / (number + 1) * (len(problems) - number - 1)
            print(f"{number + 1} of {len(problems)}, about {left / 60:.0f} min left", file=sys.stderr, flush=True)


def write_problem(cell, seed: int, path: Path) -> None:
    """The data set as arrays that any environment reads."""
    problem = cell.problem(seed)
    np.savez(
        path, X=problem.bags.X, sizes=problem.bags.sizes, counts=problem.bags.counts, labels=problem.labels,
        X_test=problem.X_test, y_test=problem.y_test, noisy=cell.noisy,
    )  # fmt: skip


def measured(
    python: str, script: Path, path: Path, seed: int, limit: float, methods: list[str]
) -> Iterator[dict[str, Any]]:
    """What the methods' own processes came to, as they come."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command = [python, str(script), str(path), str(seed), str(limit), *methods]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | threads) as process:
        for line in process.stdout or ():
            yield json.loads(line)


def peers_python() -> str:
    """The interpreter of llp-learn's environment, which is made on first use."""
    if given := os.environ.get("LLP_LEARN_PYTHON"):
        return given
    folder = BUILD / "llp-learn"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print("Installing llp-learn into its own environment (some minutes, 4.7 GB)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *LLP_LEARN], check=True)
        (folder / "ready").touch()
    return str(python.absolute())


def read(path: Path) -> list[dict]:
    """The rows of a file; a line that a crash cut off is left out."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def main() -> None:
    """Parse, then run or draw."""
    parser = argparse.ArgumentParser(prog="peers", description=__doc__.split("\n\n")[0])
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--out", type=Path, default=BUILD / "rows.jsonl", help="the rows, one JSON object a line")
    parser.add_argument("--page", type=Path, default=Path("docs/peers.md"), help="the page whose tables are rewritten")
    parser.add_argument("--pictures", type=Path, default=Path("docs/images"))
    parser.add_argument("--cells", nargs="*")
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument(
        "--limit",
        type=float,
        default=60.0,
        help="seconds of processor time for a method on a data set, tuning included",
    )
    parser.add_argument("--no-llp-learn", action="store_true")
    options = parser.parse_args()
    if options.what == "run":
        run(options)
    else:
        from tables import write

        write(read(options.out), options.page, options.pictures)


if __name__ == "__main__":
    main()
