"""What a browser shows, as rows of tables and as named figures, each with its exact values."""

from typing import Any, NamedTuple

from playwright.sync_api import Locator, Page

_READ = """
root => {
  // A member's name stands for its id.
  const full = one => [...one.querySelectorAll('abbr')].reduce(
    (text, short) => text.replace(short.innerText, () => short.title), one.innerText);
  const cell = one => ({
    text: full(one).replace(/\\s+/g, ' ').trim(),
    values: [...one.querySelectorAll('data')].map(data => data.value),
  });
  return {
    tables: Object.fromEntries([...root.querySelectorAll('section, main > .scroll')].map(section => [
      section.getAttribute('aria-labelledby') || section.getAttribute('aria-label') || '',
      [...section.querySelectorAll(':scope table')].slice(0, 1).flatMap(table => {
        const heads = [...table.querySelectorAll('thead th')].map(one => one.innerText.trim());
        return [...table.querySelectorAll('tbody tr')].map(row => Object.fromEntries(
          [...row.children].map((one, number) => [heads[number], cell(one)])));
      }),
    ])),
    figures: Object.fromEntries([...root.querySelectorAll('dl > div')].map(
      one => [one.querySelector('dt').innerText.trim(), cell(one.querySelector('dd'))])),
    cells: Object.fromEntries([...root.querySelectorAll('.map li')].map(
      one => [one.title.split(': ')[0], one.title.slice(one.title.indexOf(': ') + 2)])),
  };
}
"""


class Cell(NamedTuple):
    """Text as it is seen, and the exact numbers behind it."""

    text: str
    values: list[float]


class Shown(NamedTuple):
    """A view."""

    tables: dict[str, list[dict[str, Cell]]]
    """Rows by the name of their section, cells by the heading of their column."""
    figures: dict[str, Cell]
    cells: dict[str, str]
    """Words of the map, by topic and partition."""


def shown(page: Page) -> Shown:
    """What is to be seen on the page."""
    main: Locator = page.locator("main")
    read: dict[str, Any] = main.evaluate(_READ)
    return Shown(
        tables={
            name: [{head: _cell(one) for head, one in row.items()} for row in rows]
            for name, rows in read["tables"].items()
        },
        figures={name: _cell(one) for name, one in read["figures"].items()},
        cells=read["cells"],
    )


def _cell(read: dict[str, Any]) -> Cell:
    return Cell(read["text"], [float(value) for value in read["values"]])
