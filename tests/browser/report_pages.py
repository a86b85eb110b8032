"""Pages of `report` in a browser: nothing is loaded, the console is empty, the slider moves, and
the pages fit a phone, a dark screen and paper. `make test-browser` runs this."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page

import pipelines
from tests.browser.chromium import browser, served
from tests.pipelines.corpora import english
from tests.pipelines.reporting.hostile import hostile_report

PHONE = 390  # pixels
LABELS = "p => [...p.querySelectorAll('text:not([opacity=\"0\"])')].filter(t => t.textContent)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two pages: of a plain tokenizer, and of one with hostile tokens."""
    place = tmp_path_factory.mktemp("pages")
    rows = [{"text": t, "source": f"source {i % 3}"} for i, t in enumerate(english(400))]
    corpus = place / "corpus.parquet"
    pq.write_table(pa.Table.from_pylist(rows), corpus)
    tokenizer, small = str(place / "tokenizer"), str(place / "small")
    pipelines.train(str(corpus), output=tokenizer, vocab_size=400, quiet=True)
    pipelines.train(str(corpus), output=small, vocab_size=90, quiet=True)
    pipelines.report(
        tokenizer,
        on=str(corpus),
        group_column="source",
        compare_with=small,
        output=str(place / "plain.html"),
        quiet=True,
    )
    hostile = place / "hostile"
    hostile.mkdir()
    Path(hostile_report(hostile).output).rename(place / "hostile.html")
    return place


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Page]:
    with chromium.new_page(viewport={"width": 1100, "height": 900}) as page:
        yield page


def on_phone(tab: Page) -> Page:
    tab.set_viewport_size({"width": PHONE, "height": 900})
    return tab


@pytest.mark.parametrize("name", ["plain.html", "hostile.html"])
@pytest.mark.parametrize("scheme", ["file", "http"])
def test_nothing_is_loaded_and_the_console_is_empty(
    tab: Page, folder: Path, name: str, scheme: str
) -> None:
    events: list[str] = []
    tab.on("request", lambda request: events.append(request.url))
    tab.on("console", lambda message: events.append(message.text))
    tab.on("pageerror", lambda error: events.append(str(error)))
    tab.on("dialog", lambda dialog: (events.append(dialog.message), dialog.dismiss()))
    with served(folder) as (address, asked):
        url = f"{address}/{name}" if scheme == "http" else (folder / name).as_uri()
        tab.goto(url)
        tab.evaluate("scrollTo(0, document.body.scrollHeight)")
        if name == "plain.html":
            tab.evaluate("document.getElementById('size').dispatchEvent(new Event('input'))")
        assert asked == ([f"/{name}"] if scheme == "http" else [])
    assert [event for event in events if event not in (url, "data:,")] == []


def test_hostile_text_stays_text(tab: Page, folder: Path) -> None:
    tab.goto((folder / "hostile.html").as_uri())
    assert tab.evaluate("document.scripts.length") == 1
    assert (
        tab.evaluate(
            "document.querySelectorAll('img, iframe, object, link:not([rel=icon])').length"
        )
        == 0
    )
    assert tab.evaluate("document.title") == "Tokenizer report"
    assert tab.evaluate("document.querySelectorAll('main > section').length") == 6
    shown = tab.evaluate("document.body.innerText")
    assert "</script><img/onerror=alert(1)/src=x>" in shown
    assert "{{7*7}}${7*7}" in shown
    titles = tab.evaluate(
        "[...document.querySelectorAll('svg title')].map(t => t.textContent).join()"
    )
    assert "<svg/onload=" in titles


def test_the_policy_stops_what_would_be_loaded_or_run(tab: Page, folder: Path) -> None:
    with served(folder) as (address, asked):
        tab.goto((folder / "plain.html").as_uri())
        stopped = tab.evaluate(f"fetch('{address}/plain.html').then(() => false, () => true)")
        assert stopped is True
        tab.evaluate(
            "new Promise(done => { const image = new Image(); image.onerror = image.onload = done;"
            f" image.src = '{address}/image.png'; }})"
        )
        tab.evaluate(
            "document.body.insertAdjacentHTML('beforeend',"
            ' \'<p id=try onclick="document.title = 1" style="display: none">x</p>\');'
            "document.getElementById('try').click()"
        )
        assert asked == []
    assert tab.evaluate("document.title") == "Tokenizer report"
    assert tab.evaluate("getComputedStyle(document.getElementById('try')).display") == "block"


def test_the_slider_shows_the_row_of_a_size(tab: Page, folder: Path) -> None:
    tab.goto((folder / "plain.html").as_uri())
    assert tab.evaluate("document.getElementById('choose').hidden") is False
    rows = tab.evaluate("document.querySelectorAll('#by-size tbody tr').length")
    assert rows > 5
    points = "document.querySelectorAll('#sizes .mark-symbol.role-mark path').length"
    assert tab.evaluate(points) == 3 * rows  # tokens per word, whole words, known words
    for at in (0, rows // 2, rows - 1):
        tab.evaluate(
            f"const s{at} = document.getElementById('size'); s{at}.value = {at};"
            f" s{at}.dispatchEvent(new Event('input'))"
        )
        row = f"[...document.querySelectorAll('#by-size tbody tr')[{at}].cells]"
        wanted = tab.evaluate(f"{row}.map(cell => cell.textContent)")
        shown = tab.evaluate(
            "[...document.querySelectorAll('#at-size dd')].map(d => d.textContent)"
        )
        assert shown == wanted
        assert tab.evaluate("document.querySelectorAll('#by-size tr.chosen').length") == 1
        assert tab.evaluate("document.querySelectorAll('#sizes .plot path.chosen').length") == 3


@pytest.mark.parametrize("name", ["plain.html", "hostile.html"])
def test_a_page_fits_a_phone(tab: Page, folder: Path, name: str) -> None:
    on_phone(tab).goto((folder / name).as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") == PHONE
    plots = "[...document.querySelectorAll('svg.plot')]"
    assert tab.evaluate(f"{plots}.length") == 3
    assert tab.evaluate(f"{plots}.every(p => p.getBoundingClientRect().right <= {PHONE})") is True
    sizes = f"{plots}.flatMap({LABELS}).map(t => t.getBoundingClientRect().height)"
    assert tab.evaluate(f"Math.min(...{sizes})") >= 10  # pixels: they can be read


def test_no_labels_of_a_plot_overlap(tab: Page, folder: Path) -> None:
    for width in (PHONE, 1100):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto((folder / "plain.html").as_uri())
        overlaps = tab.evaluate(
            "[...document.querySelectorAll('svg.plot')]"
            f".flatMap(plot => {{ const boxes = ({LABELS})(plot)"
            ".map(t => [t.textContent, t.getBoundingClientRect()]);"
            " return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>"
            " p.left < q.right && q.left < p.right && p.top + 2 < q.bottom && q.top + 2 < p.bottom)"
            ".map(([b]) => `${plot.getAttribute('aria-label')} ${a} / ${b}`)); })"
        )
        assert overlaps == [], width


def test_a_dark_screen_has_a_dark_page(tab: Page, folder: Path) -> None:
    colors = []
    tab.goto((folder / "plain.html").as_uri())
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        colors.append(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
        line = "getComputedStyle(document.querySelector('.plot path[stroke]')).stroke"
        colors.append(tab.evaluate(line))
    assert colors[0] == "rgb(255, 255, 255)"
    assert len({*colors}) == 4


def test_a_page_is_printed_without_what_only_a_screen_has(tab: Page, folder: Path) -> None:
    on_phone(tab).goto((folder / "plain.html").as_uri())
    tab.emulate_media(color_scheme="dark", media="print")
    for hidden in ("nav", "#choose"):
        assert (
            tab.evaluate(f"getComputedStyle(document.querySelector('{hidden}')).display") == "none"
        )
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    printed = tab.pdf(print_background=True)
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000
