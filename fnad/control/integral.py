"""`integral`: the integrals of the elements of a vector f(c, x) over x between two limits, by SciPy's `quad`.

Each element is integrated to the precision asked, or where there is a `norm`, the vector is, by SciPy's `quad_vec`.
Operands are constants c…, the limits a and b, which may be infinite, and points at which to divide the interval. The
region is f, (c…, x) -> (vector, watched…); the results are the integrals and estimates of their errors, which have no
derivative. The rules are integrals again, to the same precision, so they hold at any order (Leibniz):

    forward   dy = f(b) db - f(a) da + ∫ ∂f/∂c dc dx
    reverse   b̄ = ȳ·f(b),  ā = -ȳ·f(a),  c̄ = ∫ (∂f/∂c)ᵀ ȳ dx

Note [Jumps]
    Where f jumps at a place that moves with c, what the jump sweeps belongs to the derivative, and no derivative of f
    has it. Such places are where something is decided, by a comparison or rounding, that depends on x and on a c that
    is differentiated. So the integrand of a derivative also returns what is `watched`: pairs of the vector that was
    differentiated and of what is decided there. Where the latter changes between two places at which it was evaluated,
    the place is found by bisection, and it is an error if the vector jumps there. A kink does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import compress, islice, pairwise
from operator import or_
from pkgutil import resolve_name
from typing import Any

import numpy as np

from fnad.control.closures import closed
from fnad.control.implicit import implicit
from fnad.control.ode import ode
from fnad.control.region_rules import built, check_avals, returning, spread
from fnad.control.signatures import Cotangents, Flags, Pulled, Pushed, Regions, Symbols, Tangents
from fnad.control.vector import Raveling, dot, scaled
from fnad.errors import UnsupportedFunctionError
from fnad.ir.axes import Opaque
from fnad.ir.builder import current_builder, inline
from fnad.ir.primitive import Library, NonDifferentiable, Primitive, Sample, Structured
from fnad.ir.program import Equation, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Aval, is_inexact
from fnad.ops.arithmetic import add, neg
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import bitwise_and, gt, isfinite, select, signbit
from fnad.ops.constructors import primitive
from fnad.ops.conversion import convert_to
from fnad.ops.piecewise import abs_, copysign, floor, fmod, remainder, trunc
from fnad.ops.reduction import reduce_max
from fnad.ops.shape import broadcast_to, concatenate, ones_like, reshape_to, zeros_like
from fnad.transforms.differentiation import joint, jvp
from fnad.transforms.interpret import NEVER, region_runner
from fnad.transforms.joint import Cotangent
from fnad.transforms.pipeline import simplify

NUMBER = Aval(F64)


def _infer(
    *avals: Aval, epsabs: float, epsrel: float, limit: int, norm: str | None = None, regions: Regions
) -> tuple[Aval, ...]:
    (integrand,) = regions
    *consts, a, b, points = avals
    check_avals("an integrand takes", integrand.in_avals, (*consts, NUMBER))
    check_avals("the limits of an integral are", (a, b), (NUMBER, NUMBER))
    check_avals("the points of an integral are", (points,), (Aval(F64, (points.size,)),))
    vector = integrand.out_avals[0]
    check_avals("an integrand returns first", (vector,), (Aval(F64, (vector.size,)),))
    return vector, vector


# ---- evaluation ------------------------------------------------------------------------------------------------------

Integrand = Callable[[float], Sequence[Any]]


# ---- derivatives -----------------------------------------------------------------------------------------------------


def integrated(f: Callable[[Symbol], list[Symbol]], a: Symbol, b: Symbol, points: Symbol, **options: Any) -> Any:
    """The integrals of a vector, and their errors; f may use what is around it."""
    integrand = closed(f, [NUMBER], "integrand")
    return integral(*integrand.captured, a, b, points, **options, regions=(simplify(integrand.program),))


def _derivative(equation: Equation, slope: Callable[[Symbol], Symbol], primals: Symbols, moved: Flags) -> Symbol:
    """The integral of a derivative with respect to the constants marked in `moved`."""
    (f,), consts = equation.regions, primals[:-3]
    more = _decisions(f, moved)

    def integrand(x: Symbol) -> list[Symbol]:
        watched = inline(f, [*consts, x])[1:]
        return [slope(x), *watched, *more([*consts, x])]

    return integrated(integrand, *primals[-3:], **equation.params)[0]


def _at(equation: Equation, primals: Symbols, place: int) -> Symbol:
    """The integrand at a limit; 0 at an infinite one, where it vanishes."""
    x = primals[place]
    value = inline(equation.regions[0], [*primals[:-3], x])[0]
    return select(broadcast_to(isfinite(x), value.shape), value, zeros_like(value))


def _push(equation: Equation, primals: Symbols, tangents: Tangents) -> Pushed:
    (f,), consts = equation.regions, primals[:-3]
    *given, da, db, _ = tangents
    moved = [tangent is not None for tangent in given]
    results = list(integral(*primals, **equation.params, regions=equation.regions))
    terms = [] if db is None else [scaled(db, _at(equation, primals, -2))]
    terms += [] if da is None else [neg(scaled(da, _at(equation, primals, -3)))]
    if any(moved):
        slope, directions = jvp(_vector_of(f), [*moved, False]), built(given)
        size = _size(directions)
        units = [_divided(direction, size) for direction in directions]
        along = _derivative(equation, lambda x: inline(slope, [*consts, x, *units])[1], primals, moved)
        terms.append(scaled(size, along))
    return results, [sum(terms[1:], terms[0]) if terms else None, None]


def _pull(equation: Equation, primals: Symbols, needed: Flags) -> Pulled:
    (f,), consts = equation.regions, primals[:-3]
    results = list(integral(*primals, **equation.params, regions=equation.regions))
    wanted = needed[: len(consts)]

    def to_consts(ct: Symbol) -> list[Symbol]:
        back, size = joint(_vector_of(f), [*wanted, False]), _size([ct])
        unit, flat = _divided(ct, size), Raveling.of([value.aval for value in compress(consts, wanted)])

        def slope(x: Symbol) -> Symbol:
            return convert_to(flat.ravel(inline(back, [*consts, x, unit])[1:]), F64)

        return flat.unravel(scaled(size, _derivative(equation, slope, primals, wanted)))

    def pullback(cts: Cotangents) -> list[Cotangent]:
        ct = cts[0]
        if ct is None:
            return [None] * len(primals)
        upper = dot(ct, _at(equation, primals, -2)) if needed[-2] else None
        lower = neg(dot(ct, _at(equation, primals, -3))) if needed[-3] else None
        return [*spread(to_consts(ct) if any(wanted) else [], wanted), lower, upper, None]

    return results, pullback


def _vector_of(f: Program) -> Program:
    return returning(f, f.outputs[:1])


def _size(directions: Symbols) -> Symbol:
    """The largest element of tangents or cotangents, which are divided by it: a precision is absolute."""
    flat = Raveling.of([direction.aval for direction in directions])
    vector = stop_gradient(convert_to(flat.ravel(directions), F64))
    if not vector.aval.size:
        return ones_like(NUMBER)
    size = reduce_max(abs_(vector), axes=(0,))
    return select(bitwise_and(gt(size, zeros_like(size)), isfinite(size)), size, ones_like(size))


def _divided(direction: Symbol, size: Symbol) -> Symbol:
    return direction / broadcast_to(convert_to(size, direction.dtype), direction.shape)


# ---- jumps -----------------------------------------------------------------------------------------------------------

JUMPING: dict[Primitive, Callable[[Symbol, Symbol], Symbol]] = {
    copysign: lambda x, y: signbit(y),
    fmod: lambda x, y: trunc(x / y),
    remainder: lambda x, y: floor(x / y),
}
"""Primitives that have a derivative, and jump: what each decides."""

SOLVED = (implicit, ode)
"""Their first region is a solver, which has no part in the derivative."""

X, CONST = 1, 2
REMEDY = "integrate the parts on either side of the jump, whose limits may be traced"
SMALL = 1e-7


def _decisions(f: Program, moved: Flags) -> Callable[[Symbols], list[Symbol]]:
    """The vector and what is decided by x and a constant that moves, if anything is, on (c…, x)."""
    deciding = _deciding(f, [*[CONST if moves else 0 for moves in moved], X])
    atoms = [atom for e in deciding for atom in (e.operands if e.primitive in JUMPING else e.results)]
    program = returning(f, (f.outputs[0], *atoms))

    def run(operands: Symbols) -> list[Symbol]:
        vector, *rest = inline(program, operands)
        values = iter(rest)
        found = [JUMPING[e.primitive](*islice(values, 2)) if e.primitive in JUMPING else next(values) for e in deciding]
        numbers = [reshape_to(convert_to(value, F64), (value.aval.size,)) for value in found]
        return [vector, concatenate(*numbers, axis=0)] if numbers else []

    return run


def _deciding(program: Program, marks: list[int]) -> list[Equation]:
    """The equations that decide by x and a constant, of a program whose inputs depend on these; none is in regions."""
    depends, deciding = dict(zip(program.inputs, marks, strict=True)), list[Equation]()
    for equation in program.equations:
        given = [depends.get(atom, 0) if isinstance(atom, Var) else 0 for atom in equation.operands]
        deciding += [equation] if _decides(equation, given) else []
        mark = reduce(or_, given, 0)
        depends.update(dict.fromkeys(equation.results, mark))
        for region in _looked_into(equation):
            for inner in _deciding(region, [mark] * len(region.inputs)):
                raise UnsupportedFunctionError(
                    f"in the derivative of an integral, {inner.primitive} within {equation.primitive} decides by x and "
                    "by a value that is differentiated: whether the integrand jumps there is not known",
                    source=inner.source or current_builder().source,
                    remedy=REMEDY,
                )
    return deciding


def _looked_into(equation: Equation) -> Regions:
    """The regions whose decisions are the equation's; the rules of an integral see to its own."""
    return () if equation.primitive is integral else equation.regions[equation.primitive in SOLVED :]


def _decides(equation: Equation, marks: list[int]) -> bool:
    primitive = equation.primitive
    numbers = [mark for atom, mark in zip(equation.operands, marks, strict=True) if is_inexact(atom.aval.dtype)]
    jumps = (
        isinstance(primitive.derivative, NonDifferentiable)
        or primitive in JUMPING
        or not all(is_inexact(var.aval.dtype) for var in equation.results)
    )
    return jumps and reduce(or_, numbers, 0) == X | CONST and not (equation.regions or primitive is stop_gradient)


def _check_jumps(at: Integrand, places: list[float], options: dict[str, Any]) -> None:
    """Raise where the vector, the first of what `at` returns, jumps as its decisions, the second, change."""
    size = max((float(np.max(np.abs(at(x)[0]))) for x in places), default=0.0)
    tolerance = max(options["epsabs"], max(options["epsrel"], SMALL) * size)
    for place, high in pairwise(places):
        low = place
        while not _same(at(low), at(high)):
            before, low = _change(at, low, high)
            if not np.all(np.abs(at(before)[0] - at(low)[0]) <= tolerance):
                raise UnsupportedFunctionError(
                    f"the derivative of an integral was asked for, whose integrand, or its derivative, jumps at x = "
                    f"{low}, a place that moves with what is differentiated",
                    remedy=REMEDY,
                )


def _same(first: Sequence[Any], second: Sequence[Any]) -> bool:
    return np.array_equal(first[1], second[1], equal_nan=True)


def _change(at: Integrand, low: float, high: float) -> tuple[float, float]:
    """Two neighbouring numbers between which a decision changes."""
    start = at(low)
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if _same(start, at(middle)) else (low, middle)
    return low, high


# ---- samples ---------------------------------------------------------------------------------------------------------


def _samples() -> Iterable[Sample]:
    """Products and squares, over intervals in both directions."""
    row, limits = Aval(F64, (2,)), {"epsabs": 1e-12, "epsrel": 1e-12, "limit": 50}
    regions = (closed(lambda c, x: [add(scaled(x, c), scaled(x * x, c * c))], [row, NUMBER], "parabola").program,)
    c = np.array([0.5, -0.75])
    for a, b in ((0.25, 1.5), (1.0, -0.5)):
        yield Sample((c, np.array(a), np.array(b), np.empty(0)), limits, regions)


@primitive(
    _infer,
    Structured(_push, _pull),
    Library("scipy.integrate.quad"),
    _samples,
    axes=Opaque("each integral is divided as its integrand asks for"),
)
def integral(*operands: Any, regions: Regions, norm: str | None = None, deadline: float = NEVER, **options: Any) -> Any:
    """The integrals of the elements of the region's vector between two limits, and estimates of their errors."""
    # An integral for each element, all of them from one evaluation at each place.
    *consts, a, b, points = operands
    run, found = region_runner(regions[0]), dict[float, Any]()

    def at(x: float) -> Any:
        if x not in found:
            found[x] = run([*consts, np.float64(x)])
        return found[x]

    options["points"] = points if points.size else None
    if norm is None:
        quad, count = resolve_name("scipy.integrate.quad"), regions[0].out_avals[0].size
        pairs = [quad(lambda x, i=i: float(at(x)[0][i]), float(a), float(b), **options)[:2] for i in range(count)]
        values, errors = np.reshape(np.array(pairs, F64), (count, 2)).T
    else:
        values, error = resolve_name("scipy.integrate.quad_vec")(
            lambda x: at(x)[0], float(a), float(b), norm=norm, **options
        )
        errors = np.full(np.shape(values), error)
    for i in range(1, len(regions[0].outputs), 2):
        _check_jumps(lambda x, i=i: at(x)[i : i + 2], sorted(found), options)
    return values, errors
