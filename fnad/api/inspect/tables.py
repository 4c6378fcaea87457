"""Tables, as text and in HTML."""

from __future__ import annotations

from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines of text, with the cells aligned in columns.

    >>> print(columns([("a", "bc"), ("def", "g")]))
    a    bc
    def  g
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def html_table(caption: str, rows: Sequence[Sequence[str]], *, head: Sequence[str] = ()) -> str:
    """A table in HTML below a caption, with a line for each line of a cell.

    >>> html_table("f", [("x < 1", "2")])
    '<table><caption>f</caption><tr><td>x &lt; 1</td><td>2</td></tr></table>'
    """
    found = [*([_html_row("th", head)] if head else []), *(_html_row("td", row) for row in rows)]
    return f"<table><caption>{_html(caption)}</caption>{''.join(found)}</table>"


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_html(cell)}</{tag}>' for cell in cells)}</tr>"


def _html(text: str) -> str:
    from html import escape  # noqa: PLC0415 - its table of entities is not loaded before it is used

    return "<br>".join(escape(text).replace("  ", "&nbsp; ").split("\n"))
