"""Forward mode: the program with each value followed by its tangent.

For a program y = f(x) it is (x…, dx…) -> (y…, dy…); there is one dx for each input marked in `wrt` and one dy for each
output of inexact dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from fnad.ir.builder import SymbolEnvironment, bind_equation, current_builder, inline, trace
from fnad.ir.primitive import Bilinear, Linear, NonDifferentiable, Partials, Pull, Push, Structured, Unknown
from fnad.ir.program import Equation, Literal, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import is_inexact
from fnad.ops.arithmetic import add, mul, neg, strong_mul, sub
from fnad.ops.shape import zeros_like
from fnad.transforms.joint import differentiable_outputs, joint
from fnad.transforms.rewrite import is_square, reduced

Tangent: TypeAlias = Symbol | None
"""A symbol, or a zero that is never built."""


def jvp(program: Program, wrt: Sequence[bool], outputs: int | None = None) -> Program:
    """The program (x…, dx…) -> (y…, dy…), with a dy for each inexact output, or of the first `outputs`."""
    program = reduced(program)
    arity = len(program.inputs)
    marked = [var for var, w in zip(program.inputs, wrt, strict=True) if w]

    def push_forward(*args: Symbol) -> list[Symbol]:
        builder = current_builder()
        env = SymbolEnvironment(program.inputs, args[:arity])
        ends = differentiable_outputs(program, outputs)
        tangents: dict[Var, Tangent] = dict(zip(marked, args[arity:], strict=True))
        for equation in program.equations:
            builder.source = equation.source
            given = [tangents.get(atom) if isinstance(atom, Var) else None for atom in equation.operands]
            results, pushed = push(equation, env.read(equation.operands), given)
            env.write(equation.results, results)
            tangents.update(zip(equation.results, pushed, strict=True))

        found = [tangents.get(atom) if isinstance(atom, Var) else None for atom in ends]
        return [
            *env.read(program.outputs),
            *[zeros_like(atom.aval) if t is None else t for atom, t in zip(ends, found, strict=True)],
        ]

    return trace(push_forward, *program.in_avals, *[var.aval for var in marked], name=program.name)


# ---- the rule of one equation --------------------------------------------------------------------------------------


def push(
    equation: Equation, primals: Sequence[Symbol], tangents: Sequence[Tangent]
) -> tuple[list[Symbol], list[Tangent]]:
    """The equation's results and their tangents."""
    derivative = equation.primitive.derivative
    if isinstance(derivative, Structured) and any(tangent is not None for tangent in tangents):
        return derivative.push(equation, primals, tangents)
    results = bind_equation(equation, primals)
    if all(tangent is None for tangent in tangents):
        return results, [None] * len(results)
    current_builder().source = equation.source and equation.source.differentiated("forward mode")
    return results, _tangents(equation, results, primals, tangents)


def add_tangents(terms: Sequence[Tangent]) -> Tangent:
    """The sum of the nonzero terms."""
    total: Tangent = None
    for term in terms:
        total = term if total is None else total if term is None else add(total, term)
    return total


def _tangents(
    equation: Equation, results: list[Symbol], primals: Sequence[Symbol], tangents: Sequence[Tangent]
) -> list[Tangent]:
    match equation.primitive.derivative:
        case NonDifferentiable():
            return [None] * len(results)
        case Partials(functions, finite):
            pairs = [(f, t) for f, t in zip(functions, tangents, strict=True) if f is not None and t is not None]
            terms: list[Tangent] = []
            for f, t in pairs:
                # A slope of 0 stays 0, as in reverse mode.
                times = mul if finite or isinstance(t.atom, Literal) else strong_mul
                terms.append(times(f(results[0], *primals, **equation.params), t))
            return [add_tangents(terms)]
        case Linear(_, wrt):
            return _push_linear(equation, primals, tangents, wrt)
        case Bilinear():
            return [_push_bilinear(equation, primals, tangents)]
        case Structured():
            raise AssertionError(f"{equation.primitive.name} pushes forward by a rule of its own")
        case Push(rule):
            return list(rule(results, primals, tangents, **equation.params))
        case Pull():
            return _push_from_pull(equation, results, primals, tangents)
        case Unknown(error):
            raise error(**equation.params).at(equation.source)


def _push_bilinear(equation: Equation, primals: Sequence[Symbol], tangents: Sequence[Tangent]) -> Tangent:
    (x, y), (dx, dy) = primals, tangents
    if is_square(equation):
        dx, dy = add_tangents(tangents), None
    left = bind_equation(equation, (dx, y))[0] if dx is not None else None
    right = bind_equation(equation, (x, dy))[0] if dy is not None else None
    return add_tangents((left, right))


def _push_linear(
    equation: Equation, primals: Sequence[Symbol], tangents: Sequence[Tangent], wrt: tuple[int, ...] | None
) -> list[Tangent]:
    """Apply the map to the tangents, zeros included, since a linear map is its own derivative."""
    linear_in = range(len(primals)) if wrt is None else wrt
    if all(tangents[i] is None for i in linear_in) or not is_inexact(equation.results[0].aval.dtype):
        return [None] * len(equation.results)
    if equation.primitive in (add, sub) and any(tangent is None for tangent in tangents):
        x, y = tangents
        return [neg(y) if y is not None and equation.primitive is sub else add_tangents((x, y))]
    operands = [
        primal if i not in linear_in else zeros_like(primal) if tangent is None else tangent
        for i, (primal, tangent) in enumerate(zip(primals, tangents, strict=True))
    ]
    return [*bind_equation(equation, operands)]


def _push_from_pull(
    equation: Equation, results: list[Symbol], primals: Sequence[Symbol], tangents: Sequence[Tangent]
) -> list[Tangent]:
    """Transpose the pull, which is linear in the cotangents: its own pullback takes tangents to tangents."""
    marked = [tangent is not None for tangent in tangents]
    count = len(results)

    def pullback(*args: Symbol) -> list[Symbol]:
        ys, xs, cts = args[:count], args[count : count + len(primals)], args[count + len(primals) :]
        assert isinstance(equation.primitive.derivative, Pull)
        pulled = equation.primitive.derivative.rule(ys, xs, cts, **equation.params)
        return [zeros_like(x) if p is None else p for x, p, m in zip(xs, pulled, marked, strict=True) if m]

    avals = [symbol.aval for symbol in (*results, *primals, *results)]
    wrt = (False,) * (count + len(primals)) + (True,) * count
    transposed = joint(trace(pullback, *avals, name=equation.primitive.name), wrt)
    given = [tangent for tangent in tangents if tangent is not None]
    outputs = inline(transposed, [*results, *primals, *map(zeros_like, results), *given])
    return list(outputs[len(given) :])
