"""Exponents, neighbours and bits of floating-point numbers; common divisors and multiples and bit counts of integers.

A neighbour, y = nextafter(x, z), moves with x; how far it is, and the exponent of x, are constant between powers of 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fnad.errors import DtypeError, ShapeError
from fnad.ir.axes import Elementwise
from fnad.ir.primitive import Library, Linear, NonDifferentiable, Primitive, Sample, Scalar, declare
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, F64, I64, Aval, Dtype
from fnad.ops.constructors import (
    INTEGERS,
    LINE,
    REALS,
    Domain,
    Point,
    by_name,
    elementwise,
    elementwise_samples,
    infer_elementwise,
)
from fnad.ops.shape import ones_like, sample

I32, U8 = DTYPES["i32"], DTYPES["u8"]
NAN, INF = float("nan"), float("inf")

SINGULAR: tuple[Point, ...] = ((0.0,), (-0.0,), (INF,), (-INF,), (NAN,), (5e-324,), (1e308,))
PAIRS: tuple[Point, ...] = ((0.0, 1.0), (0.0, -1.0), (1.0, 1.0), (INF, 0.0), (NAN, 0.0), (1.0, NAN))


def _in_numpy(
    name: str,
    evaluate: Callable[..., Any],
    arity: int,
    domain: Domain,
    doc: str,
    result: Callable[[Dtype], Dtype] | None = None,
    edges: tuple[Point, ...] = (),
    *,
    commutative: bool = False,
    dispatched: bool = False,
) -> Primitive:
    """Declare an elementwise primitive that NumPy computes.

    `dispatched` are those that CuPy has with NumPy's results: its `lcm` wraps to another number, `frexp`
    leaves exponents of infinities open, and it has no `spacing`.
    """
    return declare(
        name,
        infer_elementwise(name, arity, domain, result),
        evaluate,
        NonDifferentiable(),
        Library(name, raises=False, dispatched=dispatched),
        lambda: elementwise_samples(domain, (LINE,) * arity, edges),
        doc,
        axes=Elementwise(),
        commutative=commutative,
    )


# ---- integers ----------------------------------------------------------------------------------------------------

gcd = _in_numpy("gcd", np.gcd, 2, INTEGERS, "Greatest common divisor, not negative.", commutative=True, dispatched=True)
lcm = _in_numpy("lcm", np.lcm, 2, INTEGERS, "Least common multiple, not negative; it wraps.", commutative=True)
bitwise_count = _in_numpy(
    "bitwise_count",
    np.bitwise_count,
    1,
    INTEGERS,
    "How many bits of the absolute value are 1.",
    result=lambda _: U8,
    dispatched=True,
)

# ---- floating-point numbers --------------------------------------------------------------------------------------

spacing = _in_numpy(
    "spacing", np.spacing, 1, REALS, "The distance to the next number away from zero, with its sign.", edges=SINGULAR
)
nextafter = elementwise(
    "nextafter",
    np.nextafter,
    "nextafter({0}, {1})",
    (lambda r, x, y: ones_like(x), None),
    domain=REALS,
    over=(LINE, LINE),
    edges=PAIRS,
    finite=True,
    cost=6,
    doc="The number next to the first operand towards the second.",
)
exponent = _in_numpy(
    "exponent",
    lambda x: np.frexp(x)[1],
    1,
    REALS,
    "The integer e of x = m * 2**e with 0.5 <= |m| < 1; 0 for what has none.",
    result=lambda _: I32,
    edges=SINGULAR,
)
bits = _in_numpy(
    "bits",
    lambda x: np.where(np.isnan(x), NAN, x).view(np.int64),
    1,
    frozenset({F64}),
    "The bits of an f64 as an i64, those of one nan for all of them.",
    result=lambda _: I64,
    edges=SINGULAR,
    dispatched=True,
)


def _infer_ldexp(x: Aval, e: Aval) -> Aval:
    if x.dtype not in REALS or e.dtype.kind != "i":
        raise DtypeError(f"ldexp takes real numbers and integer exponents, got {x} and {e}")
    if x.shape != e.shape:
        raise ShapeError(f"ldexp takes operands of one shape, got {x} and {e}")
    return x


def _ldexp_samples() -> Iterable[Sample]:
    for dtype in by_name(REALS):
        for power in ("i32", "i64"):
            yield Sample((sample((2, 3), dtype), sample((2, 3), DTYPES[power], 1)))
    yield Sample((np.array([1.0, INF, NAN, 5e-324]), np.array([-2000, 2000, 0, 1074])), smooth=False)


def _transpose_ldexp(ct: Symbol, x: Symbol, e: Symbol) -> tuple[Symbol, None]:
    return ldexp(ct, e), None


ldexp = declare(
    "ldexp",
    _infer_ldexp,
    np.ldexp,
    Linear(_transpose_ldexp, (0,)),
    Scalar("ldexp({0}, {1})", cost=8),
    _ldexp_samples,
    "x * 2**e, exact but for overflow and underflow.",
    axes=Elementwise(),
)
