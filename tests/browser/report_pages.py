"""Pages of `report` in a browser: nothing is loaded, the console is empty, the slider moves, and
the pages fit a phone, a dark screen and paper. `make test-browser` runs this."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pipelines
from tests.browser.chromium import Tab, browser, served
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
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.parametrize("name", ["plain.html", "hostile.html"])
@pytest.mark.parametrize("scheme", ["file", "http"])
def test_nothing_is_loaded_and_the_console_is_empty(
    tab: Tab, folder: Path, name: str, scheme: str
) -> None:
    with served(folder) as (address, asked):
        url = f"{address}/{name}" if scheme == "http" else (folder / name).as_uri()
        tab.open(url)
        tab.run("scrollTo(0, document.body.scrollHeight)")
        if name == "plain.html":
            tab.run("document.getElementById('size').dispatchEvent(new Event('input'))")
        assert asked == ([f"/{name}"] if scheme == "http" else [])
    assert [request for request in tab.requests if request not in (url, "data:,")] == []
    assert tab.console == []
    assert tab.dialogs == []


def test_hostile_text_stays_text(tab: Tab, folder: Path) -> None:
    tab.open((folder / "hostile.html").as_uri())
    assert tab.run("document.scripts.length") == 1
    assert (
        tab.run("document.querySelectorAll('img, iframe, object, link:not([rel=icon])').length")
        == 0
    )
    assert tab.run("document.title") == "Tokenizer report"
    assert tab.run("document.querySelectorAll('main > section').length") == 9
    shown = tab.run("document.body.innerText")
    assert "</script><img/onerror=alert(1)/src=x>" in shown
    assert "{{7*7}}${7*7}" in shown
    titles = tab.run("[...document.querySelectorAll('svg title')].map(t => t.textContent).join()")
    assert "<svg/onload=" in titles


def test_the_policy_stops_what_would_be_loaded_or_run(tab: Tab, folder: Path) -> None:
    with served(folder) as (address, asked):
        tab.open((folder / "plain.html").as_uri())
        stopped = tab.run(f"fetch('{address}/plain.html').then(() => false, () => true)")
        assert stopped is True
        tab.run(
            "new Promise(done => { const image = new Image(); image.onerror = image.onload = done;"
            f" image.src = '{address}/image.png'; }})"
        )
        tab.run(
            "document.body.insertAdjacentHTML('beforeend',"
            ' \'<p id=try onclick="document.title = 1" style="display: none">x</p>\');'
            "document.getElementById('try').click()"
        )
        assert asked == []
    assert tab.run("document.title") == "Tokenizer report"
    assert tab.run("getComputedStyle(document.getElementById('try')).display") == "block"


def test_the_slider_shows_the_row_of_a_size(tab: Tab, folder: Path) -> None:
    tab.open((folder / "plain.html").as_uri())
    assert tab.run("document.getElementById('choose').hidden") is False
    rows = tab.run("document.querySelectorAll('#by-size tbody tr').length")
    assert rows > 5
    points = "document.querySelectorAll('#sizes .mark-symbol.role-mark path').length"
    assert tab.run(points) == 3 * rows  # tokens per word, whole words, known words
    for at in (0, rows // 2, rows - 1):
        tab.run(
            f"const s{at} = document.getElementById('size'); s{at}.value = {at};"
            f" s{at}.dispatchEvent(new Event('input'))"
        )
        row = f"[...document.querySelectorAll('#by-size tbody tr')[{at}].cells]"
        wanted = tab.run(f"{row}.map(cell => cell.textContent)")
        shown = tab.run("[...document.querySelectorAll('#at-size dd')].map(d => d.textContent)")
        assert shown == wanted
        assert tab.run("document.querySelectorAll('#by-size tr.chosen').length") == 1
        assert tab.run("document.querySelectorAll('#sizes .plot path.chosen').length") == 3


@pytest.mark.parametrize("name", ["plain.html", "hostile.html"])
def test_a_page_fits_a_phone(tab: Tab, folder: Path, name: str) -> None:
    tab.open((folder / name).as_uri(), PHONE)
    assert tab.run("document.documentElement.scrollWidth") == PHONE
    plots = "[...document.querySelectorAll('svg.plot')]"
    assert tab.run(f"{plots}.length") == 6
    assert tab.run(f"{plots}.every(p => p.getBoundingClientRect().right <= {PHONE})") is True
    sizes = f"{plots}.flatMap({LABELS}).map(t => t.getBoundingClientRect().height)"
    assert tab.run(f"Math.min(...{sizes})") >= 10  # pixels: they can be read


def test_no_labels_of_a_plot_overlap(tab: Tab, folder: Path) -> None:
    for width in (PHONE, 1100):
        tab.open((folder / "plain.html").as_uri(), width)
        overlaps = tab.run(
            "[...document.querySelectorAll('svg.plot')]"
            f".flatMap(plot => {{ const boxes = ({LABELS})(plot)"
            ".map(t => [t.textContent, t.getBoundingClientRect()]);"
            " return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>"
            " p.left < q.right && q.left < p.right && p.top + 2 < q.bottom && q.top + 2 < p.bottom)"
            ".map(([b]) => `${plot.getAttribute('aria-label')} ${a} / ${b}`)); })"
        )
        assert overlaps == [], width


def test_a_dark_screen_has_a_dark_page(tab: Tab, folder: Path) -> None:
    colors = []
    for dark in (False, True):
        tab.open((folder / "plain.html").as_uri(), dark=dark)
        colors.append(tab.run("getComputedStyle(document.body).backgroundColor"))
        line = "getComputedStyle(document.querySelector('.plot path[stroke]')).stroke"
        colors.append(tab.run(line))
    assert colors[0] == "rgb(255, 255, 255)"
    assert len({*colors}) == 4


def test_a_page_is_printed_without_what_only_a_screen_has(tab: Tab, folder: Path) -> None:
    tab.open((folder / "plain.html").as_uri(), PHONE, dark=True, media="print")
    for hidden in ("nav", "#choose"):
        assert tab.run(f"getComputedStyle(document.querySelector('{hidden}')).display") == "none"
    assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    printed = tab.pdf()
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000
