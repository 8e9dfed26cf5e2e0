"""What `assess`, `certify` and `plan` found, as a picture in a file.

Owns lines with bands, and their two writers: PNG and SVG by matplotlib, one page without network by plotly. Refuses to
compute: a picture shows numbers that a result holds.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bagwise.arrays import AnyArray
from bagwise.claims.assessment import Assessment
from bagwise.claims.certificate import Certificate
from bagwise.data.io import refuse_unwritable
from bagwise.errors import InvalidInputError, MissingExtraError
from bagwise.planner import Plan

__all__ = ["Picture", "Series", "picture_of", "write_picture"]

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")
_SUFFIXES = (".png", ".svg", ".html")


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A line with a band, or points with bars if it has no order."""

    name: str
    x: AnyArray
    y: AnyArray
    low: AnyArray
    high: AnyArray


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Lines over two axes; ``points`` draws bars over names in place of lines."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    log: bool = False
    points: bool = False


def picture_of(result: Assessment | Certificate | Plan) -> Picture:
    """The picture of a result.

    Examples
    --------
    >>> import bagwise as bw
    >>> picture_of(bw.plan(10, 10, 8, 0.02, learners=["spectral"])).title
    'Bags for an error of 2 %: 10 features, bags of 10 rows'
    """
    if isinstance(result, Assessment):
        roc = result.roc
        curve = Series("ROC, pointwise intervals of TPR", roc.fpr, roc.tpr, roc.tpr_low, roc.tpr_high)
        at = [
            np.array([value]) for value in (result.fpr.estimate, result.tpr.estimate, result.tpr.low, result.tpr.high)
        ]
        title = f"Accuracy {result.accuracy!r} from {result.n_bags} bags"
        return Picture(title, "FPR", "TPR", [curve, Series("decision", *at)])
    if isinstance(result, Certificate):
        names = np.array(["any prevalence", "that of the bags", "misses", "false alarms"])
        bounds = np.array([result.any_prevalence, result.bags_prevalence, result.miss_bound, result.false_alarm_bound])
        title = f"Error of a row, at most, with confidence {100 * result.confidence:g} %"
        return Picture(title, "", "bound", [Series("bound", names, bounds, 0 * bounds, bounds)], points=True)
    lines = [
        Series(name, *(np.array([point[key] for point in points]) for key in ("n_bags", "error", "low", "high")))
        for name, points in result.by_learner().items()
    ]
    what = f"{result.n_features} features, bags of {result.size} rows"
    title = f"Bags for an error of {100 * result.error:g} %: {what}"
    return Picture(title, "bags", "instance error, with the middle 90 % of data sets", lines, log=True)


def write_picture(result: Assessment | Certificate | Plan, path: str | os.PathLike[str]) -> None:
    """The picture of a result as .png, .svg or .html, whole or not at all."""
    place = Path(path)
    if place.suffix.lower() not in _SUFFIXES:
        raise InvalidInputError(f"a picture must be .png, .svg or .html; got {str(path)!r}. Name the file so.")
    refuse_unwritable(place)
    picture = picture_of(result)
    beside = place.with_name(f".{place.name}.part{place.suffix}")
    try:
        (_as_page if place.suffix.lower() == ".html" else _as_image)(picture, beside)
        os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)


def _as_image(picture: Picture, place: Path) -> None:
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "drawing a picture") from None
    with mpl.rc_context({"svg.hashsalt": "bagwise", "svg.fonttype": "none"}):
        figure = Figure(figsize=(6.4, 4.4), layout="constrained")
        ax: Any = figure.subplots()
        for colour, line in zip(_COLOURS, picture.series, strict=False):
            if picture.points:
                ax.barh(line.x, line.y, color=colour, height=0.5)
            elif len(line.x) == 1:
                bars = [line.y - line.low, line.high - line.y]
                ax.errorbar(line.x, line.y, yerr=bars, fmt="o", color=colour, label=line.name)
            else:
                ax.plot(line.x, line.y, "o-", markersize=3, color=colour, label=line.name)
                ax.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
        if picture.log:
            ax.set(xscale="log", yscale="log")
        ax.set_title(picture.title, fontsize=10)
        ax.set_xlabel(picture.y_label if picture.points else picture.x_label)
        if not picture.points:
            ax.set_ylabel(picture.y_label)
            ax.legend(frameon=False)
        ax.grid(alpha=0.3)
        figure.savefig(place, dpi=150, metadata={"Date": None} if place.suffix.lower() == ".svg" else None)


def _as_page(picture: Picture, place: Path) -> None:
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise MissingExtraError("plotly", "report", "writing a picture as a page") from None
    figure = go.Figure()
    for colour, line in zip(_COLOURS, picture.series, strict=False):
        if picture.points:
            figure.add_bar(x=line.y.tolist(), y=line.x.tolist(), orientation="h", name=line.name, marker_color=colour)
            continue
        bars = {"array": (line.high - line.y).tolist(), "arrayminus": (line.y - line.low).tolist()}
        figure.add_scatter(
            x=line.x.tolist(), y=line.y.tolist(), error_y=bars, mode="lines+markers", name=line.name,
            line={"color": colour},
        )  # fmt: skip
    kind = "log" if picture.log else None
    figure.update_layout(title=picture.title, template="plotly_white")
    figure.update_xaxes(title=picture.y_label if picture.points else picture.x_label, type=kind)
    figure.update_yaxes(title="" if picture.points else picture.y_label, type=kind)
    place.write_text(figure.to_html(include_plotlyjs=True, full_html=True), encoding="utf-8")
