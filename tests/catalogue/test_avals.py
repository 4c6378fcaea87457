"""What a primitive infers is what it evaluates to, for every sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad.errors import FnadError
from fnad.ir.primitive import PRIMITIVES, Primitive, Scalar
from fnad.ir.types import DTYPES, Aval, aval_of
from fnad.testing import Run
from tests.catalogue.cases import CASES, Case, cases_of, over
from tests.together import in_groups


@in_groups("primitive", PRIMITIVES.values())
def test_primitive_has_a_doc_and_samples(primitive: Primitive):
    assert primitive.doc.endswith(".")
    assert cases_of(primitive)


@over(CASES)
def test_values_have_the_inferred_avals_and_leave_the_operands_as_they_were(case: Case, run: Run):
    before = [operand.copy() for operand in case.operands]
    results = run(case.program(), case.operands)
    assert tuple(aval_of(np.asarray(result)) for result in results) == case.program().out_avals
    for operand, copy in zip(case.operands, before, strict=True):
        np.testing.assert_array_equal(operand, copy)


def refusal(primitive: Primitive, avals: list[Aval], params: dict[str, Any]) -> str | None:
    """Return the message a primitive refuses these avals with, None if it takes them; any other exception is a bug."""
    try:
        primitive.infer(*avals, **params)
    except FnadError as error:
        return str(error)
    return None


@over(case for case in CASES if not case.sample.regions)
def test_every_dtype_is_taken_or_refused_by_name(case: Case):
    for dtype in DTYPES.values():
        message = refusal(case.primitive, [aval.with_dtype(dtype) for aval in case.avals], case.sample.params)
        assert message is None or case.primitive.name.split("_")[0] in message, dtype


@over(case for case in CASES if isinstance(case.primitive.lower, Scalar) and len(case.operands) > 1)
def test_elementwise_operands_are_not_broadcast(case: Case):
    first = case.avals[0]
    with pytest.raises(FnadError):
        case.primitive.infer(Aval(first.dtype, (7, *first.shape, 5)), *case.avals[1:], **case.sample.params)
