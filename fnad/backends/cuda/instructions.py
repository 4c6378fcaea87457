"""Threads and elementary functions of a GPU as LLVM instructions.

A function of libm is called by its own name; `ptx.py` puts that of libdevice in its place.
"""

from __future__ import annotations

from functools import partial

import llvmlite.ir as ir

from fnad.backends.llvm import complex_functions, integer
from fnad.backends.llvm.accurate_sums import compensated_by, two_sum
from fnad.backends.llvm.emitter import Builder, Emit, Instructions, Kinds, Value, Values, by_kind
from fnad.backends.llvm.formulas import catalogue as formulas
from fnad.backends.llvm.formulas.catalogue import emitters
from fnad.backends.llvm.formulas.twofold import polynomial
from fnad.backends.llvm.lane import FLOAT, Lane, where
from fnad.backends.llvm.operators import intrinsic
from fnad.backends.llvm.scalar import call, memory_type, on_parts, parts
from fnad.errors import LoweringError
from fnad.kernel.device import SHARED_ARRAYS
from fnad.kernel.routines import LOCAL_ARRAYS
from fnad.scalar.operation import Dtype, real_dtype
from fnad.scalar.scipy_ufunc import PREFIX

WORD, LONG = ir.IntType(32), ir.IntType(64)
SHARED = 3
"""The number of the address space that a block shares."""

ALL_LANES, LAST_LANE, WARP = -1, 31, 32

# ---- threads -----------------------------------------------------------------------------------------------------


def register(name: str) -> Emit:
    """The emitter that reads a special register."""
    return lambda builder, kinds, values: builder.zext(call(builder, f"llvm.nvvm.read.ptx.sreg.{name}", WORD), LONG)


def emit_barrier(builder: Builder, kinds: Kinds, values: Values) -> Value:
    return call(builder, "llvm.nvvm.barrier0", ir.VoidType())


def emit_warp_barrier(builder: Builder, kinds: Kinds, values: Values) -> Value:
    return call(builder, "llvm.nvvm.bar.warp.sync", ir.VoidType(), WORD(ALL_LANES))


def shuffle(mode: str, last: int, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit a value of the thread so many places away, as far as the last one of the warp that way."""
    value, lanes = values
    return shuffled(builder, kinds[0], value, mode, (builder.trunc(lanes, WORD), WORD(last)))


def emit_shuffle_first(builder: Builder, kinds: Kinds, values: Values) -> Value:
    value, lanes = values
    segments = (WARP - lanes.constant) << 8 | LAST_LANE
    return shuffled(builder, kinds[0], value, "idx", (WORD(0), WORD(segments)))


def shuffled(builder: Builder, dtype: Dtype, value: Value, mode: str, lanes: Values) -> Value:
    """A value of another lane: word by word."""
    if dtype.kind == "c":
        return on_parts(builder, lambda part: shuffled(builder, real_dtype(dtype), part, mode, lanes), value)
    bits = ir.IntType(8 * dtype.itemsize)
    if dtype.kind == "f":
        return builder.bitcast(shuffled_bits(builder, builder.bitcast(value, bits), mode, lanes), value.type)
    return shuffled_bits(builder, value, mode, lanes)


def shuffled_bits(builder: Builder, value: Value, mode: str, lanes: Values) -> Value:
    if value.type.width < WORD.width:
        return builder.trunc(shuffled_bits(builder, builder.zext(value, WORD), mode, lanes), value.type)
    if value.type == WORD:
        return call(builder, f"llvm.nvvm.shfl.sync.{mode}.i32", WORD, WORD(ALL_LANES), value, *lanes)
    low, high = builder.trunc(value, WORD), builder.trunc(builder.lshr(value, LONG(32)), WORD)
    low, high = (builder.zext(shuffled_bits(builder, half, mode, lanes), LONG) for half in (low, high))
    return builder.or_(low, builder.shl(high, LONG(32)))


def shared_array(dtype: Dtype, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit an array in the memory of a block."""
    module, type_ = builder.module, ir.ArrayType(memory_type(dtype), values[0].constant)
    array = ir.GlobalVariable(module, type_, module.get_unique_name("shared"), addrspace=SHARED)
    array.linkage, array.align, array.initializer = "internal", 16, ir.Constant(type_, ir.Undefined)
    return builder.addrspacecast(array.gep([WORD(0), WORD(0)]), memory_type(dtype).as_pointer())


def own_array(dtype: Dtype, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit an array of a thread's own, which LLVM puts into registers when loops are unrolled."""
    type_ = ir.ArrayType(memory_type(dtype), values[0].constant)
    with builder.goto_entry_block():
        return builder.gep(builder.alloca(type_), [WORD(0), WORD(0)], inbounds=True)


def emit_atomic_add(builder: Builder, kinds: Kinds, values: Values) -> Value:
    array, index, value = values
    place = builder.gep(array, [index], inbounds=True)
    dtype = kinds[0].dtype
    if dtype.kind != "c":
        return add_at_once(builder, place, value)
    for n, part in enumerate(parts(builder, value)):
        add_at_once(builder, builder.gep(place, [WORD(0), WORD(n)], inbounds=True), part)
    return value


def add_at_once(builder: Builder, place: Value, value: Value) -> Value:
    """Add to a number in memory, without an order among such additions."""
    return builder.atomic_rmw("add" if isinstance(value.type, ir.IntType) else "fadd", place, value, "monotonic")


def emit_ticket(builder: Builder, kinds: Kinds, values: Values) -> Value:
    return add_at_once(builder, builder.gep(values[0], [values[1]], inbounds=True), LONG(1))


def emit_publish(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Store a value, and mark it with release semantics."""
    array, marks, index, value = values
    builder.store(value, builder.gep(array, [index], inbounds=True))
    place = builder.gep(marks, [index], inbounds=True)
    type_ = ir.FunctionType(ir.VoidType(), [place.type, LONG])
    return builder.asm(type_, "st.release.gpu.u64 [$0], $1;", "l,l,~{memory}", [place, LONG(1)], side_effect=True)


def emit_published(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Load a value when its mark is set, which is read with acquire semantics."""
    array, marks, index = values
    place = builder.gep(marks, [index], inbounds=True)
    again, then = builder.append_basic_block(), builder.append_basic_block()
    builder.branch(again)
    builder.position_at_end(again)
    type_ = ir.FunctionType(LONG, [place.type])
    mark = builder.asm(type_, "ld.acquire.gpu.u64 $0, [$1];", "=l,l,~{memory}", [place], side_effect=True)
    builder.cbranch(builder.icmp_signed("==", mark, LONG(0)), again, then)
    builder.position_at_end(then)
    return builder.load(builder.gep(array, [index], inbounds=True))


def add_to_rest(builder: Builder, total: Value, rest: Value, value: Value) -> tuple[Value, Value]:
    """The new total and rest; the rest of a total that is not finite is not read."""
    new_total, error = two_sum(builder, total, value)
    return new_total, builder.fadd(rest, error)


# ---- functions ---------------------------------------------------------------------------------------------------


def libm(builder: Builder, symbol: str, *values: Value) -> Value:
    """Call the function whose f64 form is `symbol`, for f64 or f32."""
    scalar = values[0].type
    return call(builder, symbol if isinstance(scalar, ir.DoubleType) else f"{symbol}f", scalar, *values)


def function(symbol: str) -> Emit:
    """The emitter of a function of libm."""
    return lambda builder, kinds, values: libm(builder, symbol, *values)


SYMBOLS = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "arctan2": "atan2",
    **{
        name: name
        for name in (
            "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "sin", "cos", "tan", "sinh", "cosh",
            "tanh", "erf", "erfc", "hypot", "nextafter",
        )
    },
}  # fmt: skip
"""The functions of libm, by the names of operations."""


def by_width(single: Emit, double: Emit) -> Emit:
    """The emitter of a function with a separate formula in f32."""
    return lambda builder, kinds, values: (single if values[0].type == FLOAT else double)(builder, kinds, values)


def undefined_at_infinity(symbol: str, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit a function that SciPy does not define at the infinities, where libdevice has its limits."""
    (x,) = values
    nothing = builder.fsub(x, x)  # 0, or nan
    return builder.select(builder.fcmp_ordered("==", nothing, nothing), libm(builder, symbol, x), nothing)


FARTHEST = 14.5
"""The argument from which the tail of the normal distribution is 0 in f32."""

SMOOTH_TAIL = (
    0.13962125778198242, 0.13986435532569885, 0.11981528252363205, 0.10557599365711212, -0.023267511278390884,
    0.15939953923225403, -0.2559087872505188, 0.14406467974185944, -0.02916482463479042,
)  # fmt: skip
"""The polynomial of exp(x²/2) Φ(-x) / t in t = 1 / (1 + 0.35 x), for x >= 0, to 2⁻²⁴ of it."""


def emit_normal_f32(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The normal distribution function in f32; LLVM computes its exponential once for the slope too."""
    x = Lane(builder, values[0])
    square = x * x
    exponential = Lane(builder, libm(builder, "exp", (square * -0.5).value))
    error = x.fma(x, -square)
    size = abs(x)
    divisor = size.fma(0.35, 1.0)
    t = Lane(builder, call(builder, "llvm.nvvm.rcp.approx.ftz.f", x.value.type, divisor.value))
    dividend = polynomial(SMOOTH_TAIL, t) * exponential.fma(error * -0.5, exponential)
    quotient = dividend * t
    tail = t.fma((-quotient).fma(divisor, dividend), quotient)
    tail = where(size > FARTHEST, 0.0, tail)
    return where(x > 0.0, 1.0 - tail, tail).value


SPECIAL = {
    **emitters(formulas.SPECIAL),
    "gamma": function("tgamma"), "exp10": function("exp10"), "ndtr": by_width(emit_normal_f32, function("normcdf")),
    **{name: partial(undefined_at_infinity, name) for name in ("j0", "j1", "y0", "y1")},
}  # fmt: skip
"""The functions of SciPy that have a formula or that libdevice has, for real numbers."""

COMPLEX = complex_functions.instructions(libm)


def of_floats(name: str, emit: Emit) -> Emit:
    """The emitter of a function, and of the complex one of this name if there is one."""
    return by_kind(f=emit, c=COMPLEX[name]) if name in COMPLEX else emit


def of_reals(name: str, emit: Emit) -> Emit:
    """The emitter of a function that has no complex form."""

    def refuse(builder: Builder, kinds: Kinds, values: Values) -> Value:
        raise LoweringError(f"cuda has no instructions for {name} of complex numbers")

    return by_kind(f=emit, c=refuse)


INSTRUCTIONS: Instructions = {
    **{name: of_floats(name, function(symbol)) for name, symbol in SYMBOLS.items()},
    **{f"{PREFIX}{name}": of_reals(name, emit) for name, emit in SPECIAL.items()},
    **emitters(formulas.OWN),
    "power": by_kind(iu=integer.power, f=function("pow"), c=COMPLEX["power"]),
    "sqrt": of_floats("sqrt", intrinsic("llvm.sqrt")),
    "abs": by_kind(
        i=integer.absolute, u=lambda builder, kinds, values: values[0], f=intrinsic("llvm.fabs"), c=COMPLEX["abs"]
    ),
    "thread": register("tid.x"),
    "block": register("ctaid.x"),
    "barrier": emit_barrier,
    "warp_barrier": emit_warp_barrier,
    "atomic_add": emit_atomic_add,
    "ticket": emit_ticket,
    "publish": emit_publish,
    "published": emit_published,
    "compensated_add": partial(compensated_by, add_to_rest),
    "shuffle_down": partial(shuffle, "down", LAST_LANE),
    "shuffle_up": partial(shuffle, "up", 0),
    "shuffle_first": emit_shuffle_first,
    **{routine.name: partial(shared_array, dtype) for dtype, routine in SHARED_ARRAYS.items()},
    **{routine.name: partial(own_array, dtype) for dtype, routine in LOCAL_ARRAYS.items()},
}
