"""What the texts show runs: every Python and shell block of the README and of the documentation's pages."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.M | re.S)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem)
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__page__"}
    for number, block in enumerate(blocks(page, "python")):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")], ids=lambda page: page.stem)
def test_the_shell_of_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    lines = [line for block in blocks(page, "sh") for line in block.splitlines() if not line.startswith("make ")]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(
        ["sh", "-eu", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_the_first_screen_of_the_readme_is_a_run() -> None:
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:40])
    assert "make demo" in first_screen and ".fit(" in first_screen


def test_the_demo_shows_what_the_readme_shows(tmp_path: Path) -> None:
    demo = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py", tmp_path], capture_output=True, text=True, check=True
    ).stdout
    row = re.compile(r"^(\w+) +(totals of bags|label of each row) +([\d.]+) % +([\d.]+) %", flags=re.M)
    shown, found = (row.findall(text) for text in ((ROOT / "README.md").read_text(), demo))
    assert [line[:2] for line in found] == [line[:2] for line in shown] and len(found) == 3
    for now, then in zip(found, shown, strict=True):
        # Another machine rounds otherwise: a boundary moves by less than a tenth of its error, a bag or two tip over.
        assert abs(float(now[2]) - float(then[2])) <= 0.02 + 0.1 * float(then[2])
        assert abs(float(now[3]) - float(then[3])) <= 0.5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_between_files_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_make_target_that_the_texts_name_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.M))
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for named in re.findall(r"(?:`|^ {4})make ([a-z ]+)(?:`|\s)", page.read_text(), flags=re.M):
            assert set(named.split()) <= targets, (page, named)
    assert "make test" in (ROOT / ".ci" / "run").read_text()
