"""Generators of random numbers: those of `random` and `numpy.random` that all users share, and others."""

from __future__ import annotations

import ctypes
import functools
import pickle
import sys
from typing import Any, cast

from fnad import forks


def draws_numbers(value: Any) -> bool:
    """True if a value is a generator of random numbers, of NumPy or Python."""
    modules = [getattr(kind, "__module__", "") for kind in type(value).__mro__]
    return any(module == "random" or str(module).startswith("numpy.random.") for module in modules)


def shared_states() -> tuple[object, ...]:
    """The states of the generators that `random` and `numpy.random` share among all their users."""
    import random  # noqa: PLC0415 - not by `import fnad`

    numpy_random = forks.loaded("numpy.random")
    of_numpy = () if numpy_random is None else _state_of_numpy(numpy_random.mtrand._rand)
    return *_state_of_python(cast("Any", random)._inst), *of_numpy


def have_drawn(before: tuple[object, ...]) -> bool:
    """True if a shared generator has another state than `before`; one that was imported since, if it was used."""
    now = shared_states()
    is_imported = now[: len(before)] == before and len(now) > len(before)
    return now != before and not (is_imported and _is_unused(sys.modules["numpy.random"].mtrand._rand))


def _is_unused(shared: Any) -> bool:
    """True if NumPy's shared generator is as its seed leaves it, which sets the first word to 2**31."""
    state = shared._bit_generator.state
    words, place = state["state"].get("key", [0]), state["state"].get("pos")
    return words[0] == 2**31 and place == len(words) - 1


def is_shared(value: Any) -> bool:
    """True if a value is the generator that all users of `numpy.random` share."""
    numpy_random = forks.loaded("numpy.random")
    return numpy_random is not None and value is numpy_random.mtrand._rand


def _state_of_numpy(shared: Any) -> tuple[object, ...]:
    """The state of NumPy's shared generator, whose numbers somebody else's class may make."""
    bits = shared._bit_generator
    is_numpys = type(bits).__module__.startswith("numpy.random.")
    return memory_of(shared, type(shared)), memory_of(bits, type(bits)) if is_numpys else pickle.dumps(bits)


def _state_of_python(shared: Any) -> tuple[object, ...]:
    """The state of Python's shared generator, with the number that `gauss` has left over."""
    return memory_of(shared, type(shared).__mro__[1]), shared.gauss_next


def memory_of(value: Any, kind: type) -> bytes:
    """The memory of an object that is of a class written in C, without what every object has.

    Reading the states of generators makes hundreds of numbers, which takes longer than a short trace.
    """
    return _block_of(kind).from_address(id(value) + object.__basicsize__).raw


@functools.cache
def _block_of(kind: type) -> type[ctypes.Array[ctypes.c_char]]:
    return ctypes.c_char * (kind.__basicsize__ - object.__basicsize__)
