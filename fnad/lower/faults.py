"""The errors that native code can end in: it stores the number of a fault, and the error is raised afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from fnad.errors import FnadError, OutOfRangeError
from fnad.ir.program import Source


@dataclass(frozen=True, slots=True)
class Fault:
    """An error that a run may end in."""

    kind: type[FnadError]
    what: str
    remedy: str | None
    source: Source | None

    @property
    def error(self) -> FnadError:
        return self.kind(self.what, source=self.source, remedy=self.remedy)


def out_of_range(source: Source | None) -> Fault:
    return Fault(OutOfRangeError, "an index is out of range", "check the index against the axis", source)


def of_error(error: FnadError, source: Source | None) -> Fault:
    return Fault(type(error), error.what, error.remedy, source)
