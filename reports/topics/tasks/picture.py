"""The picture of a task that `nox -s pictures` drew."""

import base64
import html
import json
from pathlib import Path
from typing import Any, Final

from reports.display.addresses import page_of_task
from reports.display.html import Html
from suite.files.paths import ROOT

FOLDER: Final = ROOT / "book" / "pictures"


def picture(task: str, *, folder: Path = FOLDER) -> Html:
    """Show the picture of a task, by its plain name, with how it was drawn; nothing if there is none."""
    name = page_of_task(task).removeprefix("task-")
    known: dict[str, Any] = json.loads((folder / "pictures.json").read_text(encoding="utf-8"))
    if name not in known:
        return Html(markup="", text="")
    drawn = known[name]
    view, versions = drawn["view"], drawn["versions"]
    caption = (
        f"{task} after {view['steps']} steps of random actions, drawn by Newton's renderer on the CPU (Newton"
        f" {versions['newton']}, Isaac Lab {versions['isaaclab']}, offline assets, {drawn['drawn']}). SHA-256"
        f" {drawn['sha256'][:12]}."
    )
    data = base64.b64encode((folder / f"{name}.png").read_bytes()).decode()
    return Html(
        markup=(
            f'<figure class="task-picture"><img src="data:image/png;base64,{data}" width="{view["width_px"]}"'
            f' height="{view["height_px"]}" alt="The simulation of {html.escape(task)}, one environment">'
            f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        ),
        text=caption,
    )
