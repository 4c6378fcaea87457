"""What can go wrong while native code runs: it notes the number of a fault, which is the error to raise afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from fnad import errors
from fnad.errors import FnadError, LoopLimitError, OutOfRangeError
from fnad.ir.program import Source


@dataclass(frozen=True, slots=True)
class Fault:
    """An error that a run may end in."""

    kind: type[FnadError]
    what: str
    remedy: str
    source: Source | None

    @property
    def error(self) -> FnadError:
        return self.kind(self.what, source=self.source, remedy=self.remedy)


def out_of_range(source: Source | None) -> Fault:
    return Fault(OutOfRangeError, "an index is out of range", "check the index against the axis", source)


def endless(limit: int, failure: tuple[str, str, str] | None, source: Source | None) -> Fault:
    if failure is not None:
        kind, what, remedy = failure
        return Fault(getattr(errors, kind), what, remedy, source)
    what = f"a loop went on after max_steps={limit} steps"
    remedy = "give more steps, or see why its condition still holds: a nan is different from everything"
    return Fault(LoopLimitError, what, remedy, source)
