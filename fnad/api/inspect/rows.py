"""The rows of a printed program or kernel, each with the line of user code that it comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from fnad.api.inspect.tables import html_table
from fnad.ir.types import DTYPES

REMARK = re.compile(r"^\s*# (?P<line>(?!decided: ).*?:\d+) in .*?:  ")
SIZE = re.compile(r": (?P<dtype>[a-z]+\d*)\[(?P<shape>[\d,]*)\] = (?P<primitive>\w+)\(")
VIEWS = {"broadcast_in_dim", "reshape", "transpose", "slice", "reverse", "convert"}


class PaneRow(NamedTuple):
    """A row of a pane: its text, the line of user code that it comes from, a note, and if it only moves elements."""

    text: str
    line: str
    note: str = ""
    is_view: bool = False
    number: int | None = None


def rows_of(text: str) -> Iterator[PaneRow]:
    """The rows of a printed program or kernel; comments with a line of user code become the lines of the next rows."""
    line = ""
    for row in text.split("\n"):
        if found := REMARK.match(row):
            line = found["line"]
        elif row.strip():
            belongs = row.startswith(" ") and not row.strip().startswith(("return", "}"))
            yield PaneRow(row, line if belongs else "", *_size(row))


def _size(row: str) -> tuple[str, bool]:
    """The bytes of the result of an equation, as a note, and if the equation only moves elements."""
    found = SIZE.search(row)
    if found is None or found["dtype"] not in DTYPES:
        return "", False
    count = prod(int(n) for n in found["shape"].split(",") if n)
    return f"{count * DTYPES[found['dtype']].itemsize:,} B", found["primitive"] in VIEWS


def program_table(text: str) -> str:
    """The rows of a printed program, with bytes and lines of user code, as a table in HTML."""
    about = [line.removeprefix("# ") for line in text.split("\n") if line.startswith("# ")]
    rows = [(row.text, row.note, row.line) for row in rows_of(text) if not row.text.startswith("# ")]
    return html_table("\n".join(about), rows, head=("equation", "result", "line"))
