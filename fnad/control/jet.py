"""Taylor mode: the coefficients of a program's outputs along a curve, to any order at once.

The inputs are curves x(t) = x0 + x1 t + x2 t² + …, given by their coefficients. Of a result y, which is a function of
operands x, the coefficients follow from those of its tangent: y'(t) = T(x(t), x'(t)), so k y_k is coefficient k - 1 of
T. The program T is what forward mode makes of the equation, and is followed in the same way, only as far as it is asked
for. What T uses of y itself, as that of exp does, is known by then: coefficient k - 1 of T has it to k - 1 only. The
same operation on the same curves is the same curve. So the products of sin and cos, each in the other's tangent, grow
with the square of the order (Griewank and Walther, "Evaluating Derivatives", 2008, section 13.2), those of others with
its cube. Linear and bilinear operations need no tangent. Nested forward mode takes a number of operations that doubles
with each order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import compress
from typing import Any, TypeAlias

from fnad.control.checkpoint import checkpoint
from fnad.control.cond import cond
from fnad.control.loop import Groups, Loop, closure
from fnad.control.region_rules import instantiated, pieces, reached, spread
from fnad.control.scan import scan, scan_as_loop
from fnad.control.signatures import Flags
from fnad.control.snapshots import snapshots
from fnad.control.while_loop import while_as_loop, while_loop
from fnad.forks import cached_property
from fnad.ir.builder import bind_equation, current_builder, inline, trace
from fnad.ir.content import content_key, params_key
from fnad.ir.primitive import Bilinear, Linear, NonDifferentiable, Primitive, Unknown
from fnad.ir.program import Atom, Equation, Literal, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, is_inexact
from fnad.ops.arithmetic import mul
from fnad.ops.shape import constant, zeros_like
from fnad.transforms.dce import dce
from fnad.transforms.jvp import add_tangents, push

Coefficient: TypeAlias = Symbol | None
"""A coefficient, or a zero that is never built."""


class Curve:
    """A value along the curve; its coefficients are computed when they are first asked for."""

    def __init__(self, aval: Aval, compute: Callable[[int], Coefficient], *, varies: bool) -> None:
        self.aval, self.varies = aval, varies
        self._compute = cache(compute)

    def __getitem__(self, k: int) -> Coefficient:
        return self._compute(k) if self.varies or k == 0 else None

    def complete(self, order: int) -> None:
        """Compute all coefficients, each with those before at hand, so that recursion does not go deep."""
        for k in range(order + 1):
            self[k]

    @property
    def value(self) -> Symbol:
        """Coefficient 0, which is always built."""
        found = self[0]
        assert found is not None
        return found

    @cached_property
    def speed(self) -> Curve:
        """Its derivative."""
        return Curve(self.aval, lambda k: _scaled(self[k + 1], k + 1), varies=True)

    def first(self, count: int) -> list[Symbol]:
        """The first coefficients, with zeros built."""
        return instantiated([self[k] for k in range(count)], [self.aval] * count)


class RegionCurve(Curve):
    """A result of an equation with regions, which computes all coefficients to an order at once."""

    def complete(self, order: int) -> None:
        self[order]


class UnknownCurve(Curve):
    """A result without a known derivative: coefficients other than 0 are errors."""

    def complete(self, order: int) -> None:
        self[0]


def _scaled(x: Coefficient, factor: float) -> Coefficient:
    return x if x is None or factor == 1 else mul(x, constant(factor, x.dtype, x.shape))


def jet(program: Program, order: int, marked: Flags) -> Program:
    """The program on coefficients: of each input that is marked, and of each output that varies, 0 to `order`."""
    varies, sizes = varying([program], marked), [order + 1 if mark else 1 for mark in marked]

    def run(*args: Symbol) -> list[Symbol]:
        found = Jet(order).outputs(program, [_given(part) for part in pieces(args, sizes)])
        return [x for y, flag in zip(found, varies, strict=True) for x in y.first(order + 1 if flag else 1)]

    avals = [aval for aval, size in zip(program.in_avals, sizes, strict=True) for _ in range(size)]
    return trace(run, *avals, name=program.name)


def varying(regions: Sequence[Program], marked: Flags) -> list[bool]:
    """Which results vary where the marked inputs do."""
    avals = regions[0].out_avals
    return [flag and is_inexact(aval.dtype) for flag, aval in zip(reached(regions, marked), avals, strict=True)]


def _given(coefficients: Sequence[Symbol]) -> Curve:
    return Curve(coefficients[0].aval, lambda k: coefficients[k], varies=len(coefficients) > 1)


@dataclass(frozen=True)
class Jet:
    """The curves of one program, to an order; equal operations on the same curves are one."""

    order: int
    known: dict[Hashable, tuple[Sequence[Curve], list[Curve]]] = field(default_factory=dict[Any, Any])

    def outputs(self, program: Program, given: Sequence[Curve]) -> list[Curve]:
        """The curves of the outputs; coefficients are computed in the order of the program."""
        found, made = self.follow(program, given)
        for curve in made:
            curve.complete(self.order)
        return found

    def follow(self, program: Program, given: Sequence[Curve]) -> tuple[list[Curve], list[Curve]]:
        """The curves of the outputs, and of all equations, of which nothing is computed yet."""
        env = dict(zip(program.inputs, given, strict=True))
        made: list[Curve] = []
        for equation in program.equations:
            curves = self._results(equation, [self._read(env, atom) for atom in equation.operands])
            env.update(zip(equation.results, curves, strict=True))
            made += curves
        return [self._read(env, atom) for atom in program.outputs], made

    def _read(self, env: dict[Var, Curve], atom: Atom) -> Curve:
        if isinstance(atom, Var):
            return env[atom]
        return self._once(atom.key, (), lambda: [_literal(atom)])[0]

    def _results(self, equation: Equation, operands: Sequence[Curve]) -> list[Curve]:
        if equation.primitive.effect and isinstance(equation.primitive.derivative, Linear):
            found = self._made(equation, operands)
            for curve in found:
                curve.value  # noqa: B018 - it happens here, in the order of the program
            return found
        if equation.primitive.effect:
            found = bind_equation(equation, [x.value for x in operands])
            is_unknown = isinstance(equation.primitive.derivative, Unknown) and any(x.varies for x in operands)
            return [_unknown(equation, x) if is_unknown and is_inexact(x.dtype) else _given([x]) for x in found]
        regions = tuple(map(content_key, equation.regions))
        key = equation.primitive, params_key(equation.params), regions, tuple(map(id, operands))
        return self._once(key, operands, lambda: self._made(equation, operands))

    def _once(self, key: Hashable, operands: Sequence[Curve], make: Callable[[], list[Curve]]) -> list[Curve]:
        """The value of this key; the operands, whose identities are part of it, are kept with it."""
        if key not in self.known:
            self.known[key] = operands, make()
        return self.known[key][1]

    def _made(self, equation: Equation, operands: Sequence[Curve]) -> list[Curve]:
        primitive = equation.primitive
        if not any(x.varies for x in operands) or isinstance(primitive.derivative, NonDifferentiable):
            return _constant(equation, operands)
        if primitive is snapshots:
            return self.follow(equation.regions[0], operands)[0]
        if primitive in RULES:
            return RULES[primitive](equation, operands)
        match primitive.derivative:
            case Linear(_, wrt):
                return _linear(equation, operands, range(len(operands)) if wrt is None else wrt)
            case Bilinear():
                return _product(equation, *operands)
            case _:
                return self._by_tangents(equation, operands)

    def _by_tangents(self, equation: Equation, operands: Sequence[Curve]) -> list[Curve]:
        """The curves whose derivatives are the tangents."""
        tangents, moved = _tangents(equation, [x.varies for x in operands])
        given = [*operands, *[x.speed for x in operands if x.varies]]
        rates = cache(lambda: spread(self.follow(tangents, given)[0], moved))  # only now: it may be this equation again

        def coefficient(value: Curve, i: int, k: int) -> Coefficient:
            rate = None if k == 0 else rates()[i]
            return value[0] if k == 0 else None if rate is None else _scaled(rate[k - 1], 1 / k)

        return [
            Curve(value.aval, partial(coefficient, value, i), varies=moves)
            for i, (value, moves) in enumerate(zip(_constant(equation, operands), moved, strict=True))
        ]


def _unknown(equation: Equation, value: Symbol) -> Curve:
    def coefficient(k: int) -> Coefficient:
        if k:
            assert isinstance(equation.primitive.derivative, Unknown)
            raise equation.primitive.derivative.error(**equation.params).at(equation.source)
        return value

    return UnknownCurve(value.aval, coefficient, varies=True)


def _literal(atom: Literal) -> Curve:
    return Curve(atom.aval, lambda _: current_builder().literal(atom.value), varies=False)


# ---- equations -------------------------------------------------------------------------------------------------------


def _curves(equation: Equation, compute: Callable[[int], Sequence[Coefficient]], *, varies: bool) -> list[Curve]:
    """The curves of an equation, whose coefficients of one order are computed together."""
    together = cache(compute)
    return [
        Curve(var.aval, partial(_part, together, i), varies=varies and is_inexact(var.aval.dtype))
        for i, var in enumerate(equation.results)
    ]


def _part(together: Callable[[int], Sequence[Coefficient]], i: int, k: int) -> Coefficient:
    return together(k)[i]


def _constant(equation: Equation, operands: Sequence[Curve]) -> list[Curve]:
    """The results where the curve begins."""
    return _curves(equation, lambda _: _at(equation, [x.value for x in operands]), varies=False)


def _at(equation: Equation, operands: Sequence[Symbol]) -> list[Symbol]:
    """The results of an equation, with its line of user code."""
    builder = current_builder()
    outer, builder.source = builder.source, equation.source or builder.source
    found = bind_equation(equation, operands)
    builder.source = outer
    return found


def _linear(equation: Equation, operands: Sequence[Curve], linear_in: Sequence[int]) -> list[Curve]:
    def coefficients(k: int) -> Sequence[Coefficient]:
        if all(operands[i][k] is None for i in linear_in):
            return [None] * len(equation.results)
        given = [
            x.value if i not in linear_in else zeros_like(x.aval) if (c := x[k]) is None else c
            for i, x in enumerate(operands)
        ]
        return _at(equation, given)

    return _curves(equation, coefficients, varies=any(operands[i].varies for i in linear_in))


def _product(equation: Equation, x: Curve, y: Curve) -> list[Curve]:
    """Cauchy's product."""

    def coefficient(k: int) -> Sequence[Coefficient]:
        pairs = [(x[j], y[k - j]) for j in range(k + 1)]
        return [add_tangents([_at(equation, (a, b))[0] for a, b in pairs if a is not None and b is not None])]

    return _curves(equation, coefficient, varies=True)


def _tangents(equation: Equation, marks: Flags) -> tuple[Program, list[bool]]:
    """The program (operands…, their tangents…) -> (tangents of the results…), and which results have one."""
    moved: list[bool] = []

    def run(*args: Symbol) -> list[Symbol]:
        primals, rest = args[: len(marks)], iter(args[len(marks) :])
        found = push(equation, primals, [next(rest) if mark else None for mark in marks])[1]
        moved[:] = [tangent is not None for tangent in found]
        return [tangent for tangent in found if tangent is not None]

    avals = [atom.aval for atom in equation.operands]
    return dce(trace(run, *avals, *compress(avals, marks), name=equation.primitive.name)), moved


# ---- regions ---------------------------------------------------------------------------------------------------------


def _regional(equation: Equation, varies: Flags, build: Callable[[int], Sequence[Sequence[Symbol]]]) -> list[Curve]:
    """The curves of results that are built to an order at once; in a tangent one order after the other is asked for."""
    built: list[Sequence[Sequence[Symbol]]] = []

    def coefficient(i: int, k: int) -> Coefficient:
        if not built or len(built[-1][i]) <= k:
            built.append(build(k))
        return built[-1][i][k]

    return [
        RegionCurve(var.aval, partial(coefficient, i), varies=flag)
        for i, (var, flag) in enumerate(zip(equation.results, varies, strict=True))
    ]


def _of_regions(equation: Equation, operands: Sequence[Curve], head: int) -> list[Curve]:
    """The same primitive, of regions on coefficients; the first operands are not the regions'."""
    given = operands[head:]
    marks = [x.varies for x in given]
    varies = varying(equation.regions, marks)

    def build(order: int) -> Sequence[Sequence[Symbol]]:
        regions = tuple(_region(region, order, marks, varies) for region in equation.regions)
        values = [x for curve in given for x in curve.first(order + 1 if curve.varies else 1)]
        found = equation.primitive(*[x.value for x in operands[:head]], *values, **equation.params, regions=regions)
        return pieces(found, [order + 1 if flag else 1 for flag in varies])

    return _regional(equation, varies, build)


def _region(region: Program, order: int, marks: Flags, wanted: Flags) -> Program:
    """A region on coefficients; of the results that are wanted all coefficients, zeros too."""
    inner = jet(region, order, marks)
    sizes = [order + 1 if flag else 1 for flag in varying([region], marks)]

    def run(*args: Symbol) -> list[Symbol]:
        parts = pieces(inline(inner, args), sizes)
        return [
            x
            for part, flag in zip(parts, wanted, strict=True)
            for x in (_given(part).first(order + 1) if flag else part)
        ]

    return trace(run, *inner.in_avals, name=region.name)


def _of_loop(equation: Equation, operands: Sequence[Curve], loop: Loop) -> list[Curve]:
    """The loop over coefficients, whose carry varies where it comes to vary in some step."""
    groups, given = loop.groups, operands[loop.head :]
    consts, carry, xs = groups.split([x.varies for x in given])
    carry = closure(carry, lambda carry: varying([loop.body], [*consts, *carry, *xs])[: groups.carry])
    rows = varying([loop.body], [*consts, *carry, *xs])[groups.carry :]
    flags = (consts, carry, xs)

    def build(order: int) -> Sequence[Sequence[Symbol]]:
        marks = [*consts, *carry, *xs]
        parts = [x.first(order + 1 if mark else 1) for x, mark in zip(given, marks, strict=True)]
        values = [x for part in groups.split(parts) for x in _apart(part)]
        grown = Groups(*[len(part) + order * sum(part) for part in flags])
        body = _loop_body(loop, order, flags, rows, grown.body_avals(values))
        found = loop.bind(body, grown, [x.value for x in operands[: loop.head]], values)
        ends, steps, ys = pieces(found, (grown.carry, int(loop.counts), len(rows) + order * sum(rows)))
        return [*_together(ends, carry, order), *[[x] for x in steps], *_together(ys, rows, order)]

    return _regional(equation, [*carry, *[False] * loop.counts, *rows], build)


def _loop_body(
    loop: Loop, order: int, flags: tuple[Flags, Flags, Flags], rows: Flags, avals: Sequence[Aval]
) -> Program:
    """The body on coefficients; higher ones stand behind all values of their group, which the test of a loop reads."""
    consts, carry, xs = flags
    inner = _region(loop.body, order, [*consts, *carry, *xs], [*carry, *rows])
    sizes = [len(part) + order * sum(part) for part in flags]

    def run(*args: Symbol) -> list[Symbol]:
        parts = zip(pieces(args, sizes), flags, strict=True)
        found = inline(inner, [x for part, marks in parts for one in _together(part, marks, order) for x in one])
        ends = pieces(found, [order + 1 if flag else 1 for flag in (*carry, *rows)])
        return [*_apart(ends[: len(carry)]), *_apart(ends[len(carry) :])]

    return trace(run, *avals, name=loop.body.name)


def _apart(curves: Sequence[Sequence[Symbol]]) -> list[Symbol]:
    """The values, and behind them the higher coefficients."""
    return [*[curve[0] for curve in curves], *[x for curve in curves for x in curve[1:]]]


def _together(symbols: Sequence[Symbol], varies: Flags, order: int) -> list[list[Symbol]]:
    """The coefficients of each value, from values and, behind them, higher coefficients of those that vary."""
    higher = iter(pieces(symbols[len(varies) :], [order] * sum(varies)))
    return [[x, *(next(higher) if flag else ())] for x, flag in zip(symbols, varies, strict=False)]


RULES: dict[Primitive, Callable[[Equation, Sequence[Curve]], list[Curve]]] = {
    checkpoint: partial(_of_regions, head=0),
    cond: partial(_of_regions, head=1),
    scan: lambda equation, operands: _of_loop(equation, operands, scan_as_loop(equation.params, equation.regions)),
    while_loop: lambda equation, operands: _of_loop(
        equation, operands, while_as_loop(equation.params, equation.regions)
    ),
}
"""Primitives whose regions are followed for all orders together; the tangents of others are followed."""
