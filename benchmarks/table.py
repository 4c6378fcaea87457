"""The table, as text for the terminal, as Markdown and as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from benchmarks.measure import UNITS, Row

HEADINGS = ("problem", "case", "system", "median", "±", "least", "ratio", "first call", "remark")
LEGEND = (
    "least: the fastest sample; ratio: the system's median over that of the first one measured in its case (above 1: "
    "that one is faster)"
)


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as text."""
    return (
        row.problem,
        row.case,
        row.system,
        "-" if row.median is None else f"{row.median / UNITS[row.unit]:.4g} {row.unit}",
        "" if row.spread is None else f"{row.spread:.0%}",
        "" if row.least is None else f"{row.least / UNITS[row.unit]:.4g}",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.first is None else f"{row.first:.2f} s",
        row.note,
    )


def aligned(rows: Sequence[Row]) -> str:
    """Return the table in columns, a blank line between cases."""
    table = [HEADINGS, *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in table]
    body = [lines[0], "-" * len(lines[0])]
    for before, row, line in zip([None, *rows], rows, lines[1:], strict=False):
        if before and (before.problem, before.case) != (row.problem, row.case):
            body.append("")
        body.append(line)
    return "\n".join([*body, "", LEGEND])


NOISE = 1.05
"""The ratio of two times up to which they count as equal."""


def behind(rows: Sequence[Row]) -> list[str]:
    """Return the cases in which the least time of fnad is behind that of another system, the worst first."""
    cases: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.least:
            cases.setdefault((row.problem, row.case), []).append(row.least)
    ratios = {key: ours / min(others, default=ours) for key, (ours, *others) in cases.items()}
    return [
        f"{ratio:6.2f}  {': '.join(key)}"
        for key, ratio in sorted(ratios.items(), key=lambda item: -item[1])
        if ratio > NOISE
    ]


def markdown(rows: Sequence[Row], about: Mapping[str, str]) -> str:
    """Return the table as Markdown, under machine, versions and date."""
    head = [f"- {name}: {text}" for name, text in about.items()]
    table = [HEADINGS, ("---",) * len(HEADINGS), *map(cells, rows)]
    body = ["| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in table]
    return "\n".join(["# Benchmarks", "", *head, "", *body, "", LEGEND, ""])


def as_json(rows: Sequence[Row], about: Mapping[str, str]) -> str:
    """Return the table as JSON; times are in seconds."""
    return json.dumps({**about, "rows": [asdict(row) for row in rows]}, indent=1, ensure_ascii=False)
