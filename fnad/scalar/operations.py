"""The table of scalar operations, by the names that templates, kernels and targets use.

casts       bool_ i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128, as NumPy's astype
operators   + - * / // % & | ^ ~ << >> == != < <= > >=, on operands of one dtype: integers wrap, a comparison is bool_
choice      select(condition, a, b)   strong_multiply(ct, p): 0 where ct is 0, else ct * p
minimum maximum fmin fmax sign   min max: of i64, for the bounds of loops
tests       isnan isinf isfinite signbit logical_not
division    floor_divide remainder fmod
integers    power, with an exponent that is not negative   left_shift right_shift
functions   exp exp2 expm1 log log2 log10 log1p sqrt cbrt power abs sin cos tan arcsin arccos arctan arctan2
sinh cosh tanh arcsinh arccosh arctanh hypot erf erfc trigamma i1_ratio gammainc_a sech2 exprel_slope
floor ceil trunc rint copysign nextafter ldexp(x, e)   exp_high exp_low of x <= 0: parts of 2**100 exp(x)
muladd(x, y, z): x * y + z, rounded once if the machine can
complex     real imag conjugate make_complex(re, im), and the functions that NumPy has for complex numbers
draws       philox_low philox_high(index, stream, key): the halves of a block, u64   random_gamma(index, key, shape)
random_normal random_exponential random_gumbel random_laplace random_cauchy(index, key): f64
SciPy       scipy_gammaln, scipy_sici_0 and all other ufuncs of scipy.special, see `scipy_ufunc`
sums        accumulate(acc, value): acc + value, where the order of additions is free
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fnad import draws
from fnad.scalar.operation import (
    BOOL,
    Dtype,
    Kind,
    OperandError,
    Operation,
    among,
    complex_dtype,
    real_dtype,
    takes,
    to_bool,
)
from fnad.scalar.quadrature import gamma_slope
from fnad.scalar.scipy_ufunc import scipy_call, ufunc_operation

# ---- casts -------------------------------------------------------------------------------------------------------

DTYPES: dict[str, Dtype] = {
    "bool_": BOOL,
    **{f"{kind}{8 * size}": np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)},
    **{f"{kind}{8 * size}": np.dtype(f"{kind}{size}") for kind, size in (("f", 4), ("f", 8), ("c", 8), ("c", 16))},
}


def cast(name: str, target: Dtype) -> Operation:
    """The cast to `target`, called `name`."""

    def result(source: Kind) -> Kind:
        if not isinstance(source, np.dtype):
            raise OperandError(f"{name} casts a scalar, not {source}")
        return target

    def plain(value: Any) -> Any:
        real = np.real(value) if np.iscomplexobj(value) and target.kind not in "cb" else np.asarray(value)
        return real.astype(target)[()]

    return Operation(name, result, plain)


# ---- choice ------------------------------------------------------------------------------------------------------


def selected(*kinds: Kind) -> Kind:
    condition, *arms = kinds
    if condition != BOOL:
        raise OperandError(f"select chooses by a bool, not {condition}")
    return among("biufc")(*arms)


def select(condition: Any, a: Any, b: Any) -> Any:
    return np.where(condition, a, b)[()]


def scaled(number: Kind, exponent: Kind) -> Kind:
    if not (isinstance(exponent, np.dtype) and exponent.kind == "i"):
        raise OperandError(f"ldexp takes an integer exponent, not {exponent}")
    return among("f")(number)


def strong_multiply(cotangent: Any, partial: Any) -> Any:
    return cotangent * partial if cotangent != 0 else type(cotangent)(0)


# ---- functions ---------------------------------------------------------------------------------------------------


def of_standard_library(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """The plain meaning of a function of the standard library, in its operand's dtype."""
    return lambda value: type(value)(function(value))


def make_complex(real: Any, imaginary: Any) -> Any:
    dtype = complex_dtype(np.asarray(real).dtype)
    return np.array([real, imaginary]).view(dtype)[0]


NEARLY_ZERO = {8: -776.0, 4: -128.0}
"""Numbers whose exponential times 2**100 is normal, while 2**24 such exponentials add up to 0, by bytes of a dtype.

Parts of exponentials of smaller numbers are 0: a product of a subnormal number takes many times as long.
"""


def raised(x: Any) -> tuple[Any, Any, Any]:
    """The parts of exp(x) / 2**k for x <= 0, of which the first is 1 + r for exp(x) = 2**k exp(r), and k."""
    least = NEARLY_ZERO[x.dtype.itemsize]
    wide = np.maximum(x.astype(np.float64), least)
    with np.errstate(invalid="ignore"):
        k = np.rint(wide / math.log(2))
        above, below = wide - k * 0.6931471803691238, k * 1.9082149292705877e-10
        r = above - below
        high = (1.0 + r).astype(x.dtype)
        low = (np.expm1(r) - r) + ((above - (high - 1.0)) - below)
        is_zero, zero = x < least, x.dtype.type(0)
        return np.where(is_zero, zero, high), np.where(is_zero, zero, low).astype(x.dtype), k.astype(np.int32)


def i1_ratio(x: Any) -> Any:
    """I₁(x) / x, finite where I₁ alone overflows and it does not."""
    with np.errstate(invalid="ignore", over="ignore"):  # i1e of subnormal numbers has few digits
        root = np.exp(abs(x) / 2)
        return np.where(abs(x) < 1e-30, x.dtype.type(0.5), scipy_call("i1e")(x) * root / x * root)[()]


def sech2(x: Any) -> Any:
    e = np.exp(-2 * np.abs(x))
    return 4 * e / np.square(1 + e)


EXPREL_SLOPE = [1 / (math.factorial(k) * (k + 2)) for k in range(18)]
"""The coefficients of the power series of the slope of (exp(x) - 1) / x."""


def exprel_slope(x: Any) -> Any:
    """The slope of (exp(x) - 1) / x, which is finite where the exponential alone overflows."""
    wide = x.astype(np.result_type(x, np.float64))
    with np.errstate(all="ignore"):
        near, within = np.polyval(EXPREL_SLOPE[::-1], wide), np.clip(wide, -1e3, 1e3)
        shift = np.where(wide < 700.0, 0.0, 64.0)
        far = (np.exp(within - shift) * (within - 1.0) + 1.0) / wide / wide * np.exp(shift)
        return np.where(np.abs(wide) < 1.0, near, np.where(wide == np.inf, wide, far)).astype(x.dtype)[()]


def exp_high(x: Any) -> Any:
    high, _, k = raised(x)
    return np.ldexp(high, k + 100)


def exp_low(x: Any) -> Any:
    _, low, k = raised(x)
    return np.ldexp(low, k + 100)


def muladd(x: Any, y: Any, z: Any) -> Any:
    """The number x y + z, rounded once: the errors of both operations are exact numbers (Dekker 1971, Knuth)."""
    if x.dtype.itemsize == 4:
        return (x.astype(np.float64) * y + z).astype(x.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        (a, b), (c, d) = halves(x), halves(y)
        product = x * y
        total = product + z
        back = total - product
        error = (product - (total - back)) + (z - back) + (b * d - (((product - a * c) - b * c) - a * d))
        return np.where(np.isfinite(error), total + error, total)[()]


def halves(x: Any) -> tuple[Any, Any]:
    """An f64 as a sum of two numbers with half of the bits."""
    factor = x * (2.0**27 + 1)
    high = factor - (factor - x)
    return high, x - high


# ---- draws -------------------------------------------------------------------------------------------------------

U64, F64 = np.dtype(np.uint64), np.dtype(np.float64)


def on_arrays(draw: Callable[..., Any]) -> Callable[..., Any]:
    """The plain meaning of a draw that takes arrays."""

    def plain(*operands: Any) -> Any:
        with np.errstate(all="ignore"):
            return draw(*map(np.atleast_1d, operands))[0]

    return plain


def half(name: str, number: int) -> Operation:
    """The operation for one half of a counter's block."""
    return Operation(name, takes(U64, U64, U64, gives=U64), on_arrays(lambda *operands: draws.block(*operands)[number]))


def distribution(name: str, draw: Callable[..., Any]) -> Operation:
    """The operation that draws from a distribution without parameters."""
    return Operation(name, takes(U64, U64, gives=F64), on_arrays(partial(draw, draws.NUMPY)))


# ---- the table ---------------------------------------------------------------------------------------------------

ADD = Operation("add", among("iufc"), operator.add, "+")
SUBTRACT = Operation("subtract", among("iufc"), operator.sub, "-")
MULTIPLY = Operation("multiply", among("iufc"), operator.mul, "*")
DIVIDE = Operation("divide", among("fc"), operator.truediv, "/")
FLOOR_DIVIDE = Operation("floor_divide", among("iuf"), np.floor_divide, "//")
REMAINDER = Operation("remainder", among("iuf"), np.remainder, "%")
AND = Operation("and", among("biu"), operator.and_, "&")
OR = Operation("or", among("biu"), operator.or_, "|")
XOR = Operation("xor", among("biu"), operator.xor, "^")
LEFT_SHIFT = Operation("left_shift", among("iu"), np.left_shift)
RIGHT_SHIFT = Operation("right_shift", among("iu"), np.right_shift)
EQUAL = Operation("equal", among("biufc", to_bool), operator.eq, "==")
NOT_EQUAL = Operation("not_equal", among("biufc", to_bool), operator.ne, "!=")
LESS = Operation("less", among("biuf", to_bool), operator.lt, "<")
LESS_EQUAL = Operation("less_equal", among("biuf", to_bool), operator.le, "<=")
GREATER = Operation("greater", among("biuf", to_bool), operator.gt, ">")
GREATER_EQUAL = Operation("greater_equal", among("biuf", to_bool), operator.ge, ">=")
NEGATIVE = Operation("negative", among("iufc"), operator.neg, "-")
INVERT = Operation("invert", among("biu"), operator.invert, "~")
SELECT = Operation("select", selected, select)
STRONG_MULTIPLY = Operation("strong_multiply", among("iufc"), strong_multiply)
MIN = Operation("min", among("i"), min)
MAX = Operation("max", among("i"), max)
ACCUMULATE = Operation("accumulate", among("fc"), operator.add)
LOGICAL_NOT = Operation("logical_not", among("biufc", to_bool), np.logical_not)

TABLE: tuple[Operation, ...] = (
    *(cast(name, dtype) for name, dtype in DTYPES.items()),
    ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR_DIVIDE, REMAINDER,
    AND, OR, XOR, LEFT_SHIFT, RIGHT_SHIFT,
    EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL,
    NEGATIVE, INVERT, LOGICAL_NOT,
    Operation("fmod", among("iuf"), np.fmod),
    SELECT, STRONG_MULTIPLY,
    Operation("isnan", among("iufc", to_bool), np.isnan),
    Operation("isinf", among("iufc", to_bool), np.isinf),
    Operation("isfinite", among("iufc", to_bool), np.isfinite),
    Operation("signbit", among("f", to_bool), np.signbit),
    Operation("sign", among("iuf"), np.sign),
    Operation("minimum", among("biuf"), np.minimum),
    Operation("maximum", among("biuf"), np.maximum),
    Operation("fmin", among("biuf"), np.fmin),
    Operation("fmax", among("biuf"), np.fmax),
    MIN,
    MAX,
    *(
        Operation(name, among("fc"), getattr(np, name))
        for name in (
            "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt",
            "sin", "cos", "tan", "arcsin", "arccos", "arctan",
            "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
        )
    ),
    *(
        Operation(name, among("f"), getattr(np, name))
        for name in ("cbrt", "arctan2", "hypot", "nextafter", "floor", "ceil", "trunc", "rint", "copysign")
    ),
    Operation("ldexp", scaled, np.ldexp),
    Operation("erf", among("f"), of_standard_library(math.erf)),
    Operation("erfc", among("f"), of_standard_library(math.erfc)),
    Operation("trigamma", among("f"), lambda x: scipy_call("_zeta")(x.dtype.type(2), x)[()]),
    Operation("i1_ratio", among("f"), i1_ratio),
    Operation("gammainc_a", among("f"), on_arrays(partial(gamma_slope, order=1))),
    Operation("sech2", among("f"), sech2),
    Operation("exprel_slope", among("f"), exprel_slope),
    Operation("exp_high", among("f"), exp_high),
    Operation("exp_low", among("f"), exp_low),
    Operation("muladd", among("f"), muladd),
    Operation("power", among("iufc"), np.power),
    Operation("abs", among("iufc", real_dtype), np.abs),
    Operation("real", among("c", real_dtype), np.real),
    Operation("imag", among("c", real_dtype), np.imag),
    Operation("conjugate", among("c"), np.conjugate),
    Operation("make_complex", among("f", complex_dtype), make_complex),
    half("philox_low", 0),
    half("philox_high", 1),
    distribution("random_normal", draws.normal),
    distribution("random_exponential", draws.exponential),
    distribution("random_gumbel", draws.gumbel),
    distribution("random_laplace", draws.laplace),
    distribution("random_cauchy", draws.cauchy),
    Operation(
        "random_gamma", takes(U64, U64, F64, gives=F64), on_arrays(partial(draws.gamma_array, draws.NUMPY))
    ),
    ACCUMULATE,
)  # fmt: skip

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in TABLE}


def operation_named(word: str) -> Operation | None:
    """The operation of this name, a ufunc of SciPy among them; None where there is none."""
    return OPERATIONS.get(word) or ufunc_operation(word)


BINARY: dict[str, Operation] = {
    operation.symbol: operation for operation in TABLE if operation.symbol and operation not in (NEGATIVE, INVERT)
} | {"<<": LEFT_SHIFT, ">>": RIGHT_SHIFT}
"""The infix operators."""

UNARY: dict[str, Operation] = {"-": NEGATIVE, "~": INVERT, "not": LOGICAL_NOT}
"""The prefix operators."""
