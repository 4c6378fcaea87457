"""`fnad dump`: a function at one stage of its compilation, made by the functions that the transforms themselves use.

Without a derivative that is what `jit` runs, with the guards of the path; with one, what the transform runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from fnad.api.functions.grad import check_scalar
from fnad.api.inspect.input_names import input_names, pullback_names, tangent_names
from fnad.api.inspect.stages import Part, stage_text
from fnad.api.running.derivations import Derivation, gradient, jvp, value_and_gradient, vjp
from fnad.api.running.execution import derived, prepared
from fnad.api.staging.leaves import Function
from fnad.cli.calls import Differentiable, checked_argnums, given_call
from fnad.cli.load import UserFunction, load_target, user_code
from fnad.cli.usage import UsageError
from fnad.trace.conversion import text_with_hooks
from fnad.trace.libraries import is_trusted

CONVERTED = "converted"
"""The stage before the trace: it has a source, and no program."""


@dataclass(frozen=True, slots=True)
class Request:
    """A dump: the function, its arguments by types or values, the derivative and its variables, the stage."""

    target: str
    types: str
    mode: str | None
    argnums: Sequence[int] | None
    stage: str
    values: str | None = None


def dump(request: Request) -> str:
    """The text of a function at a stage; raises `UsageError` if it does not exist or cannot be traced."""
    if request.argnums is not None and request.mode is None:
        raise UsageError("--argnums says in what to differentiate: add --grad, --value-and-grad, --vjp or --jvp")
    target = load_target(request.target)
    if request.stage == CONVERTED:
        return _converted(target)
    with user_code(target.path):
        given = given_call(target, request.types, request.values)
        if request.mode is None:
            return given.text(request.stage)
        traced = given.differentiable(_chosen(request, given.count))
        return stage_text(_derived(traced, target.function, request), request.stage, traced.staged.guards)


def _converted(target: UserFunction) -> str:
    """The source of the function with hooks; it depends neither on arguments nor on a derivative."""
    function = _innermost(target.function)
    if not isinstance(function, FunctionType):
        raise UsageError(f"{target.name} is not a Python function, so nothing of it is converted")
    if is_trusted(function.__code__.co_filename):
        raise UsageError(f"{target.name} is in a library, whose code is not converted: {function.__code__.co_filename}")
    text = text_with_hooks(function)
    if text is None:
        raise UsageError(f"{target.name} runs without hooks: its source is not there, or is not what runs")
    return text


def _innermost(function: Any) -> Any:
    """The function within transforms, decorators, methods and partial functions."""
    inner = (getattr(function, name, None) for name in ("__wrapped__", "__func__", "func"))
    found = next(filter(callable, inner), None)
    return function if found is None else _innermost(found)


def _chosen(request: Request, count: int) -> Sequence[int]:
    """The arguments to differentiate with respect to: by default all, and for a scalar the first."""
    if request.argnums is None:
        return range(min(count, 1) if request.mode in OF_A_SCALAR else count)
    return checked_argnums(request.argnums, count)


MODES: dict[str, Callable[[Sequence[bool], int], Derivation]] = {
    "grad": lambda wrt, _: gradient(wrt),
    "value_and_grad": lambda wrt, _: value_and_gradient(wrt),
    "vjp": vjp,
    "jvp": jvp,
}
OF_A_SCALAR = {"grad", "value_and_grad"}


def _derived(traced: Differentiable, function: Function, request: Request) -> list[Part]:
    """The programs in the store that run the transform: two for `vjp`."""
    staged, mode = traced.staged, request.mode or ""
    names = input_names(traced.names, staged.program)
    if request.stage == "traced":
        return [(prepared(staged.program), names)]
    if mode in OF_A_SCALAR:
        check_scalar(staged, function)
    wrt = [*traced.wrt, *[False] * (len(names) - len(traced.wrt))]
    first, *rest = derived(staged.program, MODES[mode](wrt, staged.outputs))
    if mode == "jvp":
        return [(first, tangent_names(names, wrt))]
    forward = first.program if request.stage == "transformed" else first.simplified
    return [(first, names), *[(pullback, pullback_names(forward, names, staged)) for pullback in rest]]
