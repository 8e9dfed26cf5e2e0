"""The page of results in a real browser: that it shows, filters, sorts, tells, prints, and lets nobody else speak."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bagwise.errors import InvalidInputError
from bagwise.lab.report import tables_with_results, write_page
from bagwise.lab.results import Results, Row
from bagwise.lab.runner import jobs_of, run, run_jobs, tables_named
from bagwise.lab.tables import TABLES, Cell

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path (Debian: apt-get install chromium)")
PROGRAM = Path(sys.executable).with_name("bagwise")
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\" onload=\"{{ 7 * 7 }}"
LAPTOP, PHONE = {"width": 1366, "height": 820}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real runs of small cells in three tables; among the rows those of someone who means harm."""
    folder = tmp_path_factory.mktemp("results")
    jobs = jobs_of(tables_named(["table1"]), 2, only="d=10/q=3") + jobs_of(tables_named(["table1"]), 2, only="d=10/q=2")
    jobs += jobs_of(tables_named(["homogeneous"]), 2, only="centred/d=10/q=3/k=1/m=100")
    jobs += jobs_of(tables_named(["flips-centred"]), 1, only="d=10/q=2/k=1/m=100")
    assert not run_jobs(jobs, folder).failed
    written = Results(folder)
    honest = run(jobs[0].cell, "A2", 2)
    written.append(replace(honest, note=HOSTILE, machine={HOSTILE: HOSTILE}, commit=HOSTILE))
    written.append(replace(honest, dataset=3, accuracy=None, error=None, failure=HOSTILE))
    written.append(replace(honest, learner=HOSTILE))
    return folder


@pytest.fixture(scope="module")
def page_file(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    assert write_page(results, path, title=HOSTILE) == ["table1", "homogeneous", "homogeneous-sdp", "flips-centred"]
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync", "--no-sandbox"]  # root, as in CI, cannot have a sandbox
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Any, page_file: Path) -> Iterator[Any]:
    """Opens the page in a new window; what it asked for and complained of is in ``said``."""
    contexts = []

    def open_page(**options: Any) -> Any:
        context = browser.new_context(**({"viewport": LAPTOP, "color_scheme": "light"} | options))
        contexts.append(context)
        context.set_default_timeout(120_000)  # a loaded machine is no fault of the page
        page = context.new_page()
        page.said = []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("dialog", lambda dialog: page.said.append(dialog.message))
        page.on("request", lambda request: page.said.append(request.url))
        page.goto(page_file.as_uri())
        if options.get("java_script_enabled", True):
            page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()


def visible_lines(page: Any, table: str) -> list[dict[str, str]]:
    """Head of column -> text, of each visible line of the first table in a section."""
    return page.evaluate(  # type: ignore[no-any-return]
        """name => {
          const table = document.querySelector(`section[data-table="${name}"] table`);
          const shown = (x) => x.offsetParent !== null;
          const heads = [...table.tHead.rows[0].cells];
          return [...table.tBodies[0].rows].filter(shown).map(line => Object.fromEntries(
            [...line.cells].map((cell, i) => [heads[i].innerText.replace(/[^\\w ]/g, "").trim(), cell])
              .filter(([, cell]) => shown(cell)).map(([head, cell]) => [head, cell.innerText])));
        }""",
        table,
    )


def first_number(text: str) -> float:
    return float(text.split()[0])


# ---------------------------------------------------------------------- what is on it


@in_browser
def test_it_needs_nothing_but_itself_and_runs_nobody_elses_code(opened: Any, page_file: Path) -> None:
    page = opened()
    for grid in page.query_selector_all(".plots"):
        grid.scroll_into_view_if_needed()
    page.locator(".plot .main-svg").nth(4).wait_for()
    assert page.said == [page_file.as_uri()], "one request, no word of complaint"
    assert page.evaluate("window.hacked") is None
    assert page.inner_text("h1") == page.title() == HOSTILE
    assert HOSTILE in page.inner_text("#repeat") and HOSTILE in page.inner_text("#machine")
    assert page.query_selector_all("img") == []


@in_browser
def test_without_scripts_the_tables_are_there(opened: Any) -> None:
    page = opened(java_script_enabled=False)
    assert page.is_visible('section[data-table="table1"] table')
    assert not page.is_visible("#filters form"), "a filter that does nothing is not shown"


@in_browser
def test_numbers_on_it_are_those_of_the_rows(opened: Any, results: Path) -> None:
    rows = Results(results)
    rows.refresh()
    cell = Cell("centred", False, 0.0, 10, 3, 1, 2000)
    mean = [100 * row.accuracy for row in rows.rows.values() if row.cell == cell and row.learner == "A2"]  # type: ignore[operator]
    line = next(line for line in visible_lines(opened(), "table1") if line["q"] == "3")
    assert first_number(line["A2"]) == pytest.approx(sum(mean) / len(mean), abs=0.006)
    assert "98.27" in line["A2"], "the published number stands under it"


# ---------------------------------------------------------------------- what a reader does


@in_browser
def test_filters_leave_what_was_asked_for(opened: Any) -> None:
    page = opened()
    assert [line["q"] for line in visible_lines(page, "table1")] == ["2", "3"]
    page.select_option('select[name="q"]', "3")
    assert [line["q"] for line in visible_lines(page, "table1")] == ["3"]
    page.select_option('select[name="learner"]', "A2")
    assert set(visible_lines(page, "table1")[0]) == {"d", "q", "k", "A2", "repeat"}
    assert not page.is_visible('section[data-table="flips-centred"]'), "it has no bags of three"
    page.select_option('select[name="table"]', "homogeneous")
    assert not page.is_visible('section[data-table="table1"]')
    assert page.is_visible('section[data-table="homogeneous"]')
    drawn = "[...document.querySelectorAll('.plot')].filter(plot => plot.offsetParent && plot.data)"
    plotted = page.evaluate(f"{drawn}.flatMap(plot => plot.data.map(trace => trace.name))")
    assert set(plotted) <= {"A2", "A2, published", None} and "A2" in plotted
    page.click('button[type="reset"]')
    page.wait_for_selector('section[data-table="table1"]', state="visible")
    assert [line["q"] for line in visible_lines(page, "table1")] == ["2", "3"]


@in_browser
def test_filters_by_law_and_k_and_tell_how_much_is_left(opened: Any) -> None:
    page = opened()
    everything = page.inner_text("#shown")
    page.select_option('select[name="law"]', "general")
    titles = [h.inner_text() for h in page.query_selector_all("h3") if h.is_visible() and "Gaussian" in h.inner_text()]
    assert titles and all(title.startswith("General") for title in titles)
    page.select_option('select[name="k"]', "1")
    left, total = (int(number) for number in re.findall(r"\d+", page.inner_text("#shown")))
    assert left < total and everything == f"{total} of {total} lines"


@in_browser
def test_a_click_on_a_head_sorts_and_another_one_turns(opened: Any) -> None:
    page = opened()
    head = 'section[data-table="homogeneous"] th[data-learner="R"] button'
    page.click(head)
    up = [first_number(line["R"]) for line in visible_lines(page, "homogeneous")]
    assert len(up) > 2 and up == sorted(up)
    page.click(head)
    down = [first_number(line["R"]) for line in visible_lines(page, "homogeneous")]
    assert down == up[::-1]
    heads = page.query_selector_all('section[data-table="homogeneous"] table:first-of-type th[aria-sort]')
    assert [h.get_attribute("aria-sort") for h in heads] == ["descending"]


@in_browser
def test_sorting_by_keyboard_follows_the_numbers_that_are_shown(opened: Any) -> None:
    page = opened()
    page.select_option('select[name="measure"]', "seconds")
    page.focus('section[data-table="homogeneous"] th[data-learner="R"] button')
    page.keyboard.press("Enter")
    seconds = [first_number(line["R"]) for line in visible_lines(page, "homogeneous")]
    assert seconds == sorted(seconds)


@in_browser
def test_hovering_tells_the_numbers(opened: Any) -> None:
    page = opened()
    plot = page.query_selector(".plot")
    plot.scroll_into_view_if_needed()
    page.wait_for_selector(".plot .points path.point")
    box = page.query_selector(".plot .points path.point").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2 - 1, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector(".plot .hoverlayer .hovertext")
    told = page.text_content(".plot .hoverlayer")
    assert re.search(r"accuracy \d+\.\d\d", told) and "exact error" in told and "data sets" in told


@in_browser
def test_print_shows_the_tables_and_all_plots_and_no_controls(opened: Any, tmp_path: Path) -> None:
    page = opened(color_scheme="dark")
    page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    empty = "[...document.querySelectorAll('figure:not([hidden]) .plot')].filter(p => !p.querySelector('svg')).length"
    assert page.evaluate(empty) == 0, "also those that nobody has scrolled to"
    page.emulate_media(media="print")
    assert not page.is_visible("#filters") and not page.is_visible("nav") and not page.is_visible("#theme")
    assert page.is_visible('section[data-table="table1"] table')
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@in_browser
def test_every_line_gives_the_command_that_repeats_it(opened: Any, results: Path, tmp_path: Path) -> None:
    page = opened()
    page.click('section[data-table="flips-centred"] tbody tr:first-child button[data-command]')
    page.wait_for_selector("#said:not(:empty)")
    command = page.inner_text("#said").removeprefix("Copied: ")
    assert command.startswith("bagwise reproduce flips-centred --only centred/flip=0.1/d=10/q=2/k=1/m=100 ")
    line = [PROGRAM if word == "bagwise" else word for word in command.split()]
    subprocess.run(line, cwd=tmp_path, check=True, capture_output=True)
    first, again = Results(results), Results(tmp_path / "again")
    first.refresh(), again.refresh()
    measured = {key: (row.accuracy, row.error) for key, row in again.rows.items() if key[2] == 0}
    assert measured and measured == {key: (first.rows[key].accuracy, first.rows[key].error) for key in measured}


# ---------------------------------------------------------------------- how it looks


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_anyone_can_use_it(opened: Any, size: dict[str, int], scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened(viewport=size, color_scheme=scheme)
    page.locator(".plot").first.scroll_into_view_if_needed()  # plots are drawn when they come near
    page.wait_for_selector(".plot svg")
    found = Axe().run(page).response["violations"]
    told = [f"{v['id']}: {v['help']}: {[node['target'] for node in v['nodes'][:3]]}" for v in found]
    assert told == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
        "wide tables scroll by themselves"
    )
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")


@in_browser
def test_the_theme_can_be_chosen(opened: Any) -> None:
    page = opened(color_scheme="light")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.click("#theme")
    assert page.evaluate(colour) != light
    page.click("#theme")
    assert page.evaluate(colour) == light


# ---------------------------------------------------------------------- without a browser


def test_it_refers_to_nothing_outside(page_file: Path) -> None:
    text = page_file.read_text("utf-8")
    head = text[: text.index("<style>")]
    assert "default-src 'none'" in head, "whatever the scripts hold, the browser fetches nothing"
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=(?!\"data:)", text[: text.index("<script>")])
    assert "window.hacked" not in re.sub(r"&lt;script&gt;window.hacked|onerror=&#39;window.hacked", "", text)


def test_a_folder_without_rows_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"there is no runs\.jsonl in it\. Make some: bagwise reproduce table1"):
        write_page(tmp_path, tmp_path / "report.html", title="")
    Results(tmp_path).append(Row(Cell("centred", False, 0.0, 3, 3, 1, 5), "A2", 0, "1/0", 0.9, 0.1, 0.1))
    with pytest.raises(InvalidInputError, match="the 1 there belong to none"):
        write_page(tmp_path, tmp_path / "report.html", title="")
    assert not (tmp_path / "report.html").exists()


def test_tables_are_found_by_their_rows(results: Path) -> None:
    rows = Results(results)
    rows.refresh()
    assert TABLES["table1"] in tables_with_results(list(rows.rows.values()))


def test_the_program_writes_it(results: Path, tmp_path: Path) -> None:
    line = [PROGRAM, "report", results, "-o", tmp_path / "page.html", "--title", "Mine", "--json"]
    out = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    assert out["tables"][0] == "table1" and out["bytes"] == (tmp_path / "page.html").stat().st_size
    assert "<h1>Mine</h1>" in (tmp_path / "page.html").read_text("utf-8")
    refused = subprocess.run([PROGRAM, "report", tmp_path, "-o", tmp_path / "x.html"], capture_output=True, text=True)
    assert refused.returncode == 2 and "Traceback" not in refused.stderr and "bagwise reproduce" in refused.stderr
