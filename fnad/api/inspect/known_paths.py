"""The known paths of a compiled function, for a person to read: `f.paths()`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from fnad.api.running.paths import TracedPath
from fnad.ir.program import Source
from fnad.records import NamedTuple
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
    times = f"{path.runs} time{'s' * (path.runs != 1)}"
    yield f"({', '.join(path.arguments)})  ran {times}, {'compiled' if path.is_compiled else 'interpreted'}"
    yield from decision_lines(path.decisions)


def _answers_text(answers: Sequence[int | str]) -> str:
    """Answers one after the other, those that repeat counted: `True x 4, False`."""
    runs = [(answer, len(list(same))) for answer, same in groupby(answers)]
    return "-> " + ", ".join(f"{answer} x {count}" if count > 1 else str(answer) for answer, count in runs)
