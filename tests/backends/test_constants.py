"""Constants in compiled programs, to the bit but for which nan it is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fnad.backends.cpu.executor import compile_program
from fnad.ir.builder import current_builder, trace
from fnad.ir.parser import parse_program
from fnad.ir.printer import print_program
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ops.shape import broadcast_to

PARTS = (0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan)


def of_constants(values: list[np.generic]) -> Program:
    def constants() -> list[Symbol]:
        return [broadcast_to(current_builder().literal(value), (2,)) for value in values]

    return trace(constants, name="constants")


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_printed_complex_constants_compile_to_their_bits(dtype: type[np.complexfloating]) -> None:
    real = np.dtype(dtype).type(0).real.dtype
    values = [np.array(pair, real).view(dtype)[0] for pair in product(PARTS, PARTS)]
    program = parse_program(print_program(of_constants(list(values))))
    for found, value in zip(compile_program(program)([]), values, strict=True):
        np.testing.assert_array_equal(found, value)
        for part, expected in ((found.real, value.real), (found.imag, value.imag)):
            assert np.isnan(expected) or (np.signbit(part) == np.signbit(expected)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_real_constants_keep_value_and_sign(dtype: type[np.floating]) -> None:
    values = [dtype(part) for part in PARTS]
    for found, value in zip(compile_program(of_constants(list(values)))([]), values, strict=True):
        np.testing.assert_array_equal(found, value)
        assert np.isnan(value) or (np.signbit(found) == np.signbit(value)).all()
