"""Values and cotangents out of the middle of a function, as results of it: `tap`, `cotangent_tap`, `tapped`.

Nothing is stored anywhere: `tapped(f)` is a function that returns what `f` returns and a dict of what it taps, by name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from fnad.api.running.execution import in_trace
from fnad.api.running.transformed import with_options
from fnad.api.staging.inlining import traced
from fnad.api.staging.leaves import Function, Structure, check_function, flatten, leaves_of, unflatten
from fnad.api.staging.marshalling import leaf_types, symbol
from fnad.api.staging.regions import apply, calling, region_of_call
from fnad.blocks import LocalBlocks
from fnad.control.tap import Mark, Marked, with_taps
from fnad.control.tap import cotangent_tap as cotangent_tap_primitive
from fnad.control.tap import tap as tap_primitive
from fnad.errors import TapError
from fnad.ir.builder import inline, is_tracing
from fnad.ir.symbol import Symbol


class Taps:
    """The pytrees that are tapped in one call of a tapped function: their structures by name."""

    def __init__(self) -> None:
        self.numbers = count()
        self.structures: dict[str, Structure] = {}

    def enter(self, name: str, structure: Structure) -> int:
        """The number of a call of `tap`; raises `TapError` where the name stands for another pytree."""
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TapError.here(f"the name of a tap is {name!r}", remedy="give a string")
        if self.structures.setdefault(name, structure) != structure:
            raise TapError.here(
                f"two pytrees of other structures are tapped as {name!r}", remedy="give each a name of its own"
            )
        return next(self.numbers)

    def rebuilt(self, marked: Marked) -> dict[str, Any]:
        """The pytrees of what is marked."""
        leaves: dict[str, dict[int, Any]] = {}
        for mark, value in marked.items():
            leaves.setdefault(mark.name, {})[mark.leaf] = traced(value)
        return {name: self.structures[name].unflatten([of[i] for i in sorted(of)])[0] for name, of in leaves.items()}


_TAPS: LocalBlocks[Taps | None] = LocalBlocks()


def tap(x: Any, name: str) -> Any:
    """The value `x` itself, which a `tapped` function returns under this name; elsewhere this does nothing.

    In a `scan`, the rows of all steps are returned; in a loop of unknown length, the value in its last step; in a
    branch of `cond` that did not run, nan, or 0 for integers. Rows of `vmap` come after rows of `scan`.

    Parameters:
        x: Pytree of arrays and numbers.
        name (str): A name for one call, except in different branches of one `cond`.
    Returns:
        pytree: `x`, with its derivative.
    Raises:
        TapError: If two calls have the same name; the tapped function raises it.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.tapped(lambda x: np.sum(fnad.tap(x**2, "squares")))(np.array([1.0, 2.0]))
        (np.float64(5.0), {'squares': array([1., 4.])})
    """
    return _marked(x, name, _beside)


def cotangent_tap(x: Any, name: str) -> Any:
    """The value `x` itself, whose cotangent a `tapped` derivative returns under this name.

    In `tapped(grad(f))` this is the gradient of the output of `f` with respect to `x`. Forward mode returns nothing. Of
    nested derivatives in reverse mode, the innermost returns it.

    Parameters:
        x: Pytree of arrays and numbers.
        name (str): As in `tap`.
    Returns:
        pytree: `x`, with its derivative.
    Raises:
        TapError: If two calls have the same name; the tapped function raises it.
    Examples:
        >>> import numpy as np, fnad
        >>> f = lambda x: np.sin(fnad.cotangent_tap(x**2, "slope"))
        >>> fnad.tapped(fnad.grad(f))(0.0)
        (np.float64(0.0), {'slope': np.float64(1.0)})
    """
    return _marked(x, name, cotangent_tap_primitive)


def _beside(x: Symbol, **mark: Any) -> Symbol:
    tap_primitive(x, **mark)
    return x


def _marked(x: Any, name: str, mark: Callable[..., Any]) -> Any:
    taps = _TAPS.innermost
    if taps is None or not is_tracing():
        return x
    leaves, structure = leaves_of((x,), lambda _: "x")
    number = taps.enter(name, structure)
    found = [mark(symbol(leaf), **Mark(name, i, number)._asdict()) for i, leaf in enumerate(leaves)]
    return structure.unflatten([traced(s, weak=leaf.weak) for s, leaf in zip(found, leaves, strict=True)])[0]


@with_options
def tapped(f: Function) -> Function:
    """The function that returns the result of `f`, and a dict of the values tapped in it.

    Parameters:
        f (function): Any function, also a derivative; `tap` and `cotangent_tap` mark the values.
    Returns:
        function: Takes the arguments of `f` and returns (result of `f`, {name: value}); it compiles and has
            derivatives.
    Raises:
        TapError: If two taps have the same name; the returned function raises it.
    Examples:
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
    with _TAPS.holding(taps):
        call, own = calling(partial(apply, f), partial(unflatten, structure)), flatten((args, kwargs))[0]
        region = region_of_call(f, call, leaf_types(leaves), given, given=own)
    program, marks = with_taps(region.program)
    found = inline(program, [*given, *region.consts])
    results, values = found[: len(region.results)], found[len(region.results) :]
    return region.rebuilt(results), taps.rebuilt(dict(zip(marks, values, strict=True)))
