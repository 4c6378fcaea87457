"""From a function that control flow runs to a region: a closed program, and what it takes from outside.

What the function uses from around it, traced values and arrays, becomes operands of the equation that the region
belongs to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from fnad.api.staging.aliasing import Received
from fnad.api.staging.arguments import with_traced_arrays
from fnad.api.staging.leaves import (
    Function,
    Structure,
    flatten,
    function_name,
    is_weak,
    source_of,
    structure_text,
    type_name,
    unflatten,
)
from fnad.api.staging.marshalling import LeafType, Tree, as_tracer, joined
from fnad.api.staging.stage import output_leaves
from fnad.control.region_rules import taking
from fnad.errors import ArgumentTypeError, StructureError
from fnad.ir.builder import Builder, Captured, current_builder, inline, trace
from fnad.ir.program import Program, Source
from fnad.ir.symbol import Symbol
from fnad.numpy.operands import as_symbol
from fnad.ops.conversion import convert_to
from fnad.signals import refuse_handlers
from fnad.trace.hooks import callee
from fnad.trace.shadow import Raised
from fnad.trace.tracer import Tracer
from fnad.trace.tracing import Traced, trace_function
from fnad.trace.writes import without_outer_writes

Call = Callable[[list[Tracer]], Any]
"""The call that runs the user's function on leaves."""


class Region(NamedTuple):
    """A traced function: (leaves…, captured…) -> (results…), with what it captured, and the pytree of its results."""

    program: Program
    captured: tuple[Captured, ...]
    structure: Structure
    results: list[LeafType]

    @property
    def consts(self) -> list[Symbol]:
        """The captured values, as operands."""
        return list(map(as_symbol, self.captured))

    @property
    def leaves(self) -> int:
        """The number of leaves that the region takes."""
        return len(self.program.inputs) - len(self.captured)

    def consts_first(self) -> Program:
        """The program with what was captured before the leaves."""
        inputs = self.program.inputs
        return replace(self.program, inputs=(*inputs[self.leaves :], *inputs[: self.leaves]))

    def converted(self, types: Sequence[LeafType]) -> Region:
        """The region with its first results in the dtypes of these types."""
        dtypes = [t.aval.dtype for t in types]
        avals = self.program.out_avals
        if all(aval.dtype == dtype for aval, dtype in zip(avals, dtypes)):  # noqa: B905 the others stay as they are
            return self

        def run(*args: Symbol) -> list[Symbol]:
            found = inline(self.program, args)
            return [*map(convert_to, found, dtypes), *found[len(dtypes) :]]

        return self._replace(program=trace(run, *self.program.in_avals, name=self.program.name))

    def rebuilt(self, symbols: Iterable[Symbol], types: Iterable[LeafType] | None = None) -> Any:
        """The pytree of its results, as the user gets it; `types` are those it was converted to."""
        return unflatten(self.structure, map(as_tracer, symbols, types or self.results))


def calling(f: Function, arrange: Callable[[list[Tracer]], Any]) -> Call:
    """A function of leaves that calls `f` on the arguments that `arrange` makes of the leaves."""
    return partial(_call, f, arrange)


def _call(f: Function, arrange: Callable[[list[Tracer]], Any], leaves: list[Tracer]) -> Any:
    return callee(f)(*arrange(leaves))


def apply(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function on pytrees of its arguments."""
    return callee(f)(*args, **kwargs)


def region_of_call(
    f: Function,
    call: Call,
    types: Sequence[LeafType],
    values: Sequence[Captured | None] = (),
    raised: Callable[[Builder], Raised] = Raised,
    given: Sequence[Any] = (),
) -> Region:
    """The region of a function that runs once, where it is called: `call` runs the user's function `f`, by `seen`.

    It is traced on leaves of these types. `values` are what they stand for, of a region that runs on these alone, None
    where they differ: then Python may decide by them. `raised` makes the values that follow from these. `given`, the
    leaves as the caller has them, may not share memory where `f` writes into one (`fnad.api.staging.aliasing`).
    """
    refuse_handlers()
    found: list[tuple[Structure, list[bool]]] = []
    avals, marks = [t.aval for t in types], [t.weak for t in types]

    def attempt(call: Call) -> Traced:
        def run(tracers: list[Tracer]) -> list[Any]:
            received = Received(f)
            with received.reading():
                output = call(tracers)
            if given:
                received.check(lambda: given, tracers)
            weak = [value.is_weak if isinstance(value, Tracer) else is_weak(value) for value in flatten(output)[0]]
            values, structure = output_leaves(output, f)
            found.append((structure, weak))
            return values

        return trace_function(run, avals, name=function_name(f), weak=marks, values=values, raised=raised)

    traced = with_traced_arrays(call, attempt)
    structure, weak = found[-1]
    results = [LeafType(aval, w and not aval.shape) for aval, w in zip(traced.program.out_avals, weak, strict=True)]
    return Region(traced.program, traced.captured, structure, results)


def region_of(
    f: Function,
    call: Call,
    types: Sequence[LeafType],
    values: Sequence[Captured | None] = (),
    raised: Callable[[Builder], Raised] = Raised,
    given: Sequence[Any] = (),
) -> Region:
    """The region of a function that runs never, once or many times; raise where it writes into arrays outside of it."""
    with without_outer_writes(f, call):
        return region_of_call(f, call, types, values, raised, given)


def with_shared_captures(regions: Sequence[Region]) -> tuple[list[Symbol], list[Program]]:
    """The outside values that any of the regions uses, and the programs on their own leaves and all these values."""
    captured = {_key(value): as_symbol(value) for region in regions for value in region.captured}
    avals = [symbol.aval for symbol in captured.values()]
    places = {key: place for place, key in enumerate(captured)}
    programs: list[Program] = []
    for region in regions:
        own = region.program.in_avals[: region.leaves]
        used = [region.leaves + places[_key(value)] for value in region.captured]
        programs.append(taking(region.program, [*own, *avals], [*range(region.leaves), *used]))
    return list(captured.values()), programs


def _key(value: Captured) -> int:
    """The identity of a value that regions use."""
    return id(value.atom if isinstance(value, Symbol) else value)


# ---- regions whose results are like their arguments ------------------------------------------------------------------


class Likeness(NamedTuple):
    """The words of errors if `f` returns a pytree unlike the pytree called `name` that it was given.

    `returned` and `given` are what they call the two; `shapes` and `remedy` are for a leaf of another shape.
    """

    name: str
    returned: str
    given: str
    shapes: str
    remedy: str

    def check(self, f: Function, tree: Tree, types: Sequence[LeafType], structure: Structure, region: Region) -> None:
        """Raise `StructureError` where the region, whose first results have this structure, returns something else."""
        words = {"f": described(f)}
        check_structure(tree.structure.children()[0], structure, self.returned.format(**words), self.given)
        for i, (taken, found) in enumerate(zip(types, region.results)):  # noqa: B905 rows may stand behind
            if taken.aval.shape != found.aval.shape:
                words |= {"where": tree.path(i, self.name), "taken": str(taken.aval), "found": str(found.aval)}
                raise StructureError.here(self.shapes.format(**words), remedy=self.remedy)


def settled(
    f: Function, tree: Tree, likeness: Likeness, trace: Callable[[list[LeafType]], Region], *, is_pair: bool = False
) -> tuple[Region, list[LeafType]]:
    """Trace `f` until it returns the dtypes it takes; return its region, and the types of the leaves.

    `trace(types)` is its region on leaves like the tree's; `is_pair` says that it returns them in a pair with more.
    """
    types = tree.types
    while True:
        region = trace(types)
        likeness.check(f, tree, types, region.structure.children()[0] if is_pair else region.structure, region)
        grown = [joined(taken, found) for taken, found in zip(types, region.results)]  # noqa: B905 likewise
        if grown == types:
            return region.converted(types), types
        types = grown


# ---- names, for errors -----------------------------------------------------------------------------------------------


def check_functions(name: str, **functions: Any) -> None:
    """Raise `ArgumentTypeError` where one of the functions that `name` takes, by their own names, is none."""
    for what, function in functions.items():
        if not callable(function):
            raise ArgumentTypeError.here(
                f"{what} of {name} is {type_name(function)}, not a function",
                remedy="give the function itself, not its result",
            )


def described(f: Function) -> str:
    """The name of a function in errors, with the place of its definition, because a lambda has no other."""
    source = source_of(f)
    return f"{function_name(f)} ({source.file.rpartition(os.sep)[2]}:{source.line})" if source else function_name(f)


def check_structure(expected: Structure, found: Structure, what: str, like: str) -> None:
    """Raise `StructureError` where two pytrees differ."""
    if expected != found:
        raise StructureError.here(
            f"{what} is {structure_text(found)}, and {like} is {structure_text(expected)}",
            remedy="return the same containers with the same keys, and as many leaves",
        )


@contextmanager
def at(source: Source | None) -> Generator[None]:
    """Have the equations that are made carry this line of user code."""
    builder = current_builder()
    outer, builder.source = builder.source, source
    try:
        yield
    finally:
        builder.source = outer
