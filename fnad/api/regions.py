"""From a function that control flow runs to a region: a closed program, and what it takes from outside.

What the function uses from around it, traced values and arrays, becomes operands of the equation that the region
belongs to. A leaf that stands for a Python number keeps giving way to the dtype of an array beside it: a carry that
starts as 0.0 is f32 in a loop over f32.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import numpy as np

from fnad.api.arguments import with_traced_arrays
from fnad.api.leaves import (
    Function,
    Leaf,
    Structure,
    flatten,
    function_name,
    is_weak,
    leaves_of,
    source_of,
    structure_text,
    to_user,
    type_name,
)
from fnad.api.running import run, traced
from fnad.api.staging import output_leaves, stage
from fnad.errors import ArgumentTypeError, StructureError
from fnad.ir.builder import Captured, current_builder, inline, is_tracing, trace
from fnad.ir.program import Program, Source
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, Dtype
from fnad.numpy.operands import PYTHON_TYPES, as_symbol
from fnad.ops.conversion import convert_to
from fnad.trace.source import current_source
from fnad.trace.tracer import Tracer
from fnad.trace.tracing import trace_function


class Kind(NamedTuple):
    """What is known of a leaf: its aval, and whether it stands for a Python number."""

    aval: Aval
    weak: bool

    @property
    def example(self) -> Any:
        """What promotes as the leaf does."""
        return PYTHON_TYPES[self.aval.dtype.kind](0) if self.weak else self.aval.dtype


class Region(NamedTuple):
    """A traced function: (leaves…, captured…) -> (results…), with what it captured, and the pytree of its results."""

    program: Program
    captured: tuple[Captured, ...]
    structure: Structure
    results: list[Kind]

    def consts_first(self) -> Program:
        """Return the program with what was captured before the leaves."""
        count = len(self.program.inputs) - len(self.captured)
        inputs = (*self.program.inputs[count:], *self.program.inputs[:count])
        return Program(self.program.name, inputs, self.program.equations, self.program.outputs)

    def converted(self, dtypes: Sequence[Dtype]) -> Region:
        """Return the region with its first results converted."""
        avals = self.program.out_avals
        if all(aval.dtype == dtype for aval, dtype in zip(avals, dtypes)):  # noqa: B905 the others stay as they are
            return self

        def run(*args: Symbol) -> list[Symbol]:
            found = inline(self.program, args)
            return [*map(convert_to, found, dtypes), *found[len(dtypes) :]]

        return self._replace(program=trace(run, *self.program.in_avals, name=self.program.name))


def region_of(
    f: Function, call: Callable[[list[Tracer]], Any], kinds: Sequence[Kind], values: Sequence[Captured] = ()
) -> Region:
    """Trace `call`, which runs the user's function `f` on leaves of these kinds.

    `values` are what the leaves stand for, of a region that runs once on these: then Python may decide by them. Where
    `call` is a partial function, arrays that `f` reads from outside can be read at traced indices.
    """
    found: list[tuple[Structure, list[bool]]] = []

    def run(tracers: list[Tracer]) -> list[Any]:
        output = with_traced_arrays(call, lambda call: call(tracers))
        weak = [value.is_weak if isinstance(value, Tracer) else is_weak(value) for value in flatten(output)[0]]
        values, structure = output_leaves(output, f)
        found.append((structure, weak))
        return values

    avals, marks = [kind.aval for kind in kinds], [kind.weak for kind in kinds]
    traced_function = trace_function(run, avals, name=function_name(f), weak=marks, values=values)
    structure, weak = found[0]
    results = [
        Kind(aval, w and not aval.shape) for aval, w in zip(traced_function.program.out_avals, weak, strict=True)
    ]
    return Region(traced_function.program, traced_function.captured, structure, results)


def with_shared_captures(regions: Sequence[Region], leaves: Sequence[int]) -> tuple[list[Symbol], list[Program]]:
    """Return what any of the regions uses from outside, and their programs on their own leaves and all of that."""
    captured = {_key(value): as_symbol(value) for region in regions for value in region.captured}
    avals = [symbol.aval for symbol in captured.values()]
    places = {key: place for place, key in enumerate(captured)}

    def program(region: Region, count: int) -> Program:
        own = [count + places[_key(value)] for value in region.captured]
        given = region.program.in_avals[:count]
        return trace(
            lambda *args: inline(region.program, [*args[:count], *[args[i] for i in own]]),
            *(*given, *avals),
            name=region.program.name,
        )

    return list(captured.values()), [program(region, count) for region, count in zip(regions, leaves, strict=True)]


def _key(value: Captured) -> int:
    """Return what tells values that regions use from one another."""
    return id(value.atom if isinstance(value, Symbol) else value)


def kind_of(leaf: Leaf) -> Kind:
    """Return the kind of a leaf."""
    return Kind(leaf.aval, leaf.weak)


def joined(first: Kind, second: Kind) -> Kind:
    """Return the kind that both promote to; their shapes are the same."""
    dtype = np.result_type(first.example, second.example)
    return Kind(Aval(dtype, first.aval.shape), first.weak and second.weak)


def check_functions(name: str, **functions: Any) -> None:
    """Raise `ArgumentTypeError` where one of the functions that `name` takes, by their own names, is none."""
    for what, function in functions.items():
        if not callable(function):
            raise ArgumentTypeError(
                f"{what} of {name} is {type_name(function)}, not a function",
                source=current_source(),
                remedy="give the function itself, not its result",
            )


def described(f: Function) -> str:
    """Return what errors call a function: its name and where it is defined, since a lambda has no other."""
    source = source_of(f)
    return f"{function_name(f)} ({source.file.rpartition(os.sep)[2]}:{source.line})" if source else function_name(f)


def check_structure(expected: Structure, found: Structure, what: str, like: str) -> None:
    """Raise `StructureError` where two pytrees differ."""
    if expected != found:
        raise StructureError(
            f"{what} is {structure_text(found)}, and {like} is {structure_text(expected)}",
            source=current_source(),
            remedy="return the same containers with the same keys, and as many leaves",
        )


# ---- running ---------------------------------------------------------------------------------------------------------


def symbol(leaf: Leaf) -> Symbol:
    """Return a leaf as an operand of the trace under way; a number is a constant of its program."""
    return as_symbol(leaf.value if isinstance(leaf.value, Symbol) or leaf.is_array else to_user(leaf.value))


def operand(leaf: Leaf, kind: Kind) -> Symbol:
    """Return a leaf as an operand of the trace under way, in the dtype of the kind."""
    return convert_to(symbol(leaf), kind.aval.dtype)


def as_tracer(symbol: Symbol, kind: Kind) -> Tracer:
    """Return a result of the trace under way as the user gets it."""
    return traced(symbol, weak=kind.weak)


@contextmanager
def at(source: Source | None) -> Generator[None]:
    """Have the equations that are made carry this line of the user's."""
    builder = current_builder()
    outer, builder.source = builder.source, source
    try:
        yield
    finally:
        builder.source = outer


def in_trace(f: Function, function: Callable[..., Any], *trees: Any, names: Sequence[str] = ()) -> Any:
    """Return `function(*trees)`: as part of the trace under way, or else of one that is run at once.

    Errors call the first trees by the `names`.
    """
    if is_tracing():
        return function(*trees)
    leaves, structure = leaves_of(trees, lambda i: names[i] if i < len(names) else f"args[{i - len(names)}]")
    staged = stage(f, leaves, lambda tracers: function(*cast("tuple[Any, ...]", structure.unflatten(tracers))))
    results = run(staged.program, staged.operands, "as it is", lambda program: (program,))
    return staged.output.rebuild(results)
