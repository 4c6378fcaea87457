"""Functions that are not traced, with derivatives that the user states: `external`."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial, wraps
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np

from fnad.api.functions.custom_rules import Ruled
from fnad.api.functions.lowered import ShapeDtypeStruct, leaves_or_types
from fnad.api.running.transformed import Transformed
from fnad.api.staging.inlining import traced
from fnad.api.staging.leaves import (
    Function,
    Structure,
    check_function,
    flatten,
    function_name,
    leaves_of,
    structure_text,
    to_user,
    type_name,
)
from fnad.api.staging.stage import output_leaves
from fnad.control.external import External
from fnad.control.external import external as primitive
from fnad.errors import CallbackError, CustomRuleError
from fnad.ir.builder import current_builder, is_tracing
from fnad.ir.types import Aval, is_inexact
from fnad.numpy.operands import as_symbol
from fnad.trace.hooks import callee
from fnad.trace.source import current_source


class external(Transformed):  # noqa: N801 a decorator
    """A function that is not traced, such as a compiled solver or another library's, with derivatives stated by rules.

    It is called with ordinary arrays. It must be pure: a call whose results are not used may be left out, equal calls
    may be made once. A rule is an ordinary function too, which is not traced either; if it is a function of
    `fnad.external` or of another transform, it is traced, and so has derivatives.

    Parameters:
        f (function): Takes and returns pytrees of arrays and numbers.
        result (pytree of arrays, numbers or ShapeDtypeStructs): The structure, shapes and dtypes of what `f` returns,
            or a function that returns it for a `ShapeDtypeStruct` in place of each array of the arguments. Results are
            converted to these dtypes where NumPy's `out=` would do it.
        vjp (function, optional): `vjp(ct, *args)` returns a tuple with the cotangent of each argument, None for a
            zero. `ct` is a pytree like the result.
        jvp (function, optional): `jvp(primals, tangents)` takes the tuples of the arguments and of their tangents, and
            returns the tangent of the result.
        batch (function, optional): `f` for arguments and results that all have a new first axis, under `vmap`. Without
            it `f` is called for each row.
    Returns:
        function: A function with the values of `f`; without `f`, the decorator with these options.
    Raises:
        CustomRuleError: If a derivative is required for which there is no rule.
        CallbackError: If `f` or a rule returns another structure, shape or dtype than announced.
    Examples:
        >>> import math
        >>> import fnad
        >>> sine = fnad.external(math.sin, result=0.0, vjp=lambda ct, x: (ct * math.cos(x),))
        >>> fnad.grad(sine)(0.0)
        np.float64(1.0)
    """

    __slots__ = ("_batch", "_hosts", "_result", "_ruled")

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """Without a function, the decorator with these options."""
        return super().__new__(cls) if args or "f" in options else partial(cls, **options)

    def __init__(
        self,
        f: Function,
        *,
        result: Any,
        vjp: Function | None = None,
        jvp: Function | None = None,
        batch: Function | None = None,
    ) -> None:
        check_function(f, "external")
        options = {"result": result, "vjp": vjp, "jvp": jvp, "batch": batch}
        super().__init__(
            type(self), f, {name: value for name, value in options.items() if value is not None}, self._call
        )
        self._result, self._batch = result, batch
        self._ruled = _with_rules(
            partial(external._equation, self),
            vjp and _traceable(vjp, partial(_cotangents, vjp), lambda ct, *args: args),
            jvp and _traceable(jvp, partial(jvp), lambda primals, tangents: self.announced(primals)),
        )
        self._hosts: dict[Hashable, External] = {}

    def announced(self, args: Any) -> Any:
        """The announced result for arguments of these types."""
        return self._result(*args) if callable(self._result) else self._result

    def _call(self, *args: Any) -> Any:
        return self._ruled(*args) if is_tracing() else self.__wrapped__(*args)

    def _equation(self, *args: Any) -> Any:
        """The result of a call in a trace, without its rules."""
        leaves, structure = leaves_of(args, lambda i: f"args[{i}]")
        types = _Types.of(self, structure, [leaf.aval for leaf in leaves])
        announced = tuple((aval.dtype, aval.shape) for aval in types.results)
        current_builder().source = current_source()
        found = primitive(*[as_symbol(leaf.value) for leaf in leaves], host=self.host(types), results=announced)
        return types.shape.unflatten(map(traced, found))[0]

    def host(self, types: _Types) -> External:
        """The function on flat arrays: one for all calls of these types."""
        key = types.structure, tuple(types.avals)
        if key not in self._hosts:
            host = External.of(partial(self._on_arrays, types), function_name(self.__wrapped__))
            host.stacked = partial(self._stacked, types)
            self._hosts[key] = host
        return self._hosts[key]

    def _on_arrays(self, types: _Types, *arrays: Any) -> list[Any]:
        found, like = flatten((self.__wrapped__(*types.structure.unflatten(map(to_user, arrays))),))
        if like != types.shape:
            raise CallbackError(
                f"{function_name(self.__wrapped__)} returned another pytree than `result` announces",
                remedy="return what `result` says",
            )
        leaves, _ = output_leaves(tuple(found), self.__wrapped__)
        return [_converted(leaf, aval) for leaf, aval in zip(leaves, types.results, strict=True)]

    def _stacked(self, types: _Types, count: int) -> External:
        """The function on arguments that all have a new first axis, by its own rule or row by row."""

        def by_rows(*args: Any) -> Any:
            leaves, _ = flatten(args)
            rows = [self._on_arrays(types, *[leaf[i] for leaf in leaves]) for i in range(count)]
            stacks = zip(*rows, strict=True) if rows else [()] * len(types.results)
            full = [np.array(x, a.dtype).reshape(count, *a.shape) for x, a in zip(stacks, types.results, strict=True)]
            return types.shape.unflatten(full)[0]

        (result,) = types.shape.unflatten([ShapeDtypeStruct((count, *a.shape), a.dtype) for a in types.results])
        stacked = external(self._batch or wraps(self.__wrapped__)(by_rows), result=result)
        avals = [Aval(aval.dtype, (count, *aval.shape)) for aval in types.avals]
        return stacked.host(_Types.of(stacked, types.structure, avals))


class _Types(NamedTuple):
    """The types of a call: structure and avals of the arguments, avals and structure of the result."""

    structure: Structure
    avals: list[Aval]
    results: list[Aval]
    shape: Structure

    @classmethod
    def of(cls, function: external, structure: Structure, avals: list[Aval]) -> _Types:
        """The types of a call with such arguments."""
        args = structure.unflatten([ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals])
        announced, shape = leaves_or_types((function.announced(args),), ["result"])
        return cls(structure, avals, [leaf.aval for leaf in announced], shape)


def _converted(array: Any, aval: Aval) -> Any:
    """A result in the announced dtype, where NumPy's `out=` would convert it."""
    found = np.asarray(array)
    return found.astype(aval.dtype, copy=False) if np.can_cast(found.dtype, aval.dtype, "same_kind") else found


# ---- rules -----------------------------------------------------------------------------------------------------------


def _with_rules(f: Function, vjp: Function | None, jvp: Function | None) -> Function:
    """The function with these rules, which differentiate its equation."""

    def backward(args: Any, ct: Any) -> Any:
        return callee(vjp)(ct, *args)

    rules = {"vjp": backward if vjp else None, "jvp": jvp}
    return Ruled(f, **{mode: rule for mode, rule in rules.items() if rule}) if vjp or jvp else f


def _traceable(rule: Function, run: Function, result: Function) -> Function:
    """A rule that may be traced: itself if it is a transformed function, otherwise a function that is not traced."""
    check_function(rule, "external")
    return rule if isinstance(rule, Transformed) else external(wraps(rule)(run), result=result)


def _cotangents(vjp: Function, ct: Any, *args: Any) -> tuple[Any, ...]:
    """The cotangents of all arguments, in their dtypes: zeros for None and for integers."""
    found = vjp(ct, *args)
    if not isinstance(found, (tuple, list)) or len(found) != len(args):
        raise CustomRuleError(
            f"{function_name(vjp)} returned {type_name(found)}, not a tuple of {len(args)}",
            remedy="return one cotangent for each argument, None for a zero",
        )
    return tuple(starmap(_fitted, zip(args, found, strict=True)))


def _fitted(arg: Any, ct: Any) -> Any:
    """The cotangent of an argument, in the dtypes of its leaves."""
    leaves, structure = flatten(arg)
    values, like = flatten(ct) if ct is not None else ([0] * len(leaves), structure)
    if like != structure:
        raise CustomRuleError(
            f"a rule of fnad.external returned {structure_text(like)} where {structure_text(structure)} belongs",
            remedy="return the same containers with the same keys",
        )
    pairs = zip(leaves, values, strict=True)
    return structure.unflatten(
        np.zeros_like(x) if ct is None or not is_inexact(np.asarray(x).dtype) else v for x, v in pairs
    )
