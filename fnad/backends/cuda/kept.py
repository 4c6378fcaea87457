"""The assembly of kernels on disk, for later processes, found by their text and all else that it is made of.

What a driver makes of it for its GPU, the driver keeps itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache

from fnad import disk
from fnad.backends.cuda import ptx
from fnad.backends.cuda.libdevice import path
from fnad.backends.surroundings import state, surroundings
from fnad.errors import LoweringError
from fnad.kernel.launches import Launch
from fnad.kernel.python_source import plain_text


def kept_ptx(launches: Sequence[Launch], arch: str) -> bytes:
    """The PTX of kernels: what is on disk, or what is made and kept there."""
    cache = disk.current()
    key = key_of(launches, arch)
    text = None if cache is None else cache.read(key)
    if text is None:
        text = ptx.ptx_of_all(launches, arch).encode()
        if cache is not None:
            cache.write(key, text)
    return text


def key_of(launches: Sequence[Launch], arch: str) -> str:
    """The key of the PTX of kernels on disk."""
    parts = [(launch.kernel.name, plain_text(launch.kernel), str(launch.threads)) for launch in launches]
    texts = [part.encode() for each in parts for part in each]
    return disk.digest(b"ptx", surroundings(), library(), f"{arch} {ptx.FEATURES}".encode(), *texts)


@cache
def library() -> bytes:
    """The identity of a libdevice."""
    with suppress(LoweringError):
        return repr((str(path()), *state(path().stat()))).encode()
    return b""
