"""Several checks in one test: all are made, and each that fails is reported under its name.

For checks that take less time than pytest takes for a test.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any

import pytest

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


SIZE = 16
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
