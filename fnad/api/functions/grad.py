"""Derivatives of functions with a scalar output, in reverse mode: `grad` and `value_and_grad`."""

from __future__ import annotations

from typing import Any

from fnad.api.running.derivations import gradient, value_and_gradient
from fnad.api.running.execution import run
from fnad.api.running.reused_traces import DifferentiatedCalls
from fnad.api.running.transformed import with_options
from fnad.api.staging.arguments import Argnums, Differentiated, as_positions, check_flag
from fnad.api.staging.leaves import Function, check_function, function_name, source_of, structure_text
from fnad.api.staging.selection import Names
from fnad.api.staging.stage import Staged
from fnad.errors import NonScalarOutputError
from fnad.trace.source import current_source


@with_options
def grad(
    f: Function, argnums: Argnums = 0, has_aux: bool = False, *, argnames: Names = None, wrt: Names = None
) -> Function:
    """The function that computes the gradient of `f`.

    Parameters:
        f (function): Returns one real element of any shape. Its other arguments may be anything; what it writes into
            arrays stays invisible to the caller.
        argnums (int or tuple of ints): The positions of the arguments to differentiate in: pytrees of float or complex
            arrays and numbers. Negative positions count from the end. Integers and bools among their leaves are
            constants, with gradient 0.
        has_aux (bool): If true, `f` returns a pair (value, aux) of its value and anything else.
        argnames, wrt (str or sequence of str): In the place of `argnums`, the names of arguments, and of parts of them:
            keys, positions and attributes behind dots, as in "params.w".
    Returns:
        function: Takes the arguments of `f` and returns the gradient, with the structure, shapes and dtypes of the
            argument, or the tuple of gradients if `argnums` or the names are a tuple; with `has_aux`, (gradient, aux).
            The gradient in a complex argument x + iy is df/dx - i df/dy.
    Raises:
        NonScalarOutputError: If `f` does not return one real element.
        NonDifferentiableArgumentError: If an argument has integers and bools only.
        ArgnumsError, ArgumentTypeError, DtypeError, AuxiliaryError: If `argnums` names no positional argument, a leaf
            is not an array or number, fnad does not compute in its dtype, or `f` does not return the pair that
            `has_aux` announces.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.grad(lambda w, x: np.sum(np.exp(w) * x))(np.zeros(2), np.array([3.0, 4.0]))
        array([3., 4.])
    """
    check_function(f, "grad")
    check_flag("grad", has_aux)
    calls = DifferentiatedCalls(f, as_positions(argnums, "grad"), has_aux)

    def gradient_of_f(*args: Any, **kwargs: Any) -> Any:
        staged, wrt = calls.stage(args, kwargs)
        check_scalar(staged, f)
        results = run(staged.program, staged.operands, gradient(staged.wrt))
        auxiliary, gradients = _unpacked(results, staged, wrt, argnums)
        return (gradients, auxiliary) if has_aux else gradients

    return gradient_of_f


@with_options
def value_and_grad(
    f: Function, argnums: Argnums = 0, has_aux: bool = False, *, argnames: Names = None, wrt: Names = None
) -> Function:
    """The function that computes the value and the gradient of `f` together.

    Parameters:
        f, argnums, has_aux, argnames, wrt: As in `grad`.
    Returns:
        function: Takes the arguments of `f` and returns (value, gradient); with `has_aux`, ((value, aux), gradient).
    Raises:
        FnadError: As in `grad`.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
        (np.float64(5.0), array([2., 4.]))
    """
    check_function(f, "value_and_grad")
    check_flag("value_and_grad", has_aux)
    calls = DifferentiatedCalls(f, as_positions(argnums, "value_and_grad"), has_aux)

    def value_and_gradient_of_f(*args: Any, **kwargs: Any) -> Any:
        staged, wrt = calls.stage(args, kwargs)
        check_scalar(staged, f)
        value, *rest = run(staged.program, staged.operands, value_and_gradient(staged.wrt))
        auxiliary, gradients = _unpacked(rest, staged, wrt, argnums)
        output = staged.output.rebuild([value])
        return ((output, auxiliary) if has_aux else output), gradients

    return value_and_gradient_of_f


def _unpacked(results: list[Any], staged: Staged, wrt: Differentiated, argnums: Argnums) -> tuple[Any, Any]:
    """The auxiliary data and the gradient, whose leaves come last."""
    cut = len(results) - staged.leaves
    gradients = wrt.gradients(results[cut:])
    return staged.auxiliary.rebuild(results[:cut]), gradients if isinstance(argnums, (tuple, list)) else gradients[0]


def check_scalar(staged: Staged, f: Function) -> None:
    """Raise unless the function's output is one real element."""
    if staged.structure.is_leaf():
        aval = staged.program.out_avals[0]
        if aval.size == 1 and aval.dtype.kind == "f":
            return
        found, remedy = str(aval), _remedy(aval.size, aval.dtype.kind)
    elif (text := structure_text(staged.structure)) == "None":
        found, remedy = "None", "return the value: a function without a return statement returns None"
    else:
        found = f"a pytree, {text}"
        remedy = "return the one value to differentiate; has_aux=True takes others beside it"
    raise NonScalarOutputError(
        f"{function_name(f)} returned {found}, where grad takes one real element",
        source=source_of(f) or current_source(),
        remedy=remedy,
    )


def _remedy(size: int, kind: str) -> str:
    if size != 1:
        return "reduce it, with np.sum for example, or give a cotangent for each element to fnad.vjp"
    if kind == "c":
        return "take its real part, or its absolute value"
    return "integers and bools have no derivative: return a float"
