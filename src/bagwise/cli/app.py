"""The commands. Each reads its input, calls one public function and prints the outcome."""

import inspect
import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bagwise.cli import claims, lab, streams
from bagwise.cli.options import BagColumn, Cluster, CountColumn, Model, ProportionColumn, Stream, Workers
from bagwise.cli.screen import AsJson, say, table, working
from bagwise.errors import InvalidInputError

if TYPE_CHECKING:
    from bagwise import Bags

__all__ = ["app"]

app = typer.Typer(
    help="Learn who from how many: a classifier of rows from bags with only the number of positives.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Data may be Parquet, CSV or Arrow files, or folders or globs of them. "
    "Each command has --help with an example.",
)


class Learner(StrEnum):
    """The learners by the names that the program gives them."""

    logistic = "logistic"
    spectral = "spectral"
    mean = "mean"
    random = "random"
    sdp = "sdp"
    meanmap = "meanmap"


_CLASSES = {
    Learner.logistic: "BagLogisticRegression",
    Learner.spectral: "SpectralLTF",
    Learner.mean: "MeanLTF",
    Learner.random: "RandomLTF",
    Learner.sdp: "SDPLTF",
    Learner.meanmap: "MeanMap",
}

_MOST_SHOWN = 10  # weights

Data = Annotated[str, typer.Argument(help="File, folder or glob of files with one row per instance.")]
Output = Annotated[
    Path,
    typer.Option(
        "--output", "-o", callback=lambda path: _place(path), help="File to write; replaced only when complete."
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]


def _version(wanted: bool) -> None:
    if wanted:
        from bagwise import __version__

        print(f"bagwise {__version__}")
        raise typer.Exit()


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: bagwise sample --features 10 --size 10 --count 8 --bags 2000 -o train.parquet")
def sample(
    output: Output,
    features: Annotated[int, typer.Option(min=1, help="Number of features.")] = 10,
    size: Annotated[int, typer.Option(min=1, help="Rows per bag.")] = 10,
    count: Annotated[int, typer.Option(min=0, help="Positives per bag.")] = 8,
    bags: Annotated[int, typer.Option(min=1, help="Number of bags.")] = 2000,
    offset: Annotated[float, typer.Option(help="Offset of the threshold; its normal has length 1.")] = 0.0,
    random_mean: Annotated[bool, typer.Option("--random-mean", help="Draw the mean too, not 0.")] = False,
    flip: Annotated[float, typer.Option(min=0.0, max=0.5, help="Share of labels that are flipped.")] = 0.0,
    with_labels: Annotated[bool, typer.Option("--with-labels", help="Add the true label of each row.")] = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Draw and write part by part, in constant memory (other rows per seed).")
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Draw bags from a random linear threshold under a random Gaussian.

    The columns are x0, x1, …, bag, positives, and label if asked for.
    """
    import numpy as np

    from bagwise import write_bags
    from bagwise.data.problems import random_oracle, write_sample

    rng = np.random.default_rng(seed)
    with working(f"Drawing {bags:,} bags"):
        oracle = random_oracle(
            features, size=size, count=count, rng=rng, offset=offset, random_mean=random_mean, flip=flip
        )
        if stream:
            write_sample(oracle, bags, rng, output, with_labels=with_labels)
            drawn: Any = f"{bags:,} bags of {size:,} rows, {features:,} features"
        else:
            drawn, labels = oracle.sample_labelled(bags, rng)
            write_bags(drawn, output, labels=labels if with_labels else None)
    result = {
        "n_bags": bags,
        "n_rows": bags * size,
        "n_features": features,
        "normal": oracle.ltf.normal.tolist(),
        "offset": float(oracle.ltf.offset),
        "output": str(output),
    }
    say(result, [f"Drew {drawn}", f"Wrote {output}"], as_json)


@app.command(epilog="Example: bagwise fit train.parquet --bag ward --count relapsed -o model.json")
def fit(
    data: Data,
    output: Output,
    bag: BagColumn = "bag",
    count: CountColumn = None,
    proportion: ProportionColumn = None,
    model: Annotated[Learner, typer.Option(help="What to fit.")] = Learner.logistic,
    columns: Annotated[str | None, typer.Option(help="Features, with commas. Default: the numeric columns.")] = None,
    C: Annotated[str | None, typer.Option("--C", help="Inverse penalty: a number, or auto.")] = None,
    label_noise: Annotated[bool, typer.Option("--label-noise", help="Labels may be flipped: estimate it.")] = False,
    no_intercept: Annotated[bool, typer.Option("--no-intercept", help="A threshold through the origin.")] = False,
    stream: Stream = False,
    workers: Workers = None,
    cluster: Cluster = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a linear threshold from bags and save it as JSON.

    With --stream, --workers or --cluster the rows stay in their files, which are read as often as the learner asks for.
    """
    import bagwise as bw

    settings: dict[str, Any] = {}
    if C is not None:
        settings["C"] = _penalty(C)
    if label_noise:
        settings["label_noise"] = "estimate"
    if no_intercept:
        settings["fit_intercept"] = False
    learner = _learner(model, settings, seed)
    features = None if columns is None else [name.strip() for name in columns.split(",")]
    named: dict[str, Any] = {"bag": bag, "count": count, "proportion": proportion, "features": features}
    place = streams.Place(stream, workers, cluster)
    if place.streams:
        say(*streams.fit(learner, data, output, named, place), as_json)
        return
    with working(f"Reading {data}"):
        bags = bw.read_bags(data, **named)
    with working(f"Fitting {type(learner).__name__} to {bags}"):
        learner.fit(bags)
    bw.save(learner, output, provenance={"data": data} | _described(bags))
    result = (
        {"model": type(learner).__name__}
        | _described(bags)
        | {
            "features": list(bags.feature_names or ()),
            "coef": learner.ltf_.normal.tolist(),
            "intercept": float(learner.ltf_.offset),
            "ambiguous": bool(learner.ambiguous_),
            "bag_error": float(bw.bag_error(learner, bags)),
            "proportion_error": float(bw.proportion_error(learner, bags)),
            "output": str(output),
        }
    )
    spread = bags.X.std(axis=0)
    order = sorted(range(bags.n_features), key=lambda j: -abs(learner.ltf_.normal[j] * spread[j]))
    weights = [
        (result["features"][j], f"{learner.ltf_.normal[j]:.4g}", f"{learner.ltf_.normal[j] * spread[j]:.4g}")
        for j in order[:_MOST_SHOWN]
    ]
    hidden = f", the {_MOST_SHOWN} of most effect of {len(order)}" if len(order) > _MOST_SHOWN else ""
    text = [
        f"Fitted {result['model']} to {bags}",
        table(("feature" + hidden, "weight", "weight × sd"), weights),
        f"Bags whose predicted count is wrong: {100 * result['bag_error']:.1f} %; "
        f"mean error of a proportion: {result['proportion_error']:.3f} (of the bags of the fit)",
        f"Wrote {output}",
    ]
    say(result, text, as_json)


@app.command(epilog="Example: bagwise predict model.json rows.parquet -o predicted.parquet")
def predict(
    model: Model,
    rows: Annotated[str, typer.Argument(help="File, folder or glob with the rows to predict.")],
    output: Output,
    as_json: AsJson = False,
) -> None:
    """Add prediction and probability to rows, which need no bags and no totals.

    Rows are read and written part by part: memory need not hold them.
    """
    import bagwise as bw

    learner = bw.load(model)
    with working(f"Predicting {rows}"):
        found = bw.write_predictions(learner, rows, output)
    result = {"n_rows": found.n_rows, "n_positive": found.n_positive, "output": str(output)}
    say(result, [f"Predicted {found.n_rows:,} rows, {found.n_positive:,} of them positive", f"Wrote {output}"], as_json)


app.command(epilog="Example: bagwise assess model.json heldout.parquet --bag ward --count relapsed")(claims.assess)
app.command(epilog="Example: bagwise certify model.json heldout.parquet --bag ward --count relapsed")(claims.certify)
app.command(epilog="Example: bagwise plan --features 50 --size 10 --count 8 --error 0.02")(claims.plan)
app.command(epilog="Example: bagwise reproduce table1 --jobs 2 -o results")(lab.reproduce)
app.command(epilog="Example: bagwise report results -o report.html")(lab.report)


# ---------------------------------------------------------------------- what the commands share


def _place(path: Path) -> Path:
    """An output, refused before the work if it cannot be written after it."""
    from bagwise.data.io import refuse_unwritable

    refuse_unwritable(path)
    return path


def _learner(name: Learner, settings: dict[str, Any], seed: int) -> Any:
    """An unfitted learner; an option that it does not have is refused, the seed goes to those that draw."""
    import bagwise as bw

    made = getattr(bw, _CLASSES[name])
    accepted = inspect.signature(made).parameters
    options = {"C": "--C", "label_noise": "--label-noise", "fit_intercept": "--no-intercept"}
    if strange := [options[setting] for setting in settings if setting not in accepted]:
        raise InvalidInputError(
            f"{strange[0]} must belong to the model; --model {name} does not have it. Leave it out."
        )
    if "random_state" in accepted:
        settings = settings | {"random_state": seed}
    return made(**settings)


def _described(bags: "Bags") -> dict[str, Any]:
    return {"n_bags": bags.n_bags, "n_rows": bags.n_rows}


def _penalty(text: str) -> float | str:
    """The value of --C."""
    if text == "auto":
        return text
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number > 0:
        raise InvalidInputError(
            f"--C must be a number above 0 or auto; got {text!r}. A larger one is a weaker penalty."
        )
    return number
