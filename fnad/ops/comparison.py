"""Comparisons, tests, logic on bools and bits, and the choice by a bool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fnad.errors import DtypeError
from fnad.ir.primitive import Linear, Primitive, Sample, Scalar, declare, everywhere
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, DTYPES, Aval
from fnad.ops.constructors import (
    ANY,
    BITS,
    INEXACT,
    INTEGERS,
    ORDERED,
    REALS,
    Domain,
    elementwise,
    predicate,
    same_avals,
)
from fnad.ops.shape import sample, zeros_like

NAN, INF = float("nan"), float("inf")
PAIRS = ((0.0, -0.0), (NAN, 1.0), (1.0, NAN), (NAN, NAN), (INF, INF), (-INF, INF), (1.0, 1.0))
"""Operands for which comparisons differ from those of real numbers."""
SINGULAR = ((NAN,), (INF,), (-INF,), (0.0,), (-0.0,), (1.0,))

# ---- comparisons -------------------------------------------------------------------------------------------------


def _comparison(
    name: str, evaluate: Any, sign: str, domain: Domain, doc: str, *, commutative: bool = False
) -> Primitive:
    template = f"{{0}} {sign} {{1}}"
    return predicate(name, evaluate, template, domain=domain, edges=PAIRS, doc=doc, commutative=commutative)


eq = _comparison("eq", np.equal, "==", ANY, "Equal; a nan equals nothing.", commutative=True)
ne = _comparison("ne", np.not_equal, "!=", ANY, "Not equal; a nan differs from everything.", commutative=True)
lt = _comparison("lt", np.less, "<", ORDERED, "Less than; false with a nan.")
le = _comparison("le", np.less_equal, "<=", ORDERED, "Less than or equal; false with a nan.")
gt = _comparison("gt", np.greater, ">", ORDERED, "Greater than; false with a nan.")
ge = _comparison("ge", np.greater_equal, ">=", ORDERED, "Greater than or equal; false with a nan.")

# ---- tests -------------------------------------------------------------------------------------------------------

isnan = predicate("isnan", np.isnan, "isnan({0})", domain=INEXACT, edges=SINGULAR, doc="Not a number, in either part.")
isinf = predicate("isinf", np.isinf, "isinf({0})", domain=INEXACT, edges=SINGULAR, doc="Infinite, in either part.")
isfinite = predicate(
    "isfinite", np.isfinite, "isfinite({0})", domain=INEXACT, edges=SINGULAR, doc="Neither infinite nor nan."
)
signbit = predicate(
    "signbit", np.signbit, "signbit({0})", domain=REALS, edges=SINGULAR, doc="The sign bit: true for -0.0."
)

# ---- logic and bits ----------------------------------------------------------------------------------------------


bitwise_and = elementwise(
    "bitwise_and",
    np.bitwise_and,
    "{0} & {1}",
    domain=BITS,
    doc="And, bit by bit; on bools, logical and.",
    commutative=True,
)
bitwise_or = elementwise(
    "bitwise_or", np.bitwise_or, "{0} | {1}", domain=BITS, doc="Or, bit by bit; on bools, logical or.", commutative=True
)
bitwise_xor = elementwise(
    "bitwise_xor", np.bitwise_xor, "{0} ^ {1}", domain=BITS, doc="Exclusive or, bit by bit.", commutative=True
)
bitwise_not = elementwise(
    "bitwise_not", np.bitwise_not, "~{0}", domain=BITS, doc="Complement, bit by bit; on bools, logical not."
)
left_shift = elementwise(
    "left_shift", np.left_shift, "left_shift({0}, {1})", domain=INTEGERS, doc="Bits to the left; 0 beyond the width."
)
right_shift = elementwise(
    "right_shift", np.right_shift, "right_shift({0}, {1})", domain=INTEGERS, doc="Bits to the right, keeping the sign."
)

# ---- choice ------------------------------------------------------------------------------------------------------


def _infer_select(pred: Aval, on_true: Aval, on_false: Aval) -> Aval:
    if pred.dtype != BOOL:
        raise DtypeError(f"select chooses by a bool, got {pred}", remedy="compare the values, as in x != 0")
    same_avals("select", (pred.with_dtype(on_true.dtype), on_true, on_false))
    return on_true


def _transpose_select(ct: Symbol, pred: Symbol, on_true: Symbol, on_false: Symbol) -> tuple[None, Symbol, Symbol]:
    zero = zeros_like(ct)
    return None, select(pred, ct, zero), select(pred, zero, ct)


def _select_samples() -> Iterable[Sample]:
    for dtype in DTYPES.values():
        yield Sample((sample((2, 3), BOOL), sample((2, 3), dtype, 1), sample((2, 3), dtype, 2)))
    yield Sample((np.array([True, False]), np.array([1.0, np.nan]), np.array([np.inf, 2.0])))


select = declare(
    "select",
    _infer_select,
    np.where,
    Linear(_transpose_select, (1, 2)),
    Scalar("select({0}, {1}, {2})"),
    _select_samples,
    "The second operand where the first is true, else the third; what is not taken does not count.",
    bounded=everywhere,
)
