"""One factorization of a matrix for all that needs it.

Systems of linear equations with a matrix or its transpose, its inverse and its determinant take one LU factorization.
Singular values and eigenvalues alone are those of a decomposition with vectors, where there is one. A QR factorization
of which only R is used does not compute Q. Positive definite systems with one matrix share its Cholesky factor.
The pullbacks of `solve` and `slogdet` solve with the transpose, and a function may solve twice with one matrix. It is
done before a program is lowered: the derivatives are those of `solve` and `slogdet`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from fnad.ir.builder import Builder, with_regions
from fnad.ir.program import Atom, Equation, Literal, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval, is_complex
from fnad.ops.arithmetic import div, neg
from fnad.ops.comparison import eq, ne, select
from fnad.ops.conversion import convert_to
from fnad.ops.determinant import slogdet
from fnad.ops.eigenvalues import eigh, eigvalsh, magnitude, svd, svdvals
from fnad.ops.elementary import log
from fnad.ops.least_squares import qr, qr_r
from fnad.ops.linalg import inv, lu_by_columns, solve, solve_by_lu
from fnad.ops.matrix import are_short, diagonal, identity_like
from fnad.ops.piecewise import sign
from fnad.ops.positive import by_cholesky, solve_positive
from fnad.ops.reduction import reduce_prod
from fnad.ops.shape import iota, ones_like, reduce_sum, reshape_to, transpose, zeros_like

System = tuple[Atom, bool]
"""The matrix of a system, and True if the system has the transposed matrix."""

Part = tuple[Equation, int | None]
"""A decomposition, and the number of one of its results; None of an equation without the other results."""

WITH_VECTORS = {svdvals: (svd, 1), eigvalsh: (eigh, 0)}
"""The decomposition that has the result of a function, and the number of that result."""


def factored_once(program: Program) -> Program:
    """The program, regions included, with one factorization of each matrix that is in several systems."""
    program = with_regions(program, factored_once)
    systems = _systems(program)
    counts = Counter(matrix for matrix, _ in systems.values())
    shared = {equation: system for equation, system in systems.items() if counts[system[0]] > 1}
    parts = _parts(program) | _without_bases(program)
    has_others = any(equation.primitive is solve_positive for equation in program.equations)
    return _with_factors(program, shared, parts) if shared or parts or has_others else program


def _systems(program: Program) -> dict[Equation, System]:
    """The matrix of each `solve`, `inv` and `slogdet` by LAPACK."""
    transposes = {e.results[0]: e for e in program.equations if e.primitive is transpose}
    found = dict[Equation, System]()
    for equation in program.equations:
        if equation.primitive in (inv, solve, slogdet) and _is_long(*(atom.aval for atom in equation.operands)):
            found[equation] = _untransposed(equation.operands[0], transposes)
    return found


def _is_long(matrix: Aval, *others: Aval) -> bool:
    """True if LAPACK factorizes the matrix of a system, which has elements."""
    if not all(aval.size for aval in (matrix, *others)):
        return False
    *outer, n = matrix.shape[:-1]
    return is_complex(matrix.dtype) or not are_short(prod(outer), n)


def _parts(program: Program) -> dict[Equation, Part]:
    """The decomposition of the same matrix, or triangle of it, for values that are computed without vectors."""
    whole = {(e.primitive, e.operands[0], e.params.get("uplo")): e for e in program.equations if e.operands}
    found = dict[Equation, Part]()
    for equation in program.equations:
        if equation.primitive in WITH_VECTORS:
            primitive, number = WITH_VECTORS[equation.primitive]
            decomposition = whole.get((primitive, equation.operands[0], equation.params.get("uplo")))
            if decomposition is not None:
                found[equation] = decomposition, number
    return found


def _without_bases(program: Program) -> dict[Equation, Part]:
    """The QR factorizations whose Q is not used, although it has elements."""
    used = {atom for equation in program.equations for atom in equation.operands} | {*program.outputs}
    return {
        equation: (equation, None)
        for equation in program.equations
        if equation.primitive is qr and not equation.params["complete"] and equation.results[0] not in used
    }


def _untransposed(matrix: Atom, transposes: Mapping[Var, Equation]) -> System:
    rank = len(matrix.aval.shape)
    last = (*range(rank - 2), rank - 1, rank - 2)
    if not isinstance(matrix, Var) or (equation := transposes.get(matrix)) is None:
        return matrix, False
    if equation.params["permutation"] != last:
        return matrix, False
    inner, is_transposed = _untransposed(equation.operands[0], transposes)
    return inner, not is_transposed


def _with_factors(program: Program, systems: Mapping[Equation, System], parts: Mapping[Equation, Part]) -> Program:
    builder = Builder()
    with builder.active():
        values: dict[Atom, Symbol] = {var: builder.input(var.aval) for var in program.inputs}

        def value(atom: Atom) -> Symbol:
            return builder.lift(atom.value) if isinstance(atom, Literal) else values[atom]

        for equation in program.equations:
            builder.source = equation.source
            operands = [value(atom) for atom in equation.operands]
            if equation in systems:
                matrix, is_transposed = systems[equation]
                factors = lu_by_columns(value(matrix))
                results = _from_factors(equation, factors, operands, is_transposed)
            elif equation in parts:
                whole, number = parts[equation]
                if number is None:
                    values[equation.results[1]] = qr_r(*operands)
                    continue
                results = builder.bind(whole.primitive, operands, whole.params)[number]
            elif equation.primitive is solve_positive:
                results = by_cholesky(*operands, **equation.params)
            else:
                results = builder.bind(equation.primitive, operands, equation.params, equation.regions)
            values.update(zip(equation.results, results if isinstance(results, tuple) else (results,), strict=True))
        return builder.finish(program.name, [value(atom) for atom in program.outputs])


def _from_factors(equation: Equation, factors: Sequence[Symbol], operands: Sequence[Symbol], transposed: bool) -> Any:
    """The results of an equation from the factors of its matrix, or of the transposed matrix if `transposed`."""
    if equation.primitive is slogdet:
        return sign_and_log(*factors)
    right = identity_like(factors[0]) if equation.primitive is inv else operands[1]
    return solve_by_lu(*factors, right, transposed=transposed)


def sign_and_log(packed: Symbol, pivots: Symbol) -> tuple[Symbol, Symbol]:
    """The sign and the logarithm of the size of the determinant of a factored matrix."""
    last = packed.ndim - 2
    pivot = diagonal(packed)
    row = iota(dtype=I64, shape=pivot.shape, axis=last)
    exchanged, size = ne(reshape_to(pivots, pivot.shape), row), magnitude(pivot)
    phase = _phase(pivot, size) if is_complex(pivot.dtype) else sign(pivot)
    signs = select(exchanged, neg(phase), phase)
    return reduce_prod(signs, axes=(last,)), reduce_sum(log(size), axes=(last,))


def _phase(z: Symbol, size: Symbol) -> Symbol:
    """Complex numbers by their sizes, 0 for 0."""
    return div(z, convert_to(select(eq(size, zeros_like(size)), ones_like(size), size), z.dtype))
