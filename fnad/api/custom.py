"""Functions with derivatives that the user states: `custom_vjp`, `custom_jvp`."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial, update_wrapper
from typing import Any, NamedTuple, cast

import numpy as np

from fnad.api.arguments import as_positions, resolved
from fnad.api.leaves import Function, Structure, check_function, flatten, leaves_of, structure_text, type_name
from fnad.api.regions import Kind, Region, as_tracer, described, kind_of, region_of, with_shared_captures
from fnad.control.custom import custom_jvp as jvp_primitive
from fnad.control.custom import custom_vjp as vjp_primitive
from fnad.errors import CustomRuleError
from fnad.ir.builder import is_tracing
from fnad.ir.primitive import Primitive
from fnad.ir.symbol import Symbol
from fnad.ir.types import is_inexact
from fnad.numpy.operands import as_symbol
from fnad.trace.source import current_source

DEEPEST = 3
"""How often a rule that calls its own function is followed: derivatives of so high an order."""


class _Nesting(threading.local):
    """How many calls of a function lie within one another's rules in this thread."""

    depth = 0

    @contextmanager
    def deeper(self) -> Generator[bool]:
        """Go one deeper; say whether that is followed."""
        self.depth += 1
        try:
            yield self.depth <= DEEPEST
        finally:
            self.depth -= 1


class custom_vjp:  # noqa: N801 a decorator
    """A function whose reverse mode the user states.

    `defvjp(fwd, bwd)` takes the rule. `fwd(*args)` returns a pair of what the function returns and residuals, any
    pytree; `bwd(residuals, ct)` takes the cotangent of the output, a pytree like it (0 where the output is an integer),
    to the tuple of the cotangents of the arguments, of which None is a zero. Arguments at `nondiff_argnums` may be
    anything; they come first in `bwd`. Forward mode follows from the rule, which has to be linear in `ct`, and the
    second derivative is the derivative of the rule.

    Nothing that the function or its rule uses from outside may be differentiated. Raises `CustomRuleError` for that,
    for a function without a rule, and for a rule that returns other structures, shapes or dtypes than it should.

    >>> import numpy as np, fnad
    >>> @fnad.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    >>> fnad.grad(lambda x: np.sum(10.0 * clipped(x)))(np.ones(2))
    array([1., 1.])
    """

    def __init__(self, f: Function, nondiff_argnums: int | Sequence[int] = ()) -> None:
        check_function(f, "custom_vjp")
        self._f = f
        self._fixed = _positions(nondiff_argnums)
        self._nesting = _Nesting()
        self._rule: tuple[Function, Function] | None = None
        update_wrapper(self, f)

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """State the rule, once: what was compiled with it is not told of another."""
        for function in (fwd, bwd):
            check_function(function, "defvjp")
        _check_first(self._rule, self._f)
        self._rule = fwd, bwd

    def __call__(self, *args: Any) -> Any:
        """Return what the function does."""
        if self._rule is None:
            raise _refused(f"{described(self._f)} has no rule", "state it with defvjp(fwd, bwd)")
        if not is_tracing():
            return self._f(*args)
        call = _call_of(self._f, self._fixed, args)
        function = region_of(self._f, partial(call.of, self._f), call.kinds)
        with self._nesting.deeper() as may_go_on:
            regions = [function, *_reverse(*self._rule, call, function)] if may_go_on else [function]
        return _bound(vjp_primitive, call, regions)


class custom_jvp:  # noqa: N801 a decorator
    """A function whose forward mode the user states.

    `defjvp(rule)` takes `rule(primals, tangents)`, from two tuples, of the arguments and of their tangents, to the pair
    of the output and its tangent. Arguments at `nondiff_argnums` may be anything; they come first in `rule`. Reverse
    mode follows from the rule, which has to be linear in the tangents, and the second derivative is the derivative of
    the rule.

    Nothing that the function or its rule uses from outside may be differentiated. Raises `CustomRuleError` as
    `custom_vjp` does.

    >>> import numpy as np, fnad
    >>> @fnad.custom_jvp
    ... def sinc(x):
    ...     return np.where(x == 0.0, 1.0, np.sin(x) / x)
    >>> @sinc.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return sinc(x), np.where(x == 0.0, 0.0, (np.cos(x) - sinc(x)) / x) * dx
    >>> fnad.grad(sinc)(0.0)
    np.float64(0.0)
    """

    def __init__(self, f: Function, nondiff_argnums: int | Sequence[int] = ()) -> None:
        check_function(f, "custom_jvp")
        self._f = f
        self._fixed = _positions(nondiff_argnums)
        self._nesting = _Nesting()
        self._rule: Function | None = None
        update_wrapper(self, f)

    def defjvp(self, rule: Function) -> Function:
        """State the rule, once, and return it: what was compiled with it is not told of another."""
        check_function(rule, "defjvp")
        _check_first(self._rule, self._f)
        self._rule = rule
        return rule

    def __call__(self, *args: Any) -> Any:
        """Return what the function does."""
        if self._rule is None:
            raise _refused(f"{described(self._f)} has no rule", "state it with defjvp(rule)")
        if not is_tracing():
            return self._f(*args)
        call = _call_of(self._f, self._fixed, args)
        function = region_of(self._f, partial(call.of, self._f), call.kinds)
        with self._nesting.deeper() as may_go_on:
            regions = [function, _pushing(self._rule, call, function)] if may_go_on else [function]
        return _bound(jvp_primitive, call, regions)


# ---- calls -----------------------------------------------------------------------------------------------------------


class _Call(NamedTuple):
    """A call taken apart: all arguments, the positions of those with derivatives, and the leaves of these."""

    args: tuple[Any, ...]
    moved: tuple[int, ...]
    structure: Structure
    symbols: list[Symbol]
    kinds: list[Kind]

    @property
    def fixed(self) -> list[Any]:
        """The arguments that have no derivative, which rules receive first."""
        return [arg for i, arg in enumerate(self.args) if i not in self.moved]

    @property
    def inexact(self) -> list[Kind]:
        """The kinds of the leaves that have a derivative."""
        return [kind for kind in self.kinds if is_inexact(kind.aval.dtype)]

    def trees(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments with derivatives, of these leaves."""
        return cast("tuple[Any, ...]", self.structure.unflatten(leaves))

    def of(self, f: Function, leaves: Sequence[Any]) -> Any:
        """Return what a function returns for the arguments with these leaves."""
        moved = dict(zip(self.moved, self.trees(leaves), strict=True))
        return f(*[moved.get(i, arg) for i, arg in enumerate(self.args)])


def _positions(nondiff_argnums: int | Sequence[int]) -> tuple[int, ...]:
    is_empty = isinstance(nondiff_argnums, (tuple, list)) and not nondiff_argnums
    return () if is_empty else as_positions(nondiff_argnums)


def _call_of(f: Function, nondiff_argnums: tuple[int, ...], args: tuple[Any, ...]) -> _Call:
    fixed = resolved(f, nondiff_argnums, len(args), "nondiff_argnums")
    moved = tuple(i for i in range(len(args)) if i not in fixed)
    leaves, structure = leaves_of([args[i] for i in moved], lambda i: f"args[{moved[i]}]")
    return _Call(args, moved, structure, [as_symbol(leaf.value) for leaf in leaves], [kind_of(leaf) for leaf in leaves])


# ---- rules as regions ------------------------------------------------------------------------------------------------


def _bound(primitive: Primitive, call: _Call, regions: Sequence[Region]) -> Any:
    """Return the result of a call whose function and rules are these regions."""
    counts = [len(region.program.inputs) - len(region.captured) for region in regions]
    captured, programs = with_shared_captures(regions, counts)
    found = primitive(*call.symbols, *captured, leaves=len(call.kinds), regions=tuple(programs))
    return regions[0].structure.unflatten(map(as_tracer, found, regions[0].results))


def _reverse(fwd: Function, bwd: Function, call: _Call, function: Region) -> tuple[Region, Region]:
    """Return the rule of reverse mode as two regions."""
    forward, kept = _forward(fwd, call, function)
    return forward, _backward(bwd, call, function, forward.results[len(function.results) :], kept)


def _forward(fwd: Function, call: _Call, function: Region) -> tuple[Region, Structure]:
    """Return the region (leaves…) -> (output…, residuals…), and the structure of the residuals."""

    def run(tracers: Sequence[Any]) -> Any:
        return _pair(call.of(fwd, tracers), fwd, "(output, residuals)")

    region = region_of(fwd, run, call.kinds)
    output, kept = region.structure.children()
    _check_like(function.structure, output, fwd)
    return _like(region, function, fwd), kept


def _backward(bwd: Function, call: _Call, function: Region, kept: Sequence[Kind], structure: Structure) -> Region:
    """Return the region (residuals…, cotangents…) -> (cotangents of the leaves that have one…)."""
    cotangents = [kind for kind in function.results if is_inexact(kind.aval.dtype)]

    def run(tracers: Sequence[Any]) -> list[Any]:
        residuals = structure.unflatten(tracers[: len(kept)])
        ct = function.structure.unflatten(_at_inexact(tracers[len(kept) :], function.results))
        return _cotangents(bwd(*call.fixed, residuals, ct), bwd, call)

    region = region_of(bwd, run, [*kept, *cotangents])
    _check_avals(region, call.inexact, bwd)
    return region.converted([kind.aval.dtype for kind in call.inexact])


def _pushing(rule: Function, call: _Call, function: Region) -> Region:
    """Return the region (leaves…, tangents…) -> (output…, tangents of the output…)."""

    def run(tracers: Sequence[Any]) -> Any:
        leaves, moved = tracers[: len(call.kinds)], _at_inexact(tracers[len(call.kinds) :], call.kinds)
        output, tangent = _pair(rule(*call.fixed, call.trees(leaves), call.trees(moved)), rule, "(output, tangent)")
        _check_like(function.structure, flatten(output)[1], rule)
        _check_like(function.structure, flatten(tangent)[1], rule)
        kept = [t for t, kind in zip(flatten(tangent)[0], function.results, strict=True) if is_inexact(kind.aval.dtype)]
        return flatten(output)[0], kept

    region = _like(region_of(rule, run, [*call.kinds, *call.inexact]), function, rule)
    inexact = [kind for kind in function.results if is_inexact(kind.aval.dtype)]
    count = len(function.results)
    _check_avals(region._replace(results=region.results[count:]), inexact, rule)
    return region.converted([kind.aval.dtype for kind in [*function.results, *inexact]])


def _at_inexact(values: Sequence[Any], kinds: Sequence[Kind]) -> list[Any]:
    """Return the values at the leaves that have a derivative, zeros at the others."""
    rest = iter(values)
    return [next(rest) if is_inexact(k.aval.dtype) else np.zeros(k.aval.shape, k.aval.dtype)[()] for k in kinds]


def _cotangents(found: Any, bwd: Function, call: _Call) -> list[Any]:
    """Return the cotangents of the leaves that have one, out of what a backward rule returned."""
    if not isinstance(found, (tuple, list)) or len(cast("Sequence[Any]", found)) != len(call.moved):
        raise _refused(
            f"{described(bwd)} returned {type_name(found)}, not a tuple of {len(call.moved)}",
            "return one cotangent for each argument, None for a zero",
        )
    leaves: list[Any] = []
    kinds = iter(call.kinds)
    for ct, structure in zip(cast("Sequence[Any]", found), call.structure.children(), strict=True):
        of_argument = [next(kinds) for _ in range(structure.num_leaves)]
        if ct is None:
            values: list[Any] = [np.zeros(kind.aval.shape, kind.aval.dtype)[()] for kind in of_argument]
        else:
            values, like = flatten(ct)
            _check_like(structure, like, bwd)
        leaves += [v for v, kind in zip(values, of_argument, strict=True) if is_inexact(kind.aval.dtype)]
    return leaves


def _pair(found: Any, rule: Function, what: str) -> tuple[Any, Any]:
    if isinstance(found, (tuple, list)) and len(cast("Sequence[Any]", found)) == 2:
        return found[0], found[1]
    raise _refused(f"{described(rule)} returned {type_name(found)}, not a pair", f"return {what}")


def _like(region: Region, function: Region, rule: Function) -> Region:
    """Return the region with its first results in the dtypes of the function's."""
    count = len(function.results)
    _check_avals(region._replace(results=region.results[:count]), function.results, rule)
    return region.converted([kind.aval.dtype for kind in function.results])


def _check_like(expected: Structure, found: Structure, rule: Function) -> None:
    if expected != found:
        raise _refused(
            f"{described(rule)} returned {structure_text(found)} where {structure_text(expected)} belongs",
            "return the same containers with the same keys",
        )


def _check_avals(region: Region, expected: Sequence[Kind], rule: Function) -> None:
    for found, kind in zip(region.results, expected, strict=True):
        is_same = found.aval == kind.aval or (found.weak and found.aval.shape == kind.aval.shape)
        if not is_same:
            raise _refused(f"{described(rule)} returned {found.aval} where {kind.aval} belongs", "keep shape and dtype")


def _check_first(rule: object, f: Function) -> None:
    if rule is not None:
        raise _refused(f"{described(f)} has a rule already", "state another for another function: custom_vjp(f)")


def _refused(what: str, remedy: str) -> CustomRuleError:
    return CustomRuleError(what, source=current_source(), remedy=remedy)
