"""The constructor of special functions: each is a row of a table, and a ufunc of scipy.special that SciPy computes.

A row states the signature, the meaning, the source of the derivative, and for each operand a formula of the derivative
in it (`formula`). The source is a section of the NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov,
or another. `y` is the value:

    jv = special("jv(v, x)", "Bessel function J; DLMF 10.6.1.", x="0.5 * (jv(v - 1.0, x) - jv(v + 1.0, x))")

In an operand without one, asking for the derivative is an error that names it. The operands are those of the ufunc:
integers (`n: int`), if there are any, then real parameters, then the argument, which decides on the dtype of the
result. SciPy is imported when the first of them is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import ShapeError
from fnad.ir import primitive as kinds
from fnad.ir.axes import Elementwise
from fnad.ir.ranges import Bounds, Singular
from fnad.ir.types import F64, I64, Aval, Dtype, real_dtype
from fnad.ops.constructors import (
    REALS,
    UNIT,
    Domain,
    Interval,
    Point,
    by_name,
    check_dtype,
    elementwise,
    random_array,
    same_avals,
)
from fnad.ops.conversion import convert_to
from fnad.ops.formula import Formula, formula, parse_signature, word
from fnad.scalar.scipy_ufunc import operation_name, scipy_call


class Ufunc(NamedTuple):
    """A ufunc of SciPy: one primitive a result, and how many operands are integers."""

    primitives: list[kinds.Primitive]
    integers: int


UFUNCS: dict[str, Ufunc] = {}
"""The ufuncs that SciPy computes, by name."""

NATIVE: dict[str, kinds.Primitive] = {}
"""The ufuncs that have a scalar expression."""

COST = 100
"""The cost of a special function, in additions: high enough to store its value rather than compute it again."""

INF, NAN = float("inf"), float("nan")
POSITIVE: Interval = (0.4, 3.0)
SINGULAR = (0.0, -0.0, 1.0, -1.0, 2.0, INF, -INF, NAN)
"""The poles, zeros and limits of special functions."""


def special(
    signature: str,
    doc: str,
    over: tuple[Interval, ...] | None = None,
    *,
    domain: Domain = REALS,
    edges: Sequence[Point] = (),
    ufunc: str | None = None,
    evaluate: Callable[..., Any] | None = None,
    raises: bool = False,
    singular: tuple[Singular, ...] = (),
    **derivatives: str | None,
) -> kinds.Primitive:
    """Declare a function that a ufunc of SciPy computes, with a formula for its derivative in each of these operands.

    None stands for a derivative of zero. `over` gives an interval per operand that is no integer in which the function
    is smooth, `edges` further points where it may not be. The `ufunc` has the primitive's name if not given;
    `sici[0]` is the first result of several. What is computed by another function has `evaluate`, and counts as one
    that `raises`: it has no place in native loops.
    """
    name, declared = parse_signature(signature)
    source, output = _source(ufunc or name)
    operands = [operand.partition(":")[0] for operand in declared]
    integers = sum(operand.endswith(": int") for operand in declared)
    if not {*derivatives} <= {*operands[integers:]}:
        raise ValueError(f"{signature} has a derivative in {', '.join(derivatives)}")
    reals = [_partial(name, operand, operands, derivatives) for operand in operands[integers:]]
    partials = (*[None] * integers, *reals)
    points = [*_singular_points([isinstance(partial, kinds.NoFormula) for partial in partials]), *edges]
    primitive = kinds.declare(
        name,
        partial(_infer, name, len(operands), integers, domain),
        evaluate or scipy_call(source, output),
        kinds.Partials(partials) if any(partials) else kinds.NonDifferentiable(),
        _lowering(source, output, len(operands), raises, evaluate),
        lambda: _samples(domain, integers, over or (UNIT,) * (len(operands) - integers), points),
        doc,
        axes=Elementwise(),
        singular=singular,
    )
    if ufunc or not evaluate:
        results = UFUNCS.setdefault(source, Ufunc([], integers)).primitives
        if len(results) != (output or 0):
            raise ValueError(f"the results of {source} have rows in their order, {name} is not number {len(results)}")
        results.append(primitive)
    return primitive


def native(
    signature: str,
    doc: str,
    template: str,
    over: tuple[Interval, ...] | None = None,
    *,
    domain: Domain = REALS,
    evaluate: Callable[..., Any] | None = None,
    edges: tuple[Point, ...] = (),
    cost: int,
    bounded: kinds.Bounded = kinds.nowhere,
    bounds: Bounds | None = None,
    singular: tuple[Singular, ...] = (),
    **derivatives: str,
) -> kinds.Primitive:
    """Declare a ufunc of SciPy that has a scalar expression here, as `elementwise`, its derivatives as in `special`.

    `evaluate` replaces SciPy's function where that overflows or cancels.
    """
    name, operands = parse_signature(signature)
    partials = tuple(_partial(name, operand, operands, derivatives) for operand in operands)
    NATIVE[name] = elementwise(
        name,
        evaluate or scipy_call(name),
        template,
        partials,
        domain=domain,
        over=over,
        edges=edges,
        cost=cost,
        bounded=bounded,
        bounds=bounds,
        singular=singular,
        doc=doc,
    )
    return NATIVE[name]


def _partial(
    name: str, operand: str, operands: Sequence[str], derivatives: Mapping[str, str | None]
) -> kinds.Rule | None:
    if operand not in derivatives:
        return kinds.NoFormula(name, operand)
    text = derivatives[operand]
    return None if text is None else Formula(["y", *operands], text)


def _source(ufunc: str) -> tuple[str, int | None]:
    """Split `sici[0]` into the name of the ufunc and the number of the result."""
    name, _, output = ufunc.partition("[")
    return name, int(output.removesuffix("]")) if output else None


def _lowering(
    ufunc: str, output: int | None, arity: int, raises: bool, evaluate: Callable[..., Any] | None
) -> kinds.Lowering:
    if evaluate or raises:
        return kinds.Library(None if evaluate else ufunc, raises=True)
    operands = ", ".join(f"{{{n}}}" for n in range(arity))
    return kinds.Scalar(f"{operation_name(ufunc, output)}({operands})", COST)


def _infer(name: str, arity: int, integers: int, domain: Domain, *avals: Aval) -> Aval:
    if len(avals) != arity:
        raise ShapeError(f"{name} takes {arity} operands, got {len(avals)}")
    argument = avals[-1]
    check_dtype(name, argument.dtype, domain)
    expected = [I64] * integers + [real_dtype(argument.dtype)] * (arity - integers - 1)
    given = zip(avals, expected, strict=False)
    same_avals(name, [*(a.with_dtype(argument.dtype) if a.dtype == dtype else a for a, dtype in given), argument])
    return argument


# ---- samples -----------------------------------------------------------------------------------------------------


def _samples(domain: Domain, integers: int, over: Sequence[Interval], edges: Sequence[Point]) -> Iterable[kinds.Sample]:
    rng = np.random.default_rng(0)
    for dtype in by_name(domain):
        dtypes = _dtypes(dtype, integers, len(over))
        intervals = [*[UNIT] * integers, *over]
        yield kinds.Sample(tuple(random_array(rng, (2, 3), d, i) for d, i in zip(dtypes, intervals, strict=True)))
    dtypes = _dtypes(F64 if F64 in domain else by_name(domain)[-1], 0, len(over))
    columns = zip(*[edge[integers:] for edge in edges], strict=True)
    degrees = [np.arange(len(edges)) % 4] * integers
    yield kinds.Sample((*degrees, *(np.array(c, d) for c, d in zip(columns, dtypes, strict=True))), smooth=False)


def _singular_points(fixed: Sequence[bool]) -> Iterable[Point]:
    """The singular values, each as the value of all operands; a finite one for operands without a derivative."""
    return [tuple(2.0 if f and not math.isfinite(x) else x for f in fixed) for x in SINGULAR]


def _dtypes(dtype: Dtype, integers: int, count: int) -> list[Dtype]:
    return [I64] * integers + [real_dtype(dtype)] * (count - 1) + [dtype]


# ---- words of formulas in a degree or an order n ------------------------------------------------------------------

word("like", lambda n, z: convert_to(n, z.dtype))
formula("below(n)", "maximum(n - 1, 0)")
