"""A table that can be shown in a terminal and written as Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.table import Table


@dataclass
class Sheet:
    """Columns, rows in sections, and notes below."""

    title: str
    columns: list[str]
    sections: list[list[list[str]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def table(self) -> Table:
        """Return it for a terminal."""
        table = Table(title=self.title, title_justify="left", caption_justify="left")
        table.add_column(self.columns[0])
        for column in self.columns[1:]:
            table.add_column(column, justify="right")
        for section in self.sections:
            for row in section:
                table.add_row(*row)
            table.add_section()
        table.caption = "\n".join(self.notes)
        return table

    def markdown(self) -> str:
        """Return it for a page."""
        lines = [
            f"## {self.title}",
            "",
            _line([column.replace("\n", " ") for column in self.columns]),
        ]
        lines.append(_line(["---"] + ["---:"] * (len(self.columns) - 1)))
        lines += [_line(row) for section in self.sections for row in section]
        lines += ["", *(f"- {note}" for note in self.notes), ""]
        return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
