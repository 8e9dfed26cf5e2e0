"""Summed tables as text: Markdown, LaTeX in the layout of the paper, CSV.

Owns formats and the wording of a table's notes. Refuses arithmetic: what is not in a figure is not printed.
"""

import csv
import io
from collections.abc import Callable, Sequence
from math import isnan

from bagwise.lab.learners import LEARNERS
from bagwise.lab.summary import Figure, SummedPanel
from bagwise.lab.tables import Cell, Column, Table

__all__ = ["as_csv", "as_latex", "as_markdown", "caption", "columns_of", "percent"]

_KEY_WORDS = {"flip": "flips"}


def percent(value: float, se: float = float("nan"), *, digits: int = 2) -> str:
    """A percentage, with its standard error where there is one.

    >>> percent(98.1234, 0.05), percent(98.1), percent(0.00012, 0.00001, digits=4)
    ('98.12 ± 0.05', '98.10', '0.0001 ± 0.0000')
    """
    return f"{value:.{digits}f}" if isnan(se) else f"{value:.{digits}f} ± {se:.{digits}f}"


def as_markdown(table: Table, panels: Sequence[SummedPanel]) -> str:
    """Title, and per panel the accuracies beside the printed ones, the exact errors, and the seconds."""
    text = [f"## {table.title}", "", f"{table.place}. `bagwise reproduce {table.name}`", "", caption(panels), ""]
    for summed in panels:
        text += [f"### {_capital(summed.panel.title)}", ""]
        text += [*_markdown_table(*_accuracy_table(summed)), ""]
        text += ["Exact instance error in %:", "", *_markdown_table(*_error_table(summed)), ""]
        text += ["Seconds of a fit on one core:", "", *_markdown_table(*_seconds_table(summed)), ""]
    return "\n".join(text)


def caption(panels: Sequence[SummedPanel]) -> str:
    """What a reader of a table must know: what was measured, how often, and what the signs mean."""
    lines = [line for summed in panels for line in summed.lines]
    counts = sorted({figure.n for line in lines for figure in line.figures if figure is not None})
    sets = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    note = f"Mean accuracy in % on 1000 test instances over {sets} data sets ± standard error."
    for column in columns_of(panels):
        if column.m is not None:
            note += f" {LEARNERS[column.learner].label}: {column.m} bags."
    if any(line.cell.balanced for line in lines):
        note += " Balanced bags: the better of the two solutions, for all learners from bags."
    if any(line.cell.flip for line in lines):
        note += " The paper's columns: the better of the two solutions throughout."
    if any(summed.has_published(column) for summed in panels for column in summed.columns):
        note += " Δ: measured minus published; bold where beyond 3√2 standard errors."
    return note


def _accuracy_table(summed: SummedPanel) -> tuple[list[str], list[list[str]]]:
    head = _keys(summed)
    for column in summed.columns:
        head.append(LEARNERS[column.learner].label)
        if summed.has_published(column):
            head += ["paper", "Δ"]
    body = []
    for line in summed.lines:
        cells = _key_values(summed, line.cell)
        for column, figure in zip(summed.columns, line.figures, strict=True):
            cells.append("-" if figure is None else percent(figure.accuracy, figure.accuracy_se))
            if summed.has_published(column):
                cells += ["", ""] if figure is None else _against(figure)
        body.append(cells)
    return head, body


def _against(figure: Figure) -> list[str]:
    if figure.published is None or figure.difference is None:
        return ["", ""]
    difference = f"{figure.difference:+.2f}"
    return [f"{figure.published:.2f}", f"**{difference}**" if figure.deviates else difference]


def _error_table(summed: SummedPanel) -> tuple[list[str], list[list[str]]]:
    return _plain_table(summed, lambda figure: percent(figure.error, figure.error_se, digits=3))


def _seconds_table(summed: SummedPanel) -> tuple[list[str], list[list[str]]]:
    return _plain_table(summed, lambda figure: f"{figure.seconds:.3f}")


def _plain_table(summed: SummedPanel, shown: Callable[[Figure], str]) -> tuple[list[str], list[list[str]]]:
    head = _keys(summed) + [LEARNERS[column.learner].label for column in summed.columns]
    body = [
        _key_values(summed, line.cell) + ["-" if figure is None else shown(figure) for figure in line.figures]
        for line in summed.lines
    ]
    return head, body


def _keys(summed: SummedPanel) -> list[str]:
    return [_KEY_WORDS.get(key, key) for key in summed.panel.keys]


def _key_values(summed: SummedPanel, cell: Cell) -> list[str]:
    return [f"{value:g}" if isinstance(value := getattr(cell, key), float) else str(value) for key in summed.panel.keys]


def _markdown_table(head: list[str], body: list[list[str]]) -> list[str]:
    lines = [head, ["---:"] * len(head), *body]
    return [f"| {' | '.join(line)} |" for line in lines]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# ---------------------------------------------------------------------- LaTeX


def as_latex(table: Table, panels: Sequence[SummedPanel]) -> str:
    """A floating table with its panels side by side, as in the paper, or one above the other where printed numbers make
    them too wide; needs booktabs, subcaption and graphicx.

    Under a measured accuracy stands its standard error; beside it, in brackets, the printed one and the difference,
    which is bold where it is marked.
    """
    beside = all(_width(summed) <= _WIDEST for summed in panels)
    width = f"{0.98 / len(panels):.2f}\\linewidth" if beside else "\\linewidth"
    text = [
        "% Needs \\usepackage{booktabs,subcaption,graphicx}.",
        "\\begin{table}[!htb]",
        "  \\small",
        f"  \\caption{{{_tex(table.title)}}}\\label{{tab:{table.name}}}",
    ]
    for i, summed in enumerate(panels):
        text += [f"  \\begin{{minipage}}{{{width}}}", "    \\centering", "    \\resizebox{\\linewidth}{!}{%"]
        text += [f"    {line}" for line in _latex_tabular(summed)]
        end = "" if i + 1 == len(panels) else "%" if beside else "\\vspace{3mm}"
        text += ["    }", f"    \\subcaption{{{_tex(_capital(summed.panel.title))}}}", f"  \\end{{minipage}}{end}"]
    return "\n".join([*text, "\\end{table}", ""])


_WIDEST = 8  # columns of a panel that has half a page


def _width(summed: SummedPanel) -> int:
    """Columns, three where printed numbers stand beside the measured ones."""
    wide = sum(3 if summed.has_published(column) else 1 for column in summed.columns)
    return len(summed.panel.keys) + wide


def _latex_tabular(summed: SummedPanel) -> list[str]:
    keys = "r" * len(summed.panel.keys)
    heads = [f"${key}$" if len(key) == 1 else key for key in _keys(summed)]
    heads += [_tex(LEARNERS[column.learner].label) for column in summed.columns]
    lines = [f"\\begin{{tabular}}{{{keys}{'l' * len(summed.columns)}}}", "\\toprule", " & ".join(heads) + " \\\\"]
    lines += ["\\midrule"]
    previous = None
    for line in summed.lines:
        if previous is not None and line.cell.d != previous:
            lines.append("\\midrule")
        previous = line.cell.d
        figures = ["-" if figure is None else _latex_figure(figure) for figure in line.figures]
        lines.append(" & ".join([*_key_values(summed, line.cell), *figures]) + " \\\\")
    return [*lines, "\\bottomrule", "\\end{tabular}"]


def _latex_figure(figure: Figure) -> str:
    text = f"{figure.accuracy:.2f}"
    if not isnan(figure.accuracy_se):
        text += f"{{\\tiny $\\pm{figure.accuracy_se:.2f}$}}"
    if figure.published is not None and figure.difference is not None:
        difference = f"{figure.difference:+.2f}"
        shown = f"$\\mathbf{{{difference}}}$" if figure.deviates else f"${difference}$"
        text += f" ({figure.published:.2f}, {shown})"
    return text


_TEX = {"Σ": "$\\Sigma$", "μ": "$\\mu$", "_": "\\_", "%": "\\%", "&": "\\&", "#": "\\#"}


def _tex(text: str) -> str:
    return "".join(_TEX.get(character, character) for character in text)


# ---------------------------------------------------------------------- CSV


def as_csv(table: Table, panels: Sequence[SummedPanel]) -> str:
    """One line per number of the table, with everything that is known of it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    keys = ("law", "offset", "flip", "d", "q", "k", "m")
    writer.writerow(
        ["table", *keys, "learner", "n", "accuracy", "accuracy_se", "error", "error_se", "seconds", "published",
         "difference", "deviates"]
    )  # fmt: skip
    for summed in panels:
        for line in summed.lines:
            for figure in line.figures:
                if figure is not None:
                    numbers = (figure.accuracy, figure.accuracy_se, figure.error, figure.error_se, figure.seconds)
                    against = (figure.published, figure.difference, figure.deviates)
                    if figure.published is None:
                        against = ("", "", "")  # type: ignore[assignment]
                    writer.writerow(
                        [table.name, *(getattr(figure.cell, key) for key in keys), figure.learner, figure.n]
                        + [f"{number:.6g}" for number in numbers]
                        + [f"{value:.6g}" if isinstance(value, float) else value for value in against]
                    )
    return out.getvalue()


def columns_of(panels: Sequence[SummedPanel]) -> list[Column]:
    """All columns of a table, each learner once."""
    return list({column.learner: column for summed in panels for column in summed.columns}.values())
