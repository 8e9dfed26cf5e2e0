"""Running experiments: seeds, rows on disk, resuming, several processes and programs."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import bagwise as bw
from bagwise.errors import InvalidInputError
from bagwise.lab import runner
from bagwise.lab.learners import LEARNERS
from bagwise.lab.results import Claims, Results, Row
from bagwise.lab.runner import Job, data_set, jobs_of, missing, run, run_jobs, tables_named
from bagwise.lab.tables import TABLES, Cell, Recipe

CELL = Cell("centred", False, 0.0, 3, 3, 1, 40)
PROGRAM = Path(sys.executable).with_name("bagwise")


def measured(row: Row) -> tuple[object, ...]:
    """What must repeat."""
    return row.key, row.accuracy, row.error, row.seed


def rows_in(folder: Path) -> dict[tuple[str, str, int], Row]:
    results = Results(folder)
    results.refresh()
    return results.rows


# ---------------------------------------------------------------------- data sets


def test_a_data_set_hangs_on_the_name_of_its_cell_and_its_number_only() -> None:
    first, again, other = data_set(CELL, 3), data_set(CELL, 3), data_set(CELL, 4)
    assert_array_equal(first.bags.X, again.bags.X)
    assert first.oracle.ltf == again.oracle.ltf
    assert not np.array_equal(first.bags.X, other.bags.X)
    assert first.oracle.ltf != data_set(replace(CELL, m=41), 3).oracle.ltf


def test_stored_results_stay_reproducible() -> None:
    # A change of these numbers makes every stored row irreproducible: then rename the streams, and run all again.
    data = data_set(Cell("general", True, 0.0, 2, 3, 1, 2), 0)
    assert data.oracle.ltf.offset == pytest.approx(PINNED[0], abs=1e-12)
    assert data.bags.X[0, 0] == pytest.approx(PINNED[1], abs=1e-12)
    assert data.test_X[0, 0] == pytest.approx(PINNED[2], abs=1e-12)


PINNED = (-1.0837045929349445, 0.45029403264181583, 0.061698494272849874)


@pytest.mark.parametrize("law", ["standard", "centred", "general"])
def test_problems_follow_their_law(law: str) -> None:
    oracle = data_set(Cell(law, True, 0.1, 4, 3, 1, 5), 0).oracle  # type: ignore[arg-type]
    assert (np.abs(oracle.mean).max() > 0) == (law == "general")
    assert np.array_equal(oracle.cov, np.eye(4)) == (law == "standard")
    assert oracle.ltf.offset != 0 and oracle.flip == 0.1
    assert np.linalg.norm(oracle.ltf.normal) == pytest.approx(1)


def test_recipes_scale_what_they_name() -> None:
    usual = data_set(Cell("general", True, 0.0, 4, 3, 1, 5, Recipe(1, 1, 1)), 0).oracle
    # Another name, so another draw: a mean scaled to zero is the one that can be told.
    other = data_set(Cell("general", True, 0.0, 4, 3, 1, 5, Recipe(0, 0, 0)), 0).oracle
    assert np.abs(usual.mean).max() > 0 and not other.mean.any() and other.ltf.offset == 0
    assert np.linalg.eigvalsh(usual.cov)[0] > 1 > np.linalg.eigvalsh(other.cov)[0]


def test_any_count_draws_every_count() -> None:
    bags = data_set(Cell("centred", False, 0.0, 2, 4, "any", 300), 0).bags
    assert set(bags.counts) == {0, 1, 2, 3, 4}


# ---------------------------------------------------------------------- one run


def test_a_run_measures_what_the_public_names_say() -> None:
    data = data_set(CELL, 0)
    row = run(CELL, "A2", 0)
    model = bw.SpectralLTF(fit_intercept=False).fit(data.bags)
    assert row.error == bw.instance_error(model.ltf_, data.oracle.ltf, data.oracle.mean, data.oracle.cov)
    assert row.accuracy == np.mean(model.predict(data.test_X) == data.test_y)
    assert row.seconds > 0 and row.failure == "" and row.versions["numpy"] == np.__version__
    assert len(data.test_y) == 1000


def test_a_row_repeats_alone() -> None:
    for learner in ("R", "A2", "true"):
        assert measured(run(CELL, learner, 2)) == measured(run(CELL, learner, 2, data_set(CELL, 2)))


def test_a_failed_run_is_a_row_that_says_so_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> bw.LTF:
        raise ValueError("no luck")

    with monkeypatch.context() as broken:
        broken.setitem(LEARNERS, "A2", replace(LEARNERS["A2"], fit=fails))
        outcome = run_jobs([Job(CELL, 0, ("A2", "R"))], tmp_path)
    assert outcome.finished == 1 and [row.failure for row in outcome.failed] == ["ValueError: no luck"]
    assert [key[1] for key in rows_in(tmp_path)] == ["R"]
    assert run_jobs([Job(CELL, 0, ("A2", "R"))], tmp_path).finished == 1
    assert {key[1] for key in rows_in(tmp_path)} == {"A2", "R"}


# ---------------------------------------------------------------------- rows on disk


def row(learner: str = "A2", dataset: int = 0) -> Row:
    return Row(CELL, learner, dataset, "1/0", 0.9, 0.1, 0.01, note="höhe <b>")


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    results = Results(tmp_path / "new")
    results.append(row())
    assert Results(tmp_path / "new").refresh() == [row()]


def test_a_torn_line_loses_itself_only(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.append(row(dataset=0))
    whole = row(dataset=1).to_json().encode()
    for cut in (1, len(whole) // 2, len(whole) - 1):
        with open(results.path, "ab") as file:
            file.write(whole[:cut])
        results.append(row(dataset=2 + cut))
        reader = Results(tmp_path)
        reader.refresh()
        assert {key[2] for key in reader.rows} >= {0, 2 + cut}
    assert reader.unreadable == 3
    with open(results.path, "ab") as file:
        file.write(whole[:20])
    reader = Results(tmp_path)
    reader.refresh()
    assert len(reader.rows) == 4


def test_a_reader_takes_what_was_added_since_and_each_key_once(tmp_path: Path) -> None:
    reader, results = Results(tmp_path), Results(tmp_path)
    assert reader.refresh() == []
    results.append(row(dataset=0))
    assert [r.dataset for r in reader.refresh()] == [0]
    results.append(replace(row(dataset=0), seconds=9.0))
    results.append(row(dataset=1))
    assert [r.dataset for r in reader.refresh()] == [1]
    assert reader.rows[row().key].seconds == 0.01


def test_rows_of_a_newer_version_are_read(tmp_path: Path) -> None:
    entries = json.loads(row().to_json()) | {"colour": "red"}
    entries["cell"]["shape"] = "round"
    (tmp_path / "runs.jsonl").write_text(json.dumps(entries) + "\n")
    assert list(rows_in(tmp_path)) == [row().key]


def append_many(folder: Path, start: int) -> None:
    results = Results(folder)
    for i in range(start, start + 40):
        results.append(row(dataset=i))


def test_two_programs_append_without_tearing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    programs = [context.Process(target=append_many, args=(tmp_path, start)) for start in (0, 40)]
    for program in programs:
        program.start()
    for program in programs:
        program.join()
    results = Results(tmp_path)
    results.refresh()
    assert sorted(key[2] for key in results.rows) == list(range(80)) and results.unreadable == 0


def hold(folder: Path, ready: "multiprocessing.synchronize.Event") -> None:  # type: ignore[name-defined]
    with Claims(folder).held(CELL, 0):
        ready.set()
        time.sleep(60)


def test_a_claim_dies_with_its_program(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    program = context.Process(target=hold, args=(tmp_path, ready))
    program.start()
    assert ready.wait(30)
    claims = Claims(tmp_path)
    with claims.held(CELL, 0) as ours:
        assert not ours
    with claims.held(CELL, 1) as ours:
        assert ours
    program.kill()
    program.join()
    with claims.held(CELL, 0) as ours:
        assert ours


# ---------------------------------------------------------------------- many runs


def small_jobs() -> list[Job]:
    """A small cell of each kind."""
    cells = {
        CELL: ("A2", "R", "S", "true"),
        Cell("standard", False, 0.0, 3, 3, 1, 40): ("A3", "A3one", "A2"),
        Cell("general", True, 0.0, 3, 3, 1, 40): ("A4", "R", "S+", "true"),
        Cell("general", False, 0.1, 3, 4, 3, 40): ("A2", "R"),
        Cell("general", True, 0.0, 3, 4, "any", 40): ("A4", "MeanMap"),
    }
    return [Job(cell, i, learners) for cell, learners in cells.items() for i in range(2)]


def test_the_number_of_processes_changes_nothing(tmp_path: Path) -> None:
    seen: list[Row] = []
    one = run_jobs(small_jobs(), tmp_path / "one", on_row=seen.append)
    two = run_jobs(small_jobs(), tmp_path / "two", workers=2)
    assert one.finished == two.finished == sum(len(job.learners) for job in small_jobs()) == len(seen)
    assert not one.failed and not two.failed
    first, second = (rows_in(tmp_path / name) for name in ("one", "two"))
    assert {measured(r) for r in first.values()} == {measured(r) for r in second.values()}
    # Again: nothing is left to do.
    assert run_jobs(small_jobs(), tmp_path / "two", workers=2).finished == 0


def test_a_resumed_run_does_what_is_missing_only(tmp_path: Path) -> None:
    jobs = small_jobs()
    run_jobs(jobs[:3], tmp_path)
    (extra,) = missing([replace(jobs[0], learners=("A2", "R", "true", "A3"))], Results(tmp_path)) or [None]
    assert extra is not None  # a reader that has not read knows of nothing
    results = Results(tmp_path)
    results.refresh()
    assert missing([replace(jobs[0], learners=("A2", "A3"))], results) == [replace(jobs[0], learners=("A3",))]
    made: list[Row] = []
    run_jobs(jobs, tmp_path, on_row=made.append)
    assert len(made) == sum(len(job.learners) for job in jobs[3:])


def test_jobs_are_cells_times_data_sets_without_what_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    table = TABLES["table1"]
    jobs = jobs_of([table, table], 2)
    assert len(jobs) == len(set(jobs)) == 2 * 32
    assert {job.learners for job in jobs if job.cell.m == 200} == {("S",)}
    assert len(jobs_of([table], 1, only="d=10/q=2/k=1/m=2000")) == 2
    monkeypatch.setitem(LEARNERS, "R", replace(LEARNERS["R"], home="bagwise.estimators.nowhere"))
    assert not any("R" in job.learners for job in jobs_of([table], 1))


def test_an_unknown_table_is_refused_with_the_names() -> None:
    with pytest.raises(InvalidInputError, match=r"table1, standard, .* or all; got 'table2'"):
        tables_named(["table1", "table2"])
    assert tables_named(["all"]) == list(TABLES.values())


def test_every_learner_has_a_cost() -> None:
    assert set(runner._COST) == set(LEARNERS)


# ---------------------------------------------------------------------- the program


def started(folder: Path, *more: str) -> "subprocess.Popen[str]":
    line = [PROGRAM, "reproduce", "standard-sdp", "--only", "d=10/q=3/k=1/m=50", "-o", folder, *more]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_alone_it_says_which_tables_there_are_and_what_they_cost() -> None:
    out = subprocess.run([PROGRAM, "reproduce", "--json", "--jobs", "2"], capture_output=True, text=True, check=True)
    listed = {line["table"]: line for line in json.loads(out.stdout)["tables"]}
    assert list(listed) == [*TABLES, "all"]
    assert listed["table1"]["cells"] == 32 and 60 < listed["table1"]["seconds"] < 1800
    assert listed["all"]["runs"] < sum(listed[name]["runs"] for name in TABLES), "what tables share is run once"


def test_killed_at_any_moment_it_goes_on_where_it_was(tmp_path: Path) -> None:
    killed = started(tmp_path, "--datasets", "4", "--jobs", "2")
    deadline = time.monotonic() + 60
    while not rows_in(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()  # returns when the processes that it started are gone too
    before = rows_in(tmp_path)
    assert before
    again = started(tmp_path, "--datasets", "4", "--json")
    out, err = again.communicate(timeout=120)
    assert again.returncode == 0 and err == ""
    after = rows_in(tmp_path)
    results = Results(tmp_path)
    results.refresh()
    learners = [learner for learner in ("S", "S+", "A3", "A2", "ML", "true") if LEARNERS[learner].available]
    assert len(after) == 4 * len(learners) and results.unreadable == 0
    assert all(after[key] == before[key] for key in before)
    assert json.loads(out)["finished"] <= len(after) - len(before)


def test_two_programs_share_a_folder(tmp_path: Path) -> None:
    programs = [started(tmp_path, "--datasets", "3", "--json") for _ in range(2)]
    ended = [program.communicate(timeout=120) for program in programs]
    assert [program.returncode for program in programs] == [0, 0]
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert len(lines) == len(rows_in(tmp_path)), "no run was done twice"
    assert sum(json.loads(out)["finished"] for out, _ in ended) == len(lines)


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_progress_is_shown_to_those_who_watch_and_to_nobody_else(tmp_path: Path) -> None:
    import pty

    watching, terminal = pty.openpty()
    line = [PROGRAM, "reproduce", "standard-sdp", "--only", "d=10/q=3/k=1/m=50", "--datasets", "2", "-o", tmp_path]
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "120"}
    program = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=terminal, text=True, env=environment)
    os.close(terminal)
    shown = b""
    while chunk := read_some(watching):
        shown += chunk
    os.close(watching)
    out, _ = program.communicate()
    assert program.returncode == 0 and "runs finished" in out
    text = shown.decode()
    assert "0/1 cells" in text and "1/1 cells" in text and "per second" in text and "left" in text


def read_some(descriptor: int) -> bytes:
    """What a terminal got; nothing when the program at its other end is gone."""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
