"""The functions of libm, announced to LLVM with their vector variants in glibc's libmvec.

PyPI's llvmlite carries no vector math library. LLVM's loop vectoriser replaces a scalar call by a vector call wherever the callee's
declaration has the attribute `vector-function-abi-variant`; so a scalar `exp` announced with libmvec's `_ZGVeN8v_exp` vectorises
inside any fused loop. Names follow the x86-64 vector function ABI: _ZGV <isa> N <lanes> <one v per operand> _ <symbol>.
Without libmvec (not Linux, not x86-64, glibc < 2.22, or < 2.35 for the less common functions) the calls stay scalar.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np

from fnad.backends.numba import complex_math, integer
from fnad.backends.numba.complex_math import library
from fnad.backends.numba.operation import Emit, Operation, among, by_kind
from fnad.backends.numba.scalar import call, overloaded, real_dtype

LIBRARY = "libmvec.so.1"
# The letter of each instruction set in vector symbols, the CPU feature it needs, its width in bytes; widest first.
INSTRUCTION_SETS = (("e", "avx512f", 64), ("d", "avx2", 32), ("b", "sse4.1", 16))


@cache
def available() -> bool:
    """Return whether libmvec is there; loading it makes its symbols known to LLVM."""
    try:
        llvm.load_library_permanently(LIBRARY)
    except RuntimeError:
        return False
    return llvm.address_of_symbol("_ZGVdN4v_exp") is not None


@cache
def variants(symbol: str, arity: int, itemsize: int) -> tuple[tuple[str, int], ...]:
    """Return (name, lanes) of each vector variant of `symbol` that the library has and this CPU runs."""
    if not available():
        return ()
    features = llvm.get_host_cpu_features()
    found = []
    for letter, feature, width in INSTRUCTION_SETS:
        lanes = width // itemsize
        name = f"_ZGV{letter}N{lanes}{'v' * arity}_{symbol}"
        if features.get(feature) and llvm.address_of_symbol(name) is not None:
            found.append((name, lanes))
    return tuple(found)


def declare(module: ir.Module, symbol: str, scalar: ir.Type, arity: int) -> ir.Function:
    """Return `symbol`, declared with its vector variants on first use in `module`."""
    known = module.globals.get(symbol)
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(scalar, [scalar] * arity), name=symbol)
    add_attributes(function, "nounwind", "willreturn", "memory(none)")
    vectors = variants(symbol, arity, 8 if isinstance(scalar, ir.DoubleType) else 4)
    if vectors:
        mapping = ",".join(f"_ZGV_LLVM_N{lanes}{'v' * arity}_{symbol}({name})" for name, lanes in vectors)
        add_attributes(function, f'"vector-function-abi-variant"="{mapping}"')
        keep(module, [declare_vector(module, name, ir.VectorType(scalar, lanes), arity) for name, lanes in vectors])
    return function


def add_attributes(function: ir.Function, *attributes: str) -> None:
    """Add attributes that llvmlite's own list of known ones lacks."""
    for attribute in attributes:
        set.add(function.attributes, attribute)


def declare_vector(module: ir.Module, name: str, vector: ir.Type, arity: int) -> ir.Constant:
    function = ir.Function(module, ir.FunctionType(vector, [vector] * arity), name=name)
    add_attributes(function, "nounwind", "willreturn", "memory(none)")
    return function.bitcast(ir.IntType(8).as_pointer())


def keep(module: ir.Module, pointers: list[ir.Constant]) -> None:
    """Name vector declarations in the module's one `llvm.compiler.used` list, so that they live until the vectoriser runs."""
    used = module.globals.get("llvm.compiler.used")
    if used is None:
        used = ir.GlobalVariable(module, ir.ArrayType(pointers[0].type, 0), "llvm.compiler.used")
        used.linkage, used.section, used.initializer = "appending", "llvm.metadata", ir.Constant(used.value_type, [])
    elements = [*used.initializer.constant, *pointers]
    used.value_type = ir.ArrayType(pointers[0].type, len(elements))
    used.type = used.value_type.as_pointer()
    used.initializer = ir.Constant(used.value_type, elements)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of libm and its largest measured error, in units in the last place, as (f64, f32).

    The C symbol is f64's; f32's adds an f. `complex_` is the emitter for complex operands, where NumPy has them.
    """

    name: str
    symbol: str
    ulps: tuple[float, float]
    plain: Callable[..., Any]
    complex_: Emit | None = None
    arity: int = 1

    def operation(self) -> Operation:
        if self.complex_ is None:
            return Operation(self.name, among("f"), self.emit, self.plain)
        return Operation(self.name, among("fc"), by_kind(f=self.emit, c=self.complex_), self.plain)

    def emit(self, builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
        symbol = self.symbol if kinds[0].itemsize == 8 else self.symbol + "f"
        return builder.call(declare(builder.module, symbol, values[0].type, self.arity), values)


def power(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    """Return base ** exponent; libmvec's powf gives nan for 1 ** nan, which is 1."""
    base, _ = values
    general = POWER.emit(builder, kinds, values)
    return builder.select(builder.fcmp_ordered("==", base, base.type(1.0)), base, general)


def scalar_function(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """Return the plain meaning of a function of the standard library, in its operand's dtype."""
    return lambda value: type(value)(function(value))


def intrinsic(name: str) -> Emit:
    """Return the emitter of LLVM's intrinsic: one instruction, exactly rounded, vectorised everywhere."""
    return lambda builder, kinds, values: call(builder, overloaded(name, values[0].type), values[0].type, *values)


def absolute_integer(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    """Return |value|; the least integer stays as it is."""
    (value,) = values
    return builder.select(builder.icmp_signed("<", value, value.type(0)), builder.neg(value), value)


POWER = Function("power", "pow", (1.1, 1.1), np.power, arity=2)
FUNCTIONS = (
    Function("exp", "exp", (2.7, 2.6), np.exp, library("cexp")),
    Function("exp2", "exp2", (1.1, 1.1), np.exp2),
    Function("expm1", "expm1", (2.1, 2.3), np.expm1),
    Function("log", "log", (1.6, 3.9), np.log, library("clog")),
    Function("log2", "log2", (1.9, 1.9), np.log2),
    Function("log10", "log10", (1.9, 2.3), np.log10),
    Function("log1p", "log1p", (1.9, 1.9), np.log1p),
    Function("cbrt", "cbrt", (1.9, 2.0), np.cbrt),
    Function("sin", "sin", (3.3, 1.8), np.sin, library("csin")),
    Function("cos", "cos", (3.6, 1.8), np.cos, library("ccos")),
    Function("tan", "tan", (3.1, 3.3), np.tan, library("ctan")),
    Function("arcsin", "asin", (2.5, 3.0), np.arcsin, library("casin")),
    Function("arccos", "acos", (1.8, 1.9), np.arccos, library("cacos")),
    Function("arctan", "atan", (1.9, 1.8), np.arctan, library("catan")),
    Function("sinh", "sinh", (2.0, 1.6), np.sinh, library("csinh")),
    Function("cosh", "cosh", (2.0, 2.4), np.cosh, library("ccosh")),
    Function("tanh", "tanh", (1.3, 1.5), np.tanh, library("ctanh")),
    Function("arcsinh", "asinh", (1.1, 1.1), np.arcsinh, library("casinh")),
    Function("arccosh", "acosh", (1.5, 1.3), np.arccosh, library("cacosh")),
    Function("arctanh", "atanh", (1.3, 1.6), np.arctanh, library("catanh")),
    Function("erf", "erf", (2.0, 2.5), scalar_function(math.erf)),
    Function("erfc", "erfc", (2.0, 2.0), scalar_function(math.erfc)),
    Function("arctan2", "atan2", (2.4, 3.1), np.arctan2, arity=2),
    Function("hypot", "hypot", (1.3, 1.3), np.hypot, arity=2),
    Function("nextafter", "nextafter", (0.0, 0.0), np.nextafter, arity=2),
)
OPERATIONS = (
    *(function.operation() for function in FUNCTIONS),
    Operation("power", among("iufc"), by_kind(iu=integer.power, f=power, c=complex_math.power), np.power),
    Operation("sqrt", among("fc"), by_kind(f=intrinsic("llvm.sqrt"), c=library("csqrt")), np.sqrt),
    Operation("floor", among("f"), intrinsic("llvm.floor"), np.floor),
    Operation("ceil", among("f"), intrinsic("llvm.ceil"), np.ceil),
    Operation("trunc", among("f"), intrinsic("llvm.trunc"), np.trunc),
    Operation("rint", among("f"), intrinsic("llvm.rint"), np.rint),
    Operation("copysign", among("f"), intrinsic("llvm.copysign"), np.copysign),
    Operation("abs", among("ifc", real_dtype), by_kind(i=absolute_integer, f=intrinsic("llvm.fabs"), c=complex_math.absolute), np.abs),
)
