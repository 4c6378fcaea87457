"""Fourier transforms that kernels call, by symbolic names.

    fourier_full(x, y, rows, n, columns, inverse, factor):  y[rows,n,columns] = factor * fft of x[rows,n,columns]
    fourier_half(x, y, rows, n, columns, inverse, factor):  y[rows,n//2+1,columns] = the first half for real x
    fourier_real(x, y, rows, n, columns, inverse, factor):  y[rows,n,columns] = the real numbers of half a spectrum x

The transform is along the middle axis of contiguous arrays; `inverse` selects the sign of the exponent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.scalar.operation import Kind, OperandError, Operation, Pointer

PREFIX = "fourier_"


def _full(x: Any, n: int, inverse: bool) -> Any:
    return np.fft.ifft(x, axis=1, norm="forward") if inverse else np.fft.fft(x, axis=1)


def _half(x: Any, n: int, inverse: bool) -> Any:
    return np.fft.rfft(x, axis=1)


def _real(x: Any, n: int, inverse: bool) -> Any:
    return np.fft.irfft(x, n, axis=1, norm="forward")


EVALUATE = {"full": _full, "half": _half, "real": _real}


def _operation(name: str) -> Operation:
    def result(*kinds: Kind) -> Kind:
        if len(kinds) != 7 or not all(isinstance(kind, Pointer) for kind in kinds[:2]):
            raise OperandError(f"{PREFIX}{name} takes two arrays and five numbers")
        return None

    def plain(x: Any, y: Any, *numbers: float) -> None:
        rows, n, columns, inverse = map(int, numbers[:4])
        half = n // 2 + 1
        sizes = half if name == "real" else n, half if name == "half" else n
        source, target = (
            array[: rows * size * columns].reshape(rows, size, columns)
            for array, size in zip((x, y), sizes, strict=True)
        )
        target[...] = EVALUATE[name](source, n, bool(inverse)) * numbers[4]

    return Operation(PREFIX + name, result, plain)


FOURIER = {PREFIX + name: _operation(name) for name in EVALUATE}
"""The routines by name."""
