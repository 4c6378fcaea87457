"""Formulas as text: what they name, what numbers in them are, and that each that is declared can be evaluated."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
import scipy.special

from fnad.ir.builder import trace
from fnad.ir.primitive import PRIMITIVES, Partials
from fnad.ir.types import DTYPES, Aval
from fnad.numpy.scipy_ufuncs import UFUNCS
from fnad.ops.formula import WORDS, Formula, formula, parse_signature
from fnad.ops.special_function import special
from fnad.scalar.scipy_ufunc import scipy_function
from fnad.transforms.interpret import interpret

F64, C128 = DTYPES["f64"], DTYPES["c128"]


def evaluated(text: str, *operands: complex) -> float:
    names = "xyz"[: len(operands)]
    arrays = [np.asarray(operand) for operand in operands]
    program = trace(lambda *symbols: [Formula(names, text)(*symbols)], *[Aval(array.dtype) for array in arrays])
    return interpret(program, arrays)[0]


def test_a_formula_is_an_expression_of_primitives_and_formulas() -> None:
    assert evaluated("exp(x) * y - log1p(1.0 / y)", 0.5, 2.0) == np.exp(0.5) * 2 - np.log1p(0.5)
    assert evaluated("log_ratio(x)", 1.5) == pytest.approx(np.log1p(0.5) / 0.5, rel=1e-15)


def test_a_number_is_a_constant_of_the_last_operand_and_real() -> None:
    assert evaluated("maximum(x, 1.0) + 2.0", 0.5) == 3
    assert evaluated("pi / 180", 0.5) == np.pi / 180
    assert evaluated("hyp0f1(1.5, x * x * -0.25)", 1j) == pytest.approx(np.sinh(1), rel=1e-15)


def test_a_number_beside_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"1\.0 stands beside no operand"):
        evaluated("select(lt(x, 0.0), 1.0, 2.0)", 0.5)


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(ValueError, match="the formula 'jw\\(x\\)' names jw, which is no primitive and no formula"):
        evaluated("jw(x)", 0.5)
    with pytest.raises(ValueError, match="names open"):
        evaluated("open(x)", 0.5)


def test_every_declared_formula_names_only_what_there_is() -> None:
    partials = [p.derivative.functions for p in PRIMITIVES.values() if isinstance(p.derivative, Partials)]
    declared = [f for f in (*WORDS.values(), *sum(partials, ())) if isinstance(f, Formula)]
    assert len(declared) > 250
    assert not WORDS.keys() & PRIMITIVES.keys()
    for each in declared:
        each.check()


def test_signatures_of_formulas_are_parsed_or_refused() -> None:
    assert parse_signature("eval_jacobi(n: int, alpha, x)") == ("eval_jacobi", ["n: int", "alpha", "x"])
    with pytest.raises(ValueError, match=r"a signature is like f\(x, y\), not jv"):
        parse_signature("jv")


def test_declarations_that_contradict_themselves() -> None:
    with pytest.raises(ValueError, match=r"nothing\(v, x\) has a derivative in z"):
        special("nothing(v, x)", "Nothing.", z="x")
    with pytest.raises(ValueError, match="sinc is declared twice"):
        formula("sinc(x)", "x")
    with patch.dict(PRIMITIVES), patch.dict(UFUNCS), pytest.raises(ValueError, match="nothing is not number 0"):
        special("nothing(x)", "Nothing.", ufunc="something[1]")


def test_every_ufunc_has_a_row_for_each_result() -> None:
    installed = [name for name in UFUNCS if name.startswith("_") or hasattr(scipy.special, name)]
    assert len(installed) > 130
    for name in installed:
        ufunc, primitives = scipy_function(name), UFUNCS[name].primitives
        operands = next(iter(primitives[0].samples())).operands
        assert (ufunc.nin, ufunc.nout) == (len(operands), len(primitives)), name
