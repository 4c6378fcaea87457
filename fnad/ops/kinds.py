"""Constructors for families of primitives: they fill in whatever follows from the kind.

A declaration states only what is particular: the name, the NumPy function, the scalar expression, the partials, the
domain. Dtype and shape inference, registration and default samples come from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from fnad.errors import DtypeError, ShapeError
from fnad.ir.primitive import (
    Derivative,
    Linear,
    NonDifferentiable,
    Partials,
    Primitive,
    Rule,
    Sample,
    Scalar,
    register,
)
from fnad.ir.types import BOOL, DTYPES, Aval, Dtype, dtype_name

Domain: TypeAlias = frozenset[Dtype]
Samples: TypeAlias = Callable[[], Iterable[Sample]]

BOOLS: Domain = frozenset({BOOL})
INTEGERS: Domain = frozenset(d for d in DTYPES.values() if d.kind in "iu")
REALS: Domain = frozenset(d for d in DTYPES.values() if d.kind == "f")
COMPLEXES: Domain = frozenset(d for d in DTYPES.values() if d.kind == "c")
INEXACT: Domain = REALS | COMPLEXES
ORDERED: Domain = INTEGERS | REALS
NUMBERS: Domain = INTEGERS | INEXACT
ANY: Domain = NUMBERS | BOOLS


def check_dtype(name: str, dtype: Dtype, domain: Domain) -> None:
    """Raise `DtypeError` where a primitive does not take a dtype."""
    if dtype not in domain:
        taken = ", ".join(n for n, d in DTYPES.items() if d in domain)
        raise DtypeError(f"{name} does not take {dtype_name(dtype)}", remedy=f"it takes {taken}: convert with astype")


def same_avals(name: str, avals: tuple[Aval, ...]) -> Aval:
    """Return the one aval of all operands; raise where they differ."""
    first = avals[0]
    for aval in avals[1:]:
        if aval.dtype != first.dtype:
            raise DtypeError(f"{name} takes operands of one dtype, got {' and '.join(map(str, avals))}")
        if aval.shape != first.shape:
            raise ShapeError(f"{name} takes operands of one shape, got {' and '.join(map(str, avals))}")
    return first


def infer_elementwise(name: str, domain: Domain, result: Callable[[Dtype], Dtype] | None) -> Callable[..., Aval]:
    """Return the inference rule of an elementwise primitive; `result` maps the operands' dtype to the result's."""

    def infer(*avals: Aval) -> Aval:
        aval = same_avals(name, avals)
        check_dtype(name, aval.dtype, domain)
        return aval if result is None else aval.with_dtype(result(aval.dtype))

    return infer


def to_bool(_: Dtype) -> Dtype:
    """The result dtype of predicates."""
    return BOOL


def elementwise(
    name: str,
    evaluate: Callable[..., Any],
    template: str,
    partials: tuple[Rule | None, ...] | Derivative,
    *,
    domain: Domain,
    doc: str,
    cost: int = 1,
    finite: bool = False,
    result: Callable[[Dtype], Dtype] | None = None,
    samples: Samples | None = None,
    arity: int | None = None,
) -> Primitive:
    """Declare a primitive that acts element by element.

    `partials` has one function `(result, *operands) -> partial derivative` per operand. Samples default to values that
    lie in the domain of most functions; `finite` and `cost` are explained in `Partials` and `Scalar`.
    """
    derivative = Partials(partials, finite) if isinstance(partials, tuple) else partials
    count = len(partials) if isinstance(partials, tuple) else (arity or 1)
    return register(
        Primitive(
            name,
            infer_elementwise(name, domain, result),
            evaluate,
            derivative,
            Scalar(template, cost),
            samples or (lambda: default_samples(count, domain)),
            doc,
        )
    )


def predicate(
    name: str, evaluate: Callable[..., Any], template: str, *, arity: int, domain: Domain, doc: str
) -> Primitive:
    """Declare an elementwise primitive with a bool result."""
    return elementwise(
        name, evaluate, template, NonDifferentiable(), domain=domain, doc=doc, result=to_bool, arity=arity
    )


def default_samples(count: int, domain: Domain) -> Iterable[Sample]:
    """Yield operands in (0, 1), where most functions are smooth, for every dtype of the domain."""
    rng = np.random.default_rng(0)
    for dtype in sorted(domain, key=lambda d: (d.kind, d.itemsize)):
        yield Sample(tuple(random_array(rng, (2, 3), dtype) for _ in range(count)))


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: Dtype) -> Any:
    """Return an array of distinct small values: in (0.1, 0.9) for floats, 0 … 9 for integers."""
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0, 10, shape).astype(dtype)
    real = 0.1 + 0.8 * rng.random(shape)
    return (real + 1j * (0.1 + 0.8 * rng.random(shape)) if dtype.kind == "c" else real).astype(dtype)


def linear(
    name: str,
    infer: Callable[..., Aval],
    evaluate: Callable[..., Any],
    transpose: Rule,
    lower: Any,
    *,
    doc: str,
    samples: Samples,
    wrt: tuple[int, ...] | None = None,
) -> Primitive:
    """Declare a primitive that is linear, jointly, in the operands `wrt`."""
    return register(Primitive(name, infer, evaluate, Linear(transpose, wrt), lower, samples, doc))
