"""x.flags of a traced array: whether it can be written to, which a trace knows. How it lies in memory, it does not."""

from __future__ import annotations

from typing import Any

from fnad.trace import escape
from fnad.trace.handle import Handle

KNOWN = {"writeable", "WRITEABLE", "W"}


class Flags:
    """The flags of a traced array."""

    __slots__ = ("_array",)

    def __init__(self, array: Handle) -> None:
        object.__setattr__(self, "_array", array)

    def __getitem__(self, name: Any) -> bool:
        return self._array.is_writeable if name in KNOWN else self._refuse()

    def __getattr__(self, name: str) -> bool:
        if name.startswith("__"):
            raise AttributeError(f"the flags of a traced value have no {name!r}", name=name, obj=self)
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._refuse()

    def _refuse(self) -> Any:
        """Raise the error for flags, which are no method."""
        return escape.attribute_asked(self._array.aval, self._array.__class__, "flags")
