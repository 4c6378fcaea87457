"""Derivatives that the user states: `custom_vjp`, `custom_jvp`.

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
from typing import Any

import numpy as np

from fnad.errors import CustomRuleError, ShapeError
from fnad.ir.builder import current_builder, inline, trace
from fnad.ir.primitive import Inlined, Primitive, Sample, Structured, register
from fnad.ir.program import Equation, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, is_inexact
from fnad.ops.elementary import cos, sin
from fnad.ops.shape import zeros_like
from fnad.transforms.dce import dce
from fnad.transforms.differentiation import joint
from fnad.transforms.interpret import region_runner
from fnad.transforms.joint import Cotangent, Pullback
from fnad.transforms.jvp import Tangent


def _infer_vjp(*avals: Aval, leaves: int, regions: tuple[Program, ...]) -> tuple[Aval, ...]:
    if len(regions) == 1:
        return _without_rules(avals, regions[0])
    function, forward, backward = regions
    count = len(function.outputs)
    cts = [aval for aval in function.out_avals if is_inexact(aval.dtype)]
    kept = forward.out_avals[count:]
    xs = tuple(aval for aval in avals[:leaves] if is_inexact(aval.dtype))
    if function.in_avals != avals or forward.in_avals != avals or forward.out_avals[:count] != function.out_avals:
        raise ShapeError("a function and its forward rule take and return the same")
    if backward.in_avals != (*kept, *cts, *avals[leaves:]) or backward.out_avals != xs:
        raise ShapeError("a backward rule takes residuals and cotangents to cotangents of the arguments")
    return function.out_avals


def _infer_jvp(*avals: Aval, leaves: int, regions: tuple[Program, ...]) -> tuple[Aval, ...]:
    if len(regions) == 1:
        return _without_rules(avals, regions[0])
    function, rule = regions
    xs, ys = ([a for a in found if is_inexact(a.dtype)] for found in (avals[:leaves], function.out_avals))
    given = (*avals[:leaves], *xs, *avals[leaves:])
    if function.in_avals != avals or rule.in_avals != given or rule.out_avals != (*function.out_avals, *ys):
        raise ShapeError("a rule takes and returns what its function does, and tangents")
    return function.out_avals


def _evaluate(*operands: Any, leaves: int, regions: tuple[Program, ...]) -> tuple[Any, ...]:
    return tuple(region_runner(regions[0])(operands))


def _without_rules(avals: tuple[Aval, ...], function: Program) -> tuple[Aval, ...]:
    if function.in_avals != avals:
        raise ShapeError("a function is given other values than it takes")
    return function.out_avals


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


def _inexact(symbols: Sequence[Symbol]) -> list[bool]:
    return [is_inexact(symbol.dtype) for symbol in symbols]


# ---- custom_vjp ------------------------------------------------------------------------------------------------------


def _kept(equation: Equation, primals: Sequence[Symbol]) -> tuple[list[Symbol], list[Symbol]]:
    found = inline(equation.regions[1], primals)
    count = len(equation.regions[0].outputs)
    return found[:count], found[count:]


def _pull_vjp(equation: Equation, primals: Sequence[Symbol], needed: Sequence[bool]) -> tuple[list[Symbol], Pullback]:
    _check_closure(equation, needed)
    results, kept = _kept(equation, primals)
    leaves = equation.params["leaves"]

    def pullback(cts: Sequence[Cotangent]) -> list[Cotangent]:
        real = [zeros_like(r) if ct is None else ct for ct, r in zip(cts, results, strict=True) if is_inexact(r.dtype)]
        found = iter(inline(equation.regions[2], [*kept, *real, *primals[leaves:]]))
        given = [next(found) if inexact else None for inexact in _inexact(primals[:leaves])]
        return [*given, *[None] * (len(primals) - leaves)]

    return results, pullback


def _push_vjp(
    equation: Equation, primals: Sequence[Symbol], tangents: Sequence[Tangent]
) -> tuple[list[Symbol], list[Tangent]]:
    _check_closure(equation, [t is not None for t in tangents])
    results, kept = _kept(equation, primals)
    leaves, backward = equation.params["leaves"], equation.regions[2]
    inexact = _inexact(results)
    wrt = [len(kept) <= i < len(kept) + sum(inexact) for i in range(len(backward.inputs))]
    pairs = zip(primals[:leaves], tangents, strict=False)
    moved = [zeros_like(x) if t is None else t for x, t in pairs if is_inexact(x.dtype)]
    at = [zeros_like(y) for y, real in zip(results, inexact, strict=True) if real]
    found = inline(_of_last(joint(backward, wrt), len(backward.outputs)), [*kept, *at, *primals[leaves:], *moved])
    rest = iter(found)
    return results, [next(rest) if real else None for real in inexact]


def _of_last(program: Program, count: int) -> Program:
    """Return the program without its first `count` outputs."""
    return dce(Program(program.name, program.inputs, program.equations, program.outputs[count:]))


# ---- custom_jvp ------------------------------------------------------------------------------------------------------


def _push_jvp(
    equation: Equation, primals: Sequence[Symbol], tangents: Sequence[Tangent]
) -> tuple[list[Symbol], list[Tangent]]:
    _check_closure(equation, [t is not None for t in tangents])
    leaves = equation.params["leaves"]
    pairs = zip(primals[:leaves], tangents, strict=False)
    moved = [zeros_like(x) if t is None else t for x, t in pairs if is_inexact(x.dtype)]
    found = inline(equation.regions[1], [*primals[:leaves], *moved, *primals[leaves:]])
    count = len(equation.regions[0].outputs)
    rest = iter(found[count:])
    return found[:count], [next(rest) if real else None for real in _inexact(found[:count])]


def _pull_jvp(equation: Equation, primals: Sequence[Symbol], needed: Sequence[bool]) -> tuple[list[Symbol], Pullback]:
    _check_closure(equation, needed)
    function, rule = equation.regions
    leaves = equation.params["leaves"]
    results = list(custom_jvp(*primals, leaves=leaves, regions=equation.regions))
    inexact = _inexact(primals[:leaves])
    linear = Program(rule.name, rule.inputs, rule.equations, rule.outputs[len(function.outputs) :])
    wrt = [leaves <= i < leaves + sum(inexact) for i in range(len(rule.inputs))]

    def pullback(cts: Sequence[Cotangent]) -> list[Cotangent]:
        real = [zeros_like(r) if ct is None else ct for ct, r in zip(cts, results, strict=True) if is_inexact(r.dtype)]
        at = [zeros_like(x) for x, i in zip(primals, inexact, strict=False) if i]
        back = _of_last(joint(linear, wrt), len(linear.outputs))
        found = iter(inline(back, [*primals[:leaves], *at, *primals[leaves:], *real]))
        return [*[next(found) if i else None for i in inexact], *[None] * (len(primals) - leaves)]

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


custom_vjp = register(
    Primitive(
        "custom_vjp",
        _infer_vjp,
        _evaluate,
        Structured(_push_vjp, _pull_vjp),
        Inlined(),
        _vjp_samples,
        "The first region, differentiated by the two behind it: residuals, and cotangents from them.",
    )
)
custom_jvp = register(
    Primitive(
        "custom_jvp",
        _infer_jvp,
        _evaluate,
        Structured(_push_jvp, _pull_jvp),
        Inlined(),
        _jvp_samples,
        "The first region, differentiated by the second, which takes tangents too.",
    )
)
