"""Reverse mode for any output: `vjp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fnad import config
from fnad.api.running import derivations
from fnad.api.running.debug_nans import checked
from fnad.api.running.execution import derived, derived_within, execute
from fnad.api.staging.arguments import differentiated, stage_in
from fnad.api.staging.expected_trees import ExpectedTree
from fnad.api.staging.inlining import inlined
from fnad.api.staging.leaves import (
    Array,
    Function,
    Operand,
    argument_name,
    check_function,
    function_name,
    leaves_of,
    to_user,
)
from fnad.api.staging.selection import Names, selected
from fnad.api.staging.stage import Staged
from fnad.backends.tiers import TieredProgram
from fnad.errors import CotangentError, FnadError
from fnad.ir.builder import inline, is_tracing, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import is_inexact
from fnad.trace.tracing import symbol_of
from fnad.tracebacks import boundary

if TYPE_CHECKING:
    from fnad.api.functions.export import Exported

MISSING = object()
Linear: TypeAlias = Callable[[Sequence[Operand]], list[Any]]


def vjp(f: Function, *primals: Any, has_aux: bool = False, wrt: Names = None) -> tuple[Any, ...]:
    """The output of `f` at `primals`, and the pullback there.

    Parameters:
        f (function): Takes and returns pytrees of arrays and numbers.
        *primals (pytrees): The arguments of `f`.
        has_aux (bool): If true, `f` returns a pair (output, aux) of its output and anything else.
        wrt (str or sequence of str): The names of the arguments to differentiate in, or of parts of them, such as
            "params.w"; if not given, all.
    Returns:
        tuple: (output, pullback), or (output, pullback, aux). `pullback(cotangent)` takes a pytree with the structure,
            shapes and dtypes of the output (0 for integers and bools) and returns the tuple of the cotangents of the
            primals, or of the parts that `wrt` names. It may be called any number of times, from any thread.
    Raises:
        CotangentError: If the cotangent does not match the output; the pullback raises it.
        NonDifferentiableArgumentError: If a primal has integers and bools only; let `f` take it from its closure.
        ArgumentTypeError, DtypeError, AuxiliaryError: As in `grad`.
    Examples:
        >>> import numpy as np, fnad
        >>> y, pullback = fnad.vjp(np.sin, np.array([0.0, np.pi]))
        >>> pullback(np.array([1.0, 10.0]))
        (array([  1., -10.]),)
    """
    check_function(f, "vjp")
    f, given, count = selected(f, wrt, primals)
    arguments = differentiated(given[:count], lambda i: argument_name(f, i))
    staged = stage_in(f, range(count), arguments, given, has_aux=has_aux)
    results, pull = run_cut(staged, derivations.vjp(staged.wrt, staged.outputs))
    avals = staged.program.out_avals[: staged.outputs]
    like = f"the output of {function_name(f)}"
    cotangents = ExpectedTree("cotangent", like, staged.structure, avals, CotangentError)
    pullback = AtPoint("pullback", function_name(f), cotangents, lambda cts: arguments.gradients(pull(cts)))
    output = staged.output.rebuild(results[: staged.outputs])
    auxiliary = staged.auxiliary.rebuild(results[staged.outputs :])
    return (output, pullback, auxiliary) if has_aux else (output, pullback)


class AtPoint:
    """The derivative of a function at a point: `run`, a closure with the values that it needs.

    It takes one pytree that is `expected`, a pushforward the tuple of its arguments; `run` takes the leaves that have a
    derivative. It is pickled as its program.
    """

    __slots__ = ("__name__", "__weakref__", "__wrapped__", "_expected", "_of", "_run")

    def __init__(self, name: str, of: str, expected: ExpectedTree, run: Callable[[list[Operand]], Any]) -> None:
        self.__name__, self._of, self._expected, self._run = name, of, expected, run

        def pull_back(cotangent: Any = MISSING, *others: Any) -> Any:
            if cotangent is MISSING or others:
                raise CotangentError.here(
                    f"the pullback was given {len(others) + (cotangent is not MISSING)} cotangents, and takes one",
                    remedy=f"give one pytree like {expected.like}; several arrays go into one tuple",
                )
            return run(expected.match(cotangent))

        def push_forward(*tangents: Any) -> Any:
            return run(expected.match(tangents))

        self.__wrapped__: Function = push_forward if name == "pushforward" else pull_back

    @boundary
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def transposing(self) -> AtPoint:
        """The same as the transpose of a linear function."""
        return AtPoint("transpose", self._of, self._expected, self._run)

    def __repr__(self) -> str:
        return f"<{self.__name__} of {self._of}>"

    def __copy__(self) -> AtPoint:
        return self

    def __deepcopy__(self, memo: object) -> AtPoint:
        return self

    def __reduce__(self) -> Any:
        from fnad.api.functions.export import export  # noqa: PLC0415 - not needed otherwise

        def derivative(*leaves: Any) -> Any:
            return self._run(list(map(symbol_of, leaves)))

        name, like, structure, avals, error = self._expected
        zeros = [to_user(np.zeros(aval.shape, aval.dtype)) for aval in avals]
        exported = export(derivative, *(x for x in zeros if is_inexact(x.dtype)))
        return _at_point, (self.__name__, self._of, name, like, structure.unflatten(zeros), error, exported)


def _at_point(
    kind: str, of: str, name: str, like: str, example: Any, error: type[FnadError], exported: Exported
) -> AtPoint:
    """The derivative that was pickled as a program; `example` is a pytree that it takes."""
    leaves, structure = leaves_of((example,), lambda _: name)
    expected = ExpectedTree(name, like, structure.children()[0], [leaf.aval for leaf in leaves], error)
    return AtPoint(kind, of, expected, exported.on_leaves)


def run_cut(staged: Staged, derivation: derivations.Derivation) -> tuple[list[Any], Linear]:
    """Run the first of two programs; return its outputs, and what the second one makes of co- or tangents."""
    program, count = staged.program, len(staged.program.outputs)
    if is_tracing():
        forward, backward = derived_within(program, derivation)
        found = inlined(forward, staged.operands)
        residuals = [tracer.symbol for tracer in found[count:]]
        return found[:count], lambda cts: inlined(backward, [*residuals, *cts])
    forward, backward = derived(program, derivation)
    arrays = execute(forward, staged.operands, lambda: derivation.derive(program)[0], count)
    linear = _linear(backward, _sealed(arrays[count:]), lambda: derivation.derive(program)[1])
    if config.current().debug_nans:
        linear = _debugged(linear, lambda: _joined(derivation.derive(program), count), staged.operands)
    return [to_user(array) for array in arrays[:count]], linear


def _debugged(linear: Linear, whole: Callable[[], Program], operands: Sequence[Operand]) -> Linear:
    """The second program, followed into the first one by `fnad.debug_nans`."""
    given = [
        np.array(operand) for operand in operands
    ]  # as they are now: the user may write into them before the second program is run

    def debugged(cts: Sequence[Operand]) -> list[Any]:
        if is_tracing() or not config.current().debug_nans:
            return linear(cts)
        with config.override(debug_nans=False):
            return checked(lambda _: linear(cts), [*given, *map(np.asarray, cts)], whole())

    return debugged


def _joined(programs: Sequence[Program], count: int) -> Program:
    """Two programs as one, of which the first hands what follows its first `count` results to the second."""
    forward, backward = programs
    given = len(forward.inputs)

    def run(*args: Symbol) -> list[Symbol]:
        return inline(backward, [*inline(forward, args[:given])[count:], *args[given:]])

    cts = backward.in_avals[len(forward.outputs) - count :]
    return trace(run, *forward.in_avals, *cts, name=forward.name)


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
