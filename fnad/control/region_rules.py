"""The rules that primitives with regions share; the file of each primitive has the rest.

Such an equation depends on its operands as its regions do. So which results carry a derivative, which operands are
read, and what is left of the regions where results are dead is found by the transforms of programs, here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import compress
from operator import is_
from typing import Any, TypeVar

from fnad.control.signatures import Flags, Pulled, Pushed, Regions, Symbols, Tangents
from fnad.errors import ShapeError
from fnad.ir.primitive import Inlined, Primitive, Sample, Structured, declare
from fnad.ir.program import Atom, Equation, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, is_inexact
from fnad.transforms.activity import active_vars
from fnad.transforms.dce import dce
from fnad.transforms.differentiation import joint, jvp
from fnad.transforms.interpret import NEVER, region_runner
from fnad.transforms.joint import instantiated

T = TypeVar("T")
Typed = TypeVar("Typed", Symbol, Aval)


# ---- values, some of them marked -------------------------------------------------------------------------------------


def pieces(values: Sequence[T], sizes: Iterable[int]) -> list[Sequence[T]]:
    """The values, cut into pieces of these sizes."""
    found: list[Sequence[T]] = []
    start = 0
    for size in sizes:
        found.append(values[start : start + size])
        start += size
    return found


def spread(values: Iterable[T], flags: Flags) -> list[T | None]:
    """The values at the places that are marked, None at the others."""
    rest = iter(values)
    return [next(rest) if flag else None for flag in flags]


def built(values: Iterable[T | None]) -> list[T]:
    """The values that are there: what `spread` put into place."""
    return [value for value in values if value is not None]


def inexact(values: Iterable[Symbol | Aval]) -> list[bool]:
    """Which values carry derivatives by their dtype."""
    return [is_inexact(value.dtype) for value in values]


def of_inexact(values: Sequence[Typed]) -> list[Typed]:
    """The values that carry derivatives by their dtype."""
    return list(compress(values, inexact(values)))


def instantiated_inexact(values: Sequence[Symbol | None], like: Sequence[Symbol]) -> list[Symbol]:
    """Tangents or cotangents of the inexact ones among these values, with zeros built."""
    flags = inexact(like)
    return instantiated(list(compress(values, flags)), list(compress(like, flags)))


# ---- regions ---------------------------------------------------------------------------------------------------------


def returning(program: Program, outputs: Iterable[Atom]) -> Program:
    """The program with these outputs, and what they need."""
    wanted = tuple(outputs)
    is_same = wanted == program.outputs
    return dce(program if is_same else Program(program.name, program.inputs, program.equations, wanted))


def on_inputs(program: Program, read: Flags) -> Program:
    """The program on the inputs that are marked, which are all that it reads."""
    return program if all(read) else replace(program, inputs=tuple(compress(program.inputs, read)))


def taking(program: Program, avals: Sequence[Aval], places: Iterable[int]) -> Program:
    """The program on inputs of these avals, of which it reads those at the places."""
    inputs = list(map(Var, avals))
    for place, var in zip(places, program.inputs, strict=True):
        inputs[place] = var
    return Program(program.name, tuple(inputs), program.equations, program.outputs)


def read_inputs(region: Program) -> list[bool]:
    """Which inputs a region reads, or returns."""
    used = set(region.outputs).union(*[equation.operands for equation in region.equations])
    return [var in used for var in region.inputs]


def reached(regions: Sequence[Program], marked: Flags) -> list[bool]:
    """Which results carry a derivative, in some region, where the `marked` inputs do."""
    active = [active_vars(region, marked) for region in regions]
    outputs = zip(*[region.outputs for region in regions], strict=True)
    return [any(atom in found for atom, found in zip(atoms, active, strict=True)) for atoms in outputs]


def pushed_region(region: Program, marked: Flags, moved: Flags) -> Program:
    """The region (x…, dx…) -> (y…, dy…), with a dx for each input that is marked, a dy for each result that moves."""
    both = jvp(region, marked)
    count = len(region.outputs)
    wanted = compress(moved, inexact(region.out_avals))
    return returning(both, (*both.outputs[:count], *compress(both.outputs[count:], wanted)))


def pulled_region(region: Program, marked: Flags) -> Program:
    """The region (x…, ct…) -> (x̄…), with a ct for each inexact result, an x̄ for each input that is marked."""
    both = joint(region, marked)
    return replace(returning(both, both.outputs[len(region.outputs) :]), name=f"{region.name}_back")


# ---- rules of primitives whose regions run on the operands behind the first `head` -----------------------------------


def pushing(head: int) -> Callable[..., Pushed]:
    """The forward rule: the same primitive, of the regions with tangents."""

    def push(equation: Equation, primals: Symbols, tangents: Tangents) -> Pushed:
        given = tangents[head:]
        marked = [tangent is not None for tangent in given]
        moved = reached(equation.regions, marked)
        regions = tuple(pushed_region(region, marked, moved) for region in equation.regions)
        found = list(equation.primitive(*primals, *built(given), **equation.params, regions=regions))
        return found[: len(moved)], spread(found[len(moved) :], moved)

    return push


def pruning(head: int) -> Callable[[Equation, Flags], Equation]:
    """The rule that drops results that nobody reads, and operands that no region reads then."""

    def prune(equation: Equation, live: Flags) -> Equation:
        regions = [returning(region, compress(region.outputs, live)) for region in equation.regions]
        read = [read_inputs(region) for region in regions]
        used = [any(flags) for flags in zip(*read, strict=True)]
        if all(live) and all(used) and all(map(is_, regions, equation.regions)):
            return equation
        return replace(
            equation,
            results=tuple(compress(equation.results, live)),
            operands=(*equation.operands[:head], *compress(equation.operands[head:], used)),
            regions=tuple(on_inputs(region, used) for region in regions),
        )

    return prune


# ---- declarations ----------------------------------------------------------------------------------------------------


def check_avals(what: str, found: Sequence[Aval], expected: Sequence[Aval]) -> None:
    """Raise `ShapeError` where a region takes or returns other values than belong there."""
    if tuple(found) != tuple(expected):
        raise ShapeError(f"{what} {listed(found)}, not {listed(expected)}")


def listed(avals: Sequence[Aval]) -> str:
    """Avals as errors list them."""
    return ", ".join(map(str, avals)) or "nothing"


def inlined_primitive(
    push: Callable[..., Pushed], pull: Callable[..., Pulled], samples: Callable[[], Iterable[Sample]], **more: Any
) -> Callable[[Callable[..., tuple[Aval, ...]]], Primitive]:
    """Declare the primitive with this inference that is its first region on the operands; others are for rules.

    The region takes its place in the end. Its name and its description are those of the function that infers.
    """

    def of(infer: Callable[..., tuple[Aval, ...]]) -> Primitive:
        name, doc = infer.__name__, infer.__doc__ or ""
        return declare(name, infer, _run_first, Structured(push, pull), Inlined(), samples, doc, **more)

    return of


def _run_first(*operands: Any, regions: Regions, deadline: float = NEVER, **_: Any) -> tuple[Any, ...]:
    return tuple(region_runner(regions[0])(operands, deadline))
