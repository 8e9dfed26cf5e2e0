"""The documentation as its readers meet it: built strictly, in a real browser, on a laptop and a phone."""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path (Debian: apt-get install chromium)")
LAPTOP, PHONE = {"width": 1366, "height": 820}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    ended = subprocess.run(build, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return folder


def pages(site: Path) -> list[str]:
    """Addresses of the pages below the root of the site."""
    found = (file.relative_to(site).as_posix().removesuffix("index.html") for file in site.rglob("*.html"))
    return sorted(page for page in found if page != "404.html")


# ---------------------------------------------------------------------- without a browser


class Parts(HTMLParser):
    """Ids, and what is linked or embedded, of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            if value and ((tag in ("a", "link") and name == "href") or (tag in ("script", "img") and name == "src")):
                self.targets.append(value)


def test_every_link_is_alive(site: Path) -> None:
    parsed = functools.cache(lambda file: Parts(file.read_text(encoding="utf-8")))
    dead = []
    for page in pages(site):
        file = site / page / "index.html" if not page.endswith(".html") else site / page
        for target in parsed(file).targets:
            path, anchor = urldefrag(target)
            if "://" in path or path.startswith(("mailto:", "data:")):
                continue
            place = (file.parent / unquote(path)).resolve() if path else file
            place = place / "index.html" if place.is_dir() else place
            if not place.exists() or (anchor and place.suffix == ".html" and unquote(anchor) not in parsed(place).ids):
                dead.append((page, target))
    assert not dead


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    for file in sorted((ROOT / "docs").rglob("*.md")):
        page = file.relative_to(ROOT / "docs")
        if page.parts[0] not in (
            "decisions",
            "reproduction",
        ):  # read from pages that point to them, and found by search
            assert page.as_posix() in navigation, f"{page} is not in the nav of mkdocs.yml"


# ---------------------------------------------------------------------- in a browser


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


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
def opened(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens a page in a new window; what it complained of, and what it asked of others, is in ``said``."""
    contexts = []

    def open_page(page_address: str = "", **options: Any) -> Any:
        context = browser.new_context(**({"viewport": LAPTOP, "color_scheme": "light"} | options))
        contexts.append(context)
        context.set_default_timeout(60_000)  # a loaded machine is no fault of the page
        page = context.new_page()
        page.said = []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("requestfailed", lambda request: "ABORTED" in (request.failure or "") or page.said.append(request.url))
        page.on("response", lambda answer: answer.status < 400 or page.said.append(f"{answer.status} {answer.url}"))
        page.on("request", lambda request: request.url.startswith(address) or page.said.append(request.url))
        page.goto(address + page_address)
        return page

    yield open_page
    for context in contexts:
        context.close()


@in_browser
def test_every_page_is_quiet_and_fits_a_laptop_and_a_phone(
    opened: Callable[..., Any], site: Path, address: str
) -> None:
    page = opened()
    for place in pages(site):
        for screen in (LAPTOP, PHONE):
            page.set_viewport_size(screen)
            if screen is LAPTOP:
                page.goto(address + place)
            assert page.locator("article h1").first.is_visible(), place
            assert page.evaluate("document.documentElement.scrollWidth") <= screen["width"], (place, screen)
        assert page.said == [], place


@in_browser
def test_search_finds_a_name_and_goes_there(opened: Callable[..., Any]) -> None:
    page = opened()
    page.locator("[data-md-component=search-query]").click()
    page.keyboard.type("bag_error", delay=20)
    first = page.locator(".md-search-result__link").first
    first.wait_for()
    first.click()
    page.wait_for_url(re.compile(r"\?h="))
    assert "bag_error" in page.locator("article").inner_text()
    assert page.said == []


@in_browser
def test_the_navigation_leads_to_each_guide(opened: Callable[..., Any]) -> None:
    page = opened()
    sidebar = page.locator(".md-sidebar--primary")
    names = re.findall(r"- (.+): guides/", (ROOT / "mkdocs.yml").read_text())
    assert len(names) >= 3
    for name in names:
        sidebar.get_by_role("link", name=name, exact=True).click()
        page.wait_for_url(re.compile("/guides/"))
        assert page.locator("article h1").is_visible() and page.title().startswith(name[:5])
    assert page.said == []


@in_browser
def test_a_phone_opens_the_navigation_from_its_drawer(opened: Callable[..., Any]) -> None:
    page = opened(viewport=PHONE, is_mobile=True, has_touch=True)
    page.locator(".md-header label[for=__drawer]").first.click()
    page.locator(".md-sidebar--primary").get_by_role("link", name="Comparison", exact=True).click()
    page.wait_for_url(re.compile("/comparison/"))
    assert page.locator("article h1").is_visible() and page.said == []


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "place", ["", "guides/wards/", *(pytest.param(p, marks=pytest.mark.slow) for p in ("reference/", "theory/"))]
)
def test_the_pages_are_accessible(opened: Callable[..., Any], place: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened(place, color_scheme=scheme)
    assert page.evaluate("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[scheme]
    found = Axe().run(page).response["violations"]
    serious = [
        (rule["id"], len(rule["nodes"]), rule["nodes"][0]["html"][:200])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []
