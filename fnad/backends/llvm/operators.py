"""Operators on scalars of one dtype, with NumPy's semantics: integers wrap."""

from __future__ import annotations

from fnad.backends.llvm.division import divide_complex
from fnad.backends.llvm.emitter import Builder, Emit, Instructions, Kinds, Value, Values, by_kind
from fnad.backends.llvm.scalar import call, is_true, multiply_complex, on_parts, overloaded, parts


def instruction(method: str) -> Emit:
    """The emitter of the builder's instruction `method`."""
    return lambda builder, kinds, values: getattr(builder, method)(*values)


def intrinsic(name: str) -> Emit:
    """The emitter of LLVM's intrinsic: one instruction, exactly rounded, vectorised everywhere."""
    return lambda builder, kinds, values: call(builder, overloaded(name, values[0].type), values[0].type, *values)


def by_parts(method: str) -> Emit:
    """The emitter that applies `method` to the real and imaginary parts separately."""
    return lambda builder, kinds, values: on_parts(builder, getattr(builder, method), *values)


def comparison(sign: str) -> Emit:
    """The emitter of the comparison `sign`; with nan only != is true."""
    floats = "fcmp_unordered" if sign == "!=" else "fcmp_ordered"
    combine = "or_" if sign == "!=" else "and_"

    def by(method: str) -> Emit:
        return lambda builder, kinds, values: getattr(builder, method)(sign, *values)

    def of_parts(builder: Builder, kinds: Kinds, values: Values) -> Value:
        both = zip(*(parts(builder, value) for value in values), strict=True)
        return getattr(builder, combine)(*(getattr(builder, floats)(sign, *part) for part in both))

    return by_kind(bu=by("icmp_unsigned"), i=by("icmp_signed"), f=by(floats), c=of_parts)


multiply = by_kind(
    iu=instruction("mul"), f=instruction("fmul"), c=lambda builder, kinds, values: multiply_complex(builder, *values)
)
INSTRUCTIONS: Instructions = {
    "add": by_kind(iu=instruction("add"), f=instruction("fadd"), c=by_parts("fadd")),
    "subtract": by_kind(iu=instruction("sub"), f=instruction("fsub"), c=by_parts("fsub")),
    "multiply": multiply,
    "divide": by_kind(f=instruction("fdiv"), c=lambda builder, kinds, values: divide_complex(builder, *values)),
    "negative": by_kind(iu=instruction("neg"), f=instruction("fneg"), c=by_parts("fneg")),
    "and": instruction("and_"),
    "or": instruction("or_"),
    "xor": instruction("xor"),
    "invert": instruction("not_"),
    "logical_not": lambda builder, kinds, values: builder.not_(is_true(builder, kinds[0], values[0])),
    "equal": comparison("=="),
    "not_equal": comparison("!="),
    "less": comparison("<"),
    "less_equal": comparison("<="),
    "greater": comparison(">"),
    "greater_equal": comparison(">="),
    "muladd": intrinsic("llvm.fmuladd"),
    **{name: intrinsic(f"llvm.{name}") for name in ("floor", "ceil", "trunc", "rint", "copysign")},
}
