"""Derivatives of V φ(w) Vᴴ, where w and V are the eigenvalues and eigenvectors of a Hermitian matrix A.

The derivative of V in it is one of eigenvectors, which does not exist where eigenvalues are equal; V φ(w) Vᴴ has one
all the same (Daleckii & Krein, 1965; Higham, "Functions of matrices", 2008, theorem 3.11):

    dY = V (Φ ∘ Vᴴ dA V) Vᴴ + V dφ Vᴴ,    Φ_ij = (φ(w_j) - φ(w_i)) / (w_j - w_i), or φ'(w_i) where w_i = w_j

where dφ is the change of φ apart from w. So a transform that differentiates a program is given one in which such a
value is a primitive with this rule; in its result the primitive is replaced by the user's equations again.

Note [Close eigenvalues]
    For two close eigenvalues the difference quotient suffers from cancellation. The mean slope,
    (φ'(w_i) + φ'(w_j)) / 2, differs from it by a third derivative times (w_j - w_i)² / 12. It is used where the two
    agree within the rounding of φ: there it is never worse, and it is accurate where the differences are small.

The other eigenvectors, used outside of such functions, have no derivative where their eigenvalues are equal
(`distinct_vectors`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from fnad.ir.axes import Opaque
from fnad.ir.builder import SymbolEnvironment, bind_equation, current_builder, inline, rebuilt, retraced, trace
from fnad.ir.primitive import DynamicSlice, Gather, IndexMap, Library, Primitive, Push
from fnad.ir.program import Atom, Equation, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.walk import between
from fnad.ops.arithmetic import add, div, mul, sub
from fnad.ops.comparison import bitwise_or, eq, le, select
from fnad.ops.conversion import convert_to
from fnad.ops.eigenvalues import differences, distinct_vectors, eigh, magnitude, repeated
from fnad.ops.matrix import adjoint, along_columns, along_rows, diagonal_matrix, hermitian_of, matmul, transposed
from fnad.ops.shape import constant, ones_like, reshape_to, slice_axis, zeros_like
from fnad.transforms.dce import dce
from fnad.transforms.interpret import interpret
from fnad.transforms.jvp import jvp
from fnad.transforms.spectral_forms import Factor, Forms, SpectralFunction, parameters


def with_spectral_functions(program: Program, derive: Callable[[Program], Program]) -> Program:
    """The derivative that `derive` makes of a program, with the rules of spectral functions."""
    recognized, written = _recognized(program)
    return _as_written(derive(_guarded(dce(recognized))), written)


# ---- spectral functions --------------------------------------------------------------------------------------------


def _recognized(program: Program) -> tuple[Program, dict[Primitive, Program]]:
    """The program with its spectral functions as primitives, and the user's equations of each."""
    forms = Forms(program)
    written: dict[Primitive, Program] = {}
    found = {function.value: function for function in forms.functions}

    def as_primitive(equation: Equation) -> Equation:
        if equation.results[0] not in found:
            return equation
        function = found[equation.results[0]]
        operands = (function.of.matrix, *parameters(forms, function))
        variables = tuple(atom for atom in operands if isinstance(atom, Var))
        whole = between(program, variables, [function.value])
        primitive = _primitive(function, whole, _factor(program, forms, function))
        written[primitive] = whole
        return rebuilt(equation, primitive=primitive, operands=variables, params={}, regions=())

    equations = tuple(map(as_primitive, program.equations))
    return Program(program.name, program.inputs, equations, program.outputs), written


def _factor(program: Program, forms: Forms, function: SpectralFunction) -> Program:
    """The function φ as a program of the eigenvalues and its other operands."""
    values, others = tuple(forms.values[function.of]), parameters(forms, function)

    def phi(w: Symbol, *given: Symbol) -> list[Symbol]:
        product = ones_like(w)
        for factor in function.factors:
            part = between(program, (*values, *others), [factor.value])
            (x,) = inline(part, [*[w] * len(values), *given])
            product = _times(product, _vector(x, factor, w), divides=factor.divides)
        return [product]

    return trace(phi, values[0].aval, *[var.aval for var in others], name="factor")


def _vector(x: Symbol, factor: Factor, w: Symbol) -> Symbol:
    """A factor without the axes along which it is constant."""
    for axis in range(w.ndim - 1, x.ndim):
        x = x if axis == factor.spectrum.axis else slice_axis(x, axis, 0, 1)
    return reshape_to(x, w.shape)


def _times(x: Symbol, y: Symbol, *, divides: bool) -> Symbol:
    dtype = np.result_type(x.dtype, y.dtype)
    return (div if divides else mul)(convert_to(x, dtype), convert_to(y, dtype))


def _primitive(function: SpectralFunction, whole: Program, factor: Program) -> Primitive:
    return Primitive(
        "spectral_function",
        lambda *_: whole.out_avals[0],
        lambda *arrays: interpret(whole, arrays)[0],
        Push(partial(_push, function, factor)),
        Library(),
        tuple,
        "A function of a Hermitian matrix through its eigenvalues.",
        axes=Opaque("it stands for equations of a program"),
    )


def _push(
    function: SpectralFunction, factor: Program, results: Any, primals: Any, tangents: Sequence[Symbol | None]
) -> list[Symbol | None]:
    """The tangent V (Φ ∘ Vᴴ dA V) Vᴴ + V dφ Vᴴ."""
    (a, *others), (da, *moved) = primals, tangents
    w, v = eigh(a, uplo=function.of.uplo)
    terms: list[Symbol] = []
    if da is not None:
        h, slope = inline(jvp(factor, (True, *[False] * len(others))), [w, *others, ones_like(w)])
        e = convert_to(matmul(adjoint(v), matmul(hermitian_of(da, is_lower=function.of.uplo == "L"), v)), h.dtype)
        terms.append(_between_bases(v, mul(_divided_differences(w, h, slope), e)))
    given = [t for t in moved if t is not None]
    if given:
        marks = (False, *[t is not None for t in moved])
        _, dh = inline(jvp(factor, marks), [w, *others, *given])
        terms.append(_between_bases(v, diagonal_matrix(dh)))
    tangent = reduce(add, terms)
    return [transposed(tangent) if function.transposed else tangent]


def _between_bases(v: Symbol, x: Symbol) -> Symbol:
    """The product V x Vᴴ."""
    v = convert_to(v, x.dtype)
    return matmul(v, matmul(x, adjoint(v)))


def _divided_differences(w: Symbol, h: Symbol, slope: Symbol) -> Symbol:
    """The matrix Φ: see Note [Close eigenvalues]."""
    aval = h.aval.with_shape((*h.shape, h.shape[-1]))
    step, moved = differences(w), sub(along_columns(h, aval), along_rows(h, aval))
    mean = mul(add(along_columns(slope, aval), along_rows(slope, aval)), constant(0.5, aval.dtype, aval.shape))
    size = magnitude(h)
    rounding = mul(
        add(along_columns(size, step), along_rows(size, step)),
        constant(4 * np.finfo(size.dtype).eps, size.dtype, step.shape),
    )
    step_ = convert_to(step, aval.dtype)
    agrees = le(magnitude(sub(moved, mul(step_, mean))), rounding)
    is_equal = eq(step, zeros_like(step))
    quotient = div(moved, select(is_equal, ones_like(step_), step_))
    return select(bitwise_or(agrees, is_equal), mean, quotient)


def _as_written(program: Program, written: Mapping[Primitive, Program]) -> Program:
    """The program with spectral functions replaced by the user's equations, and without guards."""

    def of(equation: Equation, operands: list[Symbol]) -> list[Symbol]:
        if equation.primitive is distinct_vectors:
            return operands[:1]
        own = written.get(equation.primitive)
        return bind_equation(equation, operands) if own is None else inline(own, operands)

    return retraced(program, of)


# ---- vectors that are used otherwise -------------------------------------------------------------------------------


class Marked(NamedTuple):
    """Eigenvectors, or a view of them, and the places of those with a repeated eigenvalue."""

    vectors: Symbol
    repeated: Symbol


def _guarded(program: Program) -> Program:
    """The program with eigenvectors that have no derivative where their eigenvalues are equal."""

    def walk(*args: Symbol) -> list[Symbol]:
        builder = current_builder()
        env, marked = SymbolEnvironment(program.inputs, args), dict[Atom, Marked]()
        for equation in program.equations:
            builder.source = equation.source
            results = bind_equation(equation, _operands(equation, env, marked))
            env.write(equation.results, results)
            if equation.primitive is eigh and results[0].aval.size:
                w, v = results
                marked[equation.results[1]] = Marked(v, repeated(w, v))
            elif _is_view(equation, marked):
                read = [marked[equation.operands[0]].repeated, *env.read(equation.operands[1:])]
                marked[equation.results[0]] = Marked(results[0], bind_equation(equation, read)[0])
        return [_used(atom, env, marked) for atom in program.outputs]

    return trace(walk, *program.in_avals, name=program.name)


def _is_view(equation: Equation, marked: Mapping[Atom, Marked]) -> bool:
    """True if elements of vectors are read, also at places that are found when the program runs."""
    return isinstance(equation.primitive.lower, (IndexMap, Gather, DynamicSlice)) and equation.operands[0] in marked


def _operands(equation: Equation, env: SymbolEnvironment, marked: Mapping[Atom, Marked]) -> list[Symbol]:
    if _is_view(equation, marked):
        return [marked[equation.operands[0]].vectors, *env.read(equation.operands[1:])]
    return [_used(atom, env, marked) for atom in equation.operands]


def _used(atom: Atom, env: SymbolEnvironment, marked: Mapping[Atom, Marked]) -> Symbol:
    """A value where it is used other than by a view."""
    found = marked.get(atom)
    return env.read([atom])[0] if found is None else distinct_vectors(found.vectors, found.repeated)
