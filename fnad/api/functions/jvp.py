"""Forward mode: `jvp`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fnad.api.running import derivations
from fnad.api.running.execution import run
from fnad.api.staging.arguments import differentiated, stage_in
from fnad.api.staging.expected_trees import ExpectedTree
from fnad.api.staging.leaves import Function, Operand, argument_name, check_function, to_user, type_name
from fnad.api.staging.selection import Names, selected
from fnad.api.staging.stage import Staged
from fnad.errors import ArgumentTypeError, TangentError
from fnad.ir.types import is_inexact


def jvp(
    f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False, *, wrt: Names = None
) -> tuple[Any, ...]:
    """The output of `f` at `primals`, and its derivative in the direction of `tangents`.

    Parameters:
        f (function): Takes and returns pytrees of arrays and numbers.
        primals (tuple of pytrees): The arguments of `f`.
        tangents (tuple of pytrees): The direction, with the structure, shapes and dtypes of `primals`, or of the
            parts that `wrt` names; 0 for integers and bools among the leaves.
        has_aux (bool): If true, `f` returns a pair (output, aux) of its output and anything else.
        wrt (str or sequence of str): The names of the arguments to differentiate in, or of parts of them, such as
            "params.w"; if not given, all.
    Returns:
        tuple: (output, tangent), or (output, tangent, aux). The tangent has the structure, shapes and dtypes of the
            output, and is 0 for integers and bools.
    Raises:
        TangentError: If the tangents do not match the primals.
        NonDifferentiableArgumentError: If a primal has integers and bools only; let `f` take it from its closure.
        ArgumentTypeError, DtypeError, AuxiliaryError: As in `grad`.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.jvp(lambda x: x**2, (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
        (array([1., 4.]), array([2., 0.]))
    """
    check_function(f, "jvp")
    for name, given in (("primals", primals), ("tangents", tangents)):
        check_tuple(name, given)
    f, given, count = selected(f, wrt, primals)
    arguments = differentiated(given[:count], lambda i: argument_name(f, i))
    expected = ExpectedTree("tangents", "the primals", arguments.structure, arguments.avals, TangentError)
    directions = expected.match(tuple(tangents))
    staged = stage_in(f, range(count), arguments, given, has_aux=has_aux)
    return pushed_forward(staged, directions, has_aux=has_aux)


def pushed_forward(staged: Staged, directions: Sequence[Operand], *, has_aux: bool) -> tuple[Any, ...]:
    """The output of a traced call, its derivative along the directions of its leaves, and what is beside it."""
    results = run(staged.program, [*staged.operands, *directions], derivations.jvp(staged.wrt, staged.outputs))
    count = len(staged.program.outputs)
    pair = staged.output.rebuild(results[: staged.outputs]), tangents_of(staged, results[count:])
    return (*pair, staged.auxiliary.rebuild(results[staged.outputs : count])) if has_aux else pair


def tangents_of(staged: Staged, computed: Iterable[Any]) -> Any:
    """The tangent of the output, from those of its leaves that have one; others have 0."""
    found = iter(computed)
    tangents = [
        next(found) if is_inexact(aval.dtype) else to_user(np.zeros(aval.shape, aval.dtype))
        for aval in staged.program.out_avals[: staged.outputs]
    ]
    return staged.output.rebuild(tangents)


def check_tuple(name: str, given: Any) -> None:
    """Raise `ArgumentTypeError` unless primals or tangents are a tuple."""
    if not isinstance(given, (tuple, list)):
        raise ArgumentTypeError.here(f"{name} is of type {type_name(given)}, not a tuple", remedy=f"write ({name},)")
