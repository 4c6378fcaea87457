"""An assertion on derivatives for tests: `check_grads`, with JAX's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from fnad.api.functions.jvp import jvp
from fnad.api.functions.vjp import vjp
from fnad.api.staging.arguments import differentiated, stage_in
from fnad.api.staging.leaves import Function, check_function, flatten, leaves_of
from fnad.errors import NonDifferentiableArgumentError, SettingError
from fnad.flatten_util import ravel_pytree
from fnad.ir.program import Program
from fnad.ir.types import Aval, is_inexact, real_dtype
from fnad.testing.blame import wrong_equation
from fnad.testing.numbers import SCALE, difference, direction, pairing, precision, step
from fnad.tracebacks import boundary
from fnad.upward import UPWARD

MODES = ("fwd", "rev")


@boundary
def check_grads(
    f: Function,
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = MODES,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Compare the derivatives of `f` at `args`, up to an order, with differences along random directions.

    `args` is the tuple of the arguments, pytrees, of which integers and bools are constant. The first derivative is
    compared in each of the modes, "fwd" and "rev", then in the same way the derivatives of both, up to the order.
    `rtol` is the error allowed relative to the largest element, 100 √ε of the shortest dtype unless given; `atol` is
    added. `eps` is the step of the differences, in which `f` runs on ordinary arrays; it has to be smooth there.

    Raises `AssertionError` where they differ, `SettingError` for a mode that does not exist,
    `NonDifferentiableArgumentError` where there is nothing to differentiate.

    >>> import numpy as np, fnad
    >>> fnad.test_util.check_grads(lambda w, x: np.sum(np.tanh(w["a"] * x)), ({"a": 0.5}, np.ones(3)), order=2)
    """
    check_function(f, "check_grads")
    if not set(modes) <= set(MODES) or isinstance(modes, str):
        raise SettingError.here(f"modes is {modes!r}", remedy="give a tuple of 'fwd' and 'rev'")
    of_leaves, point = as_vectors(f, tuple(args), {})
    widest = max(precision(real_dtype(x.dtype)) for x in [*point, np.asarray(of_leaves(*point))])
    allowed = 100 * widest**0.5 if rtol is None else rtol
    h = step(widest, 1)[0] if eps is None else eps
    _check(of_leaves, point, order, tuple(modes), (h, allowed, atol or 0.0), "")


def as_vectors(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Function, list[Any]]:
    """The function from the inexact leaves of the arguments to one vector of its results, and these leaves."""
    leaves, structure = leaves_of((args, kwargs), lambda i: ("args", "kwargs")[i])
    values, avals = flatten((args, kwargs))[0], [leaf.aval for leaf in leaves]
    places = [i for i, aval in enumerate(avals) if is_inexact(aval.dtype)]
    if not places:
        raise NonDifferentiableArgumentError.here("args has nothing but integers and bools", remedy="pass a float")

    def of_leaves(*varying: Any) -> Any:
        found = dict(enumerate(values)) | dict(zip(places, varying, strict=True))
        given, named = structure.unflatten([found[i] for i in range(len(found))])
        vector, _ = ravel_pytree(UPWARD.callee(f)(*given, **named))
        return vector * 1.0  # a result of integers is constant

    return of_leaves, [np.asarray(values[i]) for i in places]


def staged_at(f: Function, xs: Sequence[Any]) -> tuple[Program, list[Any]]:
    """The program of a function of arrays, and what it runs on."""
    staged = stage_in(f, range(len(xs)), differentiated(tuple(xs), lambda i: f"x{i}"), xs, has_aux=False)
    return staged.program, [np.asarray(operand) for operand in staged.operands]


Limits: TypeAlias = tuple[float, float, float]
"""The step, the relative and the absolute error."""


def _check(f: Function, xs: list[Any], order: int, modes: tuple[str, ...], limits: Limits, of: str) -> None:
    """Compare the derivatives of a function from arrays to one vector."""
    if order < 1:
        return
    h, rtol, atol = limits
    dxs = [direction(Aval(x.dtype, x.shape), seed) for seed, x in enumerate(xs)]
    expected = np.asarray(difference(f, xs, dxs, h))
    value, pull = vjp(f, *xs)
    ct = direction(Aval(value.dtype, value.shape), len(xs))
    checks = {
        "fwd": ("forward mode", lambda: jvp(f, tuple(xs), tuple(dxs))[1], expected),
        "rev": ("reverse mode", lambda: pairing(pull(ct), dxs), pairing([ct], [expected])),
    }
    for mode in modes:
        name, found, like = checks[mode]
        what, largest = f"{name}{of} is not the difference", float(np.max(np.abs(like), initial=SCALE))
        try:
            np.testing.assert_allclose(found(), like, rtol, atol + rtol * largest, err_msg=what)
        except AssertionError as error:
            blame = wrong_equation(*staged_at(f, xs))
            error.add_note(f"to blame is {blame}" if blame else "no operation is wrong by itself")
            raise
    derivatives = {
        "fwd": lambda *xs: jvp(f, xs, tuple(dxs))[1],
        "rev": lambda *xs: ravel_pytree(vjp(f, *xs)[1](ct))[0],
    }
    for mode in modes:
        _check(derivatives[mode], xs, order - 1, modes, limits, f" of {checks[mode][0]}{of}")
