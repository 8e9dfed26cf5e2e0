"""The program: what it writes, what it prints where, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bagwise as bw
from bagwise.cli import app as commands
from bagwise.cli import main

PROGRAM = Path(sys.executable).with_name("bagwise")
Run = Callable[..., SimpleNamespace]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The program in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(line: str) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", ["bagwise", *line.split()])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return SimpleNamespace(status=end.value.code or 0, out=printed.out, err=printed.err)

    return call


def refused(ended: SimpleNamespace) -> str:
    """The one message of a refusal."""
    assert ended.status == 2 and ended.out == ""
    assert "Traceback" not in ended.err
    return str(ended.err)


def test_from_nothing_to_predictions(run: Run) -> None:
    assert run("sample --features 4 --size 5 --count 3 --bags 300 --with-labels -o train.parquet").status == 0
    assert pq.read_schema("train.parquet").names == ["x0", "x1", "x2", "x3", "bag", "positives", "label"]
    fitted = run("fit train.parquet --bag bag --count positives -o model.json")
    assert fitted.status == 0 and "Wrote model.json" in fitted.out and fitted.err == ""
    predicted = run("predict model.json train.parquet -o out.parquet")
    assert predicted.status == 0 and "Predicted 1,500 rows" in predicted.out
    table = pq.read_table("out.parquet")
    assert table.column_names[-2:] == ["prediction", "probability"]
    rows = table.to_pandas()
    assert (rows.prediction == rows.label).mean() > 0.9
    model = bw.load("model.json")
    assert_array_equal(rows.prediction, model.predict(rows[["x0", "x1", "x2", "x3"]]))


def test_json_is_one_object_on_standard_output(run: Run) -> None:
    for line, keys in {
        "sample --features 3 --bags 200 -o t.parquet --json": {"n_bags", "n_rows", "normal", "offset", "output"},
        "fit t.parquet -o m.json --json": {"model", "features", "coef", "intercept", "ambiguous", "bag_error"},
        "predict m.json t.parquet -o p.csv --json": {"n_rows", "n_positive", "output"},
    }.items():
        ended = run(line)
        assert ended.status == 0 and ended.err == "", ended.err
        assert keys <= json.loads(ended.out).keys()
    refusal = run("fit none.parquet -o m.json --json")
    assert refusal.out == "" and refusal.status == 2


def test_the_program_prints_what_the_python_names_return(run: Run) -> None:
    drawn = json.loads(run("sample --features 3 --bags 100 --offset 0.5 --seed 4 -o t.parquet --json").out)
    printed = json.loads(run("fit t.parquet -o m.json --model spectral --no-intercept --json").out)
    bags = bw.read_bags("t.parquet")
    model = bw.SpectralLTF(fit_intercept=False).fit(bags)
    assert printed["coef"] == model.coef_[0].tolist() and printed["intercept"] == 0.0
    assert printed["bag_error"] == bw.bag_error(model, bags)
    assert_allclose(np.linalg.norm(drawn["normal"]), 1)
    assert drawn["offset"] == 0.5


def test_the_same_seed_draws_the_same_file(run: Run) -> None:
    for name in "ab":
        run(f"sample --bags 20 --random-mean --flip 0.1 --seed 7 -o {name}.parquet")
    run("sample --bags 20 --random-mean --flip 0.1 --seed 8 -o c.parquet")
    a, b, c = (pq.read_table(f"{name}.parquet") for name in "abc")
    assert a.equals(b) and not a.equals(c)


def test_features_are_selected_by_name(run: Run, tmp_path: Path) -> None:
    run("sample --features 3 --bags 100 -o t.parquet")
    run("fit t.parquet --columns x2,x0 -o m.json")
    assert list(bw.load("m.json").feature_names_in_) == ["x2", "x0"]
    table = pq.read_table("t.parquet")
    (tmp_path / "f.csv").touch()
    bw.data.io.write_table(table.select(["x0", "bag", "x2"]), "f.csv")
    assert run("predict m.json f.csv -o p.csv").status == 0
    bw.data.io.write_table(table.select(["x0", "x1"]), "g.csv")
    assert "g.csv: column 'x2' must exist; there are x0, x1." in refused(run("predict m.json g.csv -o q.csv"))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("fit none.parquet -o m.json", "file none.parquet must exist; there is none."),
        ("fit empty.parquet -o m.json", "empty.parquet must hold a table; it is empty (0 bytes)."),
        ("fit t.csv --bag ward -o m.json", "t.csv: column 'ward' must exist; there are bag, positives, x."),
        ("fit t.csv --columns x,z -o m.json", "t.csv: column 'z' must exist"),
        ("fit t.csv -o no/m.json", "folder no must exist to write m.json"),
        ("fit t.csv -o .", "must be a file to write; it is a folder."),
        ("fit t.csv --C often -o m.json", "--C must be a number above 0 or auto; got 'often'."),
        ("fit t.csv --C nan -o m.json", "--C must be a number above 0 or auto; got 'nan'."),
        ("fit t.csv --count positives --proportion x -o m.json", "one of count= and proportion="),
        ("fit t.csv --count x -o m.json", "'x' must be the same in all rows of a bag"),
        ("fit p.csv --proportion positives -o m.json", "proportions must lie in [0, 1]; got 2.0 in bag 1."),
        ("fit header.csv -o m.json", "header.csv must have rows; it has only columns (bag, positives, x)."),
        ("fit torn.parquet -o m.json", "torn.parquet must be a readable Parquet file"),
        ("fit over.csv -o m.json", "counts must lie in 0..size; got 3 in bag 1 of size 2."),
        ("fit t.csv --columns bag -o m.json", "features must be distinct columns other than 'bag' and 'positives'"),
        ("fit t.csv --model spectral --C 1 -o m.json", "--C must belong to the model; --model spectral does not"),
        ("predict empty.json t.csv -o p.csv", "empty.json must be a model that bagwise saved; it is empty."),
        ("predict newer.json t.csv -o p.csv", "install a newer bagwise"),
        ("sample --size 5 --count 6 -o s.parquet", "count"),
        ("sample --bags 5 -o s.txt", "must say its format; got '.txt'."),
    ],
)
def test_what_is_refused_is_one_message_and_status_2(run: Run, tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "t.csv").write_text("bag,positives,x\n" + "1,1,0.5\n1,1,-0.5\n2,0,0.1\n2,0,0.2\n")
    (tmp_path / "p.csv").write_text("bag,positives,x\n1,2,0.5\n1,2,-0.5\n")
    (tmp_path / "header.csv").write_text("bag,positives,x\n")
    (tmp_path / "over.csv").write_text("bag,positives,x\n1,3,0.5\n1,3,-0.5\n")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "empty.json").touch()
    (tmp_path / "newer.json").write_text('{"format": "bagwise model", "version": 99}')
    before = sorted(os.listdir(tmp_path))
    message = refused(run(line))
    assert message.startswith("Error: ") and message.count("\n") == 1
    assert sentence in message
    assert sorted(os.listdir(tmp_path)) == before  # nothing is left half done


@pytest.mark.parametrize(
    "line", ["fit", "nothing", "fit t.csv -o m.json --model best", "sample --bags many -o s.parquet", "fit --what"]
)
def test_wrong_usage_is_status_2_and_says_where_help_is(run: Run, line: str) -> None:
    assert "--help" in refused(run(line))


def test_every_command_helps_with_an_example(run: Run) -> None:
    names = [command.name or command.callback.__name__ for command in commands.app.registered_commands]  # type: ignore[union-attr]
    assert {"sample", "fit", "predict"} <= set(names)
    for name in names:
        ended = run(f"{name} --help")
        assert ended.status == 0 and f"Example: bagwise {name} " in ended.out


def test_every_learner_of_the_program_is_there() -> None:
    assert set(commands._CLASSES) == set(commands.Learner)
    assert set(commands._CLASSES.values()) <= set(bw.__all__)


# ---------------------------------------------------------------------- the installed program


def installed(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, **options)


def test_help_comes_within_half_a_second() -> None:
    def seconds() -> float:
        """Processor time of one run: of the program, not of what else the machine is doing."""
        with subprocess.Popen([PROGRAM, "--help"], stdout=subprocess.DEVNULL) as running:
            _, status, used = os.wait4(running.pid, 0)
            running.returncode = os.waitstatus_to_exitcode(status)
        assert running.returncode == 0
        return used.ru_utime + used.ru_stime

    assert min(seconds() for _ in range(3)) < 0.5


def test_the_help_of_a_command_loads_nothing_heavy() -> None:
    timed = [sys.executable, "-X", "importtime", "-m", "bagwise.cli", "fit", "--help"]
    ended = subprocess.run(timed, capture_output=True, text=True)
    loaded = {line.split("|")[-1].strip().split(".")[0] for line in ended.stderr.splitlines()}
    assert "Example: bagwise fit" in ended.stdout and "typer" in loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "numba", "pyarrow", "narwhals", "pandas", "dask", "matplotlib"}


def test_the_installed_program_refuses_without_a_traceback(tmp_path: Path) -> None:
    ended = installed("fit", "none.csv", "-o", "m.json", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "Error: file none.csv must exist; there is none.\n"
    assert installed("--version").stdout == f"bagwise {bw.__version__}\n"


@pytest.mark.parametrize(
    "line", ["--help", "fit --help", "--version", "sample --bags 2 -o s.parquet --json", "reproduce"]
)
def test_a_closed_pipe_is_no_traceback(tmp_path: Path, line: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)  # nobody will ever read: no race with a program that ends early
    try:
        ended = subprocess.run([PROGRAM, *line.split()], stdout=writer, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_a_full_disk_behind_the_output_is_one_message(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run([PROGRAM, "--version"], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (2, "Error: No space left on device.\n")


def test_what_does_not_fit_into_memory_is_one_message(tmp_path: Path) -> None:
    ended = installed("sample", "--features", "1000000", "--bags", "100000", "-o", "s.parquet", cwd=tmp_path)
    assert ended.returncode == 2 and ended.stderr.startswith("Error: the work must fit into memory; ")
    assert ended.stderr.count("\n") == 1 and not any(tmp_path.iterdir())


def test_ctrl_c_ends_quietly_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [PROGRAM, "sample", "--features", "50", "--bags", "1000000", "-o", "s.parquet"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(1.5)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (130, "", "")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("shell", "typed", "number", "offered"),
    [
        ("bash", "bagwise pre", 1, "predict"),
        ("zsh", "bagwise fit --model s", 3, "spectral"),
        ("fish", "bagwise fit --col", 2, "--columns"),
    ],
)
def test_the_shell_completes_commands_options_and_choices(shell: str, typed: str, number: int, offered: str) -> None:
    asked = {
        "_BAGWISE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(number),
        "_TYPER_COMPLETE_ARGS": typed,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    ended = installed(env=os.environ | asked)
    assert ended.returncode == 0 and offered in ended.stdout, ended
    # Which shell runs the tests does not matter: its name is taken from the command line.
    named = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    assert "bagwise" in installed("--show-completion", shell, env=named).stdout


def test_a_folder_that_cannot_be_written_is_refused() -> None:
    # Even root cannot make files there.
    ended = installed("sample", "--bags", "2", "-o", "/proc/s.parquet")
    assert ended.returncode == 2 and "/proc/s.parquet must be writable" in ended.stderr


def test_without_typer_the_extra_is_named(tmp_path: Path) -> None:
    code = "import sys; sys.modules['typer'] = None; from bagwise.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr == (
        "Error: the command line needs typer, which is not installed; run: pip install 'bagwise[cli]'\n"
    )


def test_a_streamed_sample_is_the_same_kind_of_file_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    from bagwise.data import problems

    monkeypatch.setattr(problems, "_PART_NUMBERS", 4 * 3 * 50)
    oracle = problems.random_oracle(3, size=4, count=3, rng=np.random.default_rng(0))
    problems.write_sample(oracle, 120, np.random.default_rng(1), tmp_path / "s.parquet", with_labels=True)
    bags = bw.read_bags(tmp_path / "s.parquet")
    assert bags.ids.tolist() == list(range(120)) and bags.key == (4, 3)
    assert pq.ParquetFile(tmp_path / "s.parquet").metadata.num_row_groups == 3
    labels = pq.read_table(tmp_path / "s.parquet")["label"].to_numpy()
    assert (labels == oracle.ltf.predict(bags.X)).all()


def test_a_streamed_fit_is_the_fit(run: Run) -> None:
    assert run("sample --features 3 --size 4 --count 3 --bags 300 -o t.parquet").status == 0
    streamed = json.loads(run("fit t.parquet --model spectral --stream -o s.json --json").out)
    plain = json.loads(run("fit t.parquet --model spectral -o p.json --json").out)
    assert streamed.pop("passes") == 3  # the sums, the sweep, and the errors that are printed
    for result in (streamed, plain):
        result.pop("output")
    assert_allclose(streamed.pop("coef"), plain.pop("coef"), rtol=1e-9)
    assert_allclose(streamed.pop("intercept"), plain.pop("intercept"), rtol=1e-9)
    assert_allclose(streamed.pop("proportion_error"), plain.pop("proportion_error"), rtol=1e-12)
    assert streamed == plain


def test_a_cluster_that_is_not_there_is_refused(run: Run) -> None:
    assert run("sample --features 3 --size 4 --count 3 --bags 30 -o t.parquet").status == 0
    both = refused(run("fit t.parquet --model spectral --workers 2 --cluster tcp://x:1 -o s.json"))
    assert "--workers or by --cluster" in both
