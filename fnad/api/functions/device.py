"""Pytrees in the memory of a device, and back: `to_device`, `to_host`, and the block that says where programs run."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from fnad import config
from fnad.api.staging.leaves import map_leaves, to_user
from fnad.placement import driver, is_on_device, on_device, on_host


def device(name: str) -> AbstractContextManager[config.Settings]:
    """Run programs on a device, in a block of code; `jit(f, device=name)` does so for one function.

    Parameters:
        name ({"cpu", "cuda"}): On "cuda", NumPy arrays are copied to the GPU, arrays of CuPy, PyTorch, JAX and others
            on the GPU are used in place, and results are CuPy arrays.
    Returns:
        context manager: Restores the settings at the end of the block.
    Raises:
        SettingError: If there is no such device.
    Examples:
        >>> import fnad
        >>> with fnad.device("cpu"):
        ...     fnad.grad(lambda x: x**2)(3.0)
        np.float64(6.0)
    """
    return config.on(name)


def to_device(tree: Any) -> Any:
    """The pytree with its arrays on the GPU, as CuPy arrays.

    Parameters:
        tree (pytree): Arrays on the GPU are not copied, and Python numbers stay as they are: their dtype adapts to that
            of an array.
    Returns:
        pytree: With the structure, shapes and dtypes of `tree`.
    Raises:
        DeviceError: If no GPU can be used; `fnad doctor` lists what is missing.
    Examples:
        >>> import fnad
        >>> fnad.to_device({"rate": 0.1})
        {'rate': 0.1}
    """
    return map_leaves(lambda value: on_device(value) if _is_array(value) else value, tree)


def to_host(tree: Any) -> Any:
    """The pytree with its arrays as NumPy arrays, and arrays from the GPU without dimensions as NumPy numbers.

    Parameters:
        tree (pytree): NumPy arrays are not copied.
    Returns:
        pytree: With the structure, shapes and dtypes of `tree`.
    Examples:
        >>> import fnad
        >>> fnad.to_host({"w": 1.0})
        {'w': 1.0}
    """
    return map_leaves(lambda value: to_user(on_host(value)) if is_on_device(value) else value, tree)


def block_until_ready(tree: Any) -> Any:
    """The pytree itself, once its arrays on the device are computed; at once on the CPU.

    Parameters:
        tree (pytree): Any pytree.
    Returns:
        pytree: `tree` itself.
    Examples:
        >>> import fnad
        >>> fnad.block_until_ready((1.0, 2.0))
        (1.0, 2.0)
    """
    found: list[Any] = []
    map_leaves(lambda value: found.append(value) if is_on_device(value) else None, tree)
    if found:
        driver().synchronize()
    return tree


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) or is_on_device(value)
