"""The commands assess, certify and plan: what Python returns, as tables, JSON and pictures."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import bagwise as bw
from bagwise.cli import main
from bagwise.errors import InvalidInputError
from bagwise.pictures import write_picture

Run = Callable[[str], SimpleNamespace]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    oracle = bw.BagOracle(bw.LTF([1.0, -0.5, 0.2]), np.zeros(3), np.eye(3), size=6, count=[1 / 7] * 7)
    bags = oracle.sample(500, np.random.default_rng(0))
    bags = bw.Bags(bags.X, bags.sizes, bags.counts, bags.ids, ("u", "v", "w"))
    bw.write_bags(bags[:300], "train.parquet")
    bw.write_bags(bags[300:], "heldout.parquet")
    bw.save(bw.SpectralLTF().fit(bags[:300]), "model.json")

    def call(line: str) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", ["bagwise", *line.split()])
        with pytest.raises(SystemExit) as ended:
            main()
        streams = capsys.readouterr()
        return SimpleNamespace(code=ended.value.code or 0, out=streams.out, err=streams.err)

    return call


def test_assess_prints_what_python_returns(run: Run) -> None:
    ended = run("assess model.json heldout.parquet --json")
    assert ended.code == 0, ended.err
    found = bw.assess(bw.load("model.json"), bw.read_bags("heldout.parquet", bag="bag", count="positives"))
    printed = json.loads(ended.out)
    assert printed["accuracy"] == found.accuracy.to_dict() and printed["n_bags"] == 200
    text = run("assess model.json heldout.parquet --prevalence 0.2")
    assert "TPR (recall)" in text.out and "a share of 0.2" in text.out and text.code == 0


@pytest.mark.parametrize("command", ["assess", "certify"])
def test_streamed_claims_are_those_of_memory(run: Run, command: str) -> None:
    line = f"{command} model.json heldout.parquet"
    streamed, in_memory = (json.loads(run(line + options).out) for options in (" --stream --json", " --json"))
    assert streamed == in_memory
    assert "200" in run(line + " --stream").out
    assert "must be held out" in run("certify model.json train.parquet --stream").err


def test_certify_prints_what_python_returns(run: Run) -> None:
    ended = run("certify model.json heldout.parquet --prevalence bags --json")
    printed = json.loads(ended.out)
    bags = bw.read_bags("heldout.parquet", bag="bag", count="positives")
    found = bw.certify(bw.load("model.json"), bags, prevalence="bags")
    assert printed["error_bound"] == found.error_bound and printed["prevalence"] == "bags"
    assert {"confidence", "bag_error", "n_bags", "assumptions"} <= set(printed)
    for prevalence, words in (
        ("any", "at any share"),
        ("0.3", "share of positives of 0.3"),
        ("bags", "the bags' share"),
    ):
        assert words in run(f"certify model.json heldout.parquet --prevalence {prevalence}").out


def test_plan_prints_bags_by_learner_and_designs(run: Run) -> None:
    line = "plan --features 10 --size 10 --count 8 --error 0.05 --learners spectral,mean,theorem"
    printed = json.loads(run(f"{line} --bags 2000 --json").out)
    assert set(printed["n_bags"]) == {"spectral", "mean", "theorem"} and printed["curve"] and printed["designs"]
    assert "Best for bags: 2,000" in run(f"{line} --bags 2000").out


@pytest.mark.parametrize(
    "line",
    [
        "assess model.json heldout.parquet",
        "certify model.json heldout.parquet",
        "plan --features 5 --size 4 --count 1 --error 0.1 --learners spectral,mean",
    ],
)
@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_pictures_are_written_whole(run: Run, line: str, suffix: str) -> None:
    ended = run(f"{line} --plot out.{suffix}")
    assert ended.code == 0 and f"Wrote out.{suffix}" in ended.out
    content = Path(f"out.{suffix}").read_bytes()
    if suffix == "png":
        assert content.startswith(b"\x89PNG")
    elif suffix == "svg":
        assert ElementTree.fromstring(content).tag.endswith("svg")
    else:
        assert b"<html" in content[:200] and b'src="http' not in content
    assert not list(Path().glob(".out*"))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("certify model.json train.parquet", "must be held out"),
        ("certify model.json heldout.parquet --prevalence most", "--prevalence must be"),
        ("assess model.json heldout.parquet --method guess", "method must be"),
        ("assess model.json heldout.parquet --plot out.pdf", ".png, .svg or .html"),
        ("plan --features 5 --size 4 --count 1 --error 0.9", "error must lie"),
        ("plan --features 5 --size 4 --count 1 --error 0.1 --rows 10 --bags 10 --learners mean", "rows= and bags="),
    ],
)
def test_what_is_refused_is_one_message_and_status_2(run: Run, line: str, sentence: str) -> None:
    ended = run(line)
    assert ended.code == 2 and sentence in ended.err and "Traceback" not in ended.err and not ended.out


def test_a_picture_into_a_folder_that_is_not_there_is_refused(run: Run) -> None:
    with pytest.raises((InvalidInputError, OSError)):
        write_picture(bw.plan(5, 4, 1, 0.1, learners=["mean"]), "nowhere/out.png")
