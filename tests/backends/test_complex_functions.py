"""Complex functions of real ones, which targets without a complex libm use: compiled for the CPU, against NumPy's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fnad.backends.cpu import codegen
from fnad.backends.cpu.entry import add_entry
from fnad.backends.cpu.loader import ENTRY, builtin, link
from fnad.backends.cpu.target import CPU
from fnad.backends.cpu.vector_math import libm
from fnad.backends.llvm.complex_functions import FUNCTIONS, instructions
from fnad.backends.llvm.instructions import add_function
from fnad.kernel.parser import parse_kernel
from tests.backends.test_instructions import Array

NAMES = [*FUNCTIONS, "expm1", "log1p"]
TARGET = replace(CPU, instructions={**CPU.instructions, **instructions(libm)})


def computed(x: Array) -> list[Array]:
    """All functions of the elements of an array, in one kernel."""
    stores = "".join(f"        out{n}[i] = {name}(x[i])\n" for n, name in enumerate(NAMES))
    outputs = [f"out{n}" for n in range(len(NAMES))] + ["square"]
    stores += "        square[i] = power(x[i], x[i])\n"
    source = f"def kernel(x, {', '.join(outputs)}):\n    for i in range({x.size}):\n{stores}"
    module = codegen.new_module("kernel")
    function = add_function(module, parse_kernel(source, "kernel", [x.dtype] * (1 + len(outputs))), TARGET)
    add_entry(module, ENTRY, [a.type for a in function.args], lambda builder, given: builder.call(function, given))
    engine = link(codegen.machine().emit_object(codegen.optimized(module)))
    found = [np.empty_like(x) for _ in outputs]
    builtin("kernel", engine.get_function_address(ENTRY), engine)(x, *found)
    return found


def compare(found: Array, wanted: Array, name: str, scale: float) -> None:
    error = np.abs(found - wanted) / np.maximum(np.abs(wanted), scale)
    worst = int(np.argmax(error))
    assert error[worst] < 64 * np.finfo(found.dtype).eps, (name, worst, found[worst], wanted[worst])


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_values(dtype: str) -> None:
    rng = np.random.default_rng(0)
    size = np.exp(rng.uniform(-6, 2, 4000))
    x = (size * np.exp(2j * np.pi * rng.random(4000))).astype(dtype)
    *found, powers = computed(x)
    for name, values in zip(NAMES, found, strict=True):
        wanted = getattr(np, name)(x.astype(np.complex128)).astype(dtype)
        compare(values, wanted, name, 1.0 if name in ("expm1", "log1p") else np.finfo(dtype).eps)
    compare(powers, np.power(x.astype(np.complex128), x).astype(dtype), "power", 0.0)


def test_signs_of_zeros_choose_the_side_of_a_branch_cut() -> None:
    parts = [-3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0]
    x = np.array([complex(a, b) for a in parts for b in parts])
    *found, _ = computed(x)
    for name, values in zip(NAMES, found, strict=True):
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(x)
        is_finite = np.isfinite(wanted)
        np.testing.assert_allclose(values[is_finite], wanted[is_finite], rtol=1e-14, atol=1e-15, err_msg=name)


def test_infinities_of_the_exponential_and_the_roots() -> None:
    x = np.array(
        [complex(-np.inf, np.inf), complex(-np.inf, 1), complex(np.inf, 0), complex(1, np.inf), complex(-1, -np.inf)]
    )
    found = dict(zip(NAMES, computed(x), strict=False))
    np.testing.assert_array_equal(found["exp"][:3], [0, 0, np.inf])
    np.testing.assert_array_equal(found["sqrt"][3:], [complex(np.inf, np.inf), complex(np.inf, -np.inf)])
