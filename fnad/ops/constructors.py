"""Constructors for families of primitives: they fill in whatever follows from the kind.

A declaration states only what is particular: the name, the NumPy function, the scalar expression, the partials, the
domain. Dtype and shape inference, registration and samples come from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from fnad.errors import DtypeError, ShapeError
from fnad.ir import primitive as kinds
from fnad.ir.axes import Stacked
from fnad.ir.ranges import Bounds, Singular
from fnad.ir.types import BOOL, DTYPES, F64, Aval, Dtype, Shape, dtype_name

Domain: TypeAlias = frozenset[Dtype]
Samples: TypeAlias = Callable[[], Iterable[kinds.Sample]]
Interval: TypeAlias = tuple[float, float]
Point: TypeAlias = tuple[complex, ...]

BOOLS: Domain = frozenset({BOOL})
INTEGERS: Domain = frozenset(d for d in DTYPES.values() if d.kind in "iu")
REALS: Domain = frozenset(d for d in DTYPES.values() if d.kind == "f")
COMPLEXES: Domain = frozenset(d for d in DTYPES.values() if d.kind == "c")
INEXACT: Domain = REALS | COMPLEXES
ORDERED: Domain = INTEGERS | REALS
NUMBERS: Domain = INTEGERS | INEXACT
BITS: Domain = BOOLS | INTEGERS
ANY: Domain = NUMBERS | BOOLS

UNIT: Interval = (0.1, 0.9)
"""An interval in which most functions are smooth."""

LINE: Interval = (-2.0, 2.0)
"""For functions that are smooth everywhere."""


# ---- avals -------------------------------------------------------------------------------------------------------


def check_dtype(name: str, dtype: Dtype, domain: Domain) -> None:
    """Raise `DtypeError` where a primitive does not take a dtype."""
    if dtype not in domain:
        taken = ", ".join(n for n, d in DTYPES.items() if d in domain)
        raise DtypeError(f"{name} does not take {dtype_name(dtype)}", remedy=f"it takes {taken}: convert with astype")


def check_one_dtype(name: str, *avals: Aval) -> None:
    """Raise `DtypeError` where operands differ in dtype."""
    if any(aval.dtype != avals[0].dtype for aval in avals):
        raise DtypeError(f"{name} takes operands of one dtype, got {' and '.join(map(str, avals))}")


def same_avals(name: str, avals: Sequence[Aval]) -> Aval:
    """The one aval of all operands; raise where they differ."""
    if avals.count(avals[0]) < len(avals):
        check_one_dtype(name, *avals)
        raise ShapeError(f"{name} takes operands of one shape, got {' and '.join(map(str, avals))}")
    return avals[0]


def infer_elementwise(
    name: str, arity: int, domain: Domain, result: Callable[[Dtype], Dtype] | None
) -> Callable[..., Aval]:
    """The inference rule of an elementwise primitive; `result` maps the operands' dtype to the result's."""

    def infer(*avals: Aval) -> Aval:
        if len(avals) != arity:
            raise ShapeError(f"{name} takes {arity} operands, got {len(avals)}")
        aval = same_avals(name, avals)
        check_dtype(name, aval.dtype, domain)
        return aval if result is None else aval.with_dtype(result(aval.dtype))

    return infer


def to_bool(_: Dtype) -> Dtype:
    """Bool, the result dtype of predicates."""
    return BOOL


def operands_of(template: str) -> int:
    """The number of operands of a template."""
    return 1 + max(map(int, re.findall(r"{(\d)}", template)))


# ---- constructors ------------------------------------------------------------------------------------------------


def elementwise(
    name: str,
    evaluate: Callable[..., Any],
    template: str,
    derivative: tuple[kinds.Rule | None, ...] | kinds.Derivative = kinds.NonDifferentiable(),  # noqa: B008 - a constant
    *,
    domain: Domain,
    doc: str,
    cost: int = 1,
    finite: bool = False,
    result: Callable[[Dtype], Dtype] | None = None,
    over: tuple[Interval, ...] | None = None,
    edges: tuple[Point, ...] = (),
    commutative: bool = False,
    bounded: kinds.Bounded = kinds.nowhere,
    bounds: Bounds | None = None,
    singular: tuple[Singular, ...] = (),
) -> kinds.Primitive:
    """Declare a primitive that acts element by element.

    `derivative` is a tuple of functions `(result, *operands) -> partial`, one per operand, or a record. `over` gives an
    interval per operand in which the function is smooth, `edges` points where it is not; samples come from these.
    `finite` and `cost` are explained in `Partials` and `Scalar`, `commutative` and `bounded` in `Primitive`.
    """
    count = operands_of(template)
    return kinds.declare(
        name,
        infer_elementwise(name, count, domain, result),
        evaluate,
        derivative if isinstance(derivative, kinds.Derivative) else kinds.Partials(derivative, finite),
        kinds.Scalar(template, cost),
        lambda: elementwise_samples(domain, over or (UNIT,) * count, edges),
        doc,
        commutative=commutative,
        bounded=bounded,
        bounds=bounds,
        singular=singular,
    )


def primitive(
    infer: Callable[..., Aval | tuple[Aval, ...]],
    derivative: kinds.Derivative,
    lower: kinds.Lowering,
    samples: Samples,
    **fields: Any,
) -> Callable[[Callable[..., Any]], kinds.Primitive]:
    """Declare the primitive that a NumPy function evaluates: its name and its description are those of the function."""

    def of(evaluate: Callable[..., Any]) -> kinds.Primitive:
        name, doc = evaluate.__name__.removesuffix("_"), " ".join((evaluate.__doc__ or "").split())
        return kinds.declare(name, infer, evaluate, derivative, lower, samples, doc, **fields)

    return of


def linear(
    infer: Callable[..., Aval],
    transpose: kinds.Rule,
    lower: kinds.Lowering,
    samples: Samples,
    *,
    wrt: tuple[int, ...] | None = None,
    **fields: Any,
) -> Callable[[Callable[..., Any]], kinds.Primitive]:
    """Declare a primitive that is linear, jointly, in the operands `wrt`, by the function that evaluates it."""
    return primitive(infer, kinds.Linear(transpose, wrt), lower, samples, **fields)


matrix_primitive = partial(primitive, axes=Stacked())
"""Declare a primitive of matrices, on the last axes of stacks, by the function that evaluates it."""

stacked = partial(kinds.declare, axes=Stacked())
"""Declare a primitive of matrices by its fields."""


def predicate(
    name: str,
    evaluate: Callable[..., Any],
    template: str,
    *,
    domain: Domain,
    doc: str,
    edges: tuple[Point, ...] = (),
    commutative: bool = False,
) -> kinds.Primitive:
    """Declare an elementwise primitive with a bool result."""
    return elementwise(
        name,
        evaluate,
        template,
        domain=domain,
        result=to_bool,
        over=(LINE,) * operands_of(template),
        edges=edges,
        doc=doc,
        commutative=commutative,
    )


# ---- samples -----------------------------------------------------------------------------------------------------


def elementwise_samples(domain: Domain, over: tuple[Interval, ...], edges: tuple[Point, ...]) -> Iterable[kinds.Sample]:
    """Operands within the intervals for every dtype of the domain, then the edges in the widest one."""
    rng = np.random.default_rng(0)
    for dtype in by_name(domain):
        yield kinds.Sample(tuple(random_array(rng, (2, 3), dtype, interval) for interval in over))
    widest = F64 if F64 in domain else by_name(domain)[-1]
    if edges:
        yield kinds.Sample(tuple(np.array(column, widest) for column in zip(*edges, strict=True)), smooth=False)


def by_name(domain: Domain) -> list[Dtype]:
    """The dtypes of a domain in the order of the table of dtypes."""
    return [dtype for dtype in DTYPES.values() if dtype in domain]


def random_array(rng: np.random.Generator, shape: Shape, dtype: Dtype, interval: Interval = UNIT) -> Any:
    """An array of distinct values: floats in the interval, integers from 1 to 9."""
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(1, 10, shape).astype(dtype)
    low, high = interval
    real = rng.uniform(low, high, shape)
    return (real + 1j * rng.uniform(*UNIT, shape) if dtype.kind == "c" else real).astype(dtype)
