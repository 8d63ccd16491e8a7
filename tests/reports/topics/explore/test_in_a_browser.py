"""Explore in a Chromium: filters, addresses of views, comparisons as Python makes them, and all without scripts."""

import math
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from reports.display.html import seconds
from reports.topics.explore.metrics import METRICS
from reports.topics.explore.model import Point, points
from reports.topics.explore.page import main
from suite.files.paths import ROOT
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Estimate, ratio_of
from tests.fixtures.machines.browser import Browser, Tab
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import full_results, stack_results, sweep_results
from tests.reports.topics.explore.test_model import version_of

SCRIPT = ROOT / "book" / "theme" / "assets" / "explore.js"
STYLE = ROOT / "book" / "theme" / "assets" / "report.css"
MIN_ROW_PX = 15
VISIBLE = "[...document.querySelectorAll('.explore tbody tr')].filter((row) => !row.hidden)"
VIEW = (
    "({selects: [...document.querySelectorAll('.explore select')].map((select) => select.value),"
    f" rows: {VISIBLE}.map((row) => row.innerText),"
    " points: document.querySelectorAll('.explore .point').length,"
    " few: document.querySelectorAll('.explore .point.few').length,"
    " intervals: document.querySelectorAll('.explore .interval').length,"
    " said: document.querySelector('.explore [role=status]').textContent,"
    " address: location.hash})"
)

RATIOS = """(() => {
  const data = JSON.parse(document.querySelector('.explore script').textContent);
  const found = [];
  for (const metric of data.metrics) data.points.forEach((one, first) => data.points.forEach((other, second) => {
    if (first !== second && !whyNot(one, other, metric, data))
      found.push([metric.key, first, second, ratioOf(one, other, metric, data)]);
  }));
  return found;
})()"""


def write_page(markup: str, folder: Path) -> Path:
    """Write the part of the page that a topic makes, with the script and the style of the theme."""
    path = folder / "explore.html"
    path.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Explore</title>'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="{STYLE.as_uri()}"><script defer src="{SCRIPT.as_uri()}"></script></head>'
        f"<body><main>{markup}</main></body></html>",
        encoding="utf-8",
    )
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explore")
    return write_page(main(version_of(full_results(), folder / "results")).markup, folder)


def pick(tab: Tab, name: str, value: str) -> None:
    tab.value(
        f"(() => {{ const select = document.getElementById('explore-{name}'); select.value = '{value}';"
        " select.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def compare(tab: Tab, key: str) -> None:
    """Press the button of the row whose samples have this key."""
    tab.value(f"document.querySelector('a[href$=\"{key}.json\"]').closest('tr').querySelector('button').click()")


def ratio(over: Point, under: Point, key: str) -> Estimate:
    """The ratio of the figures, with the interval of the set's model, or of ``ratio_of`` for what it has none of."""
    value = over.figures[key].value / under.figures[key].value
    metric = next(metric for metric in METRICS if metric.key == key)
    first, second = over.samples[metric.sample], under.samples[metric.sample]
    if metric.power < 0:
        first, second = second, first
    half_width = over.half_widths.get(under.key, under.half_widths.get(over.key))
    if metric.sample == "time" and half_width is not None:
        return Estimate(value=value, interval=(value * math.exp(-half_width), value * math.exp(half_width)))
    return ratio_of(first, second, factor=value / ratio_of(first, second).value)


def test_a_view_is_chosen_stands_in_the_address_and_opens_again(page: Path, browser: Browser) -> None:
    tab = Tab.opened(browser, page.as_uri(), width=1440)
    assert len(tab.value(VIEW)["rows"]) == 8  # of the task with most points
    pick(tab, "task", "Cartpole")
    pick(tab, "library", "rl_games")
    pick(tab, "metric", "efficiency")
    pick(tab, "x", "envs")
    compare(tab, "rl_games-kitless-n8192-1x2")
    compare(tab, "rl_games-kitless-n8192-1x4")
    view = tab.value(VIEW)
    assert view["selects"] == ["Cartpole", "rl_games", "", "", "", "as shipped", "efficiency", "envs"]
    assert (len(view["rows"]), view["points"]) == (4, 4)
    assert (view["few"], view["intervals"]) == (1, 2)  # two runs; two others and the baseline, which has no interval
    assert all("Cartpole, rl_games" in row for row in view["rows"])
    assert view["address"].startswith(
        "#task=Cartpole&library=rl_games&settings=as+shipped&metric=efficiency&x=envs&compare="
    )
    again = Tab.opened(browser, page.as_uri() + view["address"], width=1440)
    assert again.value(VIEW) == view
    pick(again, "gpus", "4")
    assert len(again.value(VIEW)["rows"]) == 1
    again.value(f"location.hash = '{view['address']}'")
    again.wait_for(f"{VISIBLE}.length === 4")
    assert again.value(VIEW) == view
    assert tab.complaints == again.complaints == []


@pytest.mark.parametrize("key", ["fps", "gpu-hours", "efficiency", "start"])
def test_two_points_have_the_ratio_that_python_has(page: Path, browser: Browser, tmp_path: Path, key: str) -> None:
    found = {point.key: point for point in points(version_of(full_results(), tmp_path))}
    first, second = (f"cartpole-strong/rsl_rl-kitless-n8192-1x{gpus}" for gpus in (4, 1))
    tab = Tab.opened(browser, f"{page.as_uri()}#metric={key}&compare={first}&compare={second}", width=1440)
    expected = ratio(found[first], found[second], key)
    assert expected.interval is not None
    low, high = map(seconds, expected.interval)
    said = tab.value(VIEW)["said"]
    assert f"the first is {seconds(expected.value)} times the second (95% interval {low} to {high})." in said
    assert tab.complaints == []


@pytest.mark.parametrize(
    ("metric", "second", "why"),
    [
        ("fps", "ant-weak/rsl_rl-kitless-n1024-1x1", "They are different tasks"),
        ("fps", "cartpole-strong/rl_games-kitless-n8192-1x8", "has 2 of the 3 runs that an interval needs"),
        ("speedup", "cartpole-strong/rl_games-kitless-n8192-1x4", "They are relative to different baselines"),
        ("energy", "cartpole-strong/rsl_rl-kitless-n8192-1x4", "is not known"),
    ],
)
def test_points_that_do_not_compare_say_why(page: Path, browser: Browser, metric: str, second: str, why: str) -> None:
    first = "cartpole-strong/rsl_rl-kitless-n8192-1x1"
    tab = Tab.opened(browser, f"{page.as_uri()}#metric={metric}&compare={first}&compare={second}", width=1440)
    said = tab.value(VIEW)["said"]
    assert "They may not be compared. " in said
    assert why in said


def test_points_of_two_campaigns_do_not_compare(browser: Browser, tmp_path: Path) -> None:
    version = committed_version()
    address = write_page(main(version).markup, tmp_path).as_uri()
    first = "h200-x4-full/ant-weak/rl_games-kitless-n1024-1x1"
    again = ("h200-ant-envs/ant-envs/rl_games-kitless-n1024-1x1", "h200-physx/ant-physics/rl_games-kitless-n1024-1x1")
    for keys, why in (
        (
            (first, "h200-x4-rsl/ant-weak/rsl_rl-kitless-n1024-1x1"),
            " 4 x H200, 64 vCPU, 22 Nov 2026, 08:22, the second on 4 x H200, 64 vCPU, 22 Nov 2026, 14:27; ",
        ),
        ((first, "h100-x2-first/ant-weak/rl_games-kitless-n1024-1x1"), "the second on 2 x H100 80GB HBM3, "),
        (again, "Both ran on 1 x H200, 16 vCPU, 22 Nov 2026, 17:41, in two campaigns, "),
    ):
        tab = Tab.opened(browser, f"{address}#metric=fps&{'&'.join(f'compare={key}' for key in keys)}", width=1440)
        said = tab.value(VIEW)["said"]
        assert "They were not measured on one machine in one campaign." in said
        assert why in said


def test_points_are_chosen_by_mouse_and_by_keyboard_and_cleared(page: Path, browser: Browser) -> None:
    tab = Tab.opened(browser, f"{page.as_uri()}#task=Cartpole&metric=fps&x=gpus", width=1440)
    tab.click(".explore .point")
    assert tab.value("document.querySelectorAll('.explore .point.chosen').length") == 1
    assert "Choose a second point" in tab.value(VIEW)["said"]
    tab.value(f"{VISIBLE}.at(-1).querySelector('button').focus()")
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)
    assert tab.value("document.querySelectorAll('.explore [aria-pressed=true]').length") == 2
    assert tab.value(VIEW)["address"].count("compare=") == 2
    tab.click(".comparison button")
    assert tab.value("document.querySelectorAll('.explore .chosen').length") == 0
    assert "compare=" not in tab.value(VIEW)["address"]


def test_what_was_not_measured_together_cannot_be_chosen(browser: Browser, tmp_path: Path) -> None:
    results = [*stack_results(), *sweep_results()]
    markup = main(version_of(results, tmp_path / "results")).markup
    tab = Tab.opened(browser, write_page(markup, tmp_path).as_uri() + "#task=Ant&metric=fps", width=1440)
    options = "[...document.querySelectorAll('.explore option:disabled')].map((option) => option.textContent)"
    assert tab.value(options) == ["2", "PhysX (no Isaac Sim)"]
    pick(tab, "task", "")
    assert tab.value(options) == []


def test_a_metric_that_nothing_has_leaves_the_view_empty(page: Path, browser: Browser) -> None:
    tab = Tab.opened(browser, f"{page.as_uri()}#task=Ant&metric=energy&x=gpus", width=390)
    view = tab.value(VIEW)
    assert (view["rows"], view["points"]) == ([], 0)
    assert "Of 8 more this metric is not known" in tab.value("document.querySelector('.legend').textContent")
    assert tab.value("document.documentElement.scrollWidth") <= 390


def test_every_pair_of_the_published_version_is_as_python_has_it(browser: Browser, tmp_path: Path) -> None:
    version = committed_version()
    found = points(version)
    tab = Tab.opened(browser, write_page(main(version).markup, tmp_path).as_uri(), width=1440)
    ratios: list[list[Any]] = tab.value(RATIOS)
    assert {(key, one, other) for key, one, other, _ in ratios} == {
        (metric.key, one, other)
        for metric in METRICS
        for one, other in permutations(range(len(found)), 2)
        if may_be_compared(found[one], found[other], metric.key)
    }
    assert len(ratios) > 500
    for key, one, other, said in ratios:
        expected = ratio(found[one], found[other], key)
        assert [said["value"], said["low"], said["high"]] == pytest.approx(
            [expected.value, *(expected.interval or ())], rel=2e-4
        )


def may_be_compared(one: Point, other: Point, key: str) -> bool:
    metric = next(metric for metric in METRICS if metric.key == key)
    if key not in one.figures or key not in other.figures or one.together != other.together or one.task != other.task:
        return False
    if key in ("speedup", "efficiency") and one.baseline != other.baseline:
        return False
    if key == "reward" and one.reward != other.reward:
        return False
    return min(len(point.samples[metric.sample]) for point in (one, other)) >= MIN_ROUNDS_FOR_INTERVAL


def test_without_scripts_the_table_is_whole(page: Path, browser: Browser) -> None:
    live = Tab.opened(browser, page.as_uri(), width=1440)
    num_columns = live.value("document.querySelectorAll('.explore thead th:not([hidden])').length")
    tab = Tab.opened(browser, page.as_uri(), width=1440, scripts=False)
    assert (
        tab.value("document.querySelectorAll('.explore thead th:not([hidden])').length")
        == num_columns + len(METRICS) - 1
    )
    phone = Tab.opened(browser, page.as_uri(), width=390, scripts=False)
    for still in (tab, phone):
        heights = still.value(f"{VISIBLE}.map((row) => row.getBoundingClientRect().height)")
        assert len(heights) == 16
        assert min(heights) > MIN_ROW_PX
        controls = "[...document.querySelectorAll('.explore :is(form, figure, .comparison)')]"
        assert still.value(f"{controls}.map((part) => part.getBoundingClientRect().height)") == [0, 0, 0]
        assert still.value("document.querySelectorAll('.explore td button').length") == 0
        assert still.complaints == []
    assert phone.value("document.documentElement.scrollWidth") <= 390
