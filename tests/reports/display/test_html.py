"""Tables as a reader sees them: on a phone the headings stand in the rows."""

from pathlib import Path
from typing import Final

from reports.display.html import html_table
from tests.fixtures.machines.browser import Browser, Tab, write_page

PHONE_PX: Final = 400
DESK_PX: Final = 1440
BEFORE: Final = r"""
[...document.querySelectorAll('tbody tr :is(th, td)')].map((cell) => {
  const { content } = getComputedStyle(cell, '::before');
  return content === 'none' ? '' : content.replaceAll('"', '').trim();
})
"""  # what stands before each cell


def test_on_a_phone_a_bare_number_has_its_heading_before_it(browser: Browser, tmp_path: Path) -> None:
    table = html_table(
        ["Iteration", "Reward"], [["40", "1.5"], ["1,024", "2.5"], ["the last", "3.5"]], label="What was learned"
    )
    page = write_page(table.markup, tmp_path / "page.html")
    phone = Tab.opened(browser, page.as_uri(), width=PHONE_PX)
    assert phone.value(BEFORE) == ["Iteration", "Reward", "Iteration", "Reward", "", "Reward"]
    phone.close()
    desk = Tab.opened(browser, page.as_uri(), width=DESK_PX)
    assert desk.value(BEFORE) == [""] * 6
    desk.close()
