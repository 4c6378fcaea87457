"""Additions at computed places in any order, `scatter_add="atomic"`: by the harness, and as PTX."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad.backends.cuda import driver, executor
from fnad.backends.cuda.executor import launch_lines
from fnad.backends.cuda.ptx import ptx_of_all
from fnad.errors import OutOfRangeError
from fnad.kernel.launches import DevicePlan, Launch
from fnad.kernel.python_source import kernel_text
from fnad.kernel.traffic import additions
from fnad.lower.lowering import lower
from fnad.lower.target import Target
from fnad.testing import assert_close, tolerance
from tests.cuda.harness import KernelError, run
from tests.cuda.test_grid import SMALL, program_of, results
from tests.cuda.test_ptx import has_libdevice
from tests.gpu import Simulated
from tests.kernel_text import parse_kernel

ATOMIC, SORTED = replace(SMALL, adds_atomically=True), SMALL
RNG = np.random.default_rng(0)
PLACES = RNG.integers(-20, 20, 300)
SKEWED = np.where(RNG.random((2, 300)) < 0.7, 3, PLACES)


def added(x: Any, y: Any, *places: Any) -> Any:
    total = np.array(x)
    np.add.at(total, places, y)
    return total


def assigned(x: Any, y: Any, places: Any) -> Any:
    copy = np.array(x)
    copy[places] = y
    return copy


def repeated(x: Any, y: Any, places: Any) -> Any:
    return fnad.fori_loop(0, 3, lambda i, c: added(np.sin(c), y * i, places), x)


def drawn(dtype: Any, *shape: int) -> np.ndarray:
    values = RNG.uniform(0, 9, shape) * ((1 + 0.5j) if np.dtype(dtype).kind == "c" else 1)
    return values.astype(dtype)


def of_gathered(x: Any, places: Any) -> Any:
    return fnad.grad(lambda x: np.sum(np.sin(x[places]) ** 2))(x)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    **{d: (added, (drawn(d, 20), drawn(d, 300), PLACES), 1) for d in ("f4", "f8", "i4", "i8", "u4", "u8")},
    **{d: (added, (drawn(d, 20), drawn(d, 300), PLACES), 2) for d in ("c8", "c16")},
    **{d: (added, (drawn(d, 20), drawn(d, 300), PLACES), 0) for d in ("i1", "i2")},
    "rows": (added, (drawn("f8", 20, 3), drawn("f8", 300, 3), PLACES), 1),
    "at two indices": (added, (drawn("f8", 20, 20), drawn("f8", 300), PLACES, PLACES[::-1]), 1),
    "at indices with two axes": (added, (drawn("f8", 20), drawn("f8", 2, 300), SKEWED), 1),
    "one element": (added, (drawn("f8", 1), drawn("f8", 300), PLACES * 0), 1),
    "gradient of a gather": (of_gathered, (drawn("f8", 20), PLACES), 1),
    "gradient of gathered rows": (of_gathered, (drawn("f4", 20, 3), PLACES), 1),
    "counts": (lambda places: np.bincount(places, minlength=40), (PLACES + 20,), 1),
    "in a loop": (repeated, (drawn("f8", 20), drawn("f8", 300), PLACES), 1),
    "assignments": (assigned, (drawn("f8", 20), drawn("f8", 300), PLACES), 0),
}
"""Functions, their arguments, and the atomic additions in the text of their kernels."""


def plan_of(name: str, target: Target) -> DevicePlan:
    function, arguments, _ = PROGRAMS[name]
    return DevicePlan(lower(program_of(function, arguments), target), target)


@pytest.mark.parametrize("name", PROGRAMS)
def test_sums_are_those_of_numpy_whatever_the_order(name: str) -> None:
    function, arguments, count = PROGRAMS[name]
    plan, wanted = plan_of(name, ATOMIC), np.asarray(function(*arguments))
    assert plan.source.count("atomic_add(") == min(count, 1)
    for seed in (0, 1):
        (found,) = results(plan, arguments, seed)
        assert found.dtype == wanted.dtype
        assert_close(found, wanted, tolerance(found.dtype))
        if found.dtype.kind in "iu":
            assert_array_equal(found, wanted)


def test_the_gradient_of_a_gather_is_the_sum_of_those_of_its_elements() -> None:
    _, (x, places), _ = PROGRAMS["gradient of a gather"]
    (found,) = results(plan_of("gradient of a gather", ATOMIC), (x, places), 0)
    assert_allclose(found, np.bincount(places % 20, minlength=20) * np.sin(2 * x), rtol=1e-12)


def test_the_order_of_additions_is_not_kept() -> None:
    plan, arguments = plan_of("f8", ATOMIC), PROGRAMS["f8"][1]
    assert len({results(plan, arguments, seed)[0].tobytes() for seed in range(4)}) > 1


@pytest.mark.slow
@pytest.mark.skipif(not has_libdevice(), reason="nvidia-nvvm, which has libdevice, is for Linux on x86-64")
def test_assembly_has_atomic_instructions_where_asked_and_nowhere_else() -> None:
    words = {"f4": "f32", "f8": "f64", "c8": "f32", "c16": "f64", "u4": "u32", "i4": "u32", "u8": "u64", "i8": "u64"}
    names = (*words, "i2", "rows", "gradient of gathered rows", "assignments")
    for target in (ATOMIC, SORTED):
        launches = {name: [*plan_of(name, target).launches.values()][-1] for name in names}
        kernels = [replace(launch.kernel, name=f"kernel{n}") for n, launch in enumerate(launches.values())]
        given = [replace(launch, kernel=kernel) for launch, kernel in zip(launches.values(), kernels, strict=True)]
        texts = re.split(r"(?=\.visible \.entry )", ptx_of_all(given))[1:]
        for name, text in zip(names, texts, strict=True):
            _, (x, *_), count = PROGRAMS[name]
            word = words.get(x.dtype.str[1:])
            assert re.findall(r"\b(?:atom|red)\.(\S+)", text) == [f"global.add.{word}"] * (count * (target is ATOMIC))
    assert not any("atomic_add" in plan_of(name, SORTED).source for name in names)


def test_what_is_not_added_atomically_is_a_race() -> None:
    (*_, launch) = plan_of("f8", ATOMIC).launches.values()
    text, dtypes = kernel_text(launch.kernel), [p.kind.dtype for p in launch.kernel.parameters]
    by_steps = re.sub(r"atomic_add\((\w+), (\w+), (\w+)\)", r"\1[\2] = \1[\2] + \3", text)
    arrays = [np.ones(300, dtype) if dtype.kind == "f" else np.zeros(300, dtype) for dtype in dtypes]
    for source in (by_steps, re.sub(r"( +)(atomic_add.*)", r"\1\2\n\1out0[k0] = 0.0", text)):
        assert source != text
        kernel = parse_kernel(source, launch.kernel.name, dtypes)
        with pytest.raises(KernelError, match="a race for out0"):
            run(Launch(kernel, launch.blocks, launch.threads), arrays, random.Random(0), SMALL.grid.warp)


def test_an_addition_out_of_range_is_an_error() -> None:
    x, y, places = PROGRAMS["f8"][1]
    for wrong in (20, -21):
        with pytest.raises(OutOfRangeError, match="an index is out of range"):
            results(plan_of("f8", ATOMIC), (x, y, np.where(np.arange(300) == 17, wrong, places)), 0)


def test_few_additions_and_those_of_columns_for_all_threads_keep_their_order() -> None:
    few = program_of(added, (drawn("f8", 20), drawn("f8", 7), PLACES[:7]))
    wide = program_of(added, (drawn("f8", 20, 48), drawn("f8", 30, 48), PLACES[:30]))
    for program in (few, wide):
        assert "atomic_add" not in DevicePlan(lower(program, ATOMIC), ATOMIC).source


def test_additions_are_explained_by_their_number() -> None:
    launches = [launch for name in ("rows", "c16", "assignments") for launch in plan_of(name, ATOMIC).launches.values()]
    assert [count for count in map(additions, launches) if count] == [900, 600]
    lines = list(launch_lines(plan_of("rows", ATOMIC)))
    assert sum(", 900 atomic additions" in line for line in lines) == 1
    assert not any("atomic" in line for line in launch_lines(plan_of("rows", SORTED)))


def test_the_setting_is_that_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "CUDA", SMALL)
    x, y, places = PROGRAMS["f8"][1]
    with driver.using(Simulated(warp=4)):
        run_on = fnad.jit(added, device="cuda")
        found: dict[str, set[bytes]] = {"deterministic": set(), "atomic": set()}
        for _ in range(4):
            for setting, results in found.items():
                with fnad.config.override(scatter_add=setting):
                    results.add(fnad.to_host(run_on(x, y, places)).tobytes())
        assert [len(results) > 1 for results in found.values()] == [False, True]


def test_a_pullback_is_compiled_by_the_setting_under_which_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "CUDA", SMALL)
    made: list[bool] = []
    plan = executor.plan

    def noted(*given: Any) -> Any:
        found = plan(*given)
        made.append("atomic_add" in found.source)
        return found

    monkeypatch.setattr(executor, "plan", noted)
    x, places = PROGRAMS["gradient of a gather"][1]
    with driver.using(Simulated(warp=4)), fnad.device("cuda"):
        for setting, other in (("atomic", "deterministic"), ("deterministic", "atomic")):
            with fnad.config.override(scatter_add=setting):
                _, pull = fnad.vjp(lambda x: np.sin(x[places]), x)
            made.clear()
            with fnad.config.override(scatter_add=other):
                (found,) = pull(np.ones(300))
            assert made == [setting == "atomic"]
            assert_allclose(fnad.to_host(found), np.bincount(places % 20, minlength=20) * np.cos(x), rtol=1e-12)


def test_on_the_cpu_the_setting_has_no_effect() -> None:
    traces: list[int] = []
    x, y, places = PROGRAMS["f8"][1]
    run_on = fnad.jit(lambda *given: (traces.append(1), added(*given))[1])
    for setting in ("deterministic", "atomic"):
        with fnad.config.override(scatter_add=setting):
            assert_array_equal(run_on(x, y, places), added(x, y, places))
    assert len(traces) == 1
