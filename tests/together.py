"""Several checks in one test: all are made, and each that fails is reported under its name.

For checks that take less time than pytest takes for a test.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

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
