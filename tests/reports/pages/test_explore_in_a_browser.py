"""Explore in a Chromium: filters, orders, addresses of views, every value of the figures, and all without scripts."""

import math
from pathlib import Path

import pytest

from reports.pages.explore import MAIN, main
from reports.sets.version import read_version
from tests.fixtures.machines.browser import Browser, Tab, write_page
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import full_results, stack_results, sweep_results, write_results

MIN_ROW_PX = 15
VISIBLE = "[...document.querySelectorAll('.explore tbody tr')].filter((row) => !row.hidden)"
VIEW = (
    "({selects: [...document.querySelectorAll('.explore select')].map((select) => select.value),"
    f" rows: {VISIBLE}.map((row) => row.innerText),"
    " points: document.querySelectorAll('.explore .point').length,"
    " few: document.querySelectorAll('.explore .point.few').length,"
    " intervals: document.querySelectorAll('.explore .interval').length,"
    " panels: [...document.querySelectorAll('.explore .panel')].map((title) => title.textContent),"
    " said: document.querySelector('.explore [role=status]').textContent,"
    " address: location.hash})"
)

POINTS = (  # of the fastest first: the value, and pixels from the top
    "[...document.querySelectorAll('.explore .point')].map((point) => ["
    "Number(point.textContent.split('\\n')[1].split(' ')[0].replaceAll(',', '')), Number(point.getAttribute('cy'))"
    "]).sort((one, other) => other[0] - one[0])"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explore")
    version = read_version(write_results(full_results(), folder / "results"), name="v")
    return write_page(main(version).markup, folder / "explore.html")


def pick(tab: Tab, name: str, value: str) -> None:
    tab.value(
        f"(() => {{ const select = document.getElementById('explore-{name}'); select.value = '{value}';"
        " select.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def test_a_view_is_chosen_stands_in_the_address_and_opens_again(page: Path, browser: Browser) -> None:
    tab = Tab.opened(browser, page.as_uri(), width=1440)
    assert len(tab.value(VIEW)["rows"]) == 8  # of the task with most configurations
    pick(tab, "task", "Cartpole")
    pick(tab, "library", "rl_games")
    pick(tab, "metric", "share_kept")
    pick(tab, "x", "gpus")
    pick(tab, "sort", "least")
    view = tab.value(VIEW)
    assert view["selects"] == ["Cartpole", "rl_games", "", "", "", "as shipped", "", "share_kept", "gpus", "least"]
    assert (len(view["rows"]), view["points"]) == (3, 3)
    assert (view["few"], view["intervals"]) == (1, 2)  # of two runs, and of three
    assert all("Cartpole, rl_games" in row for row in view["rows"])
    assert "Of 1 more this metric is not known" in view["said"]  # the baseline
    assert view["address"] == (
        "#task=Cartpole&library=rl_games&settings=as+shipped&metric=share_kept&x=gpus&sort=least"
    )
    again = Tab.opened(browser, page.as_uri() + view["address"], width=1440)
    assert again.value(VIEW) == view
    again.click(".explore .point")
    assert again.value("document.querySelectorAll('.explore tr.chosen').length") == 1
    pick(again, "gpus", "4")
    assert len(again.value(VIEW)["rows"]) == 1
    again.value(f"location.hash = '{view['address']}'")
    again.wait_for(f"{VISIBLE}.length === 3")
    assert again.value(VIEW) == view
    assert tab.complaints == again.complaints == []


def test_rows_are_ordered_by_the_metric_and_each_gpu_model_has_a_panel(browser: Browser, tmp_path: Path) -> None:
    page = write_page(main(committed_version()).markup, tmp_path / "explore.html")
    tab = Tab.opened(browser, f"{page.as_uri()}#task=Ant&metric=frames_per_s&sort=most", width=1440)
    texts = f"{VISIBLE}.map((row) => row.cells[6].querySelector('data').textContent)"
    shown = f"{texts}.map((text) => Number(text.split(' ')[0].replaceAll(',', '')))"
    frames = tab.value(shown)
    assert len(frames) > 20
    assert frames == sorted(frames, reverse=True)
    assert tab.value(VIEW)["panels"] == [
        "H100 80GB HBM3: Speed, frames/s, log scale",
        "H200: Speed, frames/s, log scale",
    ]
    # As high as its logarithm, so that those of slow configurations do not lie on each other.
    (fastest, top), *others = tab.value(POINTS)
    slopes = [(place - top) / math.log(fastest / speed) for speed, place in others if speed < fastest]
    assert slopes == pytest.approx([slopes[0]] * len(slopes))
    assert slopes[0] > 0
    pick(tab, "gpu", "H200")
    assert tab.value(VIEW)["panels"] == ["H200: Speed, frames/s, log scale"]
    pick(tab, "metric", "share_kept")
    assert tab.value(VIEW)["panels"] == ["H200: Share of ideal"]


def test_what_no_configuration_has_cannot_be_chosen(browser: Browser, tmp_path: Path) -> None:
    results = [*stack_results(), *sweep_results()]
    markup = main(read_version(write_results(results, tmp_path / "results"), name="v")).markup
    tab = Tab.opened(
        browser, write_page(markup, tmp_path / "explore.html").as_uri() + "#task=Ant&metric=frames_per_s", width=1440
    )
    options = "[...document.querySelectorAll('.explore option:disabled')].map((option) => option.textContent)"
    assert tab.value(options) == ["2", "PhysX (no Isaac Sim)"]
    pick(tab, "task", "")
    assert tab.value(options) == []
    metrics = tab.value("[...document.getElementById('explore-metric').options].map(({value}) => value)")
    assert "learn_share" in metrics
    assert "power_w" not in metrics


def test_without_scripts_the_table_is_whole(page: Path, browser: Browser) -> None:
    live = Tab.opened(browser, page.as_uri(), width=1440)
    headings = "document.querySelectorAll('.explore thead th:not([hidden])').length"
    num_columns = live.value(headings)
    tab = Tab.opened(browser, page.as_uri(), width=1440, scripts=False)
    assert tab.value(headings) == num_columns + len(MAIN) - 1
    phone = Tab.opened(browser, page.as_uri(), width=390, scripts=False)
    for still in (tab, phone):
        heights = still.value(f"{VISIBLE}.map((row) => row.getBoundingClientRect().height)")
        assert len(heights) == 16
        assert min(heights) > MIN_ROW_PX
        controls = "[...document.querySelectorAll('.explore :is(form, figure)')]"
        assert still.value(f"{controls}.map((part) => part.getBoundingClientRect().height)") == [0, 0]
        assert still.complaints == []
    assert phone.value("document.documentElement.scrollWidth") <= 390
    live = Tab.opened(browser, f"{page.as_uri()}#task=Ant&metric=learn_share&x=gpus", width=390)
    cell = f"getComputedStyle({VISIBLE}[0].cells[6], '::before').content"
    assert live.value(cell) == '"Learning, share of an iteration"'
    assert live.value("document.documentElement.scrollWidth") <= 390
