"""Every primitive on the threads of a device: run by the harness against the interpreter.

Those that call functions of libdevice, of which the harness knows nothing, are run as LLVM compiles them, where that
library is. These are NumPy's and SciPy's where they have no limit, too.
"""

from __future__ import annotations

import numpy as np
import pytest

from fnad.backends.cuda.executor import DeviceExecutor
from fnad.backends.cuda.instructions import SYMBOLS
from fnad.errors import FnadError, LoweringError
from fnad.ir.primitive import Scalar
from fnad.kernel.launches import DevicePlan, Launch
from fnad.lower.lowering import lower
from fnad.scalar.scipy_ufunc import PREFIX
from fnad.testing import SCALE, assert_close, tolerance
from fnad.transforms.interpret import interpret
from tests.catalogue.cases import CASES, Case
from tests.cuda import native
from tests.cuda.test_ptx import features, has_libdevice
from tests.gpu import SMALL, Simulated
from tests.together import drawn

PARTS = 4
MOST_KERNELS = 9


def form(case: Case) -> tuple[object, ...]:
    """What the kernels of a case depend on: functions have another form in single precision."""
    return case.primitive.name, any(aval.dtype.char in "fF" for aval in case.avals)


ELEMENTWISE, OTHERS = ([c for c in CASES if isinstance(c.primitive.lower, Scalar) == flag] for flag in (True, False))
DRAWN = [*drawn(ELEMENTWISE, form), *drawn(OTHERS, form)]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_each_primitive_on_simulated_threads_is_interpreted(part: int) -> None:
    for n, case in enumerate(DRAWN[part::PARTS]):
        try:
            plan = DevicePlan(lower(case.program(), SMALL), SMALL)
        except LoweringError as error:
            assert "cuda" in str(error), case  # noqa: PT017
            continue
        check(case, plan, seed=n)


def is_compiled(plan: DevicePlan) -> bool:
    """True if LLVM compiles a program; long ones are exponentials of matrices, which call no function of their own."""
    return has_libdevice() and len(plan.launches) <= MOST_KERNELS and any(map(calls_libdevice, plan.launches.values()))


def calls_libdevice(launch: Launch) -> bool:
    names = {found[0] for found in features(launch.kernel) if isinstance(found, tuple)}
    return not names.isdisjoint({*SYMBOLS, "power"}) or any(name.startswith(PREFIX) for name in map(str, names))


def results(plan: DevicePlan, case: Case, seed: int) -> list[np.ndarray]:
    def run(device: Simulated) -> list[np.ndarray]:
        return [array.memory for array in DeviceExecutor(plan, device)(list(map(np.asarray, case.operands)))]

    if is_compiled(plan):
        try:
            return run(native.Compiled(seed, SMALL.grid.warp))
        except LoweringError as error:
            assert "cuda has no instructions" in str(error), error  # noqa: PT017
    return run(Simulated(seed, SMALL.grid.warp))


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
