"""What each PTX instruction means, as functions of NumPy arrays with an element for each active thread.

`VALUES` has the instructions that only compute: a name gives a function of the instruction, whose result is a function
of the operands' values. Operands come as arrays of the instruction's type. Approximate instructions give the exact
result, rounded, unless `NOISE` is set: then the result is moved by up to so many times the error that the ISA allows.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tests.cuda.ptx.parser import SIZES, Instruction, UnsupportedError

DTYPES = {
    "b8": np.uint8, "u8": np.uint8, "s8": np.int8, "b16": np.uint16, "u16": np.uint16, "s16": np.int16,
    "f16": np.float16, "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "f32": np.float32, "b64": np.uint64,
    "u64": np.uint64, "s64": np.int64, "f64": np.float64, "pred": np.bool_,
}  # fmt: skip
BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
NOISE = [0.0]
"""How much of the allowed error approximate instructions make."""

ROUNDINGS = ("rn", "rz", "rm", "rp")
NAN32 = np.uint32(0x7FFFFFFF).view(np.float32)


# ---- floating point --------------------------------------------------------------------------------------------------


def flushed(x: Any) -> Any:
    """Numbers of single precision with zeros of their sign in the place of subnormal ones."""
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


def canonical(x: Any) -> Any:
    return np.where(np.isnan(x), NAN32, x).astype(np.float32)


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def odd(s: Any, e: Any) -> Any:
    """The sum s + e of double precision, where s is rounded, rounded to odd instead: its last bit is 1 if inexact."""
    s, e = np.broadcast_arrays(np.asarray(s, np.float64), np.asarray(e, np.float64))
    bits = s.copy().view(np.int64)
    is_even = (bits & 1) == 0
    change = (e != 0) & np.isfinite(s) & np.isfinite(e) & is_even
    toward = np.where((e > 0) == (s >= 0), 1, -1)
    toward = np.where(s == 0, 0, toward)
    return (bits + np.where(change, toward, 0)).view(np.float64)


def to_single(s: Any, mode: str) -> Any:
    """A number of double precision that has been rounded to odd, in single precision."""
    r = np.asarray(s).astype(np.float32)
    if mode == "rn":
        return r
    back = r.astype(np.float64)
    down, up = np.nextafter(r, np.float32(-np.inf)), np.nextafter(r, np.float32(np.inf))
    if mode == "rm":
        return np.where(back > s, down, r)
    if mode == "rp":
        return np.where(back < s, up, r)
    return np.where(np.abs(back) > np.abs(s), np.where(s > 0, down, up), r)


SPLITTER = 134217729.0


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    p = a * b
    t = SPLITTER * a
    ah = t - (t - a)
    al = a - ah
    t = SPLITTER * b
    bh = t - (t - b)
    bl = b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def fma64(a: Any, b: Any, c: Any) -> Any:
    """a · b + c rounded once: by an error-free transformation, and with fractions where exponents are extreme."""
    a, b, c = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (a, b, c)))
    uh, ul = two_product(a, b)
    th, tl = two_sum(c, ul)
    vh, vl = two_sum(uh, th)
    z = odd(*two_sum(tl, vl))
    result = vh + z
    plain = a * b + c
    size = np.abs(uh)
    safe = (
        (size < 1e290) & (size > 1e-250) & (np.abs(a) < 1e290) & (np.abs(b) < 1e290)
        & (np.abs(c) < 1e290) & ((np.abs(c) > 1e-250) | (c == 0)) & (np.abs(vh) > 1e-250)
    )  # fmt: skip
    result = np.where(safe, result, plain)
    hard = ~safe & np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (a != 0) & (b != 0) & (c != 0)
    if np.any(hard):
        result = np.array(result, ndmin=1)
        for n in map(tuple, np.argwhere(np.atleast_1d(hard))):
            exact = [Fraction(float(np.atleast_1d(x)[n])) for x in (a, b, c)]
            result[n] = nearest(exact[0] * exact[1] + exact[2], float(np.atleast_1d(plain)[n]))
        result = result.reshape(np.shape(hard))
    return result


def nearest(x: Fraction, if_zero: float) -> float:
    if not x:
        return if_zero if if_zero == 0 else 0.0
    try:
        return x.numerator / x.denominator
    except OverflowError:
        return np.inf if x > 0 else -np.inf


def fma32(a: Any, b: Any, c: Any, mode: str) -> Any:
    p, c = np.float64(a) * np.float64(b), np.float64(c)
    return to_single(odd(*two_sum(p, c)), mode)


def rounding(ins: Instruction) -> str:
    return next((m for m in ins.mods if m in ROUNDINGS), "rn")


def floating(ins: Instruction, exact: Callable[..., Any], in_double: Callable[..., Any] | None) -> Callable[..., Any]:
    """An operation of floating point: `in_double` gives what it is in double precision, rounded to odd."""
    kind, mode = ins.types[-1], rounding(ins)
    if kind == "f64":
        if mode != "rn":
            raise UnsupportedError(ins.text)
        return exact
    if kind == "f16":
        return lambda *x: in_double(*x).astype(np.float16)  # type: ignore[reportOptionalCall]
    ftz, sat = "ftz" in ins.mods, "sat" in ins.mods

    def run(*x: Any) -> Any:
        if ftz:
            x = tuple(map(flushed, x))
        found = exact(*x) if mode == "rn" and exact is not None else to_single(in_double(*x), mode)  # type: ignore[reportOptionalCall]
        found = flushed(found) if ftz else found
        if sat:
            found = np.where(np.isnan(found), np.float32(0), np.clip(found, np.float32(0), np.float32(1)))
        return canonical(found)

    return run


def double(x: Any) -> Any:
    return np.asarray(x).astype(np.float64)


def arithmetic(function: Any, in_double: Any) -> Any:
    def build(ins: Instruction) -> Any:
        if ins.types[-1][0] == "f":
            return floating(ins, function, in_double)
        if "sat" in ins.mods:
            wide = np.int64
            low, high = -(2**31), 2**31 - 1
            return lambda a, b: np.clip(function(wide(a), wide(b)), low, high).astype(np.int32)
        return function

    return build


def build_fma(ins: Instruction) -> Any:
    if ins.types[-1] == "f64":
        return floating(ins, fma64, None)
    mode = rounding(ins)
    return (
        floating(
            ins, (lambda a, b, c: fma32(a, b, c, "rn")), lambda a, b, c: odd(*two_sum(double(a) * double(b), double(c)))
        )
        if mode == "rn"
        else directed_fma(ins, mode)
    )


def directed_fma(ins: Instruction, mode: str) -> Any:
    ftz = "ftz" in ins.mods

    def run(*x: Any) -> Any:
        x = tuple(map(flushed, x)) if ftz else x
        found = fma32(*x, mode)
        return canonical(flushed(found) if ftz else found)

    return run


def quotient32(a: Any, b: Any) -> Any:
    return np.float32(1) * (a / b)


def extreme(larger: bool) -> Any:
    def build(ins: Instruction) -> Any:
        kind = ins.types[-1]
        if kind[0] != "f":
            return np.maximum if larger else np.minimum
        propagates, ftz = "NaN" in ins.mods, "ftz" in ins.mods
        if {"xorsign", "abs"} & {*ins.mods}:
            raise UnsupportedError(ins.text)

        def run(a: Any, b: Any) -> Any:
            if ftz:
                a, b = flushed(a), flushed(b)
            a, b = np.broadcast_arrays(a, b)
            order = (a > b) | ((a == b) & ~np.signbit(a)) if larger else (a < b) | ((a == b) & np.signbit(a))
            found = np.where(order, a, b)
            if propagates:
                found = np.where(np.isnan(a) | np.isnan(b), np.nan, found)
            else:
                found = np.where(np.isnan(a), b, np.where(np.isnan(b), a, found))
            return canonical(found) if kind == "f32" else found.astype(DTYPES[kind])

        return run

    return build


def noise(x: Any, relative: float, absolute: float = 0.0) -> Any:
    if not NOISE[0]:
        return x
    bits = np.ascontiguousarray(x, np.float64).view(np.uint64)  # the same error for the same number each time
    drawn = NOISE[0] * ((bits * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)) / 2.0**52 - 1)
    return x * (1 + drawn * relative) + drawn * absolute


def approximate(function: Any, relative: float, absolute: float = 0.0, only_inside: bool = False) -> Any:
    """An approximation of a function of single precision; `rn` asks for the rounded result."""

    def build(ins: Instruction) -> Any:
        kind, ftz, approx = ins.types[-1], "ftz" in ins.mods, "approx" in ins.mods
        if not approx:
            if rounding(ins) != "rn":
                raise UnsupportedError(ins.text)
            return (lambda x: function(x)) if kind == "f64" else floating(ins, function, None)
        if kind != "f32":
            raise UnsupportedError(ins.text)

        def run(x: Any) -> Any:
            x = flushed(x) if ftz else x
            exact = function(double(x))
            moved = noise(exact, relative, absolute)
            is_power = np.abs(np.frexp(exact)[0]) == 0.5  # of two, which the units give exactly
            found = np.where(np.isfinite(exact) & (exact != 0) & ~is_power, moved, exact).astype(np.float32)
            return canonical(flushed(found) if ftz else found)

        return run

    return build


def reciprocal(x: Any) -> Any:
    return x.dtype.type(1) / x


def root(x: Any) -> Any:
    return np.sqrt(x)


def inverse_root(x: Any) -> Any:
    return x.dtype.type(1) / np.sqrt(x)


def build_rcp(ins: Instruction) -> Any:
    if ins.types[-1] == "f64" and "approx" in ins.mods:
        return lambda x: gross(x, reciprocal)
    return approximate(reciprocal, 2.0**-23)(ins)


def build_rsqrt(ins: Instruction) -> Any:
    if ins.types[-1] == "f64":
        if "ftz" in ins.mods:
            return lambda x: gross(x, inverse_root)
        return lambda x: noise(inverse_root(x), 2.0**-52)
    return approximate(inverse_root, 2.0**-22.9)(ins)


def gross(x: Any, function: Any) -> Any:
    """A first approximation in double precision: of the upper half of the number, as an upper half."""
    upper = (np.asarray(x).view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
    upper = np.where(np.abs(upper) < 2.0**-1022, np.copysign(0.0, upper), upper)
    found = np.asarray(noise(function(upper), 2.0**-20), np.float64)
    found = np.where(np.abs(found) < 2.0**-1022, np.copysign(0.0, found), found)
    return (found.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)


def build_div(ins: Instruction) -> Any:
    kind = ins.types[-1]
    if kind[0] in "us":
        return lambda a, b: whole_quotient(a, b)[0]
    if "approx" in ins.mods or "full" in ins.mods:
        ftz, full = "ftz" in ins.mods, "full" in ins.mods

        def run(a: Any, b: Any) -> Any:
            a, b = (flushed(a), flushed(b)) if ftz else (a, b)
            found = noise(double(a) / double(b), 2.0**-22).astype(np.float32)
            if not full:
                large = (np.abs(b) > np.float32(2.0**126)) & np.isfinite(b)
                found = np.where(large, np.where(np.isinf(a), NAN32, np.copysign(np.float32(0), a * np.sign(b))), found)
            return canonical(flushed(found) if ftz else found)

        return run
    return floating(ins, np.divide, None)


def build_rem(ins: Instruction) -> Any:
    return lambda a, b: whole_quotient(a, b)[1]


DIVIDED_BY_ZERO = [0]


def whole_quotient(a: Any, b: Any) -> tuple[Any, Any]:
    """Quotient and remainder, towards zero; what a division by zero gives is not defined."""
    a, b = np.broadcast_arrays(a, b)
    zero = b == 0
    DIVIDED_BY_ZERO[0] += int(np.count_nonzero(zero))
    safe = np.where(zero, b.dtype.type(1), b)
    if b.dtype.kind == "u":
        q = a // safe
    else:
        extreme_case = (a == np.iinfo(a.dtype).min) & (safe == -1)
        safe = np.where(extreme_case, a.dtype.type(1), safe)
        q = a // safe
        q = q + (((a % safe) != 0) & ((a < 0) != (safe < 0))).astype(a.dtype)
    r = a - q * safe
    return np.where(zero, np.array(-1).astype(a.dtype), q), np.where(zero, a, r)


# ---- integers and bits -----------------------------------------------------------------------------------------------


def high(a: Any, b: Any, kind: str) -> Any:
    size = SIZES[kind]
    if size < 8:
        wide = np.int64 if kind[0] == "s" else np.uint64
        return (wide(a) * wide(b) >> wide(8 * size)).astype(DTYPES[kind])
    a, b = np.broadcast_arrays(np.asarray(a, DTYPES[kind]), np.asarray(b, DTYPES[kind]))
    au, bu = a.view(np.uint64), b.view(np.uint64)
    m, s = np.uint64(0xFFFFFFFF), np.uint64(32)
    al, ah, bl, bh = au & m, au >> s, bu & m, bu >> s
    ll, lh, hl = al * bl, al * bh, ah * bl
    middle = (ll >> s) + (lh & m) + (hl & m)
    found = ah * bh + (lh >> s) + (hl >> s) + (middle >> s)
    if kind[0] == "s":
        found = found - np.where(a < 0, bu, np.uint64(0)) - np.where(b < 0, au, np.uint64(0))
    return found.view(DTYPES[kind])


def wider(kind: str) -> Any:
    return DTYPES[kind[0] + str(16 * SIZES[kind])]


def build_mul(ins: Instruction) -> Any:
    kind = ins.types[-1]
    if kind[0] == "f":
        return floating(ins, np.multiply, lambda a, b: double(a) * double(b))
    if "wide" in ins.mods:
        wide = wider(kind)
        return lambda a, b: np.asarray(a).astype(wide) * np.asarray(b).astype(wide)
    return (lambda a, b: high(a, b, kind)) if "hi" in ins.mods else np.multiply


def build_mad(ins: Instruction) -> Any:
    kind = ins.types[-1]
    if kind[0] == "f":
        return build_fma(ins)
    if "wide" in ins.mods:
        wide = wider(kind)
        return lambda a, b, c: np.asarray(a).astype(wide) * np.asarray(b).astype(wide) + np.asarray(c)
    return (lambda a, b, c: high(a, b, kind) + c) if "hi" in ins.mods else lambda a, b, c: a * b + c


def shift(left: bool) -> Any:
    def build(ins: Instruction) -> Any:
        kind = ins.types[-1]
        dtype, bits = DTYPES[kind], 8 * SIZES[kind]

        def run(a: Any, n: Any) -> Any:
            n = np.minimum(np.asarray(n).astype(np.uint64), np.uint64(bits))
            beyond, n = n >= bits, np.minimum(n, np.uint64(bits - 1)).astype(dtype)
            if left:
                return np.where(beyond, dtype(0), a << n)
            return np.where(beyond, (a >> dtype(bits - 1)) if kind[0] == "s" else dtype(0), a >> n)

        return run

    return build


def build_shf(ins: Instruction) -> Any:
    left, wraps = "l" in ins.mods, "wrap" in ins.mods

    def run(a: Any, b: Any, c: Any) -> Any:
        n = (np.asarray(c) & np.uint32(31) if wraps else np.minimum(c, np.uint32(32))).astype(np.uint64)
        both = np.asarray(b).astype(np.uint64) << np.uint64(32) | np.asarray(a).astype(np.uint64)
        if left:
            return (np.where(n == 0, both, both << n) >> np.uint64(32)).astype(np.uint32)
        return (both >> n).astype(np.uint32)

    return run


def build_bfe(ins: Instruction) -> Any:
    kind = ins.types[-1]
    bits, is_signed = 8 * SIZES[kind], kind[0] == "s"

    def one(a: int, p: int, n: int) -> int:
        p, n = p & 255, n & 255
        a &= (1 << bits) - 1
        sign = a >> min(p + n - 1, bits - 1) & 1 if is_signed and n else 0
        found = 0
        for i in range(bits):
            found |= (a >> p + i & 1 if i < n and p + i < bits else sign) << i
        return found

    return elementwise(one, DTYPES[kind])


def build_bfi(ins: Instruction) -> Any:
    bits = 8 * SIZES[ins.types[-1]]

    def one(a: int, b: int, p: int, n: int) -> int:
        p, n = p & 255, n & 255
        for i in range(min(n, bits - p)):
            b = b & ~(1 << p + i) | (a >> i & 1) << p + i
        return b

    return elementwise(one, DTYPES[ins.types[-1]])


def elementwise(function: Any, dtype: Any) -> Any:
    """A function of whole numbers, element by element; the results are computed once for each combination."""

    def run(*x: Any) -> Any:
        arrays = np.broadcast_arrays(*x)
        known: dict[Any, Any] = {}
        flat = [[int(v) for v in a.reshape(-1)] for a in arrays]
        mask = (1 << 8 * np.dtype(dtype).itemsize) - 1
        unsigned = BITS[np.dtype(dtype).itemsize]
        found = [known[k] if k in known else known.setdefault(k, function(*k) & mask) for k in zip(*flat, strict=True)]
        return np.array(found, unsigned).view(dtype).reshape(arrays[0].shape)

    return run


def build_prmt(ins: Instruction) -> Any:
    if len(ins.mods) > 1:
        raise UnsupportedError(ins.text)

    def run(a: Any, b: Any, c: Any) -> Any:
        a, b, c = np.broadcast_arrays(*(np.asarray(x, np.uint32) for x in (a, b, c)))
        both = b.astype(np.uint64) << np.uint64(32) | a.astype(np.uint64)
        found = np.zeros(a.shape, np.uint32)
        for n in range(4):
            selector = (c >> np.uint32(4 * n)) & np.uint32(15)
            byte = (both >> ((selector & np.uint32(7)).astype(np.uint64) * np.uint64(8))).astype(np.uint32) & np.uint32(
                255
            )
            sign = np.where(byte & np.uint32(128), np.uint32(255), np.uint32(0))
            found |= np.where(selector & np.uint32(8), sign, byte) << np.uint32(8 * n)
        return found

    return run


def build_lop3(ins: Instruction) -> Any:
    def run(a: Any, b: Any, c: Any, table: Any) -> Any:
        a, b, c = np.broadcast_arrays(a, b, c)
        found = np.zeros(a.shape, a.dtype)
        for n in range(8):
            if int(table) >> n & 1:
                found |= (a if n & 4 else ~a) & (b if n & 2 else ~b) & (c if n & 1 else ~c)
        return found

    return run


def build_clz(ins: Instruction) -> Any:
    bits = 8 * SIZES[ins.types[-1]]
    return elementwise(lambda a: bits - a.bit_length(), np.uint32)


COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def comparison(ins: Instruction) -> Any:
    name, kind, ftz = next(m for m in ins.mods if m != "ftz"), ins.types[-1], "ftz" in ins.mods
    if kind[0] != "f":
        return COMPARE[name]
    is_unordered = lambda a, b: np.isnan(a) | np.isnan(b)  # noqa: E731

    def run(a: Any, b: Any) -> Any:
        if ftz:
            a, b = flushed(a), flushed(b)
        if name in ("num", "nan"):
            return is_unordered(a, b) == (name == "nan")
        if name.endswith("u") and name != "u":
            return COMPARE[name[:-1]](a, b) | is_unordered(a, b)
        return COMPARE[name](a, b) & ~is_unordered(a, b)

    return run


# ---- conversions -----------------------------------------------------------------------------------------------------

WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def build_cvt(ins: Instruction) -> Any:
    to, of = ins.types
    ftz, sat = "ftz" in ins.mods, "sat" in ins.mods
    whole = next((WHOLE[m] for m in ins.mods if m in WHOLE), None)
    mode = next((m for m in ins.mods if m in ROUNDINGS), None)
    target = DTYPES[to]
    if of[0] == "f" and to[0] == "f":

        def run(x: Any) -> Any:
            x = np.asarray(x)
            if ftz and of == "f32":
                x = flushed(x)
            x = whole(x) if whole else x
            if to == "f32" and of == "f64":
                found = to_single(x, mode or "rn")
            else:
                found = x.astype(target)
            if ftz and to == "f32":
                found = flushed(found)
            if sat:
                found = np.where(np.isnan(found), target(0), np.clip(found, target(0), target(1)))
            return canonical(found) if to == "f32" else found

        return run
    if of[0] == "f":
        info = np.iinfo(target)
        low, high = float(info.min), float(info.max)
        if_nan = 0 if of != "f64" and SIZES[to] < 8 else (info.min if info.min < 0 else 1 << 8 * SIZES[to] - 1)

        def to_whole(x: Any) -> Any:
            x = np.asarray(x)
            x = whole(flushed(x) if ftz else x).astype(np.float64)  # type: ignore[reportOptionalCall]
            inside = (x > low - 1) & (x < high + 1) & (x >= low) & (x < high + (SIZES[to] < 8))
            found = np.where(inside, x, 0.0).astype(target)
            found = np.where(~inside & (x < 0), target(info.min), np.where(~inside & (x > 0), target(info.max), found))
            return np.where(np.isnan(x), np.array(if_nan).astype(target), found).astype(target)

        return to_whole
    if to[0] == "f":
        if mode not in (None, "rn"):
            return lambda x: (
                to_single(np.asarray(x).astype(np.float64), mode) if SIZES[of] < 8 and to == "f32" else fail(ins)
            )
        return lambda x: np.asarray(x).astype(target)
    if sat:
        info = np.iinfo(target)
        return lambda x: np.clip(np.asarray(x).astype(object), info.min, info.max).astype(target)
    return lambda x: np.asarray(x).astype(target)


def fail(ins: Instruction) -> Any:
    raise UnsupportedError(ins.text)


def build_testp(ins: Instruction) -> Any:
    tiny = np.float32(2.0**-126) if ins.types[-1] == "f32" else 2.0**-1022
    return {
        "finite": np.isfinite, "infinite": np.isinf, "number": lambda x: ~np.isnan(x), "notanumber": np.isnan,
        "normal": lambda x: np.isfinite(x) & (np.abs(x) >= tiny),
        "subnormal": lambda x: (np.abs(x) < tiny) & (x != 0),
    }[ins.mods[0]]  # fmt: skip


def sign_change(ins: Instruction) -> Any:
    ftz = "ftz" in ins.mods
    return (lambda x: -flushed(x)) if ftz else np.negative


def absolute(ins: Instruction) -> Any:
    ftz = "ftz" in ins.mods
    return (lambda x: np.abs(flushed(x))) if ftz else np.abs


def logic(function: Any) -> Any:
    return lambda ins: function


VALUES: dict[str, Any] = {
    "add": arithmetic(np.add, lambda a, b: odd(*two_sum(double(a), double(b)))),
    "sub": arithmetic(np.subtract, lambda a, b: odd(*two_sum(double(a), -double(b)))),
    "mul": build_mul, "mad": build_mad, "fma": build_fma, "div": build_div, "rem": build_rem,
    "mul24": None, "abs": absolute, "neg": sign_change, "min": extreme(larger=False), "max": extreme(larger=True),
    "rcp": build_rcp, "rsqrt": build_rsqrt, "sqrt": approximate(root, 2.0**-23),
    "ex2": approximate(np.exp2, 2.0**-22.5), "lg2": approximate(np.log2, 0.0, 2.0**-22),
    "sin": approximate(np.sin, 0.0, 2.0**-20.5), "cos": approximate(np.cos, 0.0, 2.0**-20.5),
    "tanh": approximate(np.tanh, 2.0**-11), "copysign": lambda ins: lambda a, b: np.copysign(b, a),
    "and": logic(np.bitwise_and), "or": logic(np.bitwise_or), "xor": logic(np.bitwise_xor),
    "not": logic(np.invert), "cnot": lambda ins: lambda a: (np.asarray(a) == 0).astype(np.asarray(a).dtype),
    "shl": shift(left=True), "shr": shift(left=False), "shf": build_shf, "bfe": build_bfe, "bfi": build_bfi,
    "prmt": build_prmt, "lop3": build_lop3, "clz": build_clz,
    "popc": lambda ins: elementwise(int.bit_count, np.uint32),
    "brev": lambda ins: elementwise(
        lambda a: int(format(a, f"0{8 * SIZES[ins.types[-1]]}b")[::-1], 2), DTYPES[ins.types[-1]]
    ),
    "cvt": build_cvt, "testp": build_testp,
}  # fmt: skip
"""Instructions that compute their first operand from the others."""

OPERANDS = {
    "shl": lambda t: [t, "u32"], "shr": lambda t: [t, "u32"], "bfe": lambda t: [t, "u32", "u32"],
    "bfi": lambda t: [t, t, "u32", "u32"], "prmt": lambda t: ["b32"] * 3, "lop3": lambda t: [t, t, t, "u32"],
    "shf": lambda t: ["b32", "b32", "u32"],
}  # fmt: skip
"""The types of operands, where they are not all the instruction's."""

# ---- what an instruction costs -----------------------------------------------------------------------------------

PIPES = ("fp32", "fp64", "int", "mufu", "convert", "memory", "shuffle", "sync", "control")


def cost(ins: Instruction) -> dict[str, float]:
    """The operations of the multiprocessor's pipes that ptxas makes of an instruction, roughly."""
    name, kinds = ins.name, ins.types
    kind = kinds[-1] if kinds else "b32"
    if name in ("ld", "st", "atom", "red"):
        return {} if "param" in ins.mods else {"memory": 1}
    if name in ("bra", "brx", "ret", "exit", "call"):
        return {"control": 1}
    if name in ("neg", "abs") and kind[0] == "f":
        return {}  # a modifier of the operand
    if name == "shfl":
        return {"shuffle": 1}
    if name in ("bar", "barrier", "vote", "redux"):
        return {"sync": 1}
    if name == "mov" or name == "cvta":
        return {} if not any(o[0] == "constant" for o in ins.operands) else {"int": 0}
    if name in ("div", "sqrt", "rcp") and kind[0] == "f":
        if "approx" in ins.mods:
            return {"mufu": 1, "fp32": 1 if name != "rcp" else 0}
        return {"mufu": 1, "fp32": 8} if kind == "f32" else {"mufu": 1, "fp64": 9, "int": 4}
    if name in ("ex2", "lg2", "sin", "cos", "tanh", "rsqrt"):
        return {"mufu": 1} if kind == "f32" or "ftz" in ins.mods else {"mufu": 1, "fp64": 6}
    if name in ("div", "rem"):
        return {"int": 20 if SIZES[kind] <= 4 else 70, "mufu": 1, "convert": 2}
    if name == "cvt":
        if any(k[0] == "f" for k in kinds):
            return {"fp32": 1} if kinds == ["f32", "f32"] and "sat" in ins.mods else {"convert": 1}
        return {"int": 0 if max(SIZES[k] for k in kinds) <= 4 or kinds[0][0] == "u" else 1}
    if kind == "f32":
        return {"fp32": 1}
    if kind == "f64":
        return {"fp64": 1} if name != "selp" else {"int": 2}
    if kind in ("b64", "u64", "s64"):
        many = {"mul": 4, "mad": 4, "shl": 2, "shr": 2}.get(name, 2)
        return {"int": many if "wide" not in ins.mods else 1}
    return {"int": 1}
