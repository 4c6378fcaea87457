"""First and second derivatives of functions on symbols, each computed in every mode; the modes have to agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fnad.ir.builder import trace
from fnad.ir.program import Program
from fnad.ir.types import aval_of
from fnad.testing import Run, marks, pullback, pushforward
from fnad.transforms.joint import joint
from fnad.transforms.jvp import jvp

Function: TypeAlias = Callable[..., Any]


def program_of(function: Function, *xs: Any) -> Program:
    """Return the program of a function on symbols of one result."""
    return trace(lambda *symbols: [function(*symbols)], *[aval_of(np.asarray(x)) for x in xs], name="function")


def value(run: Run, function: Function, *xs: Any) -> Any:
    (y,) = run(program_of(function, *xs), [np.asarray(x) for x in xs])
    return y


def basis(xs: Any) -> list[list[Any]]:
    """Return the directions with a single 1, element by element of every inexact operand."""
    inexact = [np.asarray(x) for x in xs if np.asarray(x).dtype.kind in "fc"]
    out: list[list[Any]] = []
    for i, x in enumerate(inexact):
        for position in range(x.size):
            direction = [np.zeros_like(x) for x in inexact]
            direction[i].flat[position] = 1
            out.append(direction)
    return out


def reverse(run: Run, function: Function, *xs: Any) -> Any:
    """Return the gradient of the sum of the results, flat, by reverse mode."""
    program, arrays = program_of(function, *xs), [np.asarray(x) for x in xs]
    cts = [np.ones(aval.shape, aval.dtype) for aval in program.out_avals]
    return flat(pullback(run, program, arrays, cts))


def forward(run: Run, function: Function, *xs: Any) -> Any:
    """Return the same by forward mode, one direction at a time."""
    program, arrays = program_of(function, *xs), [np.asarray(x) for x in xs]
    return np.array([np.sum(pushforward(run, program, arrays, direction)[0]) for direction in basis(arrays)])


def gradient(run: Run, function: Function, *xs: Any) -> Any:
    """Return the gradient, which both modes have to agree on."""
    backward = reverse(run, function, *xs)
    np.testing.assert_allclose(forward(run, function, *xs), backward, rtol=1e-6)
    return backward


def hessian(run: Run, function: Function, *xs: Any) -> Any:
    """Return the Hessian of a scalar function, which all four nestings of the modes have to agree on."""
    program, arrays = program_of(function, *xs), [np.asarray(x) for x in xs]
    directions = basis(arrays)
    ways = (forward_over_reverse, reverse_over_reverse, reverse_over_forward, forward_twice)
    first, *others = [way(run, program, arrays, directions) for way in ways]
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-6, atol=1e-12)
    return first


def _ones(program: Program) -> list[Any]:
    return [np.ones(aval.shape, aval.dtype) for aval in program.out_avals]


def _zeros(arrays: list[Any]) -> list[Any]:
    return [np.zeros_like(array) for array in arrays]


Transform: TypeAlias = Callable[[Program, Sequence[bool]], Program]


def _nested(outer: Transform, inner: Transform, program: Program) -> tuple[Program, int]:
    """Return the derivative of a derivative, and where its last results begin."""
    first = inner(program, marks(program))
    return outer(first, marks(first)), len(first.outputs)


def forward_over_reverse(run: Run, program: Program, xs: list[Any], vs: list[list[Any]]) -> Any:
    """Return the products of the Hessian with these directions; as do the functions below."""
    (whole, start), cts = _nested(jvp, joint, program), _ones(program)
    return np.array([flat(run(whole, [*xs, *cts, *v, *_zeros(cts)])[start + len(cts) :]) for v in vs])


def reverse_over_reverse(run: Run, program: Program, xs: list[Any], vs: list[list[Any]]) -> Any:
    (whole, start), cts = _nested(joint, joint, program), _ones(program)
    return np.array([flat(run(whole, [*xs, *cts, *_zeros(cts), *v])[start : start + len(v)]) for v in vs])


def reverse_over_forward(run: Run, program: Program, xs: list[Any], vs: list[list[Any]]) -> Any:
    (whole, start), cts = _nested(joint, jvp, program), _ones(program)
    return np.array([flat(run(whole, [*xs, *v, *_zeros(cts), *cts])[start : start + len(v)]) for v in vs])


def forward_twice(run: Run, program: Program, xs: list[Any], vs: list[list[Any]]) -> Any:
    whole, start = _nested(jvp, jvp, program)
    return np.array([[np.sum(run(whole, [*xs, *v, *u, *_zeros(v)])[start + 1]) for u in vs] for v in vs])


def flat(arrays: Any) -> Any:
    return np.concatenate([np.ravel(array) for array in arrays])
