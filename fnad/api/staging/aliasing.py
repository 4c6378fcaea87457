"""Arguments that a function writes into.

A write is for the function alone: each argument is a value of the program, and the caller's array never changes. Where
two arguments are one array, or views of one, or a function reads the array of an argument from outside too, NumPy would
show the write there as well. Then it is an error, since the arguments are no longer values of their own. With the
setting `strict_mutation` any write into an argument is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import FunctionType
from typing import Any, cast

import numpy as np

from fnad import config
from fnad.api.staging.leaves import Function, function_name, plain
from fnad.blocks import Holding
from fnad.errors import MutationError
from fnad.ir.builder import current_builder
from fnad.ir.program import Source
from fnad.trace.capture import READ, Array, Trace, same_bits
from fnad.trace.handle import Handle
from fnad.trace.parts import CONTAINERS, default_arguments, elements_of, parts
from fnad.trace.source import current_source
from fnad.trace.tracer import Tracer

WORK = 10_000
"""The most work to look for an element that two views share; beyond it they count as sharing memory."""


def _within(value: Any) -> Iterable[Any]:
    """The elements of a container, the parts of a wrapper, the default arguments of a function."""
    kind = type(value)
    if kind is FunctionType:
        return default_arguments(value)
    if kind is memoryview:
        return (value.obj,)
    elements = elements_of(value) if issubclass(kind, (np.ndarray, *CONTAINERS)) else None
    return parts(value) if elements is None else elements()


MANY, MOST = 1000, 5000
"""The most elements of a container, and the most values in all, among which arrays are sought."""


class Received:
    """The leaves of a call, as given and as the function received them."""

    def __init__(self, f: Function) -> None:
        self._f = f
        self._pairs: list[tuple[Any, Any]] = []
        self._loaded: dict[int, Any] = {id(f): f}
        self.is_written = False

    def reading(self) -> Holding[dict[int, Any]]:
        """A block in which the function runs."""
        return READ.holding(self._loaded)

    def noting(self, receive: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`receive`, which makes of a leaf what the function receives, with its answers noted."""

        def note(value: Any) -> Any:
            value = plain(value)
            self._pairs.append((value, received := receive(value)))
            return received

        return note

    def check(self, given: Callable[[], Iterable[Any]] = tuple, tracers: Sequence[Tracer] = ()) -> None:
        """Raise `MutationError` where a write shows elsewhere; `given()` are the leaves that `tracers` stand for."""
        inside = [array for trace in traces() for array in trace.changed]
        written = [i for i, pair in enumerate(self._pairs) if _is_written(*pair, inside)]
        changed = [i + len(self._pairs) for i, tracer in enumerate(tracers) if tracer.is_written]
        self.is_written = bool(written or changed)
        if self.is_written:
            leaves = [*[value for value, _ in self._pairs], *given()]
            found = [*[received for _, received in self._pairs], *tracers]
            place = current_source()
            for i in (*written, *changed):
                place = found[i].written_at if isinstance(found[i], Tracer) else place
                note_written(leaves[i], place)
            check_written(self._f, leaves, (*written, *changed), outside(self._loaded), place)


def _is_written(given: Any, received: Any, inside: Sequence[Array]) -> bool:
    if isinstance(received, Tracer):
        return received.is_written
    if not isinstance(received, np.ndarray):
        return False
    is_changed = received.flags.writeable and not same_bits(given, received)
    return is_changed or any(shares_memory(received, array) for array in inside)


def note_written(leaf: Any, source: Source | None) -> None:
    """Note a write into what a function received for a leaf, for the functions around it."""
    if isinstance(leaf, Tracer):
        leaf.note_written(source)
    elif isinstance(leaf, np.ndarray):
        for trace in traces():
            trace.changed.append(leaf)


def traces() -> Iterator[Trace]:
    """The traces under way, the innermost first."""
    builder = current_builder()
    while isinstance(builder, Trace):
        yield builder
        builder = builder.outer


def outside(loaded: Mapping[int, Any]) -> list[Any]:
    """The arrays that the trace under way has captured, and those that are in what user code has loaded."""
    used = next((trace.outside for trace in traces()), ())
    found, pending = list[Any](used), [*loaded.values()]
    seen = set[int]()
    while pending and len(seen) < MOST:
        value = pending.pop()
        if id(value) not in seen:
            seen.add(id(value))
            if isinstance(value, (np.ndarray, Handle)):
                found.append(value)
            pending += islice(_within(value), MANY)
    return found


def check_written(
    f: Function, leaves: Sequence[Any], written: Sequence[int], outside: Sequence[Any], source: Source | None
) -> None:
    """Raise `MutationError` where a leaf that is written to shares memory with another, or with an array outside.

    Raises it for any such leaf where `config.strict_mutation` says so.
    """
    if config.current().strict_mutation and written:
        raise strictly_refused(f, source)
    for i in written:
        others = [leaf for j, leaf in enumerate(leaves) if j != i]
        if any(shares_memory(leaves[i], other) for other in (*others, *outside)):
            raise MutationError(
                f"{function_name(f)} writes into an argument that shares memory with another one, or with an array "
                "that it reads from outside",
                source=source,
                remedy="give it copies, x.copy(): then each is a value of its own",
            )


def strictly_refused(f: Function, source: Source | None) -> MutationError:
    """The error for a write into an argument where none is allowed."""
    return MutationError(
        f"{function_name(f)} writes into an argument, which config.strict_mutation forbids",
        source=source,
        remedy="write into a copy, np.array(x), or set fnad.config.override(strict_mutation=False)",
    )


def shares_memory(x: Any, y: Any) -> bool:
    """True if two leaves have an element in common, or are traced and may have one."""
    if isinstance(x, Handle) or isinstance(y, Handle):
        return isinstance(x, Handle) and isinstance(y, Handle) and x.overlaps(y)
    if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
        return False
    try:
        return np.shares_memory(x, y, max_work=cast("Any", WORK))
    except np.exceptions.TooHardError:
        return True
