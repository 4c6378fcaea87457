"""Elementwise primitives refuse what they do not take, and say what they take."""

from __future__ import annotations

import numpy as np
import pytest

from fnad.errors import DtypeError, ShapeError
from fnad.ir.types import DTYPES, Aval
from fnad.ops.arithmetic import add, div
from fnad.ops.comparison import lt, select
from fnad.ops.constructors import ANY, INEXACT, NUMBERS, by_name, elementwise_samples, random_array
from fnad.ops.elementary import cbrt, sin

F64, F32, C128, BOOL = (DTYPES[name] for name in ("f64", "f32", "c128", "bool"))


def test_operands_of_two_dtypes():
    with pytest.raises(DtypeError) as raised:
        add.infer(Aval(F64, (3,)), Aval(F32, (3,)))
    assert str(raised.value) == "add takes operands of one dtype, got f64[3] and f32[3]"


def test_operands_of_two_shapes():
    with pytest.raises(ShapeError) as raised:
        add.infer(Aval(F64, (3,)), Aval(F64, (1, 3)))
    assert str(raised.value) == "add takes operands of one shape, got f64[3] and f64[1,3]"


def test_wrong_number_of_operands():
    with pytest.raises(ShapeError) as raised:
        add.infer(Aval(F64, (3,)))
    assert str(raised.value) == "add takes 2 operands, got 1"


def test_dtype_outside_the_domain():
    with pytest.raises(DtypeError) as raised:
        cbrt.infer(Aval(C128, ()))
    assert str(raised.value) == "cbrt does not take c128\n  it takes f32, f64: convert with astype"
    for primitive, dtype in ((sin, DTYPES["i64"]), (div, DTYPES["i32"]), (add, BOOL), (lt, C128)):
        with pytest.raises(DtypeError, match=f"{primitive.name} does not take"):
            primitive.infer(*[Aval(dtype, ())] * (1 if primitive is sin else 2))


def test_select_chooses_by_a_bool():
    with pytest.raises(DtypeError) as raised:
        select.infer(Aval(F64, (2,)), Aval(F64, (2,)), Aval(F64, (2,)))
    assert str(raised.value) == "select chooses by a bool, got f64[2]\n  compare the values, as in x != 0"
    with pytest.raises(ShapeError, match="select takes operands of one shape"):
        select.infer(Aval(BOOL, (3,)), Aval(F64, (2,)), Aval(F64, (2,)))


def test_domains_are_listed_in_one_order():
    assert [str(dtype) for dtype in by_name(INEXACT)] == ["float32", "float64", "complex64", "complex128"]
    assert by_name(ANY)[0] == BOOL
    assert BOOL not in by_name(NUMBERS)


def test_samples_cover_the_domain_and_the_edges():
    samples = list(elementwise_samples(INEXACT, ((0.1, 0.9),), ((0.0,), (np.inf,))))
    assert [s.operands[0].dtype for s in samples] == [*by_name(INEXACT), F64]
    assert [s.smooth for s in samples] == [True] * 4 + [False]
    np.testing.assert_array_equal(samples[-1].operands[0], [0.0, np.inf])


def test_random_arrays_lie_in_their_interval():
    x = random_array(np.random.default_rng(0), (1000,), F64, (2.0, 3.0))
    assert x.min() >= 2
    assert x.max() <= 3
