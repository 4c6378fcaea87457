"""The Jacobian of a small program of numbers, column by column, so that zeros and ones of the directions vanish.

Each column is a forward sweep along one element of the arguments. A tangent that follows from the direction by linear
equations alone is an array of known numbers. It vanishes where it is 0, and otherwise it is a constant, which rules
simplify. A stack of all directions would multiply by these numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from fnad.ir.builder import SymbolEnvironment, bind_equation, current_builder, trace
from fnad.ir.primitive import Linear, Structured, Unknown
from fnad.ir.program import Atom, Equation, Program, Var
from fnad.ir.size import is_size
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, is_inexact
from fnad.ops.shape import concatenate, constant, reshape, reshape_to, zeros_like
from fnad.transforms.joint import differentiable_outputs
from fnad.transforms.jvp import push
from fnad.transforms.rewrite import reduced

MOST_COLUMNS = 16
MOST_PUSHES = 1024
"""The most columns, and the most equations of all columns."""

ALWAYS = 4
"""The columns for which the tangents may be dense; more are worth it if half of the tangents vanish."""

MOST_KNOWN = 64
"""The most elements of a known tangent."""

Tangent: TypeAlias = "Symbol | np.ndarray[Any, Any]"
"""A tangent that is not 0; an array is known."""

Column: TypeAlias = dict[Atom, Tangent]
"""The tangents of a column that are not 0."""


def columns(program: Program, wrt: Sequence[bool], outputs: int | None = None) -> Program | None:
    """The program (x…) -> (y…, blocks…), or None if a stack of directions is better.

    A block is the derivative of an inexact output in a marked input, whose axes are the last ones. The blocks of an
    output follow each other.
    """
    program = reduced(program)
    marked = [var for var, is_marked in zip(program.inputs, wrt, strict=True) if is_marked]
    shapes = [extent for var in marked for extent in var.aval.shape]
    count = 0 if any(map(is_size, shapes)) else sum(var.aval.size for var in marked)
    if not 0 < count <= MOST_COLUMNS or count * len(program.equations) > MOST_PUSHES:
        return None
    if not all(map(_is_of_numbers, program.equations)):
        return None
    found: dict[Var, list[Column]] = {
        var: [{var: one} for one in np.eye(var.aval.size, dtype=var.aval.dtype)] for var in marked
    }

    def swept(*args: Symbol) -> list[Symbol]:
        env = SymbolEnvironment(program.inputs, args)
        for equation in program.equations:
            primals = env.read(equation.operands)
            env.write(equation.results, bind_equation(equation, primals))
            for column in (column for columns in found.values() for column in columns):
                tangents = pushed(equation, primals, [column.get(atom) for atom in equation.operands])
                pairs = zip(equation.results, tangents, strict=True)
                column.update((var, tangent) for var, tangent in pairs if tangent is not None)
        made: dict[Atom, Equation] = {var: equation for equation in program.equations for var in equation.results}
        ends = differentiable_outputs(program, outputs)
        blocks = [_block(columns, atom, var, made) for atom in ends for var, columns in found.items()]
        return [*env.read(program.outputs), *blocks]

    whole = trace(swept, *program.in_avals, name=program.name)
    computed = sum(isinstance(x, Symbol) for columns in found.values() for column in columns for x in column.values())
    return whole if count <= ALWAYS or 2 * computed <= count * len(program.equations) else None


def _is_of_numbers(equation: Equation) -> bool:
    """True for an equation of numbers, or a linear map of small arrays."""
    derivative = equation.primitive.derivative
    if isinstance(derivative, (Structured, Unknown)) or equation.regions:
        return False
    most = MOST_KNOWN if isinstance(derivative, Linear) else 1
    return all(not any(map(is_size, v.aval.shape)) and v.aval.size <= most for v in equation.results)


def pushed(equation: Equation, primals: Sequence[Symbol], given: Sequence[Tangent | None]) -> Sequence[Tangent | None]:
    """The tangents of the results of an equation, from those of its operands; None for zeros."""
    if all(tangent is None for tangent in given):
        return [None] * len(equation.results)
    known = _known(equation, given)
    if known is not None:
        return [known if known.any() else None]
    builder = current_builder()
    builder.source = equation.source
    symbols = [None if t is None else built(t, x.aval) for t, x in zip(given, primals, strict=True)]
    return push(equation, primals, symbols)[1]


def _known(equation: Equation, given: Sequence[Any]) -> np.ndarray[Any, Any] | None:
    """The tangent of the result of a linear equation whose operands have known tangents; None for others."""
    derivative = equation.primitive.derivative
    is_linear = isinstance(derivative, Linear) and derivative.wrt is None and is_inexact(equation.results[0].aval.dtype)
    if not is_linear or any(isinstance(tangent, Symbol) for tangent in given) or len(equation.results) > 1:
        return None
    avals = [operand.aval for operand in equation.operands]
    values = [
        np.zeros(a.shape, a.dtype) if t is None else t.reshape(a.shape) for t, a in zip(given, avals, strict=True)
    ]
    return np.asarray(equation.primitive.evaluate(*values, **equation.params))


def built(tangent: Tangent, aval: Aval) -> Symbol:
    """The tangent as a symbol: known numbers become runs of constants."""
    if isinstance(tangent, Symbol):
        return tangent
    runs = [(value, len(list(run))) for value, run in groupby(tangent.ravel().tolist())]
    if len(runs) == 1:
        return constant(runs[0][0], aval.dtype, aval.shape)
    return reshape_to(concatenate(*[constant(x, aval.dtype, (n,)) for x, n in runs], axis=0), aval.shape)


def _block(columns: Sequence[Column], atom: Atom, var: Var, made: Mapping[Atom, Equation]) -> Symbol:
    """The tangents of an output along the elements of an input, whose axes come last, from the parts it is made of."""
    aval, equation = atom.aval, made.get(atom)
    shape = (*aval.shape, *var.aval.shape)
    if equation is not None and equation.primitive is concatenate:
        parts = [_block(columns, operand, var, made) for operand in equation.operands]
        return concatenate(*parts, **equation.params)
    if equation is not None and equation.primitive is reshape:
        return reshape_to(_block(columns, equation.operands[0], var, made), shape)
    if not var.aval.size:
        return zeros_like(Aval(aval.dtype, shape))
    tangents = [column.get(atom) for column in columns]
    parts = [zeros_like(aval) if t is None else built(t, aval) for t in tangents]
    return reshape_to(concatenate(*[reshape_to(x, (*aval.shape, 1)) for x in parts], axis=aval.ndim), shape)
