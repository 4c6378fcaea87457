"""Complex functions of real ones, which targets without a complex libm use: compiled for the CPU, against NumPy's."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest

from fnad.backends.cpu import codegen
from fnad.backends.cpu.entry import add_entry
from fnad.backends.cpu.loader import ENTRY, builtin, link
from fnad.backends.cpu.target import CPU
from fnad.backends.cpu.vector_math import libm
from fnad.backends.llvm.complex_functions import FUNCTIONS, instructions
from fnad.backends.llvm.instructions import add_function
from tests.backends.test_instructions import Array
from tests.kernel_text import parse_kernel

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
def test_composed_complex_functions_are_as_accurate_as_numpys(dtype: str) -> None:
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


SIZES = {
    "c8": [30.0, 1e30, 1e-30, 1e-42, 1e9, 1e18, 88.9, 3e38, 1e-45],
    "c16": [30.0, 1e200, 1e-200, 1e-310, 1e17, 1e30, 709.9, 1.7e308, 5e-324],
}


@pytest.mark.parametrize("dtype", SIZES)
def test_infinities_nan_and_numbers_whose_squares_or_exponentials_are_infinite(dtype: str) -> None:
    """Each part is NumPy's, and so are the signs of zeros and infinities that C99 leaves open."""
    sizes = [0.0, 1.0, 2.0, np.inf, np.nan, *SIZES[dtype]]
    parts = [sign * size for size in sizes for sign in (1, -1)]
    x = np.array([complex(a, b) for a in parts for b in parts]).astype(dtype)
    *found, _ = computed(x)
    eps = np.finfo(dtype).eps
    for name, values in zip(NAMES, found, strict=True):
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(x)
        last = name in ("arcsin", "arcsinh", "arccos", "arccosh")  # whose products of roots are infinite
        few = np.abs(x) < np.finfo(dtype).max if last else np.ones(x.shape, bool)
        for part in (np.real, np.imag):
            a, b = part(values)[few], part(wanted)[few]
            np.testing.assert_allclose(a, b, rtol=64 * eps, atol=4 * np.finfo(dtype).tiny, err_msg=name)
            are_zeros = (a == 0) & (b == 0)
            np.testing.assert_array_equal(np.signbit(a[are_zeros]), np.signbit(b[are_zeros]), err_msg=name)


def test_the_logarithm_is_accurate_beside_the_unit_circle() -> None:
    """Each part, where log |z| is much smaller than its terms: against twice the digits."""
    rng = np.random.default_rng(3)
    z = np.exp(2j * np.pi * rng.random(300)) * (1 + 1e-9 * rng.standard_normal(300))
    found = computed(z)[NAMES.index("log")]
    with mpmath.workdps(40):
        exact = [mpmath.log(mpmath.mpc(complex(number))) for number in z]
        errors = [
            max(abs(x / y - 1) for x, y in ((a.real, b.real), (a.imag, b.imag)))
            for a, b in zip([mpmath.mpc(complex(number)) for number in found], exact, strict=True)
        ]
    assert max(errors) < 4 * np.finfo("f8").eps
