"""The constructor for functions of scipy.special: each is one ufunc, and a scalar operation of `fnad.scalar.special`.

A declaration states the name, the meaning with the source of the derivative (a section of the NIST Digital Library of
Mathematical Functions, https://dlmf.nist.gov, or another), and one partial an operand:

    jv = special("jv", "Bessel function of the first kind; DLMF 10.6.1.", "v", lambda y, v, x: …)

A name in the place of a partial says that there is no formula in that operand. The operands are those of the ufunc:
integers, if there are any, then real parameters, then the argument, which decides on the dtype of the result. SciPy
is imported when the first of them is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.axes import Elementwise
from fnad.ir.primitive import (
    Library,
    Lowering,
    NoFormula,
    NonDifferentiable,
    Partials,
    Primitive,
    Rule,
    Sample,
    Scalar,
    register,
)
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, Aval, Dtype, real_dtype
from fnad.ops.conversion import convert_to
from fnad.ops.kinds import REALS, UNIT, Domain, Interval, Point, by_name, check_dtype, random_array, same_avals
from fnad.scalar.special import SPECIAL as SPECIAL_OPERATIONS
from fnad.scalar.special import scipy_function


class Ufunc(NamedTuple):
    """A ufunc of SciPy: one primitive a result, and how many operands are integers."""

    primitives: list[Primitive]
    integers: int


SPECIAL: dict[str, Ufunc] = {}
"""The ufuncs by name."""

COST = 100
"""Of most special functions in additions; what is said of it is that it is worth keeping."""

INF, NAN = float("inf"), float("nan")
POSITIVE: Interval = (0.4, 3.0)
SINGULAR = (0.0, -0.0, 1.0, -1.0, 2.0, INF, -INF, NAN)
"""Where special functions have their poles, zeros and limits."""


def special(
    name: str,
    doc: str,
    *partials: Rule | str | None,
    domain: Domain = REALS,
    over: tuple[Interval, ...] | None = None,
    edges: Sequence[Point] = (),
    integers: int = 0,
    ufunc: str | None = None,
    output: int | None = None,
    evaluate: Callable[..., Any] | None = None,
    raises: bool = False,
) -> Primitive:
    """Declare a function that a ufunc of SciPy computes.

    `over` gives an interval per operand that is no integer in which the function is smooth, `edges` further points
    where it may not be. The first `integers` operands are i64. The `ufunc` has the primitive's name if not given;
    `output` chooses among its results; the table of `fnad.scalar.special` states both again, below the primitives. What
    is computed by another function has `evaluate`, and counts as one that `raises`: it has no place in native loops.
    """
    arity = len(partials)
    functions = tuple(NoFormula(name, partial) if isinstance(partial, str) else partial for partial in partials)
    fixed = [isinstance(partial, str) for partial in partials]
    points = [*_singular_points(fixed), *edges]
    primitive = register(
        Primitive(
            name,
            _infer(name, arity, integers, domain),
            evaluate or scipy_call(ufunc or name, output),
            Partials(functions) if any(functions) else NonDifferentiable(),
            _lowering(name, ufunc or name, raises, evaluate),
            lambda: _samples(domain, integers, over or (UNIT,) * (arity - integers), points),
            doc,
            axes=Elementwise(),
        )
    )
    if ufunc or not evaluate:
        SPECIAL.setdefault(ufunc or name, Ufunc([], integers)).primitives.append(primitive)
    return primitive


def _lowering(name: str, ufunc: str, raises: bool, evaluate: Callable[..., Any] | None) -> Lowering:
    if evaluate or raises:
        return Library(None if evaluate else ufunc, raises=True)
    return Scalar(SPECIAL_OPERATIONS[name].template, COST)


def _infer(name: str, arity: int, integers: int, domain: Domain) -> Callable[..., Aval]:
    def infer(*avals: Aval) -> Aval:
        if len(avals) != arity:
            raise ShapeError(f"{name} takes {arity} operands, got {len(avals)}")
        argument = avals[-1]
        check_dtype(name, argument.dtype, domain)
        expected = [I64] * integers + [real_dtype(argument.dtype)] * (arity - integers - 1)
        given = zip(avals, expected, strict=False)
        same_avals(name, [*(a.with_dtype(argument.dtype) if a.dtype == dtype else a for a, dtype in given), argument])
        return argument

    return infer


def scipy_call(name: str, output: int | None = None) -> Callable[..., Any]:
    """Return what calls a function of SciPy, and gives the result, or that of this number, in the argument's dtype."""

    def evaluate(*operands: Any) -> Any:
        results = scipy_function(name)(*operands)
        return np.asarray(results if output is None else results[output], operands[-1].dtype)

    return evaluate


# ---- samples -----------------------------------------------------------------------------------------------------


def _samples(domain: Domain, integers: int, over: Sequence[Interval], edges: Sequence[Point]) -> Iterable[Sample]:
    rng = np.random.default_rng(0)
    for dtype in by_name(domain):
        dtypes = _dtypes(dtype, integers, len(over))
        intervals = [*[UNIT] * integers, *over]
        yield Sample(tuple(random_array(rng, (2, 3), d, i) for d, i in zip(dtypes, intervals, strict=True)))
    dtypes = _dtypes(F64 if F64 in domain else by_name(domain)[-1], 0, len(over))
    columns = zip(*[edge[integers:] for edge in edges], strict=True)
    degrees = [np.arange(len(edges)) % 4] * integers
    yield Sample((*degrees, *(np.array(c, d) for c, d in zip(columns, dtypes, strict=True))), smooth=False)


def _singular_points(fixed: Sequence[bool]) -> Iterable[Point]:
    """Return each singular value for all operands, a finite one for those that have no derivative."""
    return [tuple(2.0 if f and not math.isfinite(x) else x for f in fixed) for x in SINGULAR]


def _dtypes(dtype: Dtype, integers: int, count: int) -> list[Dtype]:
    return [I64] * integers + [real_dtype(dtype)] * (count - 1) + [dtype]


# ---- parts of formulas -------------------------------------------------------------------------------------------


def scaled(factor: Symbol, y: Symbol) -> Symbol:
    """Return the product of a real parameter and a value that may be complex."""
    return convert_to(factor, y.dtype) * y
