"""Several checks in one test: all are made, and each that fails is reported under its name.

For checks that take less time than pytest takes for a test.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from random import Random
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

DRAW = ""
"""What sweeps draw their cases by; `--draw` sets it, to `all` for every case."""


def drawn(cases: Iterable[T], of: Callable[[T], object], count: int = 1) -> list[T]:
    """The cases of a sweep: at most `count` of those of each operation, drawn by what `of` calls it."""
    groups: dict[str, list[T]] = {}
    for case in cases:
        groups.setdefault(str(of(case)), []).append(case)
    return [case for name, group in groups.items() for case in some_of(group, name, count)]


def some_of(cases: Sequence[T], name: str, count: int = 1) -> list[T]:
    """At most `count` of the cases, in their order, drawn by a name."""
    if DRAW == "all" or len(cases) <= count:
        return list(cases)
    return [cases[place] for place in sorted(Random(f"{name}{DRAW}").sample(range(len(cases)), count))]


Named = Callable[[object], AbstractContextManager[None]]


@contextmanager
def together() -> Generator[Named]:
    """A function of a name, for the check of that name to stand in; fails at the end if one of them failed.

    >>> with together() as check:
    ...     for number in (1, 2):
    ...         with check(number):
    ...             assert number > 0
    """
    failures: list[Exception] = []

    @contextmanager
    def named(name: object) -> Generator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 raised at the end
            error.add_note(f"in {name}")
            failures.append(error)

    yield named
    if failures:
        raise ExceptionGroup("checks failed", failures)


SIZE = 32
"""The cases in a group; `--quick` sets it to 1."""


def name_of(value: Any) -> str:
    return getattr(value, "__name__", str(value))


def in_groups(
    argument: str | Sequence[str], values: Iterable[Any], ids: Callable[[Any], str] | Sequence[str] = name_of
) -> Callable[..., Any]:
    """Parametrize a test as `pytest.mark.parametrize` does, but several values share a test, whose id has their names.

    A test that skips or leaves its fixtures in another state has to be parametrized by pytest.
    """
    several = not isinstance(argument, str)
    names = tuple(argument) if several else (str(argument),)
    cases = [tuple(value) if several else (value,) for value in values]
    labels = ["-".join(map(ids, case)) for case in cases] if callable(ids) else list(ids)
    places = [range(len(cases))[start : start + SIZE] for start in range(0, len(cases), SIZE)]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**given: Any) -> None:
            with together() as check:
                for place in given[names[0]]:
                    with check(labels[place]):
                        test(**given | dict(zip(names, cases[place], strict=True)))

        groups = [pytest.param(*[group] * len(names), id=" ".join(labels[n] for n in group)) for group in places]
        return pytest.mark.parametrize(argument, groups)(run)

    return decorate
