"""`implicit`: a value found by a solver and defined by an equation, g(c, x) = 0.

Its derivative is that of the equation, whatever the solver did (Blondel et al., "Efficient and Modular Implicit
Differentiation", 2022, eqs. 2 and 3):

    forward   ∂g/∂x dx = -∂g/∂c dc            reverse   (∂g/∂x)ᵀ λ = x̄,   c̄ = -(∂g/∂c)ᵀ λ

Operands are constants c…, which solver and equation share, and what the solver starts from, which has no part in the
derivative. The first region is the solver, (c…, start…) -> (x…, more…); the second g, (c…, x…) -> values of the avals
of x. What the solver returns beside x has no derivative. The rules are programs on c and on x as the equation's own
result, so they hold at any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from fnad.control.closures import Function, closed, over
from fnad.control.elimination import eliminate
from fnad.control.krylov import gmres
from fnad.control.partition import resumed
from fnad.control.region_rules import built, check_avals, inlined_primitive, instantiated, spread, taking
from fnad.control.signatures import Cotangents, Flags, Pulled, Pushed, Regions, Symbols, Tangents
from fnad.control.vector import Raveling
from fnad.ir.builder import inline
from fnad.ir.primitive import Sample
from fnad.ir.program import Equation, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, Aval
from fnad.ops.arithmetic import neg, strong_mul, sub
from fnad.ops.contraction import dot_general
from fnad.ops.linalg import solve
from fnad.ops.matrix import identity_like, transposed
from fnad.ops.shape import iota, ones_like, reshape_to, zeros_like
from fnad.transforms.differentiation import joint, jvp
from fnad.transforms.joint import Cotangent
from fnad.transforms.pipeline import simplify

LinearMap = Callable[[Symbols], Symbols]

SMALL = 16
"""Up to so many unknowns a system with a matrix is solved by `fnad.control.elimination`."""

DENSE = 256
"""Up to so many unknowns a linear system is solved by its matrix, beyond by `fnad.control.krylov`."""


# ---- derivatives -----------------------------------------------------------------------------------------------------


def _solved(equation: Equation, primals: Symbols) -> tuple[list[Symbol], list[Symbol], list[Symbol]]:
    """The results, those of them that are unknowns, and the point (c…, x…) where the equation holds."""
    results = list(implicit(*primals, **equation.params, regions=equation.regions))
    unknowns = results[: len(equation.regions[1].outputs)]
    return results, unknowns, [*primals[: equation.params["consts"]], *unknowns]


def _push(equation: Equation, primals: Symbols, tangents: Tangents) -> Pushed:
    residual, consts = equation.regions[1], equation.params["consts"]
    results, unknowns, point = _solved(equation, primals)
    given = tangents[:consts]
    if all(tangent is None for tangent in given):
        return results, [None] * len(results)
    moved = jvp(residual, [*[tangent is not None for tangent in given], *[False] * len(unknowns)])
    right = inline(moved, [*point, *built(given)])[len(unknowns) :]
    dx = solve_linear(pushing(residual, point, consts), list(map(neg, right)))
    return results, [*dx, *[None] * (len(results) - len(dx))]


def _pull(equation: Equation, primals: Symbols, needed: Flags) -> Pulled:
    residual, consts = equation.regions[1], equation.params["consts"]
    results, unknowns, point = _solved(equation, primals)
    count = len(unknowns)
    marked = [*needed[:consts], *[False] * count]

    def pullback(cts: Cotangents) -> list[Cotangent]:
        if all(ct is None for ct in cts[:count]) or not any(marked):
            return [None] * len(primals)
        adjoint = solve_linear(pulling(residual, point, consts), instantiated(cts[:count], unknowns))
        found = inline(joint(residual, marked), [*point, *map(neg, adjoint)])[count:]
        return [*spread(found, marked[:consts]), *[None] * (len(primals) - consts)]

    return results, pullback


# ---- linear systems --------------------------------------------------------------------------------------------------


def pushing(residual: Program, point: Symbols, consts: int) -> LinearMap:
    """The map dx -> ∂g/∂x dx at a point (c…, x…); what does not depend on dx is computed here, once."""
    return _linearized(jvp(residual, _unknowns(residual, consts)), residual, point)


def pulling(residual: Program, point: Symbols, consts: int) -> LinearMap:
    """The transpose of that map."""
    return _linearized(joint(residual, _unknowns(residual, consts)), residual, point)


def _unknowns(residual: Program, consts: int) -> list[bool]:
    return [i >= consts for i in range(len(residual.inputs))]


def _linearized(program: Program, residual: Program, point: Symbols) -> LinearMap:
    linear = Program(program.name, program.inputs, program.equations, program.outputs[len(residual.outputs) :])
    parts = resumed(simplify(linear), len(residual.inputs), 0)
    saved = [*[point[i] for i in parts.inputs], *inline(parts.forward, point)]
    return lambda direction: inline(parts.backward, [*saved, *direction])


def solve_linear(matrix: LinearMap, right: Symbols) -> list[Symbol]:
    """The solution u of matrix(u) = right, values of the same avals.

    One unknown is a quotient; some are found with the matrix, whose columns are the map at the unit vectors; for many
    the map is run in a Krylov method.
    """
    flat = Raveling.of([value.aval for value in right])
    size = flat.aval.size
    if size > DENSE:
        return flat.unravel(_by_krylov(lambda u: flat.ravel(matrix(flat.unravel(u))), flat.ravel(right)))
    if size == 1:
        slope = flat.ravel(matrix(flat.unravel(ones_like(flat.aval))))
        return flat.unravel(strong_mul(flat.ravel(right), 1 / slope))
    units = identity_like(Aval(flat.aval.dtype, (size, size)))
    (rows,) = over(lambda unit: [flat.ravel(matrix(flat.unravel(unit)))], [], [units])
    return flat.unravel(_by_matrix(transposed(rows), flat.ravel(right)))


def _by_matrix(matrix: Symbol, right: Symbol) -> Symbol:
    """The solution with a matrix: by loops that compile with what is around them, for large ones by LAPACK."""
    if right.shape[0] > SMALL:
        return reshape_to(solve(matrix, reshape_to(right, (*right.shape, 1))), right.shape)

    def residual(u: Symbol) -> list[Symbol]:
        return [sub(dot_general(matrix, u, contract=((1,), (0,)), batch=((), ())), right)]

    return implicitly(lambda _: [eliminate(matrix, right)], residual, [zeros_like(right)], [right.aval])[0]


def _by_krylov(matrix: Callable[[Symbol], Symbol], right: Symbol) -> Symbol:
    """The solution of a linear equation, itself implicit: its derivative is a system of the same map."""
    found = implicitly(
        lambda start: [gmres(matrix, right, start)], lambda u: [matrix(u) - right], [zeros_like(right)], [right.aval]
    )
    return found[0]


# ---- making one ------------------------------------------------------------------------------------------------------


def implicitly(solver: Function, residual: Function, start: Symbols, unknowns: Sequence[Aval]) -> list[Symbol]:
    """The result of `solver(*start)`, (x…, more…), with residual(*x) = 0; both may use outer values."""
    solving = closed(solver, [value.aval for value in start], "solver")
    equation = closed(residual, unknowns, "residual")
    captured, own = (*solving.captured, *equation.captured), len(solving.captured)
    consts, behind = [value.aval for value in captured], len(captured)
    regions = (
        taking(
            solving.program, [*consts, *[x.aval for x in start]], [*range(own), *range(behind, behind + len(start))]
        ),
        taking(equation.program, [*consts, *unknowns], range(own, behind + len(unknowns))),
    )
    return list(implicit(*captured, *start, consts=behind, regions=regions))


# ---- samples ---------------------------------------------------------------------------------------------------------


def _samples() -> Iterable[Sample]:
    """Square roots by Heron's iteration, from near and from where they are already."""
    row = Aval(F64, (2,))

    def heron(a: Symbol, x: Symbol) -> list[Symbol]:
        return over(lambda x, step: [(x + a / x) / 2], [x], [iota(dtype=I64, shape=(8,), axis=0)])

    regions = closed(heron, [row, row], "heron").program, closed(lambda a, x: [x * x - a], [row, row], "square").program
    a = np.array([4.0, 2.25])
    for start in (np.sqrt(a), a):
        yield Sample((a, start), {"consts": 1}, regions)


@inlined_primitive(_push, _pull, _samples)
def implicit(*avals: Aval, consts: int, regions: Regions) -> tuple[Aval, ...]:
    """The results of the first region, with the derivative of a solution of the second."""
    solver, residual = regions
    unknowns = residual.out_avals
    check_avals("the solver takes", solver.in_avals, avals)
    check_avals("the solver returns", solver.out_avals[: len(unknowns)], unknowns)
    check_avals("the equation takes", residual.in_avals, (*avals[:consts], *unknowns))
    return solver.out_avals
