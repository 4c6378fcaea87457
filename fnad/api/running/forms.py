"""The form of a call of a compiled function: which of its arguments are traced, and what the others are."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from fnad.api.running.receivers import Receiver, Receivers
from fnad.api.running.statics import static_key
from fnad.errors import StaticArgumentError


class CallForm(NamedTuple):
    """The form of the dynamic arguments: the positional ones, the keys of the static ones, and all keywords.

    These are in the order of the call, which is the order in which a function finds them in its `**kwargs`.
    """

    positions: tuple[int, ...]
    names: tuple[str, ...]
    static: tuple[tuple[int | str, Hashable], ...] = ()
    keywords: tuple[str, ...] = ()

    def dynamic(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments that are traced."""
        return (*[args[i] for i in self.positions], *[kwargs[name] for name in self.names])

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any], receivers: Receivers) -> tuple[Any, ...] | None:
        """The arguments that are traced, if a call has this form; else None."""
        count = len(self.positions) + len(self.static) + len(self.names)
        if tuple(kwargs) != self.keywords or len(args) + len(kwargs) != count:
            return None
        for place, key in self.static:
            value = args[place] if isinstance(place, int) else kwargs[place]
            if receivers.key(value) is not key if type(key) is Receiver else not has_key(value, key, place):
                return None
        return self.dynamic(args, kwargs)


PLAIN = {*map(id, (int, str, bytes, bool, type(None)))}
"""The ids of immutable types, whose values are compared without a key of their content."""


def has_key(value: Any, key: Hashable, place: int | str) -> bool:
    """True if a static argument has this key."""
    if id(type(value)) in PLAIN:
        return key == ((type(value), value),)
    try:
        found = static_key(value, str(place))
        return hash(found) == hash(key) and found == key  # as where it is looked up: objects may not be comparable
    except StaticArgumentError:  # which is raised with the name of the argument where the call is looked up
        return False
