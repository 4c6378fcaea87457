"""Every primitive on the threads of a device: run by the harness against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from fnad.backends.cuda.executor import DeviceExecutor
from fnad.errors import FnadError, LoweringError
from fnad.kernel.launches import DevicePlan
from fnad.lower.lowering import lower
from fnad.testing import SCALE, assert_close, tolerance
from fnad.transforms.interpret import interpret
from tests.catalogue.cases import CASES, Case
from tests.gpu import SMALL, Simulated

PARTS = 8


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_each_primitive_on_simulated_threads_is_interpreted(part: int) -> None:
    for n, case in enumerate(CASES[part::PARTS]):
        try:
            plan = DevicePlan(lower(case.program(), SMALL), SMALL)
        except LoweringError as error:
            assert "cuda" in str(error), case  # noqa: PT017
            continue
        check(case, plan, seed=n)


def results(plan: DevicePlan, case: Case, seed: int) -> list[np.ndarray]:
    found = DeviceExecutor(plan, Simulated(seed, SMALL.grid.warp))(list(map(np.asarray, case.operands)))
    return [array.memory for array in found]


def check(case: Case, plan: DevicePlan, seed: int) -> None:
    with np.errstate(all="ignore"):
        try:
            wanted = interpret(case.program(), case.operands)
        except FnadError as error:
            with pytest.raises(type(error)):
                results(plan, case, seed)
            return
    try:
        for found, expected in zip(results(plan, case, seed), wanted, strict=True):
            expected = np.asarray(expected)  # noqa: PLW2901
            assert found.dtype == expected.dtype
            assert_close(found, expected, tolerance(found.dtype), SCALE)
    except AssertionError as error:
        raise AssertionError(f"{case}: {error}\n{plan.source}") from error
