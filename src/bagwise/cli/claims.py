"""The commands that claim something of a model without labels: assess, certify, plan."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from bagwise.cli.options import BagColumn, Cluster, CountColumn, Model, ProportionColumn, Stream, Workers
from bagwise.cli.screen import AsJson, say, table, working
from bagwise.cli.streams import Place

__all__ = ["assess", "certify", "plan"]

HeldOut = Annotated[str, typer.Argument(help="File, folder or glob with bags that were not used for the fit.")]
Confidence = Annotated[float, typer.Option("--confidence", help="Of each interval or bound, between 0 and 1.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", help="Also draw it: a .png, .svg or .html file; replaced only when complete.")
]


def assess(
    model: Model,
    data: HeldOut,
    bag: BagColumn = "bag",
    count: CountColumn = None,
    proportion: ProportionColumn = None,
    confidence: Confidence = 0.95,
    method: Annotated[str, typer.Option(help="score (default), or rates: one TPR and FPR in all bags.")] = "score",
    prevalence: Annotated[
        float | None, typer.Option(help="Share of positives in the population that is meant, if not the bags'.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Scores above it are positive.")] = None,
    interval: Annotated[str, typer.Option(help="profile (default), or bootstrap over bags.")] = "profile",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    stream: Stream = False,
    workers: Workers = None,
    cluster: Cluster = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Estimate accuracy, TPR, FPR, ROC and more, with intervals, from the totals of held-out bags alone."""
    import bagwise as bw

    settings: Any = {"method": method, "interval": interval, "random_state": seed}
    place = Place(stream, workers, cluster)
    with _held_out(model, data, bag, count, proportion, place, "Assessing") as (learner, bags):
        found = bw.assess(learner, bags, confidence, prevalence=prevalence, threshold=threshold, **settings)
    rows = [
        (_NAMES[name], f"{figure.estimate:.1%}", f"{figure.low:.1%}", f"{figure.high:.1%}")
        for name, figure in found.figures.items()
    ]
    if found.calibration is not None:
        large = found.calibration.in_the_large
        rows.append(("claimed - found share", f"{large.estimate:+.1%}", f"{large.low:+.1%}", f"{large.high:+.1%}"))
    at = "the bags' own share" if prevalence is None else f"a share of {prevalence:g}"
    on = f"{found.n_bags:,} bags of {found.n_rows:,} rows" if place.streams else bags
    text: list[Any] = [
        f"Assessed on {on}, at {at} of positives",
        table(("figure", "estimate", "from", f"to ({confidence:.3g})"), rows),
    ]
    if len(found.branches) > 1:
        for branch in found.branches:
            figure = branch.figures["accuracy"]
            way = "more" if branch.rising else "less"
            text.append(f"If higher scores are {way} often positive: accuracy {figure.low:.1%} to {figure.high:.1%}")
    text += [f"Note: {note}" for note in found.notes]
    say(found.to_dict(), _drawn(found, plot, text), as_json)


def certify(
    model: Model,
    data: HeldOut,
    bag: BagColumn = "bag",
    count: CountColumn = None,
    proportion: ProportionColumn = None,
    confidence: Confidence = 0.95,
    prevalence: Annotated[
        str | None, typer.Option(help="Share of positives for which the bound is meant: a number, bags, or any.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Scores above it are positive.")] = None,
    stream: Stream = False,
    workers: Workers = None,
    cluster: Cluster = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Bound the error of single rows, with a stated confidence, from the totals of held-out bags alone."""
    import bagwise as bw

    meant = _prevalence(prevalence)
    place = Place(stream, workers, cluster)
    with _held_out(model, data, bag, count, proportion, place, "Certifying") as (learner, bags):
        found = bw.certify(learner, bags, confidence, meant, threshold=threshold)
    where = {"bags": "at the bags' share of positives", None: "at any share of positives"}.get(
        found.prevalence if not isinstance(found.prevalence, float) else "", f"at a share of positives of {prevalence}"
    )
    rows = [
        ("bag error, at most", f"{found.bag_error_bound:.3%}"),
        ("error, any share of positives", f"{found.any_prevalence:.3%}"),
        ("error, the bags' share", f"{found.bags_prevalence:.3%}"),
        ("missed positives", f"{found.miss_bound:.3%}"),
        ("false alarms", f"{found.false_alarm_bound:.3%}"),
        ("theorem as printed", _bound(found.paper_bound)),
        ("theorem, sharpened", _bound(found.sharp_bound)),
    ]
    text: list[Any] = [
        f"With confidence {confidence:.4g} the error of a row is at most {found.error_bound:.3%} {where}",
        f"Bags whose predicted count is wrong: {found.n_unsatisfied:,} of {found.n_bags:,}",
        table(("bound", "at most"), rows),
        *(f"Note: {note}" for note in found.notes),
        "It assumes:",
        *(f"  - {assumption}" for assumption in found.assumptions),
    ]
    say(found.to_dict(), _drawn(found, plot, text), as_json)


def plan(
    features: Annotated[int, typer.Option(min=1, help="Number of features.")],
    size: Annotated[int, typer.Option(min=1, help="Rows per bag.")],
    count: Annotated[int, typer.Option(min=0, help="Positives per bag.")],
    error: Annotated[float, typer.Option(help="Wanted error of a row, such as 0.02.")],
    threshold: Annotated[
        float, typer.Option(help="Standard deviations from the mean to the boundary; 0: balanced classes.")
    ] = 0.0,
    learners: Annotated[str, typer.Option(help="Which, with commas.")] = "logistic,spectral,mean,theorem",
    rows: Annotated[int | None, typer.Option(min=1, help="Budget of rows: also list the best kinds of bag.")] = None,
    bags: Annotated[int | None, typer.Option(min=1, help="Budget of bags: also list the best kinds of bag.")] = None,
    simulations: Annotated[int, typer.Option(min=2, help="Data sets per simulated number of bags.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Say how many bags a wanted error asks for, by learner."""
    import bagwise as bw
    from bagwise.planner import best_designs

    names = [name.strip() for name in learners.split(",")]
    with working("Planning"):
        found = bw.plan(
            features, size, count, error, threshold=threshold, learners=names, n_simulations=simulations,
            random_state=seed,
        )  # fmt: skip
        asked = rows is not None or bags is not None
        best = best_designs(features, rows=rows, bags=bags, threshold=threshold) if asked else ()
    shown = [(name, "no number" if n is None else f"{n:,}", found.reasons[name]) for name, n in found.n_bags.items()]
    text: list[Any] = [
        f"Bags of {size} rows with {count} positives for an error of {error:.3g}, {features} features",
        table(("learner", "bags", "from"), shown),
    ]
    if best:
        text.append(f"Best for {'rows' if rows else 'bags'}: {rows or bags:,} (spectral learner)")
        text.append(
            table(
                ("rows per bag", "positives", "bags", "expected error"),
                [(str(b.size), str(b.count), f"{b.n_bags:,}", f"{b.error:.2%}") for b in best],
            )
        )
    result = found.to_dict() | ({"designs": [design.to_dict() for design in best]} if best else {})
    say(result, _drawn(found, plot, text), as_json)


_NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "tpr": "TPR (recall)",
    "fpr": "FPR",
    "precision": "precision",
    "prevalence": "prevalence",
    "roc_auc": "ROC AUC",
}


@contextmanager
def _held_out(
    model: Path, data: str, bag: str, count: str | None, proportion: str | None, place: Place, doing: str
) -> Iterator[tuple[Any, Any]]:
    """The model, and the held-out bags with its features, in memory or in their files."""
    import bagwise as bw

    learner = bw.load(model)
    names = getattr(learner, "feature_names_in_", None)
    columns: dict[str, Any] = {"bag": bag, "count": count, "proportion": proportion}
    columns["features"] = None if names is None else [str(name) for name in names]
    if place.streams:
        with place.source(data, columns) as (_, source):
            yield learner, source
        return
    with working(f"Reading {data}"):
        bags = bw.read_bags(data, **columns)
    with working(f"{doing} on {bags}"):
        yield learner, bags


def _bound(bound: float | None) -> str:
    return "does not apply" if bound is None else f"{bound:.3%}"


def _prevalence(text: str | None) -> Any:
    """The value of --prevalence."""
    if text is None or text == "any":
        return None
    if text == "bags":
        return text
    try:
        return float(text)
    except ValueError:
        from bagwise.errors import InvalidInputError

        raise InvalidInputError(f"--prevalence must be a number in [0, 1], bags, or any; got {text!r}.") from None


def _drawn(result: Any, plot: Path | None, text: list[Any]) -> list[Any]:
    """The text, with the picture that was written."""
    if plot is None:
        return text
    from bagwise.pictures import write_picture

    write_picture(result, plot)
    return [*text, f"Wrote {plot}"]
