"""Forward and reverse mode of a program, for transforms, loops, dumps and checks alike.

`joint.py` and `jvp.py` sweep over equations with the rule of each. Here spectral functions, sigmoids and softmax that
are written out become equations first, what cancels out becomes a constant, and so does what has no known derivative
and needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fnad.ir.builder import bind_equation, current_builder, retraced, trace
from fnad.ir.primitive import Unknown
from fnad.ir.program import Equation, Program
from fnad.ir.symbol import Symbol
from fnad.ops.autodiff import stop_gradient
from fnad.ops.eigenvalues import eigh
from fnad.ops.elementary import cosh, exp
from fnad.ops.logistic import logistic
from fnad.ops.shape import broadcast_to
from fnad.ops.softmax import log_softmax, softmax
from fnad.transforms import columns as jacobian_columns
from fnad.transforms import diagonals as jacobian_diagonals
from fnad.transforms import joint as reverse_mode
from fnad.transforms import jvp as forward_mode
from fnad.transforms.activity import needed_vars
from fnad.transforms.ordering import contractions_ordered


def joint(program: Program, wrt: Sequence[bool], outputs: int | None = None) -> Program:
    """The program (x…, ct…) -> (y…, x̄…), with a ct for each inexact output, or of the first `outputs`."""
    return _derived(program, lambda found: reverse_mode.joint(found, wrt, outputs), outputs)


def jvp(program: Program, wrt: Sequence[bool], outputs: int | None = None) -> Program:
    """The program (x…, dx…) -> (y…, dy…), with a dy for each inexact output, or of the first `outputs`."""
    return _derived(program, lambda found: forward_mode.jvp(found, wrt, outputs), outputs)


def columns(program: Program, wrt: Sequence[bool], outputs: int | None = None) -> Program | None:
    """The program (x…) -> (y…, Jacobians…) of a small program of numbers; None for others."""
    is_spectral = any(equation.primitive is eigh for equation in program.equations)
    return None if is_spectral else jacobian_columns.columns(_stable(program), wrt, outputs)


def diagonals(program: Program, wrt: Sequence[bool], outputs: int | None = None) -> Program | None:
    """The program (x…) -> (y…, Jacobians…) of a program that computes element by element; None for others."""
    return jacobian_diagonals.diagonals(_stable(program), wrt, outputs)


def value_and_gradient(program: Program, wrt: Sequence[bool]) -> Program:
    """The program (x…) -> (y…, x̄…), where x̄ is the gradient of the first output, which has one real element.

    There is one x̄ for each input marked in `wrt`. The other outputs are unchanged.
    """
    ct = program.outputs[0].aval

    def swept_at_one(found: Program) -> Program:
        def at_one(*args: Symbol) -> list[Symbol]:
            one = current_builder().literal(ct.dtype.type(1))
            return reverse_mode.sweep(found, wrt, args, [broadcast_to(one, ct.shape)], 1)

        return trace(at_one, *found.in_avals, name=found.name)

    return _derived(program, swept_at_one, 1)


def gradient(program: Program, wrt: Sequence[bool]) -> Program:
    """The same without the first output: (x…) -> (other y…, x̄…)."""
    both = value_and_gradient(program, wrt)
    return Program(both.name, both.inputs, both.equations, both.outputs[1:])


def _derived(program: Program, derive: Callable[[Program], Program], outputs: int | None) -> Program:
    if any(isinstance(equation.primitive.derivative, Unknown) for equation in program.equations):
        program = _on_constants(program, outputs)
    if any(equation.primitive is eigh for equation in program.equations):
        from fnad.transforms.spectral import with_spectral_functions  # noqa: PLC0415 - not loaded where there is none

        return with_spectral_functions(program, lambda found: derive(_stable(found)))
    return derive(_stable(program))


def _stable(program: Program) -> Program:
    """The program with primitives for what is written out, and constants for what cancels out."""
    computed = {equation.primitive for equation in program.equations}
    if not computed.isdisjoint((exp, cosh, logistic, softmax, log_softmax)):
        from fnad.transforms.written_out import recognized  # noqa: PLC0415 - not loaded where there is none

        program = recognized(program)
    if exp in computed:
        from fnad.transforms.cancellation import without_cancelled  # noqa: PLC0415 - likewise

        program = without_cancelled(program)
    return contractions_ordered(program)


def _on_constants(program: Program, outputs: int | None) -> Program:
    """The program in which what has no known derivative takes constants, if no output needs its derivative.

    So its results are constants too, for derivatives of higher order and in loops that take them as residuals.
    """
    needed = needed_vars(program, reverse_mode.differentiable_outputs(program, outputs))

    def of(equation: Equation, operands: list[Symbol]) -> list[Symbol]:
        is_constant = isinstance(equation.primitive.derivative, Unknown) and needed.isdisjoint(equation.results)
        return bind_equation(equation, list(map(stop_gradient, operands)) if is_constant else operands)

    return retraced(program, of)
