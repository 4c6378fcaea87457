"""Formulas of functions: their accuracy, special values, and that loops of them vectorise."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.ir as ir
import numpy as np
import pytest

from fnad.backends.cpu import codegen, vector_math
from fnad.backends.cpu.loader import link
from fnad.backends.llvm.formulas import trigonometric
from fnad.backends.llvm.formulas.definition import Formula, defined
from fnad.backends.llvm.scalar import llvm_type

Array = np.ndarray[Any, Any]
INF, NAN = np.inf, np.nan
LONG = ir.IntType(64)


class Case(NamedTuple):
    """A formula, the truth in a wider dtype, and the largest error in units in the last place."""

    name: str
    formula: Formula
    truth: Callable[[Array], Array]
    dtypes: str
    ulps: float
    values: list[tuple[float, float]]


CASES = (
    Case("sin", trigonometric.sin, np.sin, "f", 0.85, [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
    Case("cos", trigonometric.cos, np.cos, "f", 0.85, [(0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
)
BY_DTYPE = [pytest.param(case, letter, id=f"{case.name}-{letter}") for case in CASES for letter in case.dtypes]


def loop_of(case: Case, dtype: np.dtype[Any]) -> ir.Module:
    """Return the module of a function run(x, y, n) that computes y[i] for each x[i]."""
    module, number = codegen.new_module("formula"), llvm_type(dtype)
    pointer = number.as_pointer()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer, pointer, LONG]), name="run")
    x, y, count = function.args
    x.add_attribute("noalias")
    y.add_attribute("noalias")
    before, body, end = map(function.append_basic_block, ("before", "body", "end"))
    ir.IRBuilder(before).branch(body)
    builder = ir.IRBuilder(body)
    index = builder.phi(LONG)
    value = defined(case.name, case.formula)(builder, [dtype], [builder.load(builder.gep(x, [index]))])
    builder.store(value, builder.gep(y, [index]))
    following = builder.add(index, LONG(1))
    index.add_incoming(LONG(0), before)
    index.add_incoming(following, body)
    builder.cbranch(builder.icmp_signed("<", following, count), body, end)
    ir.IRBuilder(end).ret_void()
    return module


def evaluated(module: Any, level: int, x: Array) -> Array:
    engine = link(codegen.object_code(module, level))
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(engine.get_function_address("run"))
    y = np.empty_like(x)
    run(x.ctypes.data, y.ctypes.data, x.size)
    return y


def errors(found: Array, true: Array) -> Array:
    """Return the distances in units in the last place; infinite where infinities or nans differ."""
    rounded = true.astype(found.dtype)
    unit = np.spacing(np.maximum(np.abs(rounded), np.finfo(found.dtype).tiny)).astype(true.dtype)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    finite = np.isfinite(found) & np.isfinite(rounded)
    return np.where(finite, np.abs(found.astype(true.dtype) - true) / unit, np.where(same, 0, INF))


def every_f32(stride: int) -> Array:
    return np.arange(0, 2**32, stride, np.uint64).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize(("case", "letter"), BY_DTYPE)
def test_formulas_are_as_accurate_as_stated(case: Case, letter: str) -> None:
    dtype = np.dtype(letter)
    x = every_f32(40_009)
    with np.errstate(all="ignore"):
        found, true = evaluated(codegen.optimized(loop_of(case, dtype)), codegen.HIGHEST, x), case.truth(x.astype("f8"))
        assert errors(found, true).max() <= case.ulps


@pytest.mark.parametrize(("case", "letter"), BY_DTYPE)
def test_special_values_are_those_of_c99(case: Case, letter: str) -> None:
    x, expected = (np.array(column, letter) for column in zip(*case.values, strict=True))
    for level, translate in ((codegen.HIGHEST, codegen.optimized), (codegen.PLAIN, codegen.plain)):
        found = evaluated(translate(loop_of(case, x.dtype)), level, x)
        np.testing.assert_array_equal(found, expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize(("case", "letter"), BY_DTYPE)
def test_loops_of_formulas_vectorise(case: Case, letter: str) -> None:
    module = str(codegen.optimized(loop_of(case, np.dtype(letter))))
    lanes = vector_math.preferred_bytes() // np.dtype(letter).itemsize
    assert f"store <{lanes} x " in module
    assert "define internal" not in module
