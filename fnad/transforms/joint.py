"""Reverse mode: one program that runs forward, then sweeps back.

For a program y = f(x) the joint program is (x…, ct…) -> (y…, x̄…): all forward equations, then the pullback of each, in
reverse order. Cotangents of a value that is used several times are added up; an equation that no cotangent reaches is
skipped. What the backward part does not need is removed by dead-code elimination, so residuals are not chosen here.

The sweep over a program that is linear in its inputs is its transpose. So a primitive that states only a forward rule
gets its pullback here too, as the sweep over that rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from fnad.ir.builder import SymbolEnvironment, bind_equation, current_builder, inline, trace
from fnad.ir.content import params_key
from fnad.ir.primitive import Bilinear, Linear, NonDifferentiable, Partials, Primitive, Pull, Push, Structured, Unknown
from fnad.ir.program import Atom, Equation, Params, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, is_inexact
from fnad.ops.arithmetic import add, mul, strong_mul
from fnad.ops.shape import zeros_like
from fnad.store import STORE
from fnad.transforms.activity import active_operands, active_vars
from fnad.transforms.dce import dce
from fnad.transforms.rewrite import is_square, reduced
from fnad.transforms.sums import Sums

Cotangent: TypeAlias = Symbol | None
"""A symbol, or a zero that is never built."""

Pullback: TypeAlias = Callable[[Sequence[Cotangent]], Sequence[Cotangent]]
"""From cotangents of the results to those of the operands; it runs inside the compiler and never reaches the IR."""


def joint(program: Program, wrt: Sequence[bool], outputs: int | None = None) -> Program:
    """The program (x…, ct…) -> (y…, x̄…).

    There is one ct for each output of inexact dtype, of its aval, and one x̄ for each input marked in `wrt`, of its
    aval, in order. If `outputs` is given, only that many of the first outputs take a ct.
    """
    arity = len(program.inputs)

    def forward_then_reverse(*args: Symbol) -> list[Symbol]:
        return sweep(program, wrt, args[:arity], args[arity:], outputs)

    return trace(forward_then_reverse, *program.in_avals, *cotangent_avals(program, outputs), name=program.name)


def sweep(
    program: Program, wrt: Sequence[bool], args: Sequence[Symbol], cts: Sequence[Symbol], outputs: int | None = None
) -> list[Symbol]:
    """Add the joint program, of these operands, to the one under construction; return y… and x̄…."""
    program = reduced(program)
    active = active_vars(program, wrt)
    builder = current_builder()
    env = SymbolEnvironment(program.inputs, args)
    pullbacks: list[Pullback] = []
    for equation in program.equations:
        builder.source = equation.source
        # The forward equations are built by the rules too, since a loop or a branch also returns its residuals.
        results, pullback = pull(equation, env.read(equation.operands), active_operands(equation, active))
        env.write(equation.results, results)
        pullbacks.append(pullback)

    cotangents = CotangentSums()
    cotangents.add(differentiable_outputs(program, outputs), cts)
    for equation, pullback in zip(reversed(program.equations), reversed(pullbacks), strict=True):
        # An equation off every path from `wrt` to a ct has no cotangents, so its pullback would only build zeros.
        if any(active_operands(equation, active)) and cotangents.reaches(equation.results):
            builder.source = equation.source and equation.source.differentiated("reverse mode")
            cotangents.add(equation.operands, pullback(cotangents.take(equation.results)))

    marked = [var for var, w in zip(program.inputs, wrt, strict=True) if w]
    taken = zip(marked, cotangents.take(marked), strict=True)
    return [*env.read(program.outputs), *[zeros_like(var.aval) if ct is None else ct for var, ct in taken]]


def differentiable_outputs(program: Program, count: int | None = None) -> list[Atom]:
    """The outputs that take a cotangent, among the first `count` or all."""
    return [atom for atom in program.outputs[:count] if is_inexact(atom.aval.dtype)]


def cotangent_avals(program: Program, count: int | None = None) -> list[Aval]:
    """The avals of the joint program's cotangent inputs."""
    return [atom.aval for atom in differentiable_outputs(program, count)]


class CotangentSums:
    """The sums of the cotangents so far, by variable."""

    def __init__(self) -> None:
        self._sums: dict[Var, Symbol] = {}
        self._adder = Sums()

    def add(self, atoms: Sequence[Atom], cts: Sequence[Cotangent]) -> None:
        for atom, ct in zip(atoms, cts, strict=True):
            if ct is not None and isinstance(atom, Var):
                self._sums[atom] = self._adder.add(self._sums[atom], ct) if atom in self._sums else ct

    def reaches(self, variables: Sequence[Var]) -> bool:
        return any(var in self._sums for var in variables)

    def take(self, variables: Sequence[Var]) -> list[Cotangent]:
        return [self._sums.get(var) for var in variables]


# ---- the rule of one equation --------------------------------------------------------------------------------------


def pull(equation: Equation, primals: Sequence[Symbol], needed: Sequence[bool]) -> tuple[list[Symbol], Pullback]:
    """Add the equation to the program under construction; return its results and its pullback."""
    derivative = equation.primitive.derivative
    if isinstance(derivative, Structured) and any(needed):
        results, back = derivative.pull(equation, primals, needed)
    else:
        results = bind_equation(equation, primals)
        back = partial(_cotangents, equation, results, primals, needed)

    def pullback(cts: Sequence[Cotangent]) -> Sequence[Cotangent]:
        return [ct if n else None for ct, n in zip(back(cts), needed, strict=True)]

    return results, pullback


def _cotangents(
    equation: Equation,
    results: list[Symbol],
    primals: Sequence[Symbol],
    needed: Sequence[bool],
    cts: Sequence[Cotangent],
) -> Sequence[Cotangent]:
    match equation.primitive.derivative:
        case NonDifferentiable():
            return [None] * len(primals)
        case Partials(functions, finite):
            times = mul if finite else strong_mul
            ct = cts[0]
            return [
                times(ct, f(results[0], *primals, **equation.params)) if f is not None and n else None
                for f, n in zip(functions, needed, strict=True)
            ]
        case Linear(transpose):
            return transpose(cts[0], *primals, **equation.params)
        case Bilinear(transposes):
            x, y = primals
            if is_square(equation):  # the cotangent is doubled: a constant one stays constant
                return [transposes[0](add(cts[0], cts[0]), x, y, **equation.params), None]
            return [t(cts[0], x, y, **equation.params) if n else None for t, n in zip(transposes, needed, strict=True)]
        case Pull(rule):
            return rule(results, primals, instantiated(cts, results), **equation.params)
        case Structured():
            raise AssertionError(f"{equation.primitive.name} pulls back by a rule of its own")
        case Push():
            return _pull_from_push(equation, results, primals, cts, needed)
        case Unknown(error):
            raise error(**equation.params).at(equation.source)


def instantiated(values: Sequence[Symbol | None], like: Sequence[Symbol | Aval]) -> list[Symbol]:
    """The values, with zeros built for those that are None."""
    return [zeros_like(x) if value is None else value for value, x in zip(values, like, strict=True)]


def _pull_from_push(
    equation: Equation,
    results: list[Symbol],
    primals: Sequence[Symbol],
    cts: Sequence[Cotangent],
    needed: Sequence[bool],
) -> Sequence[Cotangent]:
    """Run the transpose of the push: the reverse sweep of a linear program is its transpose."""
    marked = [p for p, n in zip(primals, needed, strict=True) if n]
    inexact = [(ct, result) for ct, result in zip(cts, results, strict=True) if is_inexact(result.dtype)]
    real = instantiated(*zip(*inexact, strict=True))
    ys, xs = tuple(result.aval for result in results), tuple(primal.aval for primal in primals)
    # The transpose depends only on the key, and tracing it costs more than inlining it.
    transposed = STORE.get(
        ((_transposed_push, equation.primitive, params_key(equation.params), tuple(needed)), (ys, xs)),
        lambda: _transposed_push(equation.primitive, equation.params, ys, xs, needed),
    )
    found = iter(inline(transposed, [*results, *primals, *map(zeros_like, marked), *real]))
    return [next(found) if n else None for n in needed]


def _transposed_push(
    primitive: Primitive,
    params: Params,
    result_avals: Sequence[Aval],
    primal_avals: Sequence[Aval],
    needed: Sequence[bool],
) -> Program:
    """The program (results…, primals…, tangents…, cts…) -> (cotangents of the needed operands…).

    The linear program is swept at these tangents; their values do not matter, since no remaining equation reads them.
    """
    ends = len(result_avals), len(result_avals) + len(primal_avals)
    differentiable = [i for i, aval in enumerate(result_avals) if is_inexact(aval.dtype)]
    marked = [aval for aval, n in zip(primal_avals, needed, strict=True) if n]

    def pushed(*args: Symbol) -> list[Symbol]:
        ys, xs, given = args[: ends[0]], args[ends[0] : ends[1]], iter(args[ends[1] :])
        tangents = [next(given) if n else None for n in needed]
        assert isinstance(primitive.derivative, Push)
        out = primitive.derivative.rule(ys, xs, tangents, **params)
        return [zeros_like(ys[i]) if (t := out[i]) is None else t for i in differentiable]

    program = trace(pushed, *result_avals, *primal_avals, *marked, name=primitive.name)
    swept = joint(program, (False,) * ends[1] + (True,) * len(marked))
    return dce(Program(swept.name, swept.inputs, swept.equations, swept.outputs[len(differentiable) :]))
