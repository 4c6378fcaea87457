"""From a call of the user's function to a program and what to run it on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad.api.staging.leaves import (
    Function,
    Leaf,
    LeafError,
    Operand,
    Structure,
    array_of,
    flatten,
    function_name,
    is_zero_dimensional,
    path,
    source_of,
    to_user,
    type_name,
    unflatten,
)
from fnad.errors import AuxiliaryError
from fnad.ir.program import Program
from fnad.ir.size import is_size
from fnad.numpy.methods import astype
from fnad.numpy.operands import HalfSymbol, as_array
from fnad.placement import is_on_device
from fnad.signals import refuse_handlers
from fnad.trace.capture import Guard
from fnad.trace.dispatch import call
from fnad.trace.hooks import callee
from fnad.trace.labelled import labelled
from fnad.trace.parts import CONSTANTS
from fnad.trace.tracer import Tracer
from fnad.trace.tracing import trace_function
from fnad.upward import UPWARD


class Auxiliary:
    """The auxiliary results of a function: any pytree, of which only traced values belong to the program."""

    def __init__(self, tree: Any) -> None:
        self._values, self._structure = flatten(tree)

    @property
    def is_fresh(self) -> bool:
        """True if what is rebuilt has no object in it that the function returned."""
        return all(isinstance(value, (Tracer, np.ndarray, *CONSTANTS)) for value in self._values)

    @property
    def traced(self) -> list[Tracer]:
        """The leaves that the program has to compute."""
        return [value for value in self._values if isinstance(value, Tracer)]

    def rebuild(self, computed: Sequence[Any]) -> Any:
        """The pytree with what the program computed; arrays come as copies."""
        rest = iter(computed)
        values = [next(rest) if isinstance(value, Tracer) else _own(value) for value in self._values]
        return unflatten(self._structure, values)


def _own(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


class Output(NamedTuple):
    """The result of a function: its structure, which leaves are arrays without dimensions, and which are float16."""

    structure: Structure
    arrays: frozenset[int]
    halves: frozenset[int]

    def rebuild(self, values: Iterable[Any]) -> Any:
        """The output with these leaves, each a number or an array as the function had it."""
        if self.halves:
            values = [_half(v) if i in self.halves else v for i, v in enumerate(values)]
        if not self.arrays:
            return unflatten(self.structure, values)
        return unflatten(self.structure, [_array(v) if i in self.arrays else v for i, v in enumerate(values)])


def _array(value: Any) -> Any:
    if isinstance(value, Tracer):
        return Tracer(value.symbol)
    return value if is_on_device(value) else np.asarray(value)


def _half(value: Any) -> Any:
    return call(astype, (value, np.float16), {}) if isinstance(value, Tracer) else value.astype(np.float16)


def _wide(value: Tracer) -> Any:
    return call(astype, (value, np.float32), {})


class Staged(NamedTuple):
    """A traced call: (leaves…, captured…) -> (output leaves…, traced auxiliary leaves…).

    `leaves` counts the leading inputs that stand for the call's leaves; `outputs` the leading outputs that are leaves
    of the function's `output`. `guards` are what Python was told of values of the program. `writes` says whether the
    function wrote into what it received.
    """

    program: Program
    operands: list[Operand]
    guards: tuple[Guard, ...]
    leaves: int
    outputs: int
    output: Output
    auxiliary: Auxiliary
    writes: bool = False

    @property
    def structure(self) -> Structure:
        """The structure of the output."""
        return self.output.structure

    @property
    def wrt(self) -> list[bool]:
        """Which inputs stand for leaves."""
        return [i < self.leaves for i in range(len(self.operands))]


def stage(
    f: Function, leaves: Sequence[Leaf], call: Callable[[Sequence[Tracer]], Any], *, has_aux: bool = False
) -> Staged:
    """Trace `call`, which runs the user's function `f` on these leaves.

    Raises `AuxiliaryError` if it returns no pair where `has_aux` says so, `ArgumentTypeError` and `DtypeError` for an
    output that is no pytree of arrays and numbers.
    """
    refuse_handlers()
    name = function_name(f)
    found: list[tuple[int, Output, Auxiliary]] = []

    def run(tracers: list[Tracer]) -> list[Any]:
        tracers = with_labels(tracers, leaves)
        result = callee(call)(tracers)
        output, auxiliary = _pair(result, f) if has_aux else (result, None)
        values, structure = output_leaves(output, f)
        beside = Auxiliary(auxiliary)
        arrays = frozenset(i for i, value in enumerate(values) if is_zero_dimensional(value))
        halves = frozenset(i for i, value in enumerate(values) if is_half(value))
        found.append((len(values), Output(structure, arrays, halves), beside))
        values = [_wide(v) if i in halves else v for i, v in enumerate(values)]
        return [*values, *beside.traced]

    values = [leaf.value for leaf in leaves]
    avals, weak, arrays = [leaf.aval for leaf in leaves], [leaf.weak for leaf in leaves], [x.is_array for x in leaves]
    traced = trace_function(run, avals, name=name, weak=weak, arrays=arrays, values=values)
    return Staged(traced.program, [*values, *traced.captured], traced.guards, len(leaves), *found[0])


def with_labels(tracers: Sequence[Tracer], leaves: Sequence[Leaf]) -> list[Tracer]:
    """The arguments of the user's function for leaves: a Series or DataFrame has its labels."""
    return [labelled(tracer, leaf.labels) for tracer, leaf in zip(tracers, leaves, strict=True)]


def is_half(value: Any) -> bool:
    """True for a traced value of float16."""
    return isinstance(value, Tracer) and type(value.symbol) is HalfSymbol


def output_leaves(output: Any, f: Function) -> tuple[list[Any], Structure]:
    """The leaves of a function's output, each a traced value or an array, and its structure."""
    values, structure = flatten(output)
    checked: list[Any] = []
    for value in values:
        try:
            checked.append(value if isinstance(value, Tracer) else _leaf(value))
        except LeafError as error:
            where = path((output,), len(checked), lambda _: f"{function_name(f)}(...)")
            raise error.at(where, source_of(f)) from None
    return checked, structure


def _leaf(value: Any) -> Any:
    if is_size(value):
        return UPWARD.number_of_size(value)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return call(as_array, (value,), {})
    array = array_of(value)
    return array if isinstance(value, np.ndarray) else to_user(array)


def _pair(result: Any, f: Function) -> tuple[Any, Any]:
    if isinstance(result, (tuple, list)) and len(result) == 2:
        return result[0], result[1]
    raise AuxiliaryError(
        f"{function_name(f)} returned {type_name(result)}, where has_aux=True wants a pair",
        source=source_of(f),
        remedy="return (output, auxiliary data)",
    )
