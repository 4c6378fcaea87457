"""Cholesky factorizations of matrices of a kernel, by LAPACK's potrf of a lower triangle.

The lower triangle of LAPACK, which stores matrices by columns, is the upper one of a row-major matrix. So an upper
factor takes the place of a copy of the matrix, and a lower one the place of a transposed copy. LAPACK's upper triangle
would need no transposes, but OpenBLAS takes 1.4 times as long for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fnad.backends.cpu.blas import address, by_reference, call_blas
from fnad.backends.cpu.matrices import at, copy, each, memory, transpose
from fnad.backends.cpu.ufunc_loops import BYTE, LONG, WORD, place
from fnad.backends.llvm.instructions import constant

if TYPE_CHECKING:
    from fnad.backends.cpu.linalg import RoutineCall
    from fnad.backends.llvm.emitter import Builder, Value


def factors(is_lower: bool, builder: Builder, given: RoutineCall, a: Value, factors: Value) -> Value:
    """1 if a matrix is not positive definite."""
    dtype, m = given.dtypes[0], given.sizes["m"]
    failed = place(builder, WORD)
    builder.store(WORD(0), failed)
    with memory(builder, (dtype, m * m if is_lower else 0)) as (work,), each(builder, given.matrices) as matrix:
        source, target = (builder.gep(array, [builder.mul(matrix, LONG(m * m))]) for array in (a, factors))
        if is_lower:
            transpose(builder, source, work, m, m)
            failure = factorized(builder, given, work)
            transpose(builder, work, target, m, m)
        else:
            copy(builder, dtype, source, target, m * m)
            failure = factorized(builder, given, target)
        builder.store(builder.or_(builder.load(failed), failure), failed)
        with each(builder, m) as row:
            first, count = (builder.add(row, LONG(1)), builder.sub(LONG(m - 1), row)) if is_lower else (LONG(0), row)
            with each(builder, count) as number:
                builder.store(constant(0, dtype), at(builder, target, row, m, builder.add(first, number)))
    return builder.load(failed)


def fails(is_lower: bool, builder: Builder, given: RoutineCall, a: Value, failed: Value) -> Value:
    """Store 1 for each matrix that is not positive definite, otherwise 0."""
    dtype, m = given.dtypes[0], given.sizes["m"]
    with memory(builder, (dtype, m * m)) as (work,), each(builder, given.matrices) as matrix:
        source = builder.gep(a, [builder.mul(matrix, LONG(m * m))])
        if is_lower:
            transpose(builder, source, work, m, m)
        else:
            copy(builder, dtype, source, work, m * m)
        builder.store(builder.zext(factorized(builder, given, work), LONG), builder.gep(failed, [matrix]))
    return WORD(0)


def factorized(builder: Builder, given: RoutineCall, columns: Value) -> Value:
    """Write the lower factor in the place of a matrix that is stored by columns; 1 if it is not positive definite."""
    m = given.sizes["m"]
    triangle, order, info = by_reference(builder, BYTE(ord("L")), WORD(m), WORD(0))
    call_blas(builder, given.dtypes[0], "potrf", LONG(m**3), triangle, order, address(builder, columns), order, info)
    found = builder.load(builder.bitcast(info, WORD.as_pointer()))
    return builder.zext(builder.icmp_signed("!=", found, WORD(0)), WORD)
