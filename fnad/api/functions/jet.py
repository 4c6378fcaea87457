"""Derivatives of higher order along curves: `jet`."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

from fnad.api.running.derivations import Derivation, unchanged
from fnad.api.running.execution import run
from fnad.api.staging.arguments import differentiated, stage_in
from fnad.api.staging.expected_trees import ExpectedTree
from fnad.api.staging.leaves import Function, Operand, argument_name, check_function, type_name
from fnad.api.staging.stage import Staged
from fnad.control.jet import jet as on_coefficients
from fnad.control.jet import varying
from fnad.control.region_rules import pieces
from fnad.errors import ArgumentTypeError, TangentError
from fnad.ir.builder import inline, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import mul
from fnad.ops.shape import constant, zeros_like


def jet(f: Function, primals: Sequence[Any], series: Sequence[Sequence[Any]]) -> tuple[Any, list[Any]]:
    """The output of `f` at `primals`, and its derivatives of order 1 to K along a curve.

    The number of operations grows with K² or K³, where nested `jvp` needs 2^K (Griewank and Walther, "Evaluating
    Derivatives", 2nd ed., 2008, section 13.2). Names and scaling are those of `jax.experimental.jet`.

    Parameters:
        f (function): Takes and returns pytrees of arrays and numbers.
        primals (tuple of pytrees): The arguments of `f`, through which the curve goes.
        series (tuple of lists of pytrees): For each argument, the derivatives of the curve of order 1 to K, each as a
            tangent of `jvp`.
    Returns:
        tuple: (output, list of its K derivatives), each with the structure, shapes and dtypes of the output. For K = 1
            this is `jvp`.
    Raises:
        TangentError: If the derivatives do not match the arguments, or their numbers differ.
        NonDifferentiableArgumentError, ArgumentTypeError, DtypeError: As in `jvp`.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.jet(np.exp, (0.0,), ([1.0, 0.0, 0.0],))
        (np.float64(1.0), [np.float64(1.0), np.float64(1.0), np.float64(1.0)])
    """
    check_function(f, "jet")
    order = _order(primals, series)
    wrt = differentiated(primals, lambda i: argument_name(f, i))
    expected = ExpectedTree("series", "the primals", wrt.structure, wrt.avals, TangentError)
    given = [expected.match(tuple(terms[k] for terms in series)) for k in range(order)]
    staged = stage_in(f, range(len(primals)), wrt, primals, has_aux=False)
    return along_curve(staged, given)


def along_curve(staged: Staged, series: Sequence[Sequence[Operand]]) -> tuple[Any, list[Any]]:
    """The output of a traced call, and its derivatives along the curve with the derivatives `series` of each order."""
    order = len(series)
    operands = [*staged.operands, *[x for derivatives in series for x in derivatives]]
    found = run(staged.program, operands, _derivatives(staged.wrt, order))
    values, *derivatives = pieces(found, [len(staged.program.outputs)] * (order + 1))
    return staged.output.rebuild(values), [staged.output.rebuild(each) for each in derivatives]


def _order(primals: Any, series: Any) -> int:
    for name, value in (("primals", primals), ("series", series)):
        if not isinstance(value, (tuple, list)):
            raise ArgumentTypeError.here(
                f"{name} is of type {type_name(value)}, not a tuple", remedy=f"write ({name},)"
            )
    counts = {len(terms) if isinstance(terms, (tuple, list)) else 0 for terms in series}
    if len(series) != len(primals) or len(counts) != 1 or 0 in counts:
        raise TangentError.here(
            "series has not the same number of derivatives for each of the primals",
            remedy="give a list of them for each, as in fnad.jet(f, (x,), ([dx, ddx],))",
        )
    return counts.pop()


def _derivatives(wrt: Sequence[bool], order: int) -> Derivation:
    """(x…, dx…, ddx…, …) -> (y…, dy…, ddy…, …), where derivatives are coefficients times the factorial of the order."""

    def derive(program: Program) -> tuple[Program]:
        leaves, varies = sum(wrt), varying([program], wrt)
        inner = on_coefficients(program, order, wrt)

        def run(*args: Symbol) -> list[Symbol]:
            given = args[: len(wrt)]
            orders = [given[:leaves], *pieces(args[len(wrt) :], [leaves] * order)]
            curves = [
                _scaled(x, 1 / factorial(k)) for n in range(leaves) for k, x in enumerate(row[n] for row in orders)
            ]
            parts = pieces(inline(inner, [*curves, *given[leaves:]]), [order + 1 if flag else 1 for flag in varies])
            return [
                _scaled(part[k], factorial(k)) if k < len(part) else zeros_like(part[0])
                for k in range(order + 1)
                for part in parts
            ]

        avals = [aval for aval, mark in zip(program.in_avals, wrt, strict=True) if mark]
        return (trace(run, *program.in_avals, *avals * order, name=program.name),)

    return Derivation(("jet", *wrt, order), derive, unchanged)


def _scaled(x: Symbol, factor: float) -> Symbol:
    return x if factor == 1 else mul(x, constant(factor, x.dtype, x.shape))
