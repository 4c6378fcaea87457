"""The real functions of libm, declared to LLVM with their vector variants in glibc's libmvec.

PyPI's llvmlite includes no vector math library. LLVM's loop vectoriser replaces a scalar call by a vector call wherever
the callee's declaration has the attribute `vector-function-abi-variant`, so a scalar `exp` declared with libmvec's
`_ZGVeN8v_exp` vectorises in any fused loop. Names follow the x86-64 vector function ABI: _ZGV, the letter of the
instruction set, N, the lanes, a v per operand, the scalar's name. Without libmvec (not Linux, not x86-64, glibc <
2.22, or < 2.35 for all but exp, log, pow, sin, cos) the calls stay scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import llvmlite.binding as llvm
import llvmlite.ir as ir

LIBRARY = "libmvec.so.1"
# The letter of each instruction set in vector symbols, the CPU feature it needs, its width in bytes; widest first.
INSTRUCTION_SETS = (("e", "avx512f", 64), ("d", "avx2", 32), ("b", "sse4.1", 16))


def has_variants(symbol: str, values: Sequence[ir.Value]) -> bool:
    """True if the function whose f64 form is `symbol` has vector variants for operands of this type."""
    is_double = isinstance(values[0].type, ir.DoubleType)
    return bool(variants(symbol if is_double else f"{symbol}f", len(values), 8 if is_double else 4))


def libm(builder: ir.IRBuilder, symbol: str, *values: ir.Value) -> ir.Value:
    """Call the function whose f64 form is `symbol`, for f64 or f32."""
    scalar = values[0].type
    name = symbol if isinstance(scalar, ir.DoubleType) else f"{symbol}f"
    return builder.call(announced(builder.module, name, scalar, len(values)), values)


@cache
def available() -> bool:
    """Whether libmvec can be loaded; loading it registers its symbols with LLVM."""
    try:
        llvm.load_library_permanently(LIBRARY)
    except RuntimeError:
        return False
    return llvm.address_of_symbol("_ZGVbN2v_exp") is not None


def register(_: str) -> None:
    """Register the symbols of libmvec, if it can be loaded."""
    available()


def describe() -> str:
    """The source of vector functions, for display."""
    if not available():
        return f"no {LIBRARY}: calls of exp, sin, … stay scalar"
    features = llvm.get_host_cpu_features()
    found = [feature for _, feature, _ in INSTRUCTION_SETS if features.get(feature)]
    return f"{LIBRARY}: {', '.join(found)}"


def preferred_bytes() -> int:
    """The width of the vectors that LLVM makes of its own accord: of processors with AVX-512, AMD's have the widest."""
    is_widest = llvm.get_host_cpu_name().startswith("znver") and llvm.get_host_cpu_features().get("avx512f")
    return INSTRUCTION_SETS[0 if is_widest else 1][2]


@cache
def variants(symbol: str, arity: int, itemsize: int) -> tuple[tuple[str, int], ...]:
    """The name and lanes of each vector variant of `symbol` that the library has and this CPU runs."""
    if not available():
        return ()
    features = llvm.get_host_cpu_features()
    named = [
        (f"_ZGV{letter}N{width // itemsize}{'v' * arity}_{symbol}", width // itemsize)
        for letter, feature, width in INSTRUCTION_SETS
        if features.get(feature)
    ]
    return tuple((name, lanes) for name, lanes in named if llvm.address_of_symbol(name) is not None)


def announced(module: ir.Module, symbol: str, scalar: ir.Type, arity: int) -> ir.Function:
    """The function `symbol`, declared with its vector variants on first use in `module`."""
    known = module.globals.get(symbol)
    return known if known is not None else announce(module, symbol, scalar, arity)


def announce(module: ir.Module, symbol: str, scalar: ir.Type, arity: int) -> ir.Function:
    function = declare(module, symbol, scalar, arity)
    vectors = variants(symbol, arity, 8 if isinstance(scalar, ir.DoubleType) else 4)
    if vectors:
        mapping = ",".join(f"_ZGV_LLVM_N{lanes}{'v' * arity}_{symbol}({name})" for name, lanes in vectors)
        set.add(function.attributes, f'"vector-function-abi-variant"="{mapping}"')
        keep(module, [declare(module, name, ir.VectorType(scalar, lanes), arity) for name, lanes in vectors])
    return function


def declare(module: ir.Module, name: str, type_: ir.Type, arity: int) -> ir.Function:
    """Declare a pure function, with attributes that llvmlite does not list."""
    function = ir.Function(module, ir.FunctionType(type_, [type_] * arity), name=name)
    for attribute in ("nounwind", "willreturn", "memory(none)"):
        set.add(function.attributes, attribute)
    return function


def keep(module: ir.Module, functions: list[ir.Function]) -> None:
    """Name vector functions in the module's `llvm.compiler.used` list: they must survive until the vectoriser runs."""
    used = module.globals.get("llvm.compiler.used")
    if used is None:
        used = ir.GlobalVariable(module, ir.ArrayType(ir.IntType(8).as_pointer(), 0), "llvm.compiler.used")
        used.linkage, used.section, used.initializer = "appending", "llvm.metadata", ir.Constant(used.value_type, [])
    pointers = [function.bitcast(ir.IntType(8).as_pointer()) for function in functions]
    elements = [*used.initializer.constant, *pointers]
    used.value_type = ir.ArrayType(ir.IntType(8).as_pointer(), len(elements))
    used.type = used.value_type.as_pointer()
    used.initializer = ir.Constant(used.value_type, elements)
