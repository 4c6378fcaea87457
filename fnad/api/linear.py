"""Derivatives as linear maps: `linearize`, `linear_transpose`, `hvp`.

The program of tangents, cut in two, computes at a point all that its tangents need, then any number of them. A linear
function is its own derivative, so its pullback is its transpose, wherever it is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.api import derivations
from fnad.api.arguments import differentiated, stage_in
from fnad.api.forward import check_tuple, jvp, tangents_of
from fnad.api.gradient import grad
from fnad.api.leaves import Function, argument_name, check_function, flatten, function_name, map_leaves, source_of
from fnad.api.lowered import ShapeDtypeStruct
from fnad.api.matching import ExpectedTree
from fnad.api.reverse import run_cut, vjp
from fnad.api.running import derived
from fnad.api.staging import Staged
from fnad.control.batching import batched_region
from fnad.errors import LinearityError, TangentError
from fnad.ir.builder import is_tracing
from fnad.tracebacks import boundary


def linearize(f: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The output of `f` at `primals`, and its derivative there: the linear function of tangents of the primals.

    `pushforward(*tangents)` is the second result of `jvp(f, primals, tangents)`. What does not depend on the tangents
    is computed once, but for what takes less time than to keep it. With `has_aux`, `f` returns a pair of its output and
    anything else, and the result is (output, pushforward, anything else).

    Raises what `jvp` raises, `TangentError` when the derivative is called.

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

    @boundary
    def pushforward(*tangents: Any) -> Any:
        return tangents_of(staged, push(expected.match(tangents)))

    output = staged.output.rebuild(results[: staged.outputs])
    auxiliary = staged.auxiliary.rebuild(results[staged.outputs :])
    return (output, pushforward, auxiliary) if has_aux else (output, pushforward)


def linear_transpose(f: Function, *primals: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a linear function: from a pytree like its output to the tuple of those like its arguments.

    `primals` say by their structure, shapes and dtypes what `f` takes, `ShapeDtypeStruct`s among them; their values do
    not matter. For complex numbers it is the transpose without conjugation.

    Raises `LinearityError` where `f` is not linear: it is not 0 at 0, or its derivative is not the same everywhere; and
    what `vjp` raises.

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
    return pullback


def _zero(leaf: Any) -> Any:
    if isinstance(leaf, ShapeDtypeStruct):
        return np.zeros(leaf.shape, leaf.dtype)
    return np.zeros_like(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else type(leaf)(0)


def _is_linear(staged: Staged) -> bool:
    """Whether the pullback has no residual that depends on the arguments, and Python has not asked for any.

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
    """The product of the Hessian of `f` at `primals` with `tangents`: the tuple of what is like each of the primals.

    It is the derivative of the gradient in that direction, at the cost of a few evaluations of `f`. With `has_aux`, `f`
    returns a pair of one real element and anything else, and the result is (product, anything else).

    Raises what `grad` and `jvp` raise.

    >>> import numpy as np, fnad
    >>> fnad.hvp(lambda x: x[0] ** 2 * x[1], (np.array([2.0, 3.0]),), (np.array([1.0, 0.0]),))
    (array([6., 4.]),)
    """
    check_function(f, "hvp")
    check_tuple("primals", primals)
    gradient = grad(f, tuple(range(len(primals))), has_aux)
    _, product, *auxiliary = jvp(gradient, primals, tangents, has_aux)
    return (product, *auxiliary) if has_aux else product
