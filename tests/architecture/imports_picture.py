"""The picture of imports in ARCHITECTURE.md: ``python -m tests.architecture.imports_picture`` draws it anew.

A box is a package of ``suite`` or ``tasks``, an arrow an import of the box below. An arrow is left out where a longer
way along the arrows leads to the same box, and where it leads to the ground, which all packages may import. A dashed
arrow is an import of a package above, which should not be.
"""

import ast
import html
import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.architecture.test_layering import FLOORS, ROOT, imported_modules

PATH: Final = ROOT / ".github" / "imports.svg"
# From the ground up, as FLOORS of suite. The files beside these folders are one box, named by the one that runs first.
TASKS: Final = ("assets", "rank", "film", "checks", "libraries", "upstream", "worker")
ORDER: Final = (*(f"suite.{name}" for name in FLOORS), *(f"tasks.{name}" for name in TASKS))
GROUND: Final = ("suite.schema", "suite.files", "suite.errors")
WORDS_OF_GROUND: Final = "the ground: any package may import it"
ENTRIES: Final = {
    "suite.__main__": "The command line",
    "suite.errors": "Every error that a user can meet",
    "tasks.worker": "One process of a run",
}  # files, which have no package's docstring

type Arrow = tuple[str, str]  # from the package that imports

WIDTH, HEIGHT, GAP_X, GAP_Y = 204, 62, 20, 32
COLUMNS: Final = 3  # of suite; tasks stands in those after them
LINE_CHARACTERS: Final = 30
STYLE: Final = """\
.box { fill: #eef3fa; stroke: #6b7a90; }
.name { font: 600 15px system-ui, sans-serif; fill: #14202e; }
.ground { fill: none; stroke: #7b8798; stroke-dasharray: 2 4; }
.what { font: 11.5px system-ui, sans-serif; fill: #3d4a5c; }
.any { font: 13px system-ui, sans-serif; fill: #7b8798; }
.arrow { fill: none; stroke: #7b8798; stroke-width: 1.6; marker-end: url(#down); }
.up { fill: none; stroke: #d9622b; stroke-width: 1.6; stroke-dasharray: 5 4; marker-end: url(#up); }"""


@dataclass(frozen=True, kw_only=True)
class Box:
    x: int
    y: int


def package_of(module: str) -> str | None:
    """``suite.matrix`` for ``suite.matrix.plan.Plan``; None for what is drawn as no box."""
    top, _, rest = module.partition(".")
    name = rest.partition(".")[0]
    if f"{top}.{name}" in ORDER:
        return f"{top}.{name}"
    return "tasks.worker" if top == "tasks" and (ROOT / "tasks" / f"{name}.py").is_file() else None


def imports() -> set[Arrow]:
    """Every import from one package to another, within functions too."""
    files = [path for top in ("suite", "tasks") for path in sorted((ROOT / top).rglob("*.py"))]
    found = set()
    for path in files:
        own = package_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
        found |= {(own, package_of(module)) for module in imported_modules(path)} if own else set()
    return {(own, other) for own, other in found if own and other and own != other}


def goes_down(arrow: Arrow) -> bool:
    return ORDER.index(arrow[0]) > ORDER.index(arrow[1]) or arrow[0].startswith("tasks") > arrow[1].startswith("tasks")


def without_implied(arrows: set[Arrow]) -> set[Arrow]:
    """The arrows without those that a longer way has too. ``arrows`` have no circle."""
    below: dict[str, set[str]] = {}
    for name in ORDER:
        direct = {other for own, other in arrows if own == name}
        below[name] = direct.union(*(below.get(other, set()) for other in direct))
    return {
        (own, other)
        for own, other in arrows
        if not any(other in below[between] for one, between in arrows if one == own and between != other)
    }


def floors(arrows: set[Arrow]) -> dict[str, range]:
    """The floors that each package may be on: above all that it imports, and below all that import it."""
    lowest: dict[str, int] = {}
    for name in (name for name in ORDER if name not in GROUND):
        lowest[name] = 1 + max((lowest[other] for own, other in arrows if own == name), default=-1)
    above = {name: [lowest[own] for own, other in arrows if other == name] for name in lowest}
    return {name: range(floor, min(above[name], default=floor + 1)) for name, floor in lowest.items()}


def placed(arrows: set[Arrow]) -> dict[str, Box]:
    """Boxes where the fewest arrows pass behind others, and the arrows are the straightest."""
    may = floors(arrows)
    choices = (dict(zip(may, chosen, strict=True)) for chosen in itertools.product(*may.values()))
    return min(itertools.chain.from_iterable(map(_orders, choices)), key=lambda boxes: _bends(boxes, arrows))


def _orders(floor_of: Mapping[str, int]) -> Iterator[dict[str, Box]]:
    """The boxes in every order within their floors; none where a floor has more of suite than there are columns."""
    top = max(floor_of.values())
    orders: list[list[Sequence[str | None]]] = []
    for floor in range(top + 1):
        suite, tasks = (
            [name for name in floor_of if floor_of[name] == floor and name.startswith(which)]
            for which in ("suite", "tasks")
        )
        if len(suite) > COLUMNS:
            return
        slots = [*suite, *[None] * (COLUMNS - len(suite))]
        shuffled = dict.fromkeys(itertools.permutations(slots)) if len(suite) > 1 else [slots]
        orders.append([[*slot, *tasks] for slot in shuffled])
    for chosen in itertools.product(*orders):
        yield {
            name: Box(x=column * (WIDTH + GAP_X), y=(top - floor) * (HEIGHT + GAP_Y))
            for floor, names in enumerate(chosen)
            for column, name in enumerate(names)
            if name
        }


def _bends(boxes: Mapping[str, Box], arrows: set[Arrow]) -> tuple[int, int, int]:
    """How many boxes hide an arrow, how far arrows go aside, and how far down."""
    ends = [(boxes[own], boxes[other]) for own, other in arrows]
    hidden = sum(_hides(box, above, below) for above, below in ends for box in boxes.values())
    return hidden, sum(abs(above.x - below.x) for above, below in ends), sum(below.y - above.y for above, below in ends)


def _hides(box: Box, above: Box, below: Box) -> bool:
    """Whether an arrow passes behind a box: it goes aside on its first floor, and down in its last column."""
    is_beside = box.y == above.y and min(above.x, below.x) <= box.x <= max(above.x, below.x) and box != above
    return (is_beside and not _is_short(above, below)) or (box.x == below.x and above.y < box.y < below.y)


def _is_short(above: Box, below: Box) -> bool:
    return abs(below.y - above.y) == HEIGHT + GAP_Y


def described(name: str) -> str:
    """The first words of a package's docstring, up to its first stop."""
    if name in ENTRIES:
        return ENTRIES[name]
    path = ROOT.joinpath(*name.split(".")) / "__init__.py"
    text = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]
    return re.split(r"[:;,.?]", text)[0]


def drawn() -> str:
    """The picture as SVG."""
    every = {arrow for arrow in imports() if arrow[1] not in GROUND}
    down = without_implied({arrow for arrow in every if goes_down(arrow)})
    boxes = placed(down)
    lowest = max(box.y for box in boxes.values()) + HEIGHT + GAP_Y
    ground = {name: Box(x=column * (WIDTH + GAP_X) + 12, y=lowest + 12) for column, name in enumerate(GROUND)}
    width = max(box.x for box in boxes.values()) + WIDTH
    height = lowest + HEIGHT + 24
    up = sorted(arrow for arrow in every if not goes_down(arrow))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 {width + 16} {height + 16}" role="img">',
        "<title>Packages of suite and tasks, and what they import</title>",
        f"<style>\n{STYLE}\n</style>",
        *(_head(name, colour) for name, colour in (("down", "#7b8798"), ("up", "#d9622b"))),
        f'<rect class="ground" x="0" y="{lowest}" width="{width}" height="{HEIGHT + 24}" rx="8"/>',
        f'<text class="any" x="{3 * (WIDTH + GAP_X) + 24}" y="{lowest + 48}">{WORDS_OF_GROUND}</text>',
        *(_arrow(boxes[own], boxes[other], "arrow") for own, other in sorted(down)),
        *(_arrow(boxes[own], boxes[other], "up") for own, other in up),
        *(line for name, box in (boxes | ground).items() for line in _box(name, box)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _head(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 8 4 0 8z" fill="{colour}"/></marker>'
    )


def _arrow(own: Box, other: Box, kind: str) -> str:
    is_down = other.y > own.y
    aside = WIDTH // 2 if is_down else 3 * WIDTH // 4
    start_x, end_x = own.x + aside, other.x + aside
    start_y, end_y = (own.y + HEIGHT, other.y - 2) if is_down else (own.y, other.y + HEIGHT + 2)
    if own.x == other.x or _is_short(own, other):
        middle = (start_y + end_y) // 2
        curve = f"M{start_x} {start_y}C{start_x} {middle} {end_x} {middle} {end_x} {end_y}"
    else:
        start_x, start_y = own.x + (WIDTH if other.x > own.x else 0), own.y + HEIGHT // 2
        turn = end_x - 30 if other.x > own.x else end_x + 30
        curve = f"M{start_x} {start_y}H{turn}Q{end_x} {start_y} {end_x} {start_y + 30}V{end_y}"
    return f'<path class="{kind}" d="{curve}"/>'


def _box(name: str, box: Box) -> Iterator[str]:
    middle = box.x + WIDTH // 2
    lines = textwrap.wrap(described(name), LINE_CHARACTERS, max_lines=2, placeholder=" …")
    yield f'<rect class="box" x="{box.x}" y="{box.y}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
    yield f'<text class="name" x="{middle}" y="{box.y + 21}" text-anchor="middle">{name.replace(".", "/", 1)}</text>'
    for y, line in zip((box.y + 38, box.y + 52), lines, strict=False):
        yield f'<text class="what" x="{middle}" y="{y}" text-anchor="middle">{html.escape(line)}</text>'


if __name__ == "__main__":
    Path(PATH).write_text(drawn(), encoding="utf-8")
    print(PATH.relative_to(ROOT))
