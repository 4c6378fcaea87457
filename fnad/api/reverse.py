"""Reverse mode for any output: `vjp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fnad.api import derivations
from fnad.api.arguments import differentiated, stage_in
from fnad.api.leaves import Array, Function, Operand, argument_name, check_function, function_name, to_user
from fnad.api.matching import ExpectedTree
from fnad.api.running import derived, execute, inlined
from fnad.api.staging import Staged
from fnad.backends.tiers import TieredProgram
from fnad.errors import CotangentError
from fnad.ir.builder import is_tracing
from fnad.ir.program import Program
from fnad.trace.source import current_source

MISSING = object()
Linear: TypeAlias = Callable[[Sequence[Operand]], list[Any]]


def vjp(f: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The output of `f` at `primals` and the pullback there.

    `pullback(cotangent)` takes a pytree like the output, in structure, shapes and dtypes (a Python number takes the
    dtype it stands for; where the output is an integer or bool, 0) and returns the tuple of the cotangents of the
    primals, 0 for integers and bools among their leaves. It may be called any number of times, from any thread. With
    `has_aux`, `f` returns a pair of its output and anything else, and the result is (output, pullback, anything else).

    Raises `NonDifferentiableArgumentError` for a primal of integers and bools alone (let `f` take it from its closure),
    `ArgumentTypeError`, `DtypeError`, `AuxiliaryError`; the pullback raises `CotangentError`.

    >>> import numpy as np
    >>> y, pullback = vjp(np.sin, np.array([0.0, np.pi]))
    >>> pullback(np.array([1.0, 10.0]))
    (array([  1., -10.]),)
    """
    check_function(f, "vjp")
    wrt = differentiated(primals, lambda i: argument_name(f, i))
    staged = stage_in(f, range(len(primals)), wrt, primals, has_aux=has_aux)
    results, pull = run_cut(staged, derivations.vjp(staged.wrt, staged.outputs))
    avals = staged.program.out_avals[: staged.outputs]
    like = f"the output of {function_name(f)}"
    cotangents = ExpectedTree("cotangent", like, staged.structure, avals, CotangentError)

    def pullback(cotangent: Any = MISSING, *others: Any) -> tuple[Any, ...]:
        if cotangent is MISSING or others:
            raise CotangentError(
                f"the pullback was given {len(others) + (cotangent is not MISSING)} cotangents, and takes one",
                source=current_source(),
                remedy=f"give one pytree like {like}; several arrays go into one tuple",
            )
        return wrt.gradients(pull(cotangents.match(cotangent)))

    output = staged.output.rebuild(results[: staged.outputs])
    auxiliary = staged.auxiliary.rebuild(results[staged.outputs :])
    return (output, pullback, auxiliary) if has_aux else (output, pullback)


def run_cut(staged: Staged, derivation: derivations.Derivation) -> tuple[list[Any], Linear]:
    """Run the first of two programs; return its outputs, and what the second one makes of co- or tangents."""
    program, count = staged.program, len(staged.program.outputs)
    if is_tracing():
        forward, backward = derivation.derive(program)
        found = inlined(forward, staged.operands)
        residuals = [tracer.symbol for tracer in found[count:]]
        return found[:count], lambda cts: inlined(backward, [*residuals, *cts])
    forward, backward = derived(program, derivation)
    arrays = execute(forward, staged.operands, lambda: derivation.derive(program)[0])
    linear = _linear(backward, _sealed(arrays[count:]), lambda: derivation.derive(program)[1])
    return [to_user(array) for array in arrays[:count]], linear


def _linear(backward: TieredProgram, residuals: Sequence[Array], own: Callable[[], Program]) -> Linear:
    """The second program, on residuals that were computed; called in a trace, it becomes part of that."""

    def linear(cts: Sequence[Operand]) -> list[Any]:
        operands = [*residuals, *cts]
        if is_tracing():
            return inlined(backward.program, operands)
        return [to_user(array) for array in execute(backward, operands, own)]

    return linear


def _sealed(arrays: list[Array]) -> list[Array]:
    for array in arrays:
        array.flags.writeable = False
    return arrays
