"""Functions with derivatives that the user states: `custom_vjp`, `custom_jvp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from itertools import islice
from pickle import PicklingError
from types import BuiltinFunctionType
from typing import Any, NamedTuple, cast

import numpy as np

from fnad.api.running.transformed import Transformed, forget_traces
from fnad.api.staging.arguments import as_positions, resolved
from fnad.api.staging.leaves import (
    Function,
    Structure,
    check_function,
    flatten,
    leaves_of,
    map_leaves,
    structure_text,
    type_name,
    unflatten,
)
from fnad.api.staging.marshalling import LeafType, leaf_types
from fnad.api.staging.regions import Region, described, region_of, with_shared_captures
from fnad.blocks import LocalBlocks
from fnad.control.custom import custom_jvp as jvp_primitive
from fnad.control.custom import custom_vjp as vjp_primitive
from fnad.control.custom import ruled as ruled_primitive
from fnad.errors import CustomRuleError
from fnad.ir.builder import is_tracing
from fnad.ir.symbol import Symbol
from fnad.numpy.operands import as_symbol
from fnad.trace.hooks import callee
from fnad.tracebacks import boundary

IN_C = (np.ufunc, BuiltinFunctionType, type(np.sum))
"""Classes of functions whose options have no derivatives."""

DEEPEST = 3
"""The highest order of derivatives for which a rule that calls its own function is followed."""


class _Custom(Transformed):
    """A function with a rule: its equation has this `primitive`; `how` is the call that states the rule."""

    __slots__ = ("_f", "_fixed", "_nesting", "rule")
    primitive: Callable[..., Any]
    how: str

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """Without a function, the decorator with these options."""
        return super().__new__(cls) if args or "f" in options else partial(cls, **options)

    def __init__(self, f: Function, nondiff_argnums: int | Sequence[int] = ()) -> None:
        check_function(f, type(self).__name__)
        super().__init__(type(self), f, {"nondiff_argnums": nondiff_argnums} if nondiff_argnums != () else {}, f)
        self._f = f
        self._fixed = _positions(nondiff_argnums)
        self._nesting: LocalBlocks[None] = LocalBlocks()
        self.rule: tuple[Function, ...] | None = None

    @boundary
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The action of the function."""
        if self.rule is None:
            raise _refused(f"{described(self._f)} has no rule", f"state it with {self.how}")
        return self._traced(_by_position(self._f, args, kwargs)) if is_tracing() else self._f(*args, **kwargs)

    def _traced(self, args: tuple[Any, ...]) -> Any:
        """The result of a call within a trace."""
        call = _call_of(self._f, self._fixed, args)
        function = region_of(self._f, partial(call.of, self._f), call.types)
        with self._nesting.holding(None):
            may_go_on = len(self._nesting.entries) <= DEEPEST
            regions = [function, *self._regions(call, function, *(self.rule or ()))] if may_go_on else [function]
        return _bound(self.primitive, call, regions)

    def __reduce__(self) -> Any:
        found = super().__reduce__()
        if isinstance(found, str):
            return found
        raise PicklingError(f"{self} is no name of its module, and without one its rule would be lost")

    def _regions(self, call: CustomCall, function: Region, *rule: Function) -> Sequence[Region]:
        raise NotImplementedError

    def state(self, *rule: Function) -> None:
        """State the rule; what was traced with another one is forgotten."""
        for function in rule:
            check_function(function, self.how.partition("(")[0])
        is_another, self.rule = self.rule is not None, rule
        if is_another:
            forget_traces()


class custom_vjp(_Custom):  # noqa: N801 a decorator
    """A function with a rule for reverse mode, stated by `defvjp(fwd, bwd)`.

    `fwd(*args)` returns the output and residuals, any pytree. `bwd(residuals, ct)` takes the cotangent of the output, a
    pytree like it, and returns a tuple with a cotangent for each argument, None for a zero. The rule is linear in `ct`:
    forward mode and higher derivatives follow from it. Arguments that a call names, and defaults, come by position too.

    Parameters:
        f (function): It must not use differentiated values from outside.
        nondiff_argnums (int or sequence of ints): The positions of arguments that may be anything; `bwd` receives them
            first.
    Returns:
        custom_vjp: A function with the values of `f`.
    Raises:
        CustomRuleError: At a call: if there is no rule, if the rule returns another structure, shape or dtype than it
            should, or if something from outside is differentiated.
    Examples:
        >>> import numpy as np, fnad
        >>> @fnad.custom_vjp
        ... def clipped(x):
        ...     return x
        >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
        >>> fnad.grad(lambda x: np.sum(10.0 * clipped(x)))(np.ones(2))
        array([1., 1.])
    """

    __slots__ = ()
    primitive = vjp_primitive
    how = "defvjp(fwd, bwd)"

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """State the rule."""
        self.state(fwd, bwd)

    def _regions(self, call: CustomCall, function: Region, *rule: Function) -> Sequence[Region]:
        fwd, bwd = rule
        forward, structure = _forward(fwd, call, function)
        return forward, _backward(bwd, call, function, forward.results[len(function.results) :], structure)


class custom_jvp(_Custom):  # noqa: N801 a decorator
    """A function with a rule for forward mode, stated by `defjvp(rule)`.

    `rule(primals, tangents)` takes the tuples of the arguments and of their tangents, and returns the output and its
    tangent. The rule is linear in the tangents: reverse mode and higher derivatives follow from it. Arguments that a
    call names, and defaults, are among the primals too.

    Parameters:
        f (function): It must not use differentiated values from outside.
        nondiff_argnums (int or sequence of ints): The positions of arguments that may be anything; `rule` receives them
            first.
    Returns:
        custom_jvp: A function with the values of `f`.
    Raises:
        CustomRuleError: As in `custom_vjp`.
    Examples:
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

    __slots__ = ()
    primitive = jvp_primitive
    how = "defjvp(rule)"

    def defjvp(self, rule: Function) -> Function:
        """State the rule, and return it."""
        self.state(rule)
        return rule

    def defjvps(self, *parts: Function | None) -> None:
        """State the rule by its part for each argument, `part(tangent, result, *primals)`; None is a part that is 0."""

        def rule(*given: Any) -> Any:
            *fixed, primals, tangents = given
            if fixed or len(parts) != len(primals):
                what = f"defjvps states a part for each argument of {described(self._f)}, and no argument is fixed"
                raise _refused(what, "state the rule with defjvp")
            result = self(*primals)
            pairs = zip(parts, tangents, strict=True)
            found = [callee(part)(dx, result, *primals) for part, dx in pairs if part is not None]
            return result, map_leaves(lambda *each: sum(each[1:], np.zeros_like(each[0])), result, *found)

        self.state(rule, *filter(None, parts))

    def _regions(self, call: CustomCall, function: Region, *rule: Function) -> Sequence[Region]:
        return (_pushing(rule[0], call, function),)


class Ruled(_Custom):
    """A function with a rule for each of the modes, which the rules do not call for its value.

    `vjp(args, ct)` returns the cotangents of the arguments, `jvp(primals, tangents)` the tangent of the output.
    """

    __slots__ = ("modes", "primitive")
    how = "fnad.external"

    def __init__(self, f: Function, **rules: Function) -> None:
        super().__init__(f)
        self.modes = tuple(rules)
        self.primitive = partial(ruled_primitive, modes=self.modes)
        self.state(*rules.values())

    def _regions(self, call: CustomCall, function: Region, *rule: Function) -> Sequence[Region]:
        def region(mode: str, rule: Function) -> Region:
            if mode == "jvp":
                return _pushing(rule, call, function, has_output=False)
            return _backward(rule, call, function, call.types, call.structure)

        return list(map(region, self.modes, rule))


# ---- calls -----------------------------------------------------------------------------------------------------------


def _by_position(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments in the order of the parameters, with the defaults of a function in Python."""
    bound = signature(_any if isinstance(f, IN_C) else f).bind(*args, **kwargs)
    if bound.kwargs:
        what = f"{described(f)} takes {', '.join(bound.kwargs)} by keyword alone, and rules take arguments by position"
        raise _refused(what, "let the function take it by position, or use functools.partial before the rule is stated")
    bound.apply_defaults()
    return bound.args


def _any(*args: Any, **kwargs: Any) -> None:
    """A function that has the parameters of one in C."""


class CustomCall(NamedTuple):
    """A call taken apart: all arguments, the positions of those with derivatives, and the leaves of these."""

    args: tuple[Any, ...]
    moved: tuple[int, ...]
    structure: Structure
    symbols: list[Symbol]
    types: list[LeafType]

    @property
    def fixed(self) -> list[Any]:
        """The arguments that have no derivative, which rules receive first."""
        return [arg for i, arg in enumerate(self.args) if i not in self.moved]

    @property
    def inexact(self) -> list[LeafType]:
        """The types of the leaves that have a derivative."""
        return _inexact(self.types)

    def trees(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments with derivatives, of these leaves."""
        return unflatten(self.structure, leaves)

    def of(self, f: Function, leaves: Sequence[Any]) -> Any:
        """The result of a function for the arguments with these leaves."""
        moved = dict(zip(self.moved, self.trees(leaves), strict=True))
        return callee(f)(*[moved.get(i, arg) for i, arg in enumerate(self.args)])


def _positions(nondiff_argnums: int | Sequence[int]) -> tuple[int, ...]:
    is_empty = isinstance(nondiff_argnums, (tuple, list)) and not nondiff_argnums
    return () if is_empty else as_positions(nondiff_argnums)


def _call_of(f: Function, nondiff_argnums: tuple[int, ...], args: tuple[Any, ...]) -> CustomCall:
    fixed = resolved(f, nondiff_argnums, len(args), "nondiff_argnums")
    moved = tuple(i for i in range(len(args)) if i not in fixed)
    leaves, structure = leaves_of([args[i] for i in moved], lambda i: f"args[{moved[i]}]")
    return CustomCall(args, moved, structure, [as_symbol(leaf.value) for leaf in leaves], leaf_types(leaves))


# ---- rules as regions ------------------------------------------------------------------------------------------------


def _bound(primitive: Callable[..., Any], call: CustomCall, regions: Sequence[Region]) -> Any:
    """The result of a call whose function and rules are these regions."""
    return regions[0].rebuilt(_results(primitive, call, regions))


def _results(primitive: Callable[..., Any], call: CustomCall, regions: Sequence[Region]) -> Sequence[Symbol]:
    captured, programs = with_shared_captures(regions)
    return primitive(*call.symbols, *captured, leaves=len(call.types), regions=tuple(programs))


def _forward(fwd: Function, call: CustomCall, function: Region) -> tuple[Region, Structure]:
    """The region (leaves…) -> (output…, residuals…), and the structure of the residuals."""

    def run(tracers: Sequence[Any]) -> Any:
        return _pair(call.of(fwd, tracers), fwd, "(output, residuals)")

    region = region_of(fwd, run, call.types)
    output, residuals = region.structure.children()
    _check_like(function.structure, output, fwd)
    return _fitted(region, function.results, fwd), residuals


def _backward(
    bwd: Function, call: CustomCall, function: Region, residuals: Sequence[LeafType], structure: Structure
) -> Region:
    """The region (residuals…, cotangents…) -> (cotangents of the leaves that have one…)."""
    count = len(residuals)

    def run(tracers: Sequence[Any]) -> list[Any]:
        ct = unflatten(function.structure, _at_inexact(tracers[count:], function.results))
        return _cotangents(callee(bwd)(*call.fixed, unflatten(structure, tracers[:count]), ct), bwd, call)

    return _fitted(region_of(bwd, run, [*residuals, *_inexact(function.results)]), call.inexact, bwd)


def _pushing(rule: Function, call: CustomCall, function: Region, *, has_output: bool = True) -> Region:
    """The region (leaves…, tangents…) -> (output…, tangents of the output…), or without the output."""
    count = len(call.types)

    def run(tracers: Sequence[Any]) -> Any:
        moved = _at_inexact(tracers[count:], call.types)
        found = callee(rule)(*call.fixed, call.trees(tracers[:count]), call.trees(moved))
        parts = list(map(flatten, _pair(found, rule, "(output, tangent)") if has_output else (found,)))
        for _, structure in parts:
            _check_like(function.structure, structure, rule)
        tangents = [t for t, y in zip(parts[-1][0], function.results, strict=True) if y.has_derivative]
        return [leaves for leaves, _ in parts[:-1]], tangents

    region = region_of(rule, run, [*call.types, *call.inexact])
    return _fitted(region, [*function.results * has_output, *_inexact(function.results)], rule)


def _inexact(types: Sequence[LeafType]) -> list[LeafType]:
    return [t for t in types if t.has_derivative]


def _at_inexact(values: Sequence[Any], types: Sequence[LeafType]) -> list[Any]:
    """The values at the leaves that have a derivative, zeros at the others."""
    rest = iter(values)
    return [next(rest) if t.has_derivative else _zero(t) for t in types]


def _zero(t: LeafType) -> Any:
    return np.zeros(t.aval.shape, t.aval.dtype)[()]


def _cotangents(found: Any, bwd: Function, call: CustomCall) -> list[Any]:
    """The cotangents of the leaves that have one, out of what a backward rule returned."""
    if not isinstance(found, (tuple, list)) or len(cast("Sequence[Any]", found)) != len(call.moved):
        what = f"a tuple of {len(cast('Sequence[Any]', found))}" if isinstance(found, tuple) else type_name(found)
        raise _refused(
            f"{described(bwd)} returned {what}, not a tuple of {len(call.moved)}",
            "return one cotangent for each argument, None for a zero",
        )
    leaves: list[Any] = []
    types = iter(call.types)
    for ct, structure in zip(cast("Sequence[Any]", found), call.structure.children(), strict=True):
        of_argument = list(islice(types, structure.num_leaves))
        values, like = flatten(ct) if ct is not None else (list(map(_zero, of_argument)), structure)
        _check_like(structure, like, bwd)
        leaves += [value for value, t in zip(values, of_argument, strict=True) if t.has_derivative]
    return leaves


def _pair(found: Any, rule: Function, what: str) -> tuple[Any, Any]:
    if isinstance(found, (tuple, list)) and len(cast("Sequence[Any]", found)) == 2:
        return found[0], found[1]
    raise _refused(f"{described(rule)} returned {type_name(found)}, not a pair", f"return {what}")


def _check_like(expected: Structure, found: Structure, rule: Function) -> None:
    if expected != found:
        raise _refused(
            f"{described(rule)} returned {structure_text(found)} where {structure_text(expected)} belongs",
            "return the same containers with the same keys",
        )


def _fitted(region: Region, expected: Sequence[LeafType], rule: Function) -> Region:
    """The region with its first results in the dtypes expected; raise where more than a Python number's differs."""
    for found, t in zip(region.results, expected):  # noqa: B905 residuals may stand behind
        if found.aval != t.aval and not (found.weak and found.aval.shape == t.aval.shape):
            raise _refused(f"{described(rule)} returned {found.aval} where {t.aval} belongs", "keep shape and dtype")
    return region.converted(expected)


def _refused(what: str, remedy: str) -> CustomRuleError:
    return CustomRuleError.here(what, remedy=remedy)
