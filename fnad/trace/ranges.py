"""Ranges whose bounds depend on data."""

from __future__ import annotations

from typing import Any

from fnad.trace.handle import Handle
from fnad.trace.looping import LOOPING


class Counted:
    """A range whose bounds depend on data. They are decided where anything else than a loop that is one takes it."""

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # it would ask for the bounds

    def __init__(self, start: Any, stop: Any, step: int) -> None:
        self.start, self.stop, self.step = start, stop, step

    @property
    def __class__(self) -> type[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return range

    @property
    def data(self) -> range:
        return range(self.start, self.stop, self.step)

    def element(self, place: Any) -> Any:
        return place * self.step + self.start

    def has(self, place: Any) -> Any:
        return self.element(place) < self.stop if self.step > 0 else self.element(place) > self.stop


def counted(*bounds: Any) -> Any:
    """`range`, in the place of a callee."""
    is_plain = LOOPING.loops is None or not LOOPING.loops.marked or not all(type(each) is int for each in bounds[2:])
    if is_plain or not any(isinstance(each, Handle) for each in bounds) or 0 in bounds[2:]:
        return range(*bounds)
    return Counted(*((0, *bounds) if len(bounds) == 1 else bounds), *([1] * (len(bounds) < 3)))


def _of_range(name: str) -> Any:
    return lambda self, *args: getattr(self.data, name)(*args)


for _name in ("contains", "eq", "getitem", "iter", "len", "repr", "reversed"):
    setattr(Counted, f"__{_name}__", _of_range(f"__{_name}__"))
for _name in ("count", "index"):
    setattr(Counted, _name, _of_range(_name))
