"""Templates: what primitives state their scalar expressions in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad.ir.primitive import PRIMITIVES, templates_of
from fnad.scalar.notation import TEXTS, Text
from fnad.scalar.operation import Operation
from fnad.scalar.operations import OPERATIONS
from fnad.scalar.template import check, instantiate, parse

F32 = np.dtype("f4")


class Values:
    """Makes numbers: a template is computed at once."""

    def constant(self, value: Any) -> Any:
        return value

    def apply(self, operation: Operation, *operands: Any) -> Any:
        return operation(*operands)


def computed(template: str, *operands: Any) -> Any:
    return instantiate(template, Values(), np.asarray(operands[0]).dtype, {str(n): x for n, x in enumerate(operands)})


def test_a_template_is_computed_in_the_dtype_of_its_result() -> None:
    value = computed("{0} * log1p(exp({dtype}(-2) * abs({0}))) - {dtype}(0.1)", np.float32(1.5))
    assert value.dtype == F32
    assert value == np.float32(1.5) * np.log1p(np.exp(np.float32(-3))) - np.float32(0.1)


@pytest.mark.parametrize(
    ("dtype", "lowest", "highest"),
    [("f4", -np.inf, np.inf), ("i1", -128, 127), ("u2", 0, 65535), ("b1", False, True)],
)
def test_bounds_are_those_of_the_dtype(dtype: str, lowest: float, highest: float) -> None:
    for word, bound in (("{lowest}", lowest), ("{highest}", highest)):
        found = instantiate(word, Values(), np.dtype(dtype), {})
        assert found.dtype == np.dtype(dtype)
        assert found == bound


def test_numbers_of_other_dtypes_are_cast_by_name() -> None:
    assert computed("f64({0}) * f64(0.1)", np.float32(2)) == 0.2
    assert np.isneginf(computed("{dtype}(-inf)", np.float64(0)))


def test_a_word_that_is_no_operation_is_refused() -> None:
    with pytest.raises(ValueError, match="no scalar operation: tan_h"):
        check("tan_h({0})")
    with pytest.raises(ValueError, match="no meaning at"):
        parse("{0} ** {1}")


def test_every_declared_template_parses() -> None:
    found = {text for primitive in PRIMITIVES.values() for text in templates_of(primitive.lower)}
    assert len(found) > 80
    for text in found:
        parse(text)


def test_text_has_the_parentheses_that_are_needed() -> None:
    operands = {"0": Text("a"), "1": Text("b + c", 11)}
    for template, text in {
        "{0} * {1}": "a * (b + c)",
        "{0} - {1}": "a - (b + c)",
        "{1} - {0}": "b + c - a",
        "-{1}": "-(b + c)",
        "exp({1})": "exp(b + c)",
        "({0} < {1}) & ({0} == {0})": "(a < b + c) & (a == a)",
    }.items():
        assert instantiate(template, TEXTS, F32, operands).text == text


def test_the_table_has_each_name_once() -> None:
    assert all(name == operation.name for name, operation in OPERATIONS.items())
