"""Derivatives as linear maps: `linearize`, `linear_transpose`, `hvp`.

The program of tangents, cut in two, computes at a point all that its tangents need, then any number of them. A linear
function is its own derivative, so its pullback is its transpose, wherever it is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.api.functions.grad import grad
from fnad.api.functions.jvp import check_tuple, jvp, tangents_of
from fnad.api.functions.lowered import ShapeDtypeStruct
from fnad.api.functions.vjp import AtPoint, run_cut, vjp
from fnad.api.running import derivations
from fnad.api.running.execution import derived
from fnad.api.staging.arguments import differentiated, stage_in
from fnad.api.staging.expected_trees import ExpectedTree
from fnad.api.staging.leaves import (
    Function,
    argument_name,
    check_function,
    flatten,
    function_name,
    map_leaves,
    source_of,
)
from fnad.api.staging.stage import Staged
from fnad.control.batching import batched_region
from fnad.errors import LinearityError, TangentError
from fnad.ir.builder import is_tracing


def linearize(f: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The output of `f` at `primals`, and its derivative there as a linear function.

    Parameters:
        f (function): Takes and returns pytrees of arrays and numbers.
        *primals (pytrees): The arguments of `f`.
        has_aux (bool): If true, `f` returns a pair (output, aux) of its output and anything else.
    Returns:
        tuple: (output, pushforward), or (output, pushforward, aux). `pushforward(*tangents)` is the second result of
            `jvp(f, primals, tangents)`; most of what does not depend on the tangents is computed once.
    Raises:
        TangentError: If the tangents do not match the primals; the pushforward raises it.
        NonDifferentiableArgumentError, ArgumentTypeError, DtypeError, AuxiliaryError: As in `jvp`.
    Examples:
        >>> import numpy as np, fnad
        >>> y, pushforward = fnad.linearize(np.sin, 0.0)
        >>> y, pushforward(1.0), pushforward(2.0)
        (np.float64(0.0), np.float64(1.0), np.float64(2.0))
    """
    check_function(f, "linearize")
    wrt = differentiated(primals, lambda i: argument_name(f, i))
    staged = stage_in(f, range(len(primals)), wrt, primals, has_aux=has_aux)
    results, push = run_cut(staged, derivations.linearized(staged.wrt, staged.outputs))
    expected = ExpectedTree("tangents", "the primals", wrt.structure, wrt.avals, TangentError)
    pushforward = AtPoint("pushforward", function_name(f), expected, lambda given: tangents_of(staged, push(given)))
    output = staged.output.rebuild(results[: staged.outputs])
    auxiliary = staged.auxiliary.rebuild(results[staged.outputs :])
    return (output, pushforward, auxiliary) if has_aux else (output, pushforward)


def linear_transpose(f: Function, *primals: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a linear function, without conjugation of complex numbers.

    Parameters:
        f (function): A linear function.
        *primals (pytrees of arrays, numbers and ShapeDtypeStructs): The structure, shapes and dtypes of the arguments
            of `f`; their values are not used.
    Returns:
        function: Takes a pytree like the output of `f` and returns a tuple of pytrees like its arguments.
    Raises:
        LinearityError: If `f` is not 0 at 0, or its derivative depends on its arguments.
        NonDifferentiableArgumentError, ArgumentTypeError, DtypeError: As in `vjp`.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.linear_transpose(np.cumsum, np.ones(3))(np.array([1.0, 0.0, 0.0]))
        (array([1., 0., 0.]),)
    """
    check_function(f, "linear_transpose")
    zeros = map_leaves(_zero, primals)
    wrt = differentiated(zeros, lambda i: argument_name(f, i))
    if not _is_linear(stage_in(f, range(len(zeros)), wrt, zeros, has_aux=False)):
        raise _not_linear(f, "its derivative depends on where it is taken")
    value, pullback = vjp(f, *zeros)
    if not is_tracing() and any(np.any(leaf) for leaf in flatten(value)[0]):
        raise _not_linear(f, "it is not 0 at 0")
    return pullback.transposing()


def _zero(leaf: Any) -> Any:
    if isinstance(leaf, ShapeDtypeStruct):
        return np.zeros(leaf.shape, leaf.dtype)
    return np.zeros_like(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else type(leaf)(0)


def _is_linear(staged: Staged) -> bool:
    """True if the pullback has no residual that depends on the arguments, and Python has not asked for any.

    What depends on them, within loops and branches too, is what a stack of them makes a stack of.
    """
    forward = derived(staged.program, derivations.vjp(staged.wrt, staged.outputs))[0].simplified
    stacked = [i < staged.leaves for i in range(len(forward.inputs))]
    _, depend = batched_region(forward, 2, stacked, [False] * len(forward.outputs))
    return not (staged.guards or any(depend[len(staged.program.outputs) :]))


def _not_linear(f: Function, why: str) -> LinearityError:
    return LinearityError(
        f"{function_name(f)} is not linear: {why}",
        source=source_of(f),
        remedy="transpose its derivative, fnad.linearize(f, x)[1], or pull a cotangent back with fnad.vjp",
    )


def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """The product of the Hessian of `f` at `primals` with `tangents`.

    It is the derivative of the gradient in the direction of `tangents`, and costs a few evaluations of `f`.

    Parameters:
        f (function): Returns one real element.
        primals (tuple of pytrees): The arguments of `f`.
        tangents (tuple of pytrees): The direction, with the structure, shapes and dtypes of `primals`.
        has_aux (bool): If true, `f` returns a pair (value, aux) of its value and anything else.
    Returns:
        tuple of pytrees: The product, with the structure, shapes and dtypes of `primals`; with `has_aux`, (product,
            aux).
    Raises:
        NonScalarOutputError: If `f` does not return one real element.
        TangentError, NonDifferentiableArgumentError, ArgumentTypeError, DtypeError, AuxiliaryError: As in `jvp`.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.hvp(lambda x: x[0] ** 2 * x[1], (np.array([2.0, 3.0]),), (np.array([1.0, 0.0]),))
        (array([6., 4.]),)
    """
    check_function(f, "hvp")
    check_tuple("primals", primals)
    gradient = grad(f, tuple(range(len(primals))), has_aux)
    _, product, *auxiliary = jvp(gradient, primals, tangents, has_aux)
    return (product, *auxiliary) if has_aux else product
