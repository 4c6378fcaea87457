"""The known paths of a compiled function, for a person to read: `f.paths()`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import log10
from typing import Any, NamedTuple

from fnad.api.inspect.axes import axes_for
from fnad.api.inspect.tables import html_table
from fnad.api.running.paths import TracedPath
from fnad.ir.program import Source
from fnad.trace.capture import Guard


class Decision(NamedTuple):
    """An answer that Python received at a line: a truth, an integer, or the text of a value."""

    source: Source | None
    answer: int | str


class KnownPath(NamedTuple):
    """A path: the leaves of the arguments it is for, its decisions in order, how often it ran, by what it is run."""

    arguments: tuple[str, ...]
    decisions: tuple[Decision, ...]
    runs: int
    is_compiled: bool

    def __str__(self) -> str:
        return "\n".join(_path_lines(self))

    __repr__ = __str__


class KnownPaths(tuple[KnownPath, ...]):
    """The known paths of a function, in the order in which they were met; its text lists them."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = [f"{len(self)} path{'s' * (len(self) != 1)}"]
        for number, path in enumerate(self, 1):
            first, *others = _path_lines(path)
            lines += [f"{number:>3}. {first}", *[f"     {line}" for line in others]]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (f"({', '.join(path.arguments)})", "\n".join(decision_lines(path.decisions)), _runs_text(path))
            for path in self
        ]
        return html_table(f"{len(self)} path{'s' * (len(self) != 1)}", rows, head=("arguments", "decisions", "runs"))

    def plot(self, ax: Any = None) -> Any:
        """Draw the paths as a tree that branches where answers differ, by Matplotlib; return the axes."""
        ax = axes_for(ax, "a tree of paths")
        through: dict[tuple[str, ...], list[tuple[int, KnownPath]]] = {}
        for row, (steps, path) in enumerate(sorted(((_steps(path), path) for path in self), key=lambda pair: pair[0])):
            for depth in range(1, len(steps) + 1):
                through.setdefault(steps[:depth], []).append((row, path))
        heights = {prefix: sum(row for row, _ in found) / len(found) for prefix, found in through.items()}
        for prefix, found in through.items():
            depth, runs = len(prefix), sum(path.runs for _, path in found)
            if depth > 1:
                ends = [heights[prefix[:-1]], heights[prefix]]
                ax.plot([depth - 1, depth], ends, color="tab:blue", linewidth=1 + log10(1 + runs), zorder=1)
            words = prefix[-1] if depth < len(_steps(found[0][1])) else f"{prefix[-1]}\n{_runs_text(found[0][1])}"
            ax.text(depth, heights[prefix], words, ha="center", va="center", fontsize="small", bbox=BOX)
        ax.set(xlim=(0.5, max(map(len, through), default=1) + 0.5), ylim=(max(1, len(self)) - 0.5, -0.5))
        ax.set_axis_off()
        return ax


BOX = {"boxstyle": "round", "facecolor": "white", "edgecolor": "tab:blue"}


def _steps(path: KnownPath) -> tuple[str, ...]:
    """The arguments of a path, and its decisions in order, equal ones that follow one another counted."""
    decisions = [(decision, len(list(same))) for decision, same in groupby(path.decisions)]
    return (f"({', '.join(path.arguments)})", *(_step_text(decision, count) for decision, count in decisions))


def _step_text(decision: Decision, count: int) -> str:
    source = decision.source
    place = f"{source.file.rpartition(os.sep)[2]}:{source.line}" if source is not None else ""
    return f"{place}\n{_answers_text([decision.answer] * count)}"


def _runs_text(path: KnownPath) -> str:
    times = f"{path.runs} time{'s' * (path.runs != 1)}"
    return f"ran {times}, {'compiled' if path.is_compiled else 'interpreted'}"


def listed(paths: Iterable[TracedPath]) -> KnownPaths:
    """Paths as the user sees them."""
    return KnownPaths(map(_listed, paths))


def decisions_of(guards: Iterable[Guard]) -> tuple[Decision, ...]:
    """Guards as the user sees them."""
    return tuple(
        Decision(guard.source, guard.expected if guard.shown is None else guard.shown)
        for guard in guards
        if guard.shown != ""
    )


def decision_lines(decisions: Sequence[Decision]) -> Iterator[str]:
    """A line for each line of user code, with the answers there in order."""
    for source in dict.fromkeys(decision.source for decision in decisions):
        answers = [decision.answer for decision in decisions if decision.source == source]
        yield f"{source or 'in no line of user code'}  {_answers_text(answers)}"


def _listed(path: TracedPath) -> KnownPath:
    avals = path.traced.in_avals[: len(path.traced.inputs) - len(path.captured)]
    return KnownPath(tuple(map(str, avals)), decisions_of(path.guards), path.runs, path.is_compiled)


def _path_lines(path: KnownPath) -> Iterator[str]:
    yield f"({', '.join(path.arguments)})  {_runs_text(path)}"
    yield from decision_lines(path.decisions)


def _answers_text(answers: Sequence[int | str]) -> str:
    """Answers one after the other, those that repeat counted: `True x 4, False`."""
    runs = [(answer, len(list(same))) for answer, same in groupby(answers)]
    return "-> " + ", ".join(f"{answer} x {count}" if count > 1 else str(answer) for answer, count in runs)
