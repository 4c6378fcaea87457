"""The place of arrays: the memory of the host, or the memory of a device.

An array of a device says so itself, by DLPack or `__cuda_array_interface__`, of whatever library it is. Programs take
it as an array of the driver's, which shares its memory. The driver (`fnad.backends.cuda.driver`), and with it all that
knows CUDA, is loaded when the first array or program asks for it.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from fnad import config
from fnad.errors import DtypeError, PlacementError

CUDA_KINDS = {2, 13}
"""DLPack's numbers for the memory of CUDA's devices, and for that which host and device share."""


def is_on_device(value: Any) -> bool:
    """True if a value is an array in the memory of a device."""
    kind = type(value)
    library = str(getattr(kind, "__module__", "")).partition(".")[0]  # a class that `exec` made may have none
    if library in ("numpy", "cupy"):  # whose arrays are of one kind; to ask CuPy's takes a call of CUDA's
        return library == "cupy" and hasattr(kind, "__cuda_array_interface__")
    if hasattr(kind, "__dlpack_device__"):
        try:
            return value.__dlpack_device__()[0] in CUDA_KINDS
        except (BufferError, RuntimeError, TypeError, ValueError):  # of memory that DLPack has no number for, or none
            return False
    return hasattr(kind, "__cuda_array_interface__") and hasattr(value, "__cuda_array_interface__")


def scipy_module(array: Any, name: str) -> Any:
    """SciPy's module of this name, kept out of `import fnad`; for CuPy arrays its own, of the same functions."""
    if not is_cupys(array):
        return import_module(f"scipy.{name}")
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of what CuPy itself imports
        return import_module(f"cupyx.scipy.{name}")


def is_cupys(array: Any) -> bool:
    """True if an array is a CuPy array; CuPy functions lack some of NumPy's options."""
    return type(array).__module__.partition(".")[0] == "cupy"


def driver() -> Any:
    """The driver that runs programs on the device; raises `DeviceError` if there is no device."""
    return import_module("fnad.backends.cuda.driver").current()


def is_on_host() -> bool:
    """True if the settings have programs run on the host."""
    return config.current().device == "cpu"


def adopted(value: Any) -> Any:
    """An array of a device as one of the driver's in the same memory.

    Raises `PlacementError` where programs run on the host, or on another device.
    """
    if is_on_host():
        raise PlacementError(
            "is in the memory of a GPU, and this runs on the CPU",
            remedy="run it there, in a block under fnad.device('cuda'), or copy it: fnad.to_host(x)",
        )
    return driver().adopt(value)


def is_drivers(value: Any) -> bool:
    """True if a value is an array of the driver's, which programs take as it is."""
    return is_on_device(value) and type(value) is driver().array_type


def on_host(value: Any) -> Any:
    """An array as NumPy's, which is itself if it is one."""
    return driver().to_host(value) if is_on_device(value) else value


NUMBERS = "?bhilqBHILQefdFD"
"""NumPy's letters of the dtypes that arrays of a GPU have."""


def on_device(value: Any) -> Any:
    """An array as the driver's, which is itself if it is one; raises `DtypeError` for what is not numbers."""
    if is_on_device(value):
        return driver().adopt(value)
    if value.dtype.char not in NUMBERS:
        what = f"an array of dtype {value.dtype} cannot be in the memory of a GPU"
        raise DtypeError(what, remedy="leave it out, or convert it with astype")
    return driver().to_device(value.astype(value.dtype.newbyteorder("="), copy=False))
