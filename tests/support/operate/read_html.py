"""HTML as a test reads it."""

from html.parser import HTMLParser


class Read(HTMLParser):
    """Rows of tables as texts of cells, all text, exact values of `<data>`, and what is loaded."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.values: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self._in_cell = True
            self.rows[-1].append("")
        if tag == "data":
            self.values.append(str(dict(attrs)["value"]))

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data

    def row(self, first: str) -> list[str]:
        return next(row for row in self.texts if row and row[0] == first)

    @property
    def texts(self) -> list[list[str]]:
        return [[" ".join(cell.split()) for cell in row] for row in self.rows]
