"""Elementary functions by name: their real and complex forms, and how accurate they are."""

from __future__ import annotations

from dataclasses import dataclass

from fnad.backends.cpu import vector_math
from fnad.backends.cpu.vector_math import libm
from fnad.backends.llvm import branchless, complex_functions, integer
from fnad.backends.llvm.emitter import Builder, Dtype, Emit, Instructions, Kinds, Value, Values, by_kind
from fnad.backends.llvm.formulas.catalogue import ELEMENTARY, ELEMENTARY_F32, emitters
from fnad.backends.llvm.operators import intrinsic

FORMULAS = {8: emitters(ELEMENTARY), 4: emitters(ELEMENTARY | ELEMENTARY_F32)}
"""The formulas that replace functions of libm without vector variants, by the bytes of the operand."""

COMPLEX = complex_functions.instructions(libm)

FASTER = {8: frozenset({"exp", "tanh"}), 4: frozenset({"exp", "tanh", "erf"})}
"""The functions whose formulas take less time than the vector variants of libmvec, by the bytes of the operand."""


@dataclass(frozen=True, slots=True)
class LibmFunction:
    """A function of libm, and a bound on its error in units in the last place, for (f64, f32).

    The bound is the largest error measured over libmvec's variants for AVX-512, AVX2, SSE and NEON and the scalar
    function, plus a tenth. The C symbol is that of f64.
    """

    name: str
    symbol: str
    ulps: tuple[float, float]
    arity: int = 1

    @property
    def instructions(self) -> Emit:
        return by_kind(f=self.emit, c=COMPLEX[self.name]) if self.name in COMPLEX else self.emit

    def emit(self, builder: Builder, kinds: Kinds, values: Values) -> Value:
        is_called = self.name not in FASTER[kinds[0].itemsize] and vector_math.has_variants(self.symbol, values)
        formula = None if is_called else FORMULAS[kinds[0].itemsize].get(self.name)
        return libm(builder, self.symbol, *values) if formula is None else formula(builder, kinds, values)


def is_on_vectors(function: LibmFunction, dtype: Dtype) -> bool:
    """True if loops compute several elements of a function at once."""
    symbol = function.symbol if dtype.itemsize == 8 else f"{function.symbol}f"
    has_variants = bool(vector_math.variants(symbol, function.arity, dtype.itemsize))
    return has_variants or function.name in FORMULAS[dtype.itemsize]


def power(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The power base ** exponent; 1 ** nan is 1, for which libmvec's powf gives nan."""
    base, _ = values
    general = POWER.emit(builder, kinds, values)
    return builder.select(builder.fcmp_ordered("==", base, base.type(1.0)), base, general)


POWER = LibmFunction("power", "pow", (1.2, 2.2), arity=2)
FUNCTIONS = (
    LibmFunction("exp", "exp", (1.1, 1.1)),
    LibmFunction("exp2", "exp2", (1.8, 2.0)),
    LibmFunction("expm1", "expm1", (3.1, 2.4)),
    LibmFunction("log", "log", (1.7, 4.0)),
    LibmFunction("log2", "log2", (2.2, 2.7)),
    LibmFunction("log10", "log10", (2.3, 2.6)),
    LibmFunction("log1p", "log1p", (2.4, 2.1)),
    LibmFunction("cbrt", "cbrt", (3.6, 3.2)),
    LibmFunction("sin", "sin", (3.5, 2.0)),
    LibmFunction("cos", "cos", (3.8, 2.1)),
    LibmFunction("tan", "tan", (3.5, 3.6)),
    LibmFunction("arcsin", "asin", (2.9, 3.2)),
    LibmFunction("arccos", "acos", (2.1, 2.4)),
    LibmFunction("arctan", "atan", (2.0, 2.8)),
    LibmFunction("sinh", "sinh", (2.1, 2.1)),
    LibmFunction("cosh", "cosh", (2.1, 2.5)),
    LibmFunction("tanh", "tanh", (1.7, 1.7)),
    LibmFunction("arcsinh", "asinh", (2.8, 2.2)),
    LibmFunction("arccosh", "acosh", (2.9, 2.7)),
    LibmFunction("arctanh", "atanh", (2.4, 2.1)),
    LibmFunction("erf", "erf", (1.1, 2.4)),
    LibmFunction("erfc", "erfc", (3.5, 1.9)),
    LibmFunction("arctan2", "atan2", (2.8, 3.4), arity=2),
    LibmFunction("hypot", "hypot", (2.0, 1.6), arity=2),
)
ABSOLUTE = by_kind(
    i=integer.absolute, u=lambda builder, kinds, values: values[0], f=intrinsic("llvm.fabs"), c=COMPLEX["abs"]
)
INSTRUCTIONS: Instructions = {
    **{function.name: function.instructions for function in FUNCTIONS},
    "power": by_kind(iu=integer.power, f=power, c=COMPLEX["power"]),
    "sqrt": by_kind(f=intrinsic("llvm.sqrt"), c=COMPLEX["sqrt"]),
    "abs": ABSOLUTE,
    "nextafter": by_kind(f=branchless.next_after),
}
