"""How many environments fill a GPU, as a card of the first page."""

from reports.analysis.curves import task_name
from reports.display.card import Card
from reports.sets.version import ResultSet, Version
from reports.topics.cost.sizes import SizeChoice, size_choices
from suite.files.wording import counted
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL


def card(version: Version) -> Card | None:
    """Of the sweep that goes to the most environments, of those with intervals if there are any; None without one."""
    found = choice_of_card(version)
    return None if found is None else _card(*found)


def choice_of_card(version: Version) -> tuple[ResultSet, SizeChoice] | None:
    """The sizes that the card is of, and their set."""
    found = [(one, choice) for one in version.scaling for choice in _choices(one)]
    return max(found, key=lambda each: (_has_intervals(each[1]), each[1].sizes[-1].num_envs), default=None)


def _choices(one: ResultSet) -> list[SizeChoice]:
    series = [one.campaign.series(name) for name in one.campaign.series_names]
    sweeps = [each for each in series if each.is_sweep and each.is_training and each.results[0].case.device == "cuda"]
    return [choice for each in sweeps for choice in size_choices(each.results)]


def _has_intervals(choice: SizeChoice) -> bool:
    return min(size.rounds for size in choice.sizes) >= MIN_ROUNDS_FOR_INTERVAL


def _card(one: ResultSet, choice: SizeChoice) -> Card:
    task = next(task_name(result.case.task) for result in one.campaign.results if result.case.series == choice.series)
    largest = choice.sizes[-1]
    is_rising = choice.enough.number == largest.num_envs
    title = (
        f"One GPU is not full at {largest.num_envs:,} environments"
        if is_rising
        else f"{choice.enough.number:,} environments fill one GPU"
    )
    most = max(size.total_fps for size in choice.sizes)
    runs = sorted({size.rounds for size in choice.sizes})
    each = counted(runs[0], "run") if len(runs) == 1 else f"{runs[0]} to {runs[-1]} runs"
    sure = "" if choice.enough.word == "clear" else f" Not yet sure: {choice.enough.reason}."
    return Card(
        title=title,
        text=f"{task} with {choice.who.partition(',')[0]}, frames per second with learning, {each} each.{sure}",
        bars={f"{size.num_envs:,}": (size.total_fps / most, f"{size.total_fps:,.0f}") for size in choice.sizes},
        link="How many environments to give a GPU",
        address="choosing.html",
    )
