"""`fnad dump`: a function at one stage of its compilation, made by the functions that the transforms themselves use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fnad.api.arguments import with_traced_arrays
from fnad.api.derivations import Derivation, gradient, joint, jvp, value_and_gradient
from fnad.api.gradient import check_scalar
from fnad.api.leaves import Function, Leaf, argument_name, flatten
from fnad.api.running import derived, prepared
from fnad.api.stages import STAGES
from fnad.api.staging import Staged, stage
from fnad.backends.tiers import TieredProgram
from fnad.cli.arguments import parse_arguments
from fnad.cli.load import load_function, split_target, user_code
from fnad.cli.usage import UsageError
from fnad.errors import ParseError
from fnad.ir.types import Aval, is_inexact
from fnad.numpy.operands import PYTHON_DTYPES

Argnums = Sequence[int] | None
"""Positions of the arguments to differentiate with respect to; None for the mode's default."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to dump: FILE:FUNCTION, its argument types, the derivative if any, with respect to which, and the stage."""

    target: str
    types: str
    mode: str | None
    argnums: Argnums
    stage: str


def dump(request: Request) -> str:
    """The text of a function at a stage; raises `UsageError` if it does not exist or cannot be traced."""
    file, name = split_target(request.target)
    if request.argnums is not None and request.mode is None:
        raise UsageError("--argnums says in what to differentiate: add --grad, --value-and-grad, --vjp or --jvp")
    arguments = Arguments(request.types)
    function = load_function(file, name)
    arguments.check(function, name)
    with user_code(Path(file)):
        staged = with_traced_arrays(function, arguments.stage)
        if staged.guards:
            where = staged.guards[0].source
            raise UsageError(
                f"{name} decides by the values of its arguments, of which --args gives the types, at {where}"
            )
        if request.mode is None or request.stage == "traced":
            return STAGES[request.stage](prepared(staged.program))
        marks = arguments.marks(function, _chosen(request, len(arguments.trees)))
        return STAGES[request.stage](_derived(staged, function, request.mode, marks))


# ---- arguments ---------------------------------------------------------------------------------------------------


class Arguments:
    """Placeholders for the arguments of a call, of which only the types are known."""

    def __init__(self, types: str) -> None:
        try:
            self.trees = parse_arguments(types)
        except ParseError as error:
            raise UsageError(f"--args {str(error).splitlines()[0]}") from None
        leaves, self.structure = flatten(self.trees)
        try:
            self.leaves = [_leaf(leaf) for leaf in leaves]
        except ValueError as error:
            raise UsageError(f"--args has an array that NumPy cannot have: {error}") from None

    def check(self, function: Function, name: str) -> None:
        """Raise `UsageError` if the function cannot be called with this many arguments."""
        try:
            inspect.signature(function).bind(*self.trees)
        except TypeError as error:
            raise UsageError(f"--args does not fit {name}: {error}") from None
        except ValueError:  # it has no signature; the call itself will tell
            return

    def stage(self, function: Function) -> Staged:
        """Trace a call of the function."""
        return stage(function, self.leaves, lambda tracers: function(*self.structure.unflatten(tracers)))

    def marks(self, function: Function, chosen: Sequence[int]) -> list[bool]:
        """For each leaf, whether to differentiate with respect to it; raises `UsageError` where that is impossible."""
        marks: list[bool] = []
        for position, tree in enumerate(self.trees):
            avals = [_leaf(leaf).aval for leaf in flatten(tree)[0]]
            found = [position in chosen and is_inexact(aval.dtype) for aval in avals]
            if avals and position in chosen and not any(found):
                name = argument_name(function, position)
                raise UsageError(f"{name} has {avals[0]}, which has no derivative; name others with --argnums")
            marks += found
        return marks


def _leaf(type_: Aval | type) -> Leaf:
    aval = type_ if isinstance(type_, Aval) else Aval(PYTHON_DTYPES[type_])
    return Leaf(np.broadcast_to(np.zeros((), aval.dtype), aval.shape), aval, weak=type_ is not aval)


def _chosen(request: Request, count: int) -> Sequence[int]:
    """The arguments to differentiate with respect to: by default all, and for a scalar the first."""
    if request.argnums is None:
        return range(min(count, 1) if request.mode in OF_A_SCALAR else count)
    for n in request.argnums:
        if not -count <= n < count:
            raise UsageError(f"--argnums names argument {n}, --args has {count}; the first is 0")
    chosen = [n % count for n in request.argnums]
    if len(set(chosen)) < len(chosen):
        raise UsageError("--argnums names an argument twice")
    return chosen


# ---- derivatives --------------------------------------------------------------------------------------

MODES: dict[str, Callable[[Sequence[bool], int], Derivation]] = {
    "grad": lambda wrt, _: gradient(wrt),
    "value_and_grad": lambda wrt, _: value_and_gradient(wrt),
    "vjp": joint,
    "jvp": jvp,
}
OF_A_SCALAR = {"grad", "value_and_grad"}


def _derived(staged: Staged, function: Function, mode: str, marks: Sequence[bool]) -> TieredProgram:
    """Return what runs of the transform find in the store; of `vjp`, the program that is cut in two for these."""
    if mode in OF_A_SCALAR:
        check_scalar(staged, function)
    captured = len(staged.program.inputs) - len(marks)
    return derived(staged.program, MODES[mode]([*marks, *[False] * captured], staged.outputs))[0]
