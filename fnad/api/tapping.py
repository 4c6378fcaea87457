"""Values and cotangents out of the middle of a function, as results of it: `tap`, `cotangent_tap`, `tapped`.

Nothing is stored anywhere: `tapped(f)` is a function that returns what `f` returns and a dict of what it taps, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import count
from typing import Any

from fnad.api.leaves import Function, Structure, check_function, flatten, leaves_of, unflatten
from fnad.api.marshalling import leaf_types, symbol
from fnad.api.regions import apply, calling, in_trace, region_of_call
from fnad.api.running import traced
from fnad.api.transformed import with_options
from fnad.control.tap import Mark, Marked, with_taps
from fnad.control.tap import cotangent_tap as cotangent_tap_primitive
from fnad.control.tap import tap as tap_primitive
from fnad.errors import TapError
from fnad.ir.builder import inline, is_tracing
from fnad.ir.symbol import Symbol
from fnad.trace.source import current_source


class Taps:
    """The pytrees that are tapped in one call of a tapped function: their structures by name."""

    def __init__(self) -> None:
        self.numbers = count()
        self.structures: dict[str, Structure] = {}

    def enter(self, name: str, structure: Structure) -> int:
        """The number of a call of `tap`; raises `TapError` where the name stands for another pytree."""
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TapError(f"the name of a tap is {name!r}", source=current_source(), remedy="give a string")
        if self.structures.setdefault(name, structure) != structure:
            raise TapError(
                f"two pytrees of other structures are tapped as {name!r}",
                source=current_source(),
                remedy="give each a name of its own",
            )
        return next(self.numbers)

    def rebuilt(self, marked: Marked) -> dict[str, Any]:
        """The pytrees of what is marked."""
        leaves: dict[str, dict[int, Any]] = {}
        for mark, value in marked.items():
            leaves.setdefault(mark.name, {})[mark.leaf] = traced(value)
        return {name: self.structures[name].unflatten([of[i] for i in sorted(of)])[0] for name, of in leaves.items()}


_TAPS: ContextVar[Taps | None] = ContextVar("taps", default=None)


@contextmanager
def _tapping(taps: Taps | None) -> Generator[None]:
    token = _TAPS.set(taps)
    try:
        yield
    finally:
        _TAPS.reset(token)


def tap(x: Any, name: str) -> Any:
    """`x` itself, which `tapped` functions return under this name; everywhere else this does nothing.

    `x` is a pytree of arrays and numbers. It has a derivative as if it were not tapped, and is the value, also where
    the tapped function is a derivative. In a `scan` the rows of all steps are returned, in front of the rows of `vmap`;
    in a loop of unknown length what it was in the step that ran last, which for cotangents is the first; in a branch of
    `cond` that is not taken it is nan, and 0 if it is an integer.

    Raises `TapError`, from the tapped function, if two calls have the same name; branches of one `cond` may.
    """
    return _marked(x, name, _beside)


def cotangent_tap(x: Any, name: str) -> Any:
    """`x` itself; `tapped` functions that are derivatives in reverse mode return its cotangent under this name.

    For `tapped(grad(f))` that is the gradient of what `f` returns with respect to `x`. It is of the shape of `x`, comes
    out of loops and branches as a value does (`tap`), and is not returned where no derivative passes, as in forward
    mode. Of nested derivatives in reverse mode the innermost has it.
    """
    return _marked(x, name, cotangent_tap_primitive)


def _beside(x: Symbol, **mark: Any) -> Symbol:
    tap_primitive(x, **mark)
    return x


def _marked(x: Any, name: str, mark: Callable[..., Any]) -> Any:
    taps = _TAPS.get()
    if taps is None or not is_tracing():
        return x
    leaves, structure = leaves_of((x,), lambda _: "x")
    number = taps.enter(name, structure)
    found = [mark(symbol(leaf), **Mark(name, i, number)._asdict()) for i, leaf in enumerate(leaves)]
    return structure.unflatten([traced(s, weak=leaf.weak) for s, leaf in zip(found, leaves, strict=True)])[0]


@with_options
def tapped(f: Function) -> Function:
    """The function that returns a pair: what `f` returns, and a dict of what is tapped in it, by name.

    It is a function like any other: it may be compiled and differentiated, and `f` may be a derivative.

    >>> import numpy as np, fnad
    >>> def loss(w):
    ...     hidden = fnad.cotangent_tap(fnad.tap(np.tanh(w), "hidden"), "d hidden")
    ...     return np.sum(hidden**2)
    >>> gradient, taps = fnad.tapped(fnad.grad(loss))(np.array([0.0, 0.5]))
    >>> taps["hidden"], taps["d hidden"]
    (array([0.        , 0.46211716]), array([0.        , 0.92423431]))
    """
    check_function(f, "tapped")

    def run(*args: Any, **kwargs: Any) -> Any:
        return in_trace(f, lambda args, kwargs: _tapped(f, args, kwargs), args, kwargs)

    return run


def _tapped(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    leaves, structure = leaves_of((args, kwargs), lambda i: ("args", "kwargs")[i])
    given, taps = list(map(symbol, leaves)), Taps()
    with _tapping(taps):
        call, own = calling(partial(apply, f), partial(unflatten, structure)), flatten((args, kwargs))[0]
        region = region_of_call(f, call, leaf_types(leaves), given, given=own)
    program, marks = with_taps(region.program)
    found = inline(program, [*given, *region.consts])
    results, values = found[: len(region.results)], found[len(region.results) :]
    return region.rebuilt(results), taps.rebuilt(dict(zip(marks, values, strict=True)))
