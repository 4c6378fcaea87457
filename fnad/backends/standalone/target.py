"""The CPU of this machine without the process around it: no threads, no interrupts, and the C library alone."""

from __future__ import annotations

from dataclasses import replace

import llvmlite.ir as ir

from fnad.backends.cpu import functions, masks
from fnad.backends.cpu.target import COSTS, CPU
from fnad.backends.cpu.vector_math import libm
from fnad.backends.llvm import accurate_sums, branchless, cast, complex_math, division, integer, operators, random_bits
from fnad.backends.llvm.emitter import Builder, Kinds, Value, Values, by_kind
from fnad.backends.llvm.formulas.catalogue import OWN, SPECIAL, emitters
from fnad.backends.standalone.c_libraries import PRODUCTS, ROUTINES
from fnad.kernel.routines import LOCAL_ARRAYS
from fnad.scalar.scipy_ufunc import PREFIX


def emit_not_interrupted(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """False: no signal handler of Python runs."""
    return ir.IntType(1)(0)


def emit_exp(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The exponential: the scalar function of libm before the first loop of a kernel, where nothing is vectorised."""
    is_scalar = builder.block is builder.function.entry_basic_block and isinstance(values[0].type, ir.DoubleType)
    return libm(builder, "exp", *values) if is_scalar else functions.INSTRUCTIONS["exp"](builder, kinds, values)


FAMILIES = (
    cast, operators, branchless, division, integer, functions, complex_math, random_bits, accurate_sums, masks,
)  # fmt: skip

STANDALONE = replace(
    CPU,
    name="standalone",
    costs=replace(COSTS, parallel_nanoseconds=2**62, interrupt_nanoseconds=2**62),
    instructions={
        **{name: emit for family in FAMILIES for name, emit in family.INSTRUCTIONS.items()},
        **{f"{PREFIX}{name}": by_kind(f=formula) for name, formula in emitters(SPECIAL).items()},
        **emitters(OWN),
        **{routine.name: CPU.instructions[routine.name] for routine in LOCAL_ARRAYS.values()},
        "exp": emit_exp,
        "interrupted": emit_not_interrupted,
    },
    counts_steps=False,
)
"""Matrix products are loops here, and what needs LAPACK or SciPy is refused."""

WITH_BLAS = replace(
    STANDALONE,
    name="standalone with BLAS",
    instructions={**STANDALONE.instructions, **{name: CPU.instructions[name] for name in (*PRODUCTS, *ROUTINES)}},
)
"""The same beside CBLAS and LAPACKE, which C code calls by name."""
