"""Rows into numbers, and numbers into Markdown, LaTeX, CSV and plots."""

import csv
import io
import re
from dataclasses import replace
from math import isnan, sqrt
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from bagwise.errors import InvalidInputError
from bagwise.lab.report import rows_as_csv, tables_with_results, write_tables
from bagwise.lab.results import Results, Row
from bagwise.lab.summary import Figure, figures, headline, sees_better_of_two, summed
from bagwise.lab.tables import TABLES, Cell, Recipe
from bagwise.lab.writers import as_csv, as_latex, as_markdown, caption

UNBALANCED = Cell("centred", False, 0.0, 10, 3, 1, 2000)
BALANCED = replace(UNBALANCED, q=2)


def row(cell: Cell, learner: str, dataset: int, accuracy: float, error: float | None = None) -> Row:
    return Row(cell, learner, dataset, f"1/{dataset}", accuracy, 1 - accuracy if error is None else error, 0.25, 0.125)


def table_rows(name: str, datasets: int, accuracy: float = 0.9) -> list[Row]:
    """Made-up rows of every place of a table; those of one data set are alike."""
    return [
        row(cell, learner, i, accuracy + 0.01 * (i % 2))
        for cell, learner in TABLES[name].entries
        for i in range(datasets)
    ]


# ---------------------------------------------------------------------- numbers


def test_mean_and_standard_error_are_those_of_the_runs() -> None:
    values = [0.9, 0.95, 0.98]
    (figure,) = figures(row(UNBALANCED, "A2", i, value) for i, value in enumerate(values)).values()
    assert figure.n == 3
    assert figure.accuracy == pytest.approx(100 * np.mean(values))
    assert figure.accuracy_se == pytest.approx(100 * np.std(values, ddof=1) / sqrt(3))
    assert figure.error == pytest.approx(100 - figure.accuracy) and figure.seconds == 0.25
    (alone,) = figures([row(UNBALANCED, "A2", 0, 0.9)]).values()
    assert isnan(alone.accuracy_se) and not alone.deviates


@pytest.mark.parametrize(
    ("cell", "learner", "better"),
    [
        (BALANCED, "A2", True),
        (BALANCED, "R", True),
        (BALANCED, "ML", True),
        (BALANCED, "true", False),
        (UNBALANCED, "A2", False),
        (UNBALANCED, "R", False),
        (replace(UNBALANCED, flip=0.1), "A2", True),
        (replace(UNBALANCED, flip=0.1), "R", True),
        (replace(UNBALANCED, flip=0.1), "ML", False),
        (replace(UNBALANCED, k="any"), "A4", False),
    ],
)
def test_the_better_of_two_counts_where_no_one_can_know_or_the_paper_says_so(
    cell: Cell, learner: str, better: bool
) -> None:
    assert sees_better_of_two(cell, learner) == better
    (figure,) = figures([row(cell, learner, 0, 0.2), row(cell, learner, 1, 0.9)]).values()
    assert figure.accuracy == pytest.approx(85 if better else 55)
    assert figure.error == pytest.approx(15 if better else 45)


def test_a_difference_is_marked_beyond_three_standard_errors_of_both_sides() -> None:
    figure = Figure(UNBALANCED, "A2", 25, 98.27, 0.1, 1.7, 0.1, 0.0)
    edge = 3 * sqrt(2) * 0.1
    assert figure.difference == pytest.approx(0) and not figure.deviates
    assert not replace(figure, accuracy=98.27 + 0.99 * edge).deviates
    assert replace(figure, accuracy=98.27 - 1.01 * edge).deviates
    # Another number of data sets on our side: theirs keeps its own noise.
    assert not replace(figure, accuracy=98.27 - 1.01 * edge, n=100).deviates
    assert not replace(figure, accuracy=50.0, n=5).deviates, "five runs do not tell their own spread"
    assert not replace(figure, learner="ML", accuracy=50.0).deviates, "nothing was printed"


def test_the_headline_counts_what_was_printed_and_takes_medians() -> None:
    rows = [r for i in range(25) for r in (row(UNBALANCED, "A2", i, 0.98 + 0.005 * (i % 2), 0.02),)]
    rows += [row(UNBALANCED, "ML", i, 0.999, 0.002) for i in range(25)]
    rows += [row(UNBALANCED, "true", i, 0.999, 0.001) for i in range(25)]
    rows += [row(UNBALANCED, "R", i, 0.5 + 0.001 * i) for i in range(25)]
    found = headline(summed(TABLES["table1"], figures(rows)))
    assert (found.judged, found.met) == (2, 1)
    assert found.error_over_spectral == pytest.approx(0.1) and found.error_over_ceiling == pytest.approx(2)
    assert headline([]).error_over_ceiling is None


def test_a_table_shows_what_there_is() -> None:
    panels = summed(TABLES["table1"], figures([row(UNBALANCED, "A2", 0, 0.9)]))
    assert len(panels) == 1 and len(panels[0].lines) == 1
    assert [column.learner for column in panels[0].columns] == ["A2"]
    assert summed(TABLES["table1"], {}) == []


def test_rows_of_another_recipe_make_another_table() -> None:
    other = replace(UNBALANCED, recipe=Recipe(cov_ridge=0.1))
    tables = tables_with_results([row(UNBALANCED, "A2", 0, 0.9), row(other, "A2", 0, 0.8)])
    assert [table.name for table in tables] == ["table1", "homogeneous"] * 2
    means = [summed(table, figures([row(other, "A2", 0, 0.8)])) for table in tables]
    assert [bool(panels) for panels in means] == [False, False, True, True]


# ---------------------------------------------------------------------- text


def markdown_tables(text: str) -> list[list[list[str]]]:
    blocks = re.findall(r"(?:^\|.*\|$\n?)+", text, flags=re.M)
    return [[[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()] for block in blocks]


def test_markdown_has_measured_printed_and_difference_and_full_lines() -> None:
    table = TABLES["table1"]
    text = as_markdown(table, summed(table, figures(table_rows("table1", 25))))
    found = markdown_tables(text)
    assert len(found) == 6, "accuracy, error and seconds of two halves"
    for lines in found:
        assert len({len(line) for line in lines}) == 1 and len(lines) == 2 + 12
    head, _, first, *_ = found[0]
    assert head[:6] == ["d", "q", "k", "A2", "paper", "Δ"]
    assert first[3:6] == ["90.48 ± 0.10", "98.12", "**-7.64**"]
    assert "25 data sets" in text and "S: 200 bags" in text


def test_latex_is_balanced_and_in_the_papers_layout() -> None:
    for name, table in TABLES.items():
        panels = summed(table, figures(table_rows(name, 3)))
        text = as_latex(table, panels)
        bare = re.sub(r"\\[{}%&#_]", "", "\n".join(line for line in text.splitlines() if not line.startswith("%")))
        assert bare.count("{") == bare.count("}")
        assert sorted(re.findall(r"\\begin\{(\w+)\}", text)) == sorted(re.findall(r"\\end\{(\w+)\}", text))
        assert text.count("\\begin{minipage}") == len(panels)
        for tabular in re.findall(r"\\begin\{tabular\}\{([rl]+)\}(.*?)\\end\{tabular\}", text, flags=re.S):
            lines = [line for line in tabular[1].splitlines() if line.strip().endswith("\\\\")]
            assert {line.count("&") + 1 for line in lines} == {len(tabular[0])}
        assert text.isascii(), "no letter that an old engine does not know"
    assert "98.12, $\\mathbf{-7.64}$" in as_latex(
        TABLES["table1"], summed(TABLES["table1"], figures(table_rows("table1", 25)))
    )


def test_csv_has_every_number_once() -> None:
    table = TABLES["table1"]
    known = figures(table_rows("table1", 25))
    lines = list(csv.DictReader(io.StringIO(as_csv(table, summed(table, known)))))
    assert len(lines) == len(table.entries)
    assert sum(line["published"] != "" for line in lines) == 56
    assert all(float(line["accuracy"]) == pytest.approx(90.48) and line["n"] == "25" for line in lines)


def test_captions_tell_flips_and_few_data_sets() -> None:
    table = TABLES["flips-centred"]
    entries = list(table.entries)
    rows = [row(*entries[0], i, 0.9) for i in range(3)] + [row(*entries[1], 0, 0.9)]
    note = caption(summed(table, figures(rows)))
    assert "over 1 to 3 data sets" in note and "the better of the two solutions throughout" in note
    assert "Δ" not in note


# ---------------------------------------------------------------------- files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    results = Results(tmp_path)
    for made in table_rows("standard-sdp", 2) + table_rows("standard-concise", 2):
        results.append(replace(made, commit="abc", versions={"numpy": "2"}, machine={"cores": 2}))
    return tmp_path


def test_files_of_a_table(folder: Path) -> None:
    written = {path.name for path in write_tables(folder, [TABLES["standard-sdp"], TABLES["standard-concise"]])}
    plots = {f"{what}.{suffix}" for what in ("accuracy", "ceiling") for suffix in ("png", "svg")}
    for name in ("standard-sdp", "standard-concise"):
        assert {f"{name}.md", f"{name}.tex", f"{name}.csv"} | {f"{name}-{plot}" for plot in plots} <= written
    assert {"rows.csv", "environments.csv"} <= written
    for path in folder.glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
        assert "true labels" in path.read_text("utf-8"), "letters stay letters"
    for path in folder.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    assert not list(folder.glob(".*.tmp"))


def test_the_same_rows_give_the_same_files(folder: Path) -> None:
    first = {path.name: path.read_bytes() for path in write_tables(folder, [TABLES["standard-sdp"]])}
    again = {path.name: path.read_bytes() for path in write_tables(folder, [TABLES["standard-sdp"]])}
    assert first == again


def test_rows_as_csv_keep_all_but_repetition(folder: Path) -> None:
    results = Results(folder)
    rows = results.refresh()
    text, environments = rows_as_csv(rows)
    lines = list(csv.DictReader(io.StringIO(text)))
    assert len(lines) == len(rows)
    assert {line["environment"] for line in lines} == {"0"} and environments.count("abc") == 1
    for line, made in zip(lines, rows, strict=True):
        assert (float(line["accuracy"]), int(line["m"]), line["learner"]) == (
            made.accuracy,
            made.cell.m,
            made.learner,
        )
        assert float(line["cpu"]) == 0.125


def test_lines_that_are_no_rows_are_told_and_left_out(folder: Path) -> None:
    good = Results(folder).refresh()[0].to_json()
    broken = [
        "no json",
        "[]",
        good.replace('"accuracy": 0.9', '"accuracy": NaN'),
        good.replace('"accuracy": 0.9', '"accuracy": "<b>"'),
        good.replace('"mean_scale": 1.0', '"mean_scale": "<b>"'),
        good.replace('"law": "standard"', '"law": ["standard"]'),
        good.replace('"m": 50', '"m": "50"').replace('"m": 200', '"m": "200"'),
        good.replace('"machine": {"cores": 2}', '"machine": 3'),
        good.replace('"dataset": 0', '"dataset": -1'),
    ]
    assert all(line != good for line in broken)
    with open(folder / "runs.jsonl", "a") as file:
        file.write("\n".join(broken) + "\n")
    with pytest.warns(UserWarning, match=f"{len(broken)} lines are no rows and are left out"):
        write_tables(folder, [TABLES["standard-sdp"]])


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="must be a folder of results"):
        write_tables(tmp_path / "nowhere", [TABLES["table1"]])
