"""The plots of a table as PNG and SVG.

Owns drawing with matplotlib, without its global state. Refuses to choose what is drawn; that is a matter of `series`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from bagwise.errors import MissingExtraError
from bagwise.lab.learners import LEARNERS
from bagwise.lab.series import COLOURS, MARKERS, Curve, against_ceiling, bag_kind, facets, runs_over_m
from bagwise.lab.summary import SummedPanel
from bagwise.lab.tables import Table

__all__ = ["write_plots"]

_DASHES: tuple[Literal["-", "--", ":", "-."], ...] = ("-", "--", ":", "-.")


def write_plots(folder: Path, table: Table, panels: Sequence[SummedPanel]) -> list[Path]:
    """Accuracy, and error against the ceiling, of a table; the files written."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "drawing plots") from None
    written = []
    # The same rows give the same bytes, and letters stay letters that a reader can search.
    with mpl.rc_context({"svg.hashsalt": "bagwise", "svg.fonttype": "none", "font.size": 8}):
        for what, figure in (("accuracy", _accuracy(table, panels)), ("ceiling", _ceiling(table, panels))):
            if figure is None:
                continue
            for suffix, options in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
                path = folder / f"{table.name}-{what}.{suffix}"
                figure.savefig(path, **options)
                written.append(path)
    return written


def _accuracy(table: Table, panels: Sequence[SummedPanel]) -> Any:
    """Accuracy with error bars against the number of bags (or over the kinds of bag), a small plot per facet."""
    rows = facets(panels)
    over_m = runs_over_m(panels)
    if not over_m:
        rows = [[facet for row in rows for facet in row]]
    wide = max(len(row) for row in rows)
    figure, axes = _grid(len(rows), wide, (2.1 if over_m else 4.2), table.title)
    dims = sorted({curve.d for row in rows for facet in row for curve in facet.curves})
    for i, row in enumerate(rows):
        for j in range(wide):
            ax = axes[i][j]
            if j >= len(row):
                ax.set_axis_off()
                continue
            for curve in row[j].curves:
                _draw(ax, curve, over_m, _DASHES[dims.index(curve.d) % len(_DASHES)])
            ax.set_title(row[j].title, fontsize=7)
            ax.grid(alpha=0.3, linewidth=0.5)
            if over_m:
                ax.set_xscale("log")
                marks = sorted({f.cell.m for curve in row[j].curves for f in curve.figures})
                ax.set_xticks(marks, [str(m) for m in marks])
                ax.minorticks_off()
    _label(axes, "number of bags" if over_m else "bags (q, k)", "accuracy in %")
    _legend(figure, axes, [f"d = {d}" for d in dims])
    return figure


def _draw(ax: Any, curve: Curve, over_m: bool, dash: str) -> None:
    x = [f.cell.m if over_m else bag_kind(f.cell) for f in curve.figures]
    name = LEARNERS[curve.learner].label
    ax.errorbar(
        x,
        [f.accuracy for f in curve.figures],
        yerr=[0.0 if f.n < 2 else f.accuracy_se for f in curve.figures],
        color=COLOURS[curve.learner],
        marker=MARKERS[curve.learner][0],
        linestyle=dash,
        linewidth=1,
        markersize=4,
        capsize=2,
        label=name,
    )
    if printed := [(place, f.published) for place, f in zip(x, curve.figures, strict=True) if f.published is not None]:
        ax.plot(
            *zip(*printed, strict=True),
            color=COLOURS[curve.learner],
            marker="o",
            markersize=9,
            fillstyle="none",
            linestyle="none",
            label="published",
        )


def _ceiling(table: Table, panels: Sequence[SummedPanel]) -> Any:
    """Exact error of each learner against that of training on the true labels; nothing without such pairs."""
    found = against_ceiling(panels)
    if not found:
        return None
    figure, axes = _grid(1, 1, 5.0, table.title, height=4.2)
    ax = axes[0][0]
    for learner, pairs in found.items():
        ax.plot(
            [pair.ceiling.error for pair in pairs],
            [pair.figure.error for pair in pairs],
            color=COLOURS[learner],
            marker=MARKERS[learner][0],
            linestyle="none",
            markersize=5,
            label=LEARNERS[learner].label,
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    low = min(pair.ceiling.error for pairs in found.values() for pair in pairs)
    high = max(pair.ceiling.error for pairs in found.values() for pair in pairs)
    ax.plot([low, high], [low, high], color=COLOURS["true"], linewidth=1, label="as with true labels")
    ax.grid(alpha=0.3, linewidth=0.5)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter("")
    _label(axes, "error in % with true labels", "error in % from bags")
    _legend(figure, axes, [])
    return figure


def _grid(rows: int, columns: int, width: float, title: str, height: float = 2.2) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.5, columns * width), rows * height + 0.9), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=9)
    return figure, figure.subplots(rows, columns, squeeze=False, sharey=True)


def _label(axes: Any, x: str, y: str) -> None:
    for ax in axes[-1]:
        ax.set_xlabel(x)
    for row in axes:
        row[0].set_ylabel(y)


def _legend(figure: Any, axes: Any, dims: list[str]) -> None:
    """Each learner once; line styles are explained where there are several dimensions."""
    from matplotlib.lines import Line2D

    entries: dict[str, Any] = {}
    for row in axes:
        for ax in row:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                entries.setdefault(label, handle)
    if "published" in entries:
        entries["published"] = Line2D(
            [], [], color="black", marker="o", markersize=9, fillstyle="none", linestyle="none"
        )
    if len(dims) > 1:
        for dim, dash in zip(dims, _DASHES, strict=False):
            entries[dim] = Line2D([], [], color="black", linestyle=dash, linewidth=1)
    figure.legend(
        list(entries.values()), list(entries), loc="outside lower center", ncols=min(8, len(entries)), fontsize=7
    )
