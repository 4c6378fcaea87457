"""The first equation of a program whose derivative is wrong.

Each equation is checked by itself, at the values that the program gives it: its forward rule against differences of its
evaluation, its reverse rule against the forward one. So what is found first in program order is wrong by itself, and
not only because of what it was given. Loops and branches are entered: their regions are run on the values they get,
step by step, and only if all in them is right, a rule of theirs is to blame. Of functions with a rule of their own,
that is checked. A `stop_gradient` is blamed if there is nothing else.

What two ways to run a program disagree on is found by bisection over the prefixes of the program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad.control.checkpoint import checkpoint
from fnad.control.custom import custom_jvp, custom_vjp, ruled
from fnad.errors import FnadError
from fnad.ir.builder import bind_equation, trace
from fnad.ir.primitive import Inlined
from fnad.ir.program import Equation, Literal, Program, Source, Var
from fnad.ir.types import Aval, is_inexact
from fnad.ops.autodiff import stop_gradient
from fnad.testing.numbers import direction, pairing
from fnad.testing.truth import Array, Truth, derivative, is_smooth, scale_of, silent
from fnad.transforms.differentiation import joint, jvp
from fnad.transforms.interpret import NEVER, Run, interpret, regions_by
from fnad.transforms.nonfinite import LoopStep, steps_of


class Blame(NamedTuple):
    """The equation to blame, what is wrong with it, and the steps of the loops around it."""

    equation: Equation
    what: str
    steps: tuple[LoopStep, ...] = ()

    @property
    def primitive(self) -> str:
        """The operation, with the user's function if that has a rule of its own."""
        name = self.equation.primitive.name
        has_rule = self.equation.primitive in (custom_jvp, custom_vjp, ruled)
        return f"{name} {self.equation.regions[0].name}" if has_rule else name

    @property
    def source(self) -> Source | None:
        """The user's line; of a user's rule, a line of the rule."""
        if self.equation.primitive in (custom_jvp, custom_vjp, ruled):
            lines = (e.source for region in self.equation.regions[:0:-1] for e in region.equations[::-1])
            return next(filter(None, lines), self.equation.source)
        return self.equation.source

    def __str__(self) -> str:
        mode = f" in {self.source.mode}" if self.source is not None and self.source.mode else ""
        lines = [f"{self.primitive}{mode}: {self.what}", *[f"  {step}" for step in self.steps], f"  at {self.source}"]
        return "\n".join(lines)


Fault: TypeAlias = Callable[[Equation, Sequence[Array]], str | None]
"""The fault of an equation's derivative at these operands; None if none is found."""


# ---- an equation that is wrong by itself -------------------------------------------------------------------------


def wrong_equation(program: Program, arguments: Sequence[Array]) -> Blame | None:
    """The first equation of the program, run on these arrays, whose derivative is wrong by itself."""
    with silent():
        found = _wrong(program, arguments, (), _fault)[1]
        return found or _wrong(program, arguments, (), _stopped)[1]


def _wrong(
    program: Program, arguments: Sequence[Array], steps: tuple[LoopStep, ...], fault: Fault
) -> tuple[list[Any], Blame | None]:
    """The outputs of the program, and the first equation that is wrong."""
    values: dict[Any, Any] = dict(zip(program.inputs, arguments, strict=True))

    def read(atoms: Sequence[Any]) -> list[Any]:
        return [atom.value if isinstance(atom, Literal) else values[atom] for atom in atoms]

    found: Blame | None = None
    for equation in program.equations:
        operands = [np.asarray(operand) for operand in read(equation.operands)]
        wrong = None if found else fault(equation, operands)
        if found is None and _runs_its_regions(equation):
            results, found = _entered(equation, operands, steps, fault)
        else:
            results = _results(equation, operands)
        found = found or (Blame(equation, wrong, steps) if wrong else None)
        values.update(zip(equation.results, results, strict=True))
    return read(program.outputs), found


def _runs_its_regions(equation: Equation) -> bool:
    """True if its derivative is that of its regions; a user's rule, or of a solver, is not."""
    is_inlined = isinstance(equation.primitive.lower, Inlined)
    return bool(equation.regions) and (not is_inlined or equation.primitive is checkpoint)


def _results(equation: Equation, operands: Sequence[Array]) -> Sequence[Any]:
    found = equation.primitive.evaluate(*operands, **equation.keywords)
    return found if isinstance(found, tuple) else (found,)


def _entered(
    equation: Equation, operands: Sequence[Array], steps: tuple[LoopStep, ...], fault: Fault
) -> tuple[Sequence[Any], Blame | None]:
    """The results of an equation, and the first equation in its regions that is wrong."""
    runs: Counter[Program] = Counter()
    inside: list[Blame] = []

    def runner(region: Program) -> Run:
        def run(arguments: Sequence[Any], deadline: float = NEVER) -> list[Any]:
            around = steps_of(equation, operands, runs[region])
            runs[region] += 1
            with regions_by(None):  # what is evaluated in there enters its regions by itself
                if inside:
                    return interpret(region, arguments)
                results, blame = _wrong(region, arguments, (*steps, *around), fault)
            inside.extend([blame] if blame else [])
            return results

        return run

    with regions_by(runner):
        results = _results(equation, operands)
    return results, inside[0] if inside else None


def _fault(equation: Equation, operands: Sequence[Array]) -> str | None:
    if equation.primitive is stop_gradient:
        return None
    wrt = [is_inexact(x.dtype) and isinstance(atom, Var) for x, atom in zip(operands, equation.operands, strict=True)]
    xs = [x for x, w in zip(operands, wrt, strict=True) if w]
    if not xs or any(atom.aval.is_residual_stack for atom in (*equation.operands, *equation.results)):
        return None
    avals = [Aval(x.dtype, x.shape) for x in operands]
    single = trace(lambda *symbols: bind_equation(equation, symbols), *avals, name=equation.primitive.name)
    us = [direction(Aval(x.dtype, x.shape), seed) * x.dtype.type(scale_of(x, [1.0])) for seed, x in enumerate(xs)]
    try:
        return _disagreement(equation, single, operands, wrt, us)
    except (FnadError, TypeError, ValueError):  # no rule, or differences leave what it can be evaluated for
        return None


def _stopped(equation: Equation, _: Sequence[Array]) -> str | None:
    return "no derivative passes here" if equation.primitive is stop_gradient else None


def _disagreement(
    equation: Equation, single: Program, operands: Sequence[Array], wrt: Sequence[bool], us: Sequence[Array]
) -> str | None:
    def evaluated(*xs: Array) -> Array:
        given = iter(xs)
        return _vector(_results(equation, [next(given) if w else x for x, w in zip(operands, wrt, strict=True)]))

    count = len(single.outputs)
    pushed = interpret(jvp(single, wrt), [*operands, *us])[count:]
    xs = [x for x, w in zip(operands, wrt, strict=True) if w]
    truth = derivative(evaluated, xs, us)
    if (
        isinstance(truth, Truth)
        and (what := difference_text(_vector(pushed), truth))
        and is_smooth(evaluated, xs, us, truth)
    ):
        return f"its derivative along a direction is {what}"
    cts = [direction(Aval(t.dtype, t.shape), -seed - 1 & 0xFFFF) for seed, t in enumerate(map(np.asarray, pushed))]
    pulled = interpret(joint(single, wrt), [*operands, *cts])[count:]
    forward, reverse = pairing(cts, [np.asarray(t) for t in pushed]), pairing([np.asarray(x) for x in pulled], us)
    if np.isfinite(forward) and not abs(forward - reverse) <= 1e-6 * max(1.0, abs(forward)):
        return f"paired with a cotangent, reverse mode is {reverse:.6g}, forward mode {forward:.6g}"
    return None


def difference_text(found: Array, truth: Truth) -> str | None:
    """The largest difference between a derivative and the truth; None if there is none."""
    error = np.abs(found - truth.value)
    if not np.isfinite(found).all() or not found.size or np.max(error) <= truth.allowed:
        return None
    worst = int(np.argmax(error))
    return f"{found[worst]:.6g}, by {truth.method} {truth.value[worst]:.6g}"


def _vector(values: Sequence[Any]) -> Array:
    parts = [np.ravel(value) for value in values if is_inexact(np.asarray(value).dtype)]
    return np.concatenate(parts) if parts else np.zeros(0)


# ---- an equation that two ways to run a program disagree on ------------------------------------------------------


def first_prefix(program: Program, differ: Callable[[Program], bool], what: str) -> Blame | None:
    """The equation at which two ways to run the program begin to differ, by bisection over its prefixes."""
    low, high = 0, len(program.equations)
    if not high or not differ(_prefix(program, high)):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if differ(_prefix(program, middle)) else (middle, high)
    return Blame(program.equations[high - 1], what)


def _prefix(program: Program, count: int) -> Program:
    """The first equations, and all that they compute."""
    equations = program.equations[:count]
    results = [var for e in equations for var in e.results if is_inexact(var.aval.dtype)]
    return Program(program.name, program.inputs, equations, tuple(v for v in results if not v.aval.is_residual_stack))
