"""Forward and reverse mode of a program, for transforms, loops, dumps and checks alike.

`joint.py` and `jvp.py` sweep over equations with the rule of each. Here spectral functions, sigmoids and softmax that
are written out become equations first, and what cancels out becomes a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fnad.ir.builder import current_builder, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ops.eigenvalues import eigh
from fnad.ops.elementary import cosh, exp
from fnad.ops.logistic import logistic
from fnad.ops.shape import broadcast_to
from fnad.ops.softmax import softmax
from fnad.transforms import joint as reverse_mode
from fnad.transforms import jvp as forward_mode


def joint(program: Program, wrt: Sequence[bool], outputs: int | None = None) -> Program:
    """The program (x…, ct…) -> (y…, x̄…), with a ct for each inexact output, or of the first `outputs`."""
    return _derived(program, lambda found: reverse_mode.joint(found, wrt, outputs))


def jvp(program: Program, wrt: Sequence[bool], outputs: int | None = None) -> Program:
    """The program (x…, dx…) -> (y…, dy…), with a dy for each inexact output, or of the first `outputs`."""
    return _derived(program, lambda found: forward_mode.jvp(found, wrt, outputs))


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

    return _derived(program, swept_at_one)


def gradient(program: Program, wrt: Sequence[bool]) -> Program:
    """The same without the first output: (x…) -> (other y…, x̄…)."""
    both = value_and_gradient(program, wrt)
    return Program(both.name, both.inputs, both.equations, both.outputs[1:])


def _derived(program: Program, derive: Callable[[Program], Program]) -> Program:
    if any(equation.primitive is eigh for equation in program.equations):
        from fnad.transforms.spectral import with_spectral_functions  # noqa: PLC0415 - not loaded where there is none

        return with_spectral_functions(program, lambda found: derive(_stable(found)))
    return derive(_stable(program))


def _stable(program: Program) -> Program:
    """The program with primitives for what is written out, and constants for what cancels out."""
    computed = {equation.primitive for equation in program.equations}
    if not computed.isdisjoint((exp, cosh, logistic, softmax)):
        from fnad.transforms.written_out import recognized  # noqa: PLC0415 - not loaded where there is none

        program = recognized(program)
    if exp in computed:
        from fnad.transforms.cancellation import without_cancelled  # noqa: PLC0415 - likewise

        program = without_cancelled(program)
    return program
