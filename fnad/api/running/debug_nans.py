"""Runs under `fnad.debug_nans`: results that are not finite are followed to where that arose."""

from __future__ import annotations

from collections.abc import Sequence

from fnad.api.staging.leaves import Array
from fnad.backends.base import Executor
from fnad.backends.reference import fresh
from fnad.errors import FnadError, NonFiniteError
from fnad.ir.program import Program
from fnad.ir.walk import acts_outside
from fnad.placement import is_on_host, on_device, on_host
from fnad.transforms.nonfinite import Found, first, follow, is_not_finite


def checked(run: Executor, arguments: Sequence[Array], program: Program, count: int | None = None) -> list[Array]:
    """The results of a run of the program, of which the first `count` (or all) are checked.

    Raises `NonFiniteError` for what arose in it. A program that has effects is interpreted instead of the run.
    """
    given, arguments = arguments, list(map(on_host, arguments))
    if any(map(acts_outside, program.equations)):
        found = follow(program, arguments)
        _check(found, count)
        return list(map(_placed, fresh(found[0], arguments)))
    try:
        results = run(given)
    except FnadError:
        _check(follow(program, arguments), count)
        raise
    if any(map(is_not_finite, map(on_host, results[:count]))):
        found = follow(program, arguments)
        _check(found, count)
        _check_native(program, found)
    return results


def _placed(array: Array) -> Array:
    return array if is_on_host() else on_device(array)


def _check(found: Found, count: int | None) -> None:
    origin = first(found[1][:count])
    if origin is not None:
        raise origin.error()


def _check_native(program: Program, found: Found) -> None:
    """Raise where native code alone finds what is not finite."""
    if not any(map(is_not_finite, found[0])):
        raise NonFiniteError(
            f"native code finds a nan or inf in the results of {program.name}, the interpreter none",
            remedy="its values come near the largest of their dtype, where rounding decides: scale them",
        )
