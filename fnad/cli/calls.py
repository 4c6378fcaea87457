"""The call that is dumped, explained or checked, and its trace.

Its arguments are given by their types (`--args`) or by their values (`--values`).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import MethodType
from typing import Any, NamedTuple, cast

import numpy as np

from fnad.api.functions.jit import Compiled, jit
from fnad.api.functions.lowered import ShapeDtypeStruct
from fnad.api.inspect.input_names import input_names
from fnad.api.inspect.stages import stage_text
from fnad.api.running.execution import prepared
from fnad.api.staging.arguments import stage_call, with_traced_arrays
from fnad.api.staging.leaves import Function, Leaf, argument_name, flatten, path
from fnad.api.staging.stage import Staged, stage
from fnad.cli.arguments import parse_arguments
from fnad.cli.load import UserFunction
from fnad.cli.usage import UsageError, one_line
from fnad.errors import ParseError
from fnad.ir.types import Aval, is_inexact
from fnad.numpy.operands import PYTHON_DTYPES
from fnad.testing.numbers import direction


class Differentiable(NamedTuple):
    """A traced call to differentiate: in which of its first inputs, and what these stand for."""

    staged: Staged
    wrt: list[bool]
    names: list[str]


class Types:
    """Placeholders for the arguments of a call, of which only the types are known."""

    def __init__(self, types: str, target: UserFunction, *, with_names: bool = False) -> None:
        self.target = target
        try:
            self.trees = parse_arguments(types)
        except ParseError as error:
            raise UsageError(f"--args {str(error).splitlines()[0]}") from None
        leaves, self.structure = flatten(self.trees)
        self.is_open = any(map(_is_open, leaves))
        if self.is_open and not with_names:
            raise UsageError("--args has a size without a number, which fnad export alone takes")
        try:
            self.leaves = [] if self.is_open else [_leaf(leaf) for leaf in leaves]
        except ValueError as error:
            raise UsageError(f"--args has an array that NumPy cannot have: {error}") from None
        _check_fits(target, "--args", self.trees, {})

    def call(self) -> tuple[Sequence[Any], dict[str, Any]]:
        """Arguments of these types, random floats and integers that are 1, and none by name; types for open sizes."""
        leaves = [_drawn(leaf, seed) for seed, leaf in enumerate(flatten(self.trees)[0])]
        return cast("Sequence[Any]", self.structure.unflatten(leaves)), {}

    def text(self, stage: str) -> str:
        """The program of the call at a stage."""
        program = self.staged().program
        return stage_text([(prepared(program), input_names(self._names, program))], stage)

    def differentiable(self, argnums: Sequence[int]) -> Differentiable:
        """Trace the call; raise `UsageError` for an argument that has no derivative."""
        wrt: list[bool] = []
        for position, tree in enumerate(self.trees):
            avals = [_leaf(leaf).aval for leaf in flatten(tree)[0]]
            found = [position in argnums and is_inexact(aval.dtype) for aval in avals]
            if avals and position in argnums and not any(found):
                name = argument_name(self.target.function, position)
                raise UsageError(f"{name} has {avals[0]}, which has no derivative; name others with --argnums")
            wrt += found
        return Differentiable(self.staged(), wrt, self._names)

    def staged(self) -> Staged:
        """Trace the call; raise `UsageError` if it decides by values."""

        def call(f: Function) -> Staged:
            return stage(f, self.leaves, lambda tracers: f(*self.structure.unflatten(tracers)))

        staged = with_traced_arrays(self.target.function, call)
        if staged.guards:
            source = staged.guards[0].source
            does = "decides by" if source else "checks"
            raise UsageError(
                f"{self.target.name} {does} the values of its arguments, of which --args gives the types"
                f"{f', at {source}' if source else ''}; give values, with --values"
            )
        return staged

    @property
    def count(self) -> int:
        """The number of arguments."""
        return len(self.trees)

    @property
    def _names(self) -> list[str]:
        return _paths(self.target.function, range(len(self.trees)), self.trees)


class CallValues:
    """The arguments of a call, evaluated as Python among the names of the function's file."""

    def __init__(self, text: str, target: UserFunction) -> None:
        self.target = target
        names = {"np": np, **target.namespace}
        try:
            self.args, self.kwargs = eval(f"(lambda *args, **kwargs: (args, kwargs))({text}\n)", names)
        except Exception as error:  # noqa: BLE001  whatever the user's expression raises
            raise UsageError(f"--values raised {type(error).__name__}: {one_line(error)}") from None
        bound = _check_fits(target, "--values", self.args, self.kwargs)
        if bound is not None:  # what can be given by position is, which --argnums counts
            self.args, self.kwargs = bound.args, bound.kwargs

    @property
    def count(self) -> int:
        """The number of positional arguments."""
        return len(self.args)

    def call(self) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments by position and by name."""
        return self.args, self.kwargs

    def text(self, stage: str) -> str:
        """The program of the call at a stage, as `jit` runs it."""
        f, args = self.target.function, self.args
        if isinstance(f, MethodType) and isinstance(f.__func__, Compiled):  # which knows what is static
            f, args = f.__func__, (f.__self__, *args)
        return (f if isinstance(f, Compiled) else jit(f)).lower(*args, **self.kwargs).as_text(stage)

    def staged(self) -> Staged:
        """Trace the call, as the transforms do, on the arguments that have floats."""
        leaves = [flatten(arg)[0] for arg in self.args]
        found = [i for i, values in enumerate(leaves) if any(is_inexact(np.asarray(x).dtype) for x in values)]
        return self.differentiable(found).staged

    def differentiable(self, argnums: Sequence[int]) -> Differentiable:
        """Trace the call, as the transforms do."""
        f = self.target.function
        staged, wrt = stage_call(f, tuple(argnums), False, self.args, self.kwargs)
        trees = [self.args[position] for position in argnums]
        names = _paths(f, argnums, trees)
        return Differentiable(staged, [True] * staged.leaves, [names[place] for place in wrt.places])


def given_call(target: UserFunction, types: str, values: str | None, *, with_names: bool = False) -> Types | CallValues:
    """The call with arguments of given types, which may have names of sizes, or of given values if there are some."""
    return Types(types, target, with_names=with_names) if values is None else CallValues(values, target)


def checked_argnums(argnums: Sequence[int], count: int) -> Sequence[int]:
    """The numbers of some of `count` arguments, from 0; raise `UsageError` for a number twice or of no argument."""
    for n in argnums:
        if not -count <= n < count:
            raise UsageError(f"--argnums names argument {n} of {count}; the first is 0")
    chosen = [n % count for n in argnums]
    if len(set(chosen)) < len(chosen):
        raise UsageError("--argnums names an argument twice")
    return chosen


def _is_open(type_: Aval | type) -> bool:
    """True for an array with a name in the place of a size."""
    return isinstance(type_, Aval) and any(isinstance(n, str) for n in type_.shape)


def _leaf(type_: Aval | type) -> Leaf:
    aval = type_ if isinstance(type_, Aval) else Aval(PYTHON_DTYPES[type_])
    return Leaf(np.broadcast_to(np.zeros((), aval.dtype), aval.shape), aval, weak=type_ is not aval)


def _drawn(type_: Aval | type, seed: int) -> Any:
    if isinstance(type_, Aval) and _is_open(type_):
        return ShapeDtypeStruct(type_.shape, type_.dtype)
    aval = _leaf(type_).aval
    drawn = direction(aval, seed) if is_inexact(aval.dtype) else np.ones(aval.shape, aval.dtype)
    return drawn if isinstance(type_, Aval) else drawn.item()


def _check_fits(
    target: UserFunction, option: str, args: Sequence[Any], kwargs: dict[str, Any]
) -> inspect.BoundArguments | None:
    """The arguments of a call; raise `UsageError` if the function cannot be called so."""
    try:
        return inspect.signature(target.function).bind(*args, **kwargs)
    except TypeError as error:
        hint = "" if args or kwargs else "; give the types of the arguments, with --args, or values, with --values"
        raise UsageError(f"{option} does not fit {target.name}: {error}{hint}") from None
    except ValueError:  # it has no signature; the call itself will tell
        return None


def _paths(f: Function, positions: Sequence[int], trees: Sequence[Any]) -> list[str]:
    """The names of the leaves of some arguments in the function: `x`, `w['W']`."""
    count = len(flatten(tuple(trees))[0])
    return [path(tuple(trees), i, lambda k: argument_name(f, positions[k])) for i in range(count)]
