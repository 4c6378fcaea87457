"""Long lines of loops and of Python, broken at the blank within the fewest brackets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

WIDTH = 100


def wrapped_text(text: str) -> str:
    """A text whose long lines go on, further indented, on the next ones.

    >>> print(wrapped_text("out0[i0] = " + " + ".join(f"exp({n}.0 * x0[i0])" for n in range(6))))
    out0[i0] = exp(0.0 * x0[i0]) + exp(1.0 * x0[i0]) + exp(2.0 * x0[i0]) + exp(3.0 * x0[i0]) +
        exp(4.0 * x0[i0]) + exp(5.0 * x0[i0])
    """
    return "\n".join(part for line in text.split("\n") for part in _folded(line, 0))


def wrapped_python(text: str) -> str:
    """A Python source whose long lines go on within brackets, so that it stays the same; comments stay as they are.

    >>> print(wrapped_python("y = " + " + ".join(f"exp({n}.0 * x)" for n in range(9))))
    y = (
        exp(0.0 * x) + exp(1.0 * x) + exp(2.0 * x) + exp(3.0 * x) + exp(4.0 * x) + exp(5.0 * x) +
            exp(6.0 * x) + exp(7.0 * x) + exp(8.0 * x)
    )
    """
    return "\n".join(part for line in text.split("\n") for part in _statement(line))


def _statement(line: str) -> Iterator[str]:
    target, equals, value = line.partition(" = ")
    if len(line) <= WIDTH or line.lstrip().startswith("#"):
        yield line
    elif equals:
        yield f"{target} = ("
        yield from _folded(f"{_indent(line)}    {value}", 0)
        yield f"{_indent(line)})"
    else:
        yield from _folded(line, 1)


def _folded(line: str, least: int) -> Iterator[str]:
    """A line, broken where it is within `least` brackets at least."""
    depths = list(accumulate((c in "([") - (c in ")]") for c in line))
    blanks = [i for i, c in enumerate(line) if c == " " and depths[i] >= least]
    indent = f"{_indent(line)}    "
    start, margin = 0, ""
    while len(margin) + len(line) - start > WIDTH:
        end = start + WIDTH - len(margin)
        places = [i for i in blanks if start + WIDTH // 2 < i <= end]
        if not places:
            break
        place = min(places, key=lambda i: (depths[i], -i))
        yield margin + line[start:place]
        start, margin = place + 1, indent
    yield margin + line[start:]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
