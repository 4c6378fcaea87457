"""What a primitive infers is what it evaluates to, for every sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad.errors import FnadError
from fnad.ir.primitive import PRIMITIVES, Primitive, Scalar
from fnad.ir.types import DTYPES, Aval, aval_of
from fnad.testing import Run
from tests.catalogue.cases import cases_of
from tests.together import together

by_name = pytest.mark.parametrize("primitive", PRIMITIVES.values(), ids=str)


@by_name
def test_primitive_has_a_doc_and_samples(primitive: Primitive):
    assert primitive.doc.endswith(".")
    assert cases_of(primitive)


@by_name
def test_values_have_the_inferred_avals_and_leave_the_operands_as_they_were(primitive: Primitive, run: Run):
    with together() as check:
        for case in cases_of(primitive):
            with check(case):
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


@by_name
def test_every_dtype_is_taken_or_refused_by_name(primitive: Primitive):
    with together() as check:
        for case in cases_of(primitive):
            for dtype in DTYPES.values() if not case.sample.regions else ():
                with check(f"{case} of {dtype}"):
                    message = refusal(primitive, [aval.with_dtype(dtype) for aval in case.avals], case.sample.params)
                    assert message is None or primitive.name.split("_")[0] in message


@pytest.mark.parametrize("primitive", [p for p in PRIMITIVES.values() if isinstance(p.lower, Scalar)], ids=str)
def test_elementwise_operands_are_not_broadcast(primitive: Primitive):
    with together() as check:
        for case in cases_of(primitive):
            if len(case.operands) > 1:
                first = case.avals[0]
                grown = Aval(first.dtype, (7, *first.shape, 5))
                with check(case), pytest.raises(FnadError):
                    primitive.infer(grown, *case.avals[1:], **case.sample.params)
