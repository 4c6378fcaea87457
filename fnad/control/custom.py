"""Derivatives that the user states: `custom_vjp`, `custom_jvp`, and `ruled` for functions that are not traced.

An equation has the function as its first region and the rules behind it, traced with it. Operands are the leaves of the
arguments, then what any of the regions uses from outside, which comes last in each of them. Transforms take the rules
in place of the function's own derivative; so the second derivative is the derivative of the rule. Of one rule the other
mode follows, since both are linear: the pullback of a pullback takes tangents to tangents, and that of a rule for
tangents cotangents to cotangents.

A rule that calls its own function does so with its rule, and so on. Where that ends, there is an equation without
rules, whose derivative is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from fnad.control.region_rules import (
    check_avals,
    inexact,
    inlined_primitive,
    instantiated_inexact,
    of_inexact,
    pulled_region,
    read_inputs,
    spread,
)
from fnad.control.signatures import Cotangents, Flags, Pulled, Pushed, Regions, Symbols, Tangents
from fnad.errors import CustomRuleError
from fnad.ir.builder import current_builder, inline, trace
from fnad.ir.primitive import Sample
from fnad.ir.program import Equation, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.elementary import cos, sin
from fnad.ops.shape import zeros_like
from fnad.transforms.joint import Cotangent


def _check_closure(equation: Equation, moved: Sequence[object]) -> None:
    """Raise where a function has no rule, or depends on what is differentiated otherwise than through its arguments."""
    if len(equation.regions) == 1:
        name = equation.regions[0].name
        raise CustomRuleError(
            f"the rule of {name} calls {name}, and so on, deeper than it is followed",
            source=current_builder().source,
            remedy="write its derivative in the rule with other functions",
        )
    if any(moved[equation.params["leaves"] :]):
        raise CustomRuleError(
            f"{equation.regions[0].name} has a derivative of its own, in its arguments alone, and is differentiated in "
            f"a value that it, or its rule, uses from outside",
            source=current_builder().source,
            remedy="give it that value as an argument, or put stop_gradient around it",
        )


def _moved(equation: Equation, primals: Symbols) -> list[bool]:
    """Which operands the rules have a derivative in: the inexact leaves."""
    return [i < equation.params["leaves"] and is_real for i, is_real in enumerate(inexact(primals))]


FORWARDS = "differentiate with grad or vjp, which call the rule, or state one for tangents with custom_jvp"
BACKWARDS = "differentiate with jvp or jacfwd, which call the rule, or state one for cotangents with custom_vjp"


def _transposed(equation: Equation, rule: Program, places: range, of: str, remedy: str) -> Program:
    """The transpose of a rule in the inputs at these places, in which it has to be linear."""
    found = pulled_region(rule, [i in places for i in range(len(rule.inputs))])
    if any(read_inputs(found)[places.start : places.stop]):
        what = f"the rule of {equation.regions[0].name} is not linear in its {of}: it has no transpose"
        source = next((e.source for e in rule.equations if e.source is not None), equation.source)
        raise CustomRuleError(what, source=source, remedy=remedy)
    return found


# ---- custom_vjp ------------------------------------------------------------------------------------------------------


def _forward(equation: Equation, primals: Symbols) -> tuple[list[Symbol], list[Symbol]]:
    """The results, and the residuals."""
    found = inline(equation.regions[1], primals)
    count = len(equation.regions[0].outputs)
    return found[:count], found[count:]


def _pull_vjp(equation: Equation, primals: Symbols, needed: Flags) -> Pulled:
    _check_closure(equation, needed)
    results, residuals = _forward(equation, primals)
    captured = primals[equation.params["leaves"] :]

    def pullback(cts: Cotangents) -> list[Cotangent]:
        found = inline(equation.regions[2], [*residuals, *instantiated_inexact(cts, results), *captured])
        return spread(found, _moved(equation, primals))

    return results, pullback


def _push_vjp(equation: Equation, primals: Symbols, tangents: Tangents) -> Pushed:
    _check_closure(equation, [t is not None for t in tangents])
    results, residuals = _forward(equation, primals)
    leaves, backward = equation.params["leaves"], equation.regions[2]
    at = [zeros_like(y) for y in of_inexact(results)]  # the rule is linear in its cotangents: anywhere will do
    first = len(residuals)
    transpose = _transposed(equation, backward, range(first, first + len(at)), "cotangents", FORWARDS)
    moved = instantiated_inexact(tangents[:leaves], primals[:leaves])
    return results, spread(inline(transpose, [*residuals, *at, *primals[leaves:], *moved]), inexact(results))


# ---- custom_jvp ------------------------------------------------------------------------------------------------------


def _push_jvp(equation: Equation, primals: Symbols, tangents: Tangents) -> Pushed:
    _check_closure(equation, [t is not None for t in tangents])
    leaves, count = equation.params["leaves"], len(equation.regions[0].outputs)
    moved = instantiated_inexact(tangents[:leaves], primals[:leaves])
    found = inline(equation.regions[1], [*primals[:leaves], *moved, *primals[leaves:]])
    return found[:count], spread(found[count:], inexact(found[:count]))


def _pull_jvp(equation: Equation, primals: Symbols, needed: Flags) -> Pulled:
    _check_closure(equation, needed)
    (function, rule), leaves = equation.regions, equation.params["leaves"]
    count = len(function.outputs)
    at = [zeros_like(x) for x in of_inexact(primals[:leaves])]
    value, linear = replace(rule, outputs=rule.outputs[:count]), replace(rule, outputs=rule.outputs[count:])
    results = inline(value, [*primals[:leaves], *at, *primals[leaves:]])

    def pullback(cts: Cotangents) -> list[Cotangent]:
        transpose = _transposed(equation, linear, range(leaves, leaves + len(at)), "tangents", BACKWARDS)
        given = [*primals[:leaves], *at, *primals[leaves:], *instantiated_inexact(cts, results)]
        return spread(inline(transpose, given), _moved(equation, primals))

    return results, pullback


# ---- ruled -----------------------------------------------------------------------------------------------------------


def _ruled(equation: Equation, primals: Symbols, mode: str, moved: Symbols, into: Symbols) -> list[Symbol]:
    """The results of the rule for a mode; without one, of the transpose of the other rule, in what is linear there."""
    leaves, rules = equation.params["leaves"], dict(zip(equation.params["modes"], equation.regions[1:], strict=True))
    given, captured = primals[:leaves], primals[leaves:]
    if mode in rules:
        return inline(rules[mode], [*given, *moved, *captured])
    at = list(map(zeros_like, into))
    words = ("cotangents", FORWARDS) if mode == "jvp" else ("tangents", BACKWARDS)
    transpose = _transposed(equation, next(iter(rules.values())), range(leaves, leaves + len(at)), *words)
    return inline(transpose, [*given, *at, *captured, *moved])


def _same(equation: Equation, primals: Symbols) -> list[Symbol]:
    """The results, which have the rules for higher orders."""
    return list(equation.primitive(*primals, **equation.params, regions=equation.regions))


def _push_ruled(equation: Equation, primals: Symbols, tangents: Tangents) -> Pushed:
    _check_closure(equation, [t is not None for t in tangents])
    results, given = _same(equation, primals), primals[: equation.params["leaves"]]
    moved = instantiated_inexact(tangents[: len(given)], given)
    return results, spread(_ruled(equation, primals, "jvp", moved, of_inexact(results)), inexact(results))


def _pull_ruled(equation: Equation, primals: Symbols, needed: Flags) -> Pulled:
    _check_closure(equation, needed)
    results, given = _same(equation, primals), primals[: equation.params["leaves"]]

    def pullback(cts: Cotangents) -> list[Cotangent]:
        moved = instantiated_inexact(cts, results)
        return spread(_ruled(equation, primals, "vjp", moved, of_inexact(given)), _moved(equation, primals))

    return results, pullback


# ---- samples ---------------------------------------------------------------------------------------------------------

_ROW = Aval(np.dtype("f8"), (3,))
_SINE = trace(lambda x: [sin(x)], _ROW, name="sine")
_X = np.array([0.5, -1.0, 2.0])


def _vjp_samples() -> Iterable[Sample]:
    """The sine, with its own derivative."""
    forward = trace(lambda x: [sin(x), cos(x)], _ROW, name="sine")
    backward = trace(lambda c, ct: [c * ct], _ROW, _ROW, name="sine_back")
    yield Sample((_X,), {"leaves": 1}, (_SINE, forward, backward))


def _jvp_samples() -> Iterable[Sample]:
    """The same, forwards."""
    rule = trace(lambda x, dx: [sin(x), cos(x) * dx], _ROW, _ROW, name="sine")
    yield Sample((_X,), {"leaves": 1}, (_SINE, rule))


def _ruled_samples() -> Iterable[Sample]:
    """The sine, with a rule for each mode and for both."""
    rule = trace(lambda x, dx: [cos(x) * dx], _ROW, _ROW, name="sine")
    for modes in (("vjp",), ("jvp",), ("vjp", "jvp")):
        yield Sample((_X,), {"leaves": 1, "modes": modes}, (_SINE, *[rule] * len(modes)))


@inlined_primitive(_push_vjp, _pull_vjp, _vjp_samples)
def custom_vjp(*avals: Aval, leaves: int, regions: Regions) -> tuple[Aval, ...]:
    """The first region, differentiated by those behind it: residuals, and cotangents from them."""
    function, *rules = regions
    check_avals("a function with a rule takes", function.in_avals, avals)
    if rules:
        forward, backward = rules
        saved, cts = forward.out_avals[len(function.outputs) :], of_inexact(function.out_avals)
        check_avals("a forward rule takes", forward.in_avals, avals)
        check_avals("a forward rule returns", forward.out_avals, (*function.out_avals, *saved))
        check_avals("a backward rule takes", backward.in_avals, (*saved, *cts, *avals[leaves:]))
        check_avals("a backward rule returns", backward.out_avals, of_inexact(avals[:leaves]))
    return function.out_avals


@inlined_primitive(_push_jvp, _pull_jvp, _jvp_samples)
def custom_jvp(*avals: Aval, leaves: int, regions: Regions) -> tuple[Aval, ...]:
    """The first region, differentiated by the second, which takes tangents too."""
    function, *rules = regions
    check_avals("a function with a rule takes", function.in_avals, avals)
    for rule in rules:
        check_avals("a rule takes", rule.in_avals, (*avals[:leaves], *of_inexact(avals[:leaves]), *avals[leaves:]))
        check_avals("a rule returns", rule.out_avals, (*function.out_avals, *of_inexact(function.out_avals)))
    return function.out_avals


@inlined_primitive(_push_ruled, _pull_ruled, _ruled_samples)
def ruled(*avals: Aval, leaves: int, modes: Sequence[str], regions: Regions) -> tuple[Aval, ...]:
    """The first region, differentiated in each of the modes by a rule that takes its operands and what is linear."""
    function, *rules = regions
    check_avals("a function with rules takes", function.in_avals, avals)
    given, captured = avals[:leaves], avals[leaves:]
    tangents, results = of_inexact(given), of_inexact(function.out_avals)
    for mode, rule in zip(modes, rules):  # noqa: B905 a call too deep has no rules
        taken, returned = (tangents, results) if mode == "jvp" else (results, tangents)
        check_avals("a rule takes", rule.in_avals, (*given, *taken, *captured))
        check_avals("a rule returns", rule.out_avals, returned)
    return function.out_avals
