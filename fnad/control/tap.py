"""Values in the middle of a program, and cotangents, as results of it: `tap`, `cotangent_tap`, `with_taps`.

`tap` marks a value and has no result; as an effect it is neither dropped nor moved out of a loop, and derivatives pass
by it. `cotangent_tap` is its operand; where reverse mode comes to it, it marks the cotangent and is gone, so that
derivatives of the derivative have no second mark. No program that runs has either: `with_taps` rewrites the whole
program, when all derivatives have been taken, into one that returns what is marked. Out of a scan come the rows of all
steps, and out of a loop of unknown length the value of its last step. Out of a branch that is not taken comes nan (0
for integers).

Marks have a name and the number of the call that made them, for the same call may stand in a program twice: what a
checkpoint computes again is the value that was tapped before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from fnad.control.region_rules import listed, returning
from fnad.control.scan import scan_as_loop
from fnad.control.signatures import Cotangents, Flags, Pulled, Pushed, Symbols, Tangents
from fnad.control.while_loop import while_as_loop
from fnad.errors import TapError
from fnad.ir import primitive as kinds
from fnad.ir.axes import Elementwise
from fnad.ir.builder import bind_equation, inline, replayed, trace
from fnad.ir.program import Equation, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, is_inexact
from fnad.ir.walk import all_equations
from fnad.ops.shape import full_like
from fnad.transforms.joint import Cotangent


class Mark(NamedTuple):
    """A mark on a value: the name, the leaf's number in the pytree of that name, and the number of the call."""

    name: str
    leaf: int
    number: int


Marked: TypeAlias = dict[Mark, Symbol]


# ---- the primitives ----------------------------------------------------------------------------------------------


def _push(equation: Equation, primals: Symbols, tangents: Tangents) -> Pushed:
    return bind_equation(equation, primals), list(tangents)


def _pull(equation: Equation, primals: Symbols, _: Flags) -> Pulled:
    def pullback(cts: Cotangents) -> list[Cotangent]:
        tap(cts[0], **equation.params)
        return list(cts)

    return list(primals), pullback


def _samples() -> Iterable[kinds.Sample]:
    """A vector."""
    yield kinds.Sample((np.array([0.5, -1.0, 2.0]),), Mark("x", 0, 0)._asdict())


tap = kinds.declare(
    "tap",
    lambda x, *, name, leaf, number: (),
    lambda x, *, name, leaf, number: (),
    kinds.NonDifferentiable(),
    kinds.Library(kinds.HOST, raises=False),
    _samples,
    "Marks a value that the program is to return.",
    effect=True,
    axes=Elementwise(),
)

cotangent_tap = kinds.declare(
    "cotangent_tap",
    lambda x, *, name, leaf, number: x,
    lambda x, *, name, leaf, number: x,
    kinds.Structured(_push, _pull),
    kinds.Scalar(lambda *, name, leaf, number: "{0}", 0),
    _samples,
    "The value itself; reverse mode marks its cotangent, which the program is to return.",
)


# ---- programs that return what is marked -------------------------------------------------------------------------


def with_taps(program: Program) -> tuple[Program, list[Mark]]:
    """The program without taps that returns what they mark after its results, and the marks in that order."""
    marks: list[Mark] = []

    def run(*args: Symbol) -> list[Symbol]:
        marked: Marked = {}
        outputs = replayed(program, args, lambda equation, operands: _results(equation, operands, marked))
        marks.extend(marked)
        return [*outputs, *marked.values()]

    return trace(run, *program.in_avals, name=program.name), marks


def _results(equation: Equation, operands: Symbols, marked: Marked) -> Sequence[Symbol]:
    """The results of an equation; what it marks is entered."""
    if equation.primitive is tap:
        _enter(marked, {Mark(**equation.params): operands[0]}, equation)
        return []
    if equation.primitive is cotangent_tap:
        return operands
    if not any(map(_has_taps, equation.regions)):
        return bind_equation(equation, operands)
    results, found = _through_regions(equation, operands)
    _enter(marked, found, equation)
    return results


def _has_taps(region: Program) -> bool:
    return any(equation.primitive in (tap, cotangent_tap) for equation in all_equations(region))


def _enter(marked: Marked, found: Marked, equation: Equation) -> None:
    """Add marks; those of calls that are there already are computed again. Raises `TapError` for a name used twice."""
    calls = {mark.name: mark.number for mark in marked}
    for mark, symbol in found.items():
        if calls.get(mark.name, mark.number) != mark.number:
            raise _twice(mark.name, equation)
        marked.setdefault(mark, symbol)


def _twice(name: str, equation: Equation) -> TapError:
    return TapError(
        f"two values are tapped as {name!r}",
        source=equation.source,
        remedy="give each call of tap a name of its own: f'layer {i}'",
    )


def _through_regions(equation: Equation, operands: Symbols) -> tuple[Sequence[Symbol], Marked]:
    match equation.primitive.lower:
        case kinds.Inlined():
            return _beside(equation, operands)
        case kinds.Cond():
            return _branches(equation, operands)
        case kinds.ScanLoop() if equation.params["length"] is not None:
            return _rows(equation, operands)
        case kinds.ScanLoop() | kinds.WhileLoop():
            return _last(equation, operands)
        case _:
            return bind_equation(equation, operands), {}


def _beside(equation: Equation, operands: Symbols) -> tuple[Sequence[Symbol], Marked]:
    """The equation without taps, which keeps its own derivative, and beside it what its first region marks.

    That computes it twice until the equation, too, is replaced by its region, and the two are merged.
    """
    region, marks = with_taps(equation.regions[0])
    marked = inline(region, operands)[len(equation.results) :]
    regions = tuple(map(_without_taps, equation.regions))
    results = equation.primitive(*operands, **equation.params, regions=regions)
    return list(results), dict(zip(marks, marked, strict=True))


def _without_taps(region: Program) -> Program:
    whole, _ = with_taps(region)
    return returning(whole, whole.outputs[: len(region.outputs)])


def _rows(equation: Equation, operands: Symbols) -> tuple[Sequence[Symbol], Marked]:
    """A scan that returns the rows of what its body marks as well."""
    loop, count = scan_as_loop(equation.params, equation.regions), len(equation.results)
    body, marks = with_taps(loop.body)
    found = loop.bind(body, loop.groups, operands[: loop.head], operands[loop.head :])
    return found[:count], dict(zip(marks, found[count:], strict=True))


def _last(equation: Equation, operands: Symbols) -> tuple[Sequence[Symbol], Marked]:
    """A loop of unknown length that carries what the last step marked as well."""
    as_loop = scan_as_loop if isinstance(equation.primitive.lower, kinds.ScanLoop) else while_as_loop
    loop = as_loop(equation.params, equation.regions)
    consts, carry, _ = loop.groups
    whole, marks = with_taps(loop.body)
    marked = whole.out_avals[len(loop.body.outputs) :]

    def step(*args: Symbol) -> list[Symbol]:
        found = inline(whole, [*args[: consts + carry], *args[consts + carry + len(marked) :]])
        return [*found[:carry], *found[len(loop.body.outputs) :], *found[carry : len(loop.body.outputs)]]

    avals = loop.body.in_avals
    body = trace(step, *avals[: consts + carry], *marked, *avals[consts + carry :], name=loop.body.name)
    given = operands[loop.head :]
    start = [*given[: consts + carry], *map(_nothing, marked), *given[consts + carry :]]
    grown = loop.groups._replace(carry=carry + len(marked))
    found = loop.bind(body, grown, operands[: loop.head], start)
    ends = found[carry : carry + len(marked)]
    return [*found[:carry], *found[carry + len(marked) :]], dict(zip(marks, ends, strict=True))


def _branches(equation: Equation, operands: Symbols) -> tuple[Sequence[Symbol], Marked]:
    """A branch that returns what any of them marks; a name may stand in several."""
    count = len(equation.results)
    branches = [with_taps(region) for region in equation.regions]
    avals: dict[tuple[str, int], Aval] = {}
    marks: dict[tuple[str, int], Mark] = {}
    for region, own in branches:
        for mark, aval in zip(own, region.out_avals[count:], strict=True):
            key = mark[:2]
            if avals.setdefault(key, aval) != aval:
                raise TapError(
                    f"branches tap {mark.name!r} as {listed([avals[key], aval])}",
                    source=equation.source,
                    remedy="tap the same shape and dtype in each, or under names of their own",
                )
            marks.setdefault(key, mark)

    def filled(region: Program, own: Sequence[Mark]) -> Program:
        def run(*args: Symbol) -> list[Symbol]:
            found = inline(region, args)
            put = {mark[:2]: symbol for mark, symbol in zip(own, found[count:], strict=True)}
            return [*found[:count], *[put[key] if key in put else _nothing(aval) for key, aval in avals.items()]]

        return trace(run, *region.in_avals, name=region.name)

    found = list(equation.primitive(*operands, **equation.params, regions=tuple(filled(*b) for b in branches)))
    return found[:count], dict(zip(marks.values(), found[count:], strict=True))


def _nothing(aval: Aval) -> Symbol:
    """The placeholder of a value that was not computed."""
    return full_like(aval, np.nan if is_inexact(aval.dtype) else 0)
