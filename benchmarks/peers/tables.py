"""Rows of the comparison as Markdown and as a picture: accuracy against time, one point per method.

The text of the docs page is written by hand, its tables are written here: a figure is never copied.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from cells import CELLS

Rows = list[dict[str, Any]]
CEILING = "true labels"
OURS = "bagwise logistic"


def write(rows: Rows, page: Path, pictures: Path) -> None:
    """The tables into the page, between its markers; accuracy against time as PNG and SVG."""
    methods = [m for m in dict.fromkeys(row["method"] for row in rows) if m != CEILING] + [CEILING]
    cells = [cell for cell in CELLS if any(row["cell"] == cell for row in rows)]
    texts = {
        "summary": summary(rows, cells, methods),
        "behind": behind(rows, cells, methods),
        "accuracy": grid(rows, cells, methods, "accuracy", lambda v: f"{100 * v:.1f}"),
        "auc": grid(rows, cells, methods, "auc", lambda v: f"{v:.3f}"),
        "seconds": grid(rows, cells, methods, "seconds", lambda v: f"{v:.2g}"),
        "memory": grid(rows, cells, methods, "fit_mib", lambda v: f"{v:.0f}"),
    }
    text = page.read_text()
    for name, table in texts.items():
        first, end = f"<!-- table {name} -->", f"<!-- end {name} -->"
        if first not in text or end not in text:
            raise SystemExit(f"{page} must have the markers {first} and {end}; it has not.")
        text = text[: text.index(first) + len(first)] + f"\n{table}\n" + text[text.index(end) :]
    page.write_text(text)
    pictures.mkdir(parents=True, exist_ok=True)
    picture(rows, cells, methods, pictures)
    print(texts["summary"], texts["behind"], sep="\n\n")


def found(rows: Rows) -> dict[tuple[str, str], Rows]:
    """The rows of each (cell, method)."""
    groups: dict[tuple[str, str], Rows] = defaultdict(list)
    for row in rows:
        groups[row["cell"], row["method"]].append(row)
    return groups


def figures(rows: Rows, what: str) -> np.ndarray:
    """The figure of each run that has one."""
    return np.array([row[what] for row in rows if what in row])


def standard_error(values: np.ndarray) -> float:
    """Of the mean; of one run nothing is known."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def grid(rows: Rows, cells: Iterable[str], methods: list[str], what: str, shown) -> str:
    """A line per cell, a column per method; a run that failed shows as the reason's first word."""
    groups = found(rows)
    lines = [f"| cell | {' | '.join(methods)} |", "|---|" + "---:|" * len(methods)]
    for cell in cells:
        entries = []
        for method in methods:
            runs = groups[cell, method]
            values = figures(runs, what)
            failures = [row["error"] for row in runs if "error" in row]
            entry = shown(values.mean()) if len(values) else ""
            if failures:
                reason = failures[0] if failures[0].startswith("over") else "fails"
                entry = f"{entry} ({len(failures)} of {len(runs)} fail)" if entry else reason
            entries.append(entry or "–")
        lines.append(f"| {cell}: {CELLS[cell].what} | {' | '.join(entries)} |")
    return "\n".join(lines)


def gaps(groups: dict[tuple[str, str], Rows], cell: str, method: str, methods: list[str]) -> tuple[float, float]:
    """How far a method's mean accuracy is behind the best method's, and the standard error of the paired gap."""
    means = {
        m: figures(groups[cell, m], "accuracy").mean() for m in methods if len(figures(groups[cell, m], "accuracy"))
    }
    if method not in means:
        return np.inf, 0.0
    best = max(means, key=means.__getitem__)
    by_seed = [{row["seed"]: row["accuracy"] for row in groups[cell, m] if "accuracy" in row} for m in (best, method)]
    both = sorted(by_seed[0].keys() & by_seed[1].keys())
    paired = np.array([by_seed[0][seed] - by_seed[1][seed] for seed in both])
    return means[best] - means[method], standard_error(paired)


def summary(rows: Rows, cells: list[str], methods: list[str]) -> str:
    """For each method: cells in which it is best or within one standard error of it, its mean, its time, failures."""
    groups = found(rows)
    learners = [m for m in methods if m != CEILING]
    lines = [
        "| method | best or within 1 s.e. | mean accuracy | median seconds | slowest | runs that fail |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for method in methods:
        runs = [row for cell in cells for row in groups[cell, method]]
        top = sum(within(*gaps(groups, cell, method, learners)) for cell in cells) if method != CEILING else None
        seconds, accuracy = figures(runs, "seconds"), figures(runs, "accuracy")
        failed = sum("error" in row for row in runs)
        lines.append(
            f"| {method} | {'' if top is None else f'{top} of {len(cells)}'} | "
            f"{100 * accuracy.mean():.1f} | {np.median(seconds):.2g} | {seconds.max():.2g} | {failed} of {len(runs)} |"
            if len(accuracy)
            else f"| {method} | 0 of {len(cells)} | – | – | – | {failed} of {len(runs)} |"
        )
    return "\n".join(lines)


def within(gap: float, error: float) -> bool:
    """Whether a gap is within one standard error of the paired difference (or nil)."""
    return gap <= max(error, 1e-12)


def behind(rows: Rows, cells: list[str], methods: list[str]) -> str:
    """The cells in which the likelihood learner is not at the top, and how fast the best equal peer is elsewhere."""
    groups = found(rows)
    learners = [m for m in methods if m != CEILING]
    lines = ["| cell | best | its accuracy | logistic | gap in s.e. |", "|---|---|---:|---:|---:|"]
    for cell in cells:
        gap, error = gaps(groups, cell, OURS, learners)
        if within(gap, error):
            continue
        means = {
            m: figures(groups[cell, m], "accuracy").mean()
            for m in learners
            if len(figures(groups[cell, m], "accuracy"))
        }
        best = max(means, key=means.__getitem__)
        own = f"{100 * means[OURS]:.2f}" if OURS in means else "–"
        times = f"{gap / error:.1f}" if error > 0 else "one run"
        lines.append(f"| {cell} | {best} | {100 * means[best]:.2f} | {own} | {times} |")
    return "\n".join(lines)


def picture(rows: Rows, cells: list[str], methods: list[str], folder: Path) -> None:
    """Mean error above the ceiling's against median seconds, one panel per group of cells."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = found(rows)
    panels = list(dict.fromkeys(CELLS[cell].group for cell in cells))
    figure, axes = plt.subplots(
        1, len(panels), figsize=(3.4 * len(panels), 4.2), sharey=True, squeeze=False, layout="constrained"
    )
    colours = plt.get_cmap("tab20").colors
    for axis, panel in zip(axes[0], panels, strict=True):
        chosen = [cell for cell in cells if CELLS[cell].group == panel]
        for number, method in enumerate(methods):
            runs = [row for cell in chosen for row in groups[cell, method]]
            accuracy, seconds = figures(runs, "accuracy"), figures(runs, "seconds")
            if not len(accuracy):
                continue
            whole = len(accuracy) == len(runs)
            axis.plot(
                np.median(seconds), 100 * accuracy.mean(), "o" if whole else "x", ms=8,
                color=colours[number % 20], label=method if whole else f"{method} (some runs fail)",
            )  # fmt: skip
        axis.set_xscale("log")
        axis.set_title(panel)
        axis.set_xlabel("median processor seconds of a fit, tuning included")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("mean accuracy on new rows, %")
    handles = {}
    for axis in axes[0]:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label.removesuffix(" (some runs fail)"), handle)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5, fontsize=8)
    for ending in ("png", "svg"):
        figure.savefig(folder / f"accuracy-against-time.{ending}", dpi=120)
    plt.close(figure)
