"""Pytrees in the memory of a device, and back: `to_device`, `to_host`, and the block that says where programs run."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from fnad import config
from fnad.api.leaves import map_leaves, to_user
from fnad.placement import driver, is_on_device, on_device, on_host


def device(name: str) -> AbstractContextManager[config.Settings]:
    """Run programs on a device, "cuda" or "cpu", in a block of code; `jit(f, device=name)` does so for one function.

    On "cuda" the arrays of arguments may be NumPy's, which are copied there, or those of CuPy, PyTorch, JAX and others
    in the memory of the GPU, which are not. Results are CuPy arrays.

    Raises `SettingError` for a device that fnad does not know.

    >>> import fnad
    >>> with fnad.device("cpu"):
    ...     fnad.grad(lambda x: x**2)(3.0)
    np.float64(6.0)
    """
    return config.on(name)


def to_device(tree: Any) -> Any:
    """The pytree with its arrays in the memory of the GPU, as CuPy arrays; what is there already is not copied.

    Python numbers stay what they are, since their dtype gives way to that of an array beside them.

    Raises `DeviceError` where no GPU can be used: `fnad doctor` says what is missing.
    """
    return map_leaves(lambda value: on_device(value) if _is_array(value) else value, tree)


def to_host(tree: Any) -> Any:
    """The pytree with its arrays as NumPy's, those without dimensions as numbers; what is NumPy's is not copied.

    >>> to_host({"w": 1.0})
    {'w': 1.0}
    """
    return map_leaves(lambda value: to_user(on_host(value)) if is_on_device(value) else value, tree)


def block_until_ready(tree: Any) -> Any:
    """The pytree as it is, when all that was computed on the device for it is done; on the CPU results are there.

    >>> block_until_ready((1.0, 2.0))
    (1.0, 2.0)
    """
    found: list[Any] = []
    map_leaves(lambda value: found.append(value) if is_on_device(value) else None, tree)
    if found:
        driver().synchronize()
    return tree


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) or is_on_device(value)
